/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/clear_to_send.h"

#include <assert.h>

#include "base/bitmap.h"
#include "base/least.h"

/* Retransmissions back off to at most this many overdue times, or 1/8 of the time since the last
 * acknowledgement, so that a receive which waits for a slow application costs little, and so does a peer
 * that is gone. */
#define REPEAT_BACKOFF_MAX 6u /* 2^6 */
#define SILENCE_FRACTION   8u
/* A round trip that a peer made up must not overflow a sum (nine years; clocks start near zero). */
#define SPAN_MAX_NS ((lh_time)1 << 58 >> REPEAT_BACKOFF_MAX)

/* Sequences wrap: a is before b when the distance is less than half the range. */
static bool before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static struct cts_announcement *announcement_at(const struct cts_announcer *announcer, uint32_t sequence)
{
    return ring_at(&announcer->ring, sequence);
}

static struct control_cts *entry_at(const struct ring *ring, uint32_t sequence)
{
    return ring_at(ring, sequence);
}

void cts_announcer_init(struct cts_announcer *announcer, uint32_t size)
{
    *announcer = (struct cts_announcer){.size = size, .repeat_at = LH_TIME_NEVER};
    ring_init(&announcer->ring, sizeof(struct cts_announcement), size);
}

bool cts_announce(struct cts_announcer *announcer, struct control_cts *entry)
{
    if (announcer->next - announcer->acked == announcer->size)
        return false;
    entry->sequence = announcer->next++;
    assert(entry->sequence - announcer->acked < announcer->ring.size);
    announcement_at(announcer, entry->sequence)->entry = *entry;
    return true;
}

static bool is_hasty(const struct cts_announcer *announcer, lh_time overdue_ns)
{
    return announcer->haste > 0 && overdue_ns >= CTS_HASTE_MIN_NS;
}

/* The first waits are all as long: a retransmission may be lost, too, and that is no reason yet to wait
 * longer than a round trip. Later ones are twice as long as the one before. What was waited counts, and
 * not how often: before a round trip was measured retransmissions are a millisecond apart, and as many
 * doublings of what was measured then could be minutes. */
static lh_time next_wait(struct cts_announcer *announcer, lh_time overdue_ns)
{
    lh_time least = overdue_ns ? overdue_ns : CTS_FIRST_REPEAT_NS;
    least = least < SPAN_MAX_NS ? least : SPAN_MAX_NS;
    lh_time most = lh_most(least << REPEAT_BACKOFF_MAX, announcer->silent_ns / SILENCE_FRACTION);
    uint32_t parts = is_hasty(announcer, overdue_ns) ? CTS_HASTE : 1;
    bool patient = overdue_ns != 0 && announcer->waits < CTS_PATIENT_WAITS * parts;
    lh_time wait = announcer->waited_ns;
    if (!patient)
        wait = wait < most / 2 ? 2 * wait : most;
    wait = lh_most(wait, patient ? least / parts : least);
    announcer->waits += overdue_ns != 0;
    announcer->waited_ns = wait;
    announcer->silent_ns += wait;
    return wait;
}

/* An answer came. Was the first transmission lost, for it came after an overdue time? */
static void note_haste(struct cts_announcer *announcer, lh_time overdue_ns)
{
    if (announcer->waits > (is_hasty(announcer, overdue_ns) ? CTS_HASTE : 1))
        announcer->haste = CTS_HASTE_MEMORY;
    else if (announcer->haste > 0)
        announcer->haste--;
}

/* When the oldest is due, at the news that those before it have arrived. */
static lh_time due_at(struct cts_announcer *announcer, lh_time now, lh_time overdue_ns)
{
    lh_time sent_ns = announcement_at(announcer, announcer->acked)->sent_ns;
    lh_time due = now + next_wait(announcer, overdue_ns);
    return overdue_ns ? lh_least(due, lh_most(now, sent_ns + lh_least(overdue_ns, SPAN_MAX_NS))) : due;
}

bool cts_on_ack(struct cts_announcer *announcer, uint32_t next, lh_time now, lh_time overdue_ns)
{
    if (!before(announcer->acked, next) || before(announcer->announced, next))
        return false;
    announcer->acked = next;
    note_haste(announcer, overdue_ns);
    announcer->waits = 0;
    announcer->waited_ns = 0;
    announcer->silent_ns = 0;
    announcer->repeat_at =
        next == announcer->announced ? LH_TIME_NEVER : due_at(announcer, now, overdue_ns);
    return true;
}

static struct control_cts send_at(const struct cts_announcer *announcer, uint32_t sequence, lh_time now)
{
    struct cts_announcement *announcement = announcement_at(announcer, sequence);
    announcement->sent_ns = now;
    return announcement->entry;
}

uint32_t cts_collect(struct cts_announcer *announcer, lh_time now, lh_time overdue_ns,
                     struct control_cts *out, uint32_t room, uint32_t *repeated)
{
    uint32_t count = 0;
    *repeated = 0;
    /* Bounded by the ring: announced never passes next. */
    while (count < room && announcer->announced != announcer->next)
        out[count++] = send_at(announcer, announcer->announced++, now);
    if (count > 0) {
        if (announcer->repeat_at == LH_TIME_NEVER)
            announcer->repeat_at = now + next_wait(announcer, overdue_ns);
        return count;
    }
    if (now < announcer->repeat_at)
        return 0;
    /* Only the oldest: when the first of a lost batch is acknowledged, the acknowledgement shows what else
     * is missing, and the next retransmission begins there. */
    for (uint32_t s = announcer->acked; count < room && s != announcer->announced; s++)
        out[count++] = send_at(announcer, s, now);
    *repeated = count;
    announcer->repeat_at = now + next_wait(announcer, overdue_ns);
    assert(count > 0);
    return count;
}

void cts_on_refused(struct cts_announcer *announcer, uint32_t count, uint32_t repeated, lh_time now)
{
    assert(repeated == 0 || repeated == count);
    assert(count <= announcer->announced - announcer->acked);
    if (repeated) {
        if (announcer->waits == 0 || announcer->waits > CTS_PATIENT_WAITS)
            announcer->waited_ns /= 2;
        announcer->waits -= announcer->waits > 0;
        announcer->repeat_at = now;
        return;
    }
    announcer->announced -= count;
    if (announcer->announced == announcer->acked) {
        announcer->waits = 0;
        announcer->waited_ns = 0;
        announcer->silent_ns = 0;
        announcer->repeat_at = LH_TIME_NEVER;
    }
}

lh_time cts_announcer_next(const struct cts_announcer *announcer)
{
    return announcer->announced != announcer->next ? 0 : announcer->repeat_at;
}

void cts_queue_init(struct cts_queue *queue, uint64_t *present, uint32_t size)
{
    *queue = (struct cts_queue){.present = present, .size = size};
    ring_init(&queue->ring, sizeof(struct control_cts), size);
}

uint32_t cts_queue_places(const struct cts_queue *queue, uint32_t sequence)
{
    uint32_t distance = sequence - queue->next_use;
    bool known = distance < queue->size && lh_bitmap_get(queue->present, sequence & (queue->size - 1));
    return distance >= queue->size || known ? 0 : distance + 1;
}

void cts_queue_add(struct cts_queue *queue, const struct control_cts *entry)
{
    uint32_t places = cts_queue_places(queue, entry->sequence);
    if (places == 0)
        return;
    assert(places <= queue->ring.size);
    *entry_at(&queue->ring, entry->sequence) = *entry;
    lh_bitmap_set(queue->present, entry->sequence & (queue->size - 1));
    /* Bounded by the window. */
    while (queue->received - queue->next_use < queue->size &&
           lh_bitmap_get(queue->present, queue->received & (queue->size - 1)))
        queue->received++;
}

const struct control_cts *cts_queue_peek(const struct cts_queue *queue)
{
    uint32_t place = queue->next_use & (queue->size - 1);
    return lh_bitmap_get(queue->present, place) ? entry_at(&queue->ring, queue->next_use) : NULL;
}

void cts_queue_pop(struct cts_queue *queue)
{
    assert(cts_queue_peek(queue));
    lh_bitmap_clear(queue->present, queue->next_use & (queue->size - 1));
    queue->next_use++;
    assert(!before(queue->received, queue->next_use));
}

bool cts_queue_is_empty(const struct cts_queue *queue)
{
    uint64_t any = 0;
    for (size_t i = 0; i < LH_BITMAP_WORDS((size_t)queue->size); i++)
        any |= queue->present[i];
    return any == 0;
}
