/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/send_queue.h"

#include <assert.h>
#include <stdatomic.h>

#include <longhaul/types.h>

#include "base/bitmap.h"
#include "base/min_max.h"
#include "fabric/fabric.h"
#include "store/store.h"
#include "wire/control_messages.h"

/* ---- send queue ------------------------------------------------------------------------------------ */

/* Where a walk over a channel's packets stands. */
struct position {
    uint32_t next;
    uint32_t cursor;
};

static struct send_range *range_at(const struct send_channel *channel, uint32_t position)
{
    return ring_at(&channel->ring, position);
}

void send_channel_init(struct send_channel *channel)
{
    ring_init(&channel->ring, sizeof(struct send_range), SEND_RANGES_MAX);
}

uint32_t send_channel_ranges(const struct send_channel *channel)
{
    return atomic_load_explicit(&channel->head, memory_order_relaxed) -
           atomic_load_explicit(&channel->tail, memory_order_acquire);
}

static uint32_t next_of(const struct send_channel *channel)
{
    return atomic_load_explicit(&channel->next, memory_order_relaxed);
}

bool send_channel_empty(const struct send_channel *channel)
{
    return atomic_load_explicit(&channel->head, memory_order_acquire) == next_of(channel);
}

bool send_channel_has_room(const struct send_channel *channel, uint32_t ranges)
{
    return send_channel_ranges(channel) + ranges <= SEND_RANGES_MAX;
}

/* Moves `cursor` (within the range) on to the next packet of this channel; range->count when there is none.
 */
static uint32_t next_own(const struct send_shape *shape, const struct send_range *range, uint32_t index,
                         uint32_t cursor)
{
    if (shape->channels == 1 || cursor >= range->count)
        return cursor < range->count ? cursor : range->count;
    uint32_t packet = range->first + cursor;
    uint32_t stripe = packet / shape->stripe_packets;
    uint32_t ahead = (index + shape->channels - stripe % shape->channels) % shape->channels;
    if (ahead == 0)
        return cursor;
    uint32_t target = (stripe + ahead) * shape->stripe_packets;
    uint32_t moved = target - range->first;
    return moved < range->count ? moved : range->count;
}

bool send_range_touches(const struct send_range *range, const struct send_shape *shape, uint32_t index)
{
    return next_own(shape, range, index, 0) < range->count;
}

void send_channel_post(struct send_channel *channel, const struct send_range *range)
{
    assert(range->count > 0 && send_channel_ranges(channel) < channel->ring.size);
    uint32_t head = atomic_load_explicit(&channel->head, memory_order_relaxed);
    *range_at(channel, head) = *range;
    atomic_store_explicit(&channel->head, head + 1, memory_order_release);
}

/* Of the range's payload; a range without any has an empty packet. */
static uint64_t bytes_before(const struct send_shape *shape, const struct send_range *range,
                             uint32_t cursor)
{
    return lh_min((uint64_t)cursor * shape->mtu_bytes, range->bytes);
}

static uint32_t packet_bytes(const struct send_shape *shape, const struct send_range *range,
                             uint32_t cursor)
{
    return (uint32_t)(bytes_before(shape, range, cursor + 1) - bytes_before(shape, range, cursor));
}

/* Packets of this channel in a row, from one of them on. */
static uint32_t own_run(const struct send_shape *shape, const struct send_range *range, uint32_t cursor)
{
    uint32_t left = range->count - cursor;
    if (shape->channels == 1)
        return left;
    uint32_t stripe = shape->stripe_packets;
    return (uint32_t)lh_min(stripe - (range->first + cursor) % stripe, left);
}

static struct fabric_write write_of(const struct send_shape *shape, const struct send_range *range,
                                    uint32_t cursor)
{
    const struct send_message *message = range->message;
    uint32_t packet = range->first + cursor;
    uint32_t fragment =
        message->has_immediate ? immediate_fragment_of(shape->split, message->user_immediate, packet) : 0;
    struct immediate_fields fields = {.message = message->slot, .packet = packet, .fragment = fragment};
    uint32_t bytes = packet_bytes(shape, range, cursor);
    return (struct fabric_write){
        .payload = bytes ? range->payload + (size_t)cursor * shape->mtu_bytes : NULL,
        .bytes = bytes,
        .lkey = range->lkey,
        .va = bytes ? message->base + (uint64_t)packet * shape->mtu_bytes : message->base,
        .rkey = message->rkey,
        .immediate = immediate_join(shape->split, fields),
        .generation = message->generation,
    };
}

static bool is_aborted(const struct send_range *range)
{
    return atomic_load_explicit(&range->message->aborted, memory_order_acquire);
}

/* Steps to the next packet that this channel injects; false at the end of the queue, and before an aborted
 * range: its payload may be gone. send_channel_drop_aborted() clears the way when it comes to the front. */
static bool settle(const struct send_channel *channel, const struct send_shape *shape, uint32_t index,
                   uint32_t head, struct position *at)
{
    /* Bounded by the ring. */
    for (; at->next != head; at->next++, at->cursor = 0) {
        const struct send_range *range = range_at(channel, at->next);
        if (is_aborted(range))
            return false;
        at->cursor = next_own(shape, range, index, at->cursor);
        if (at->cursor < range->count)
            return true;
    }
    return false;
}

/* Likewise to one that was peeked at: another channel may have aborted its send since. */
static bool settle_peeked(const struct send_channel *channel, const struct send_shape *shape,
                          uint32_t index, uint32_t head, struct position *at)
{
    for (; at->next != head; at->next++, at->cursor = 0) { /* bounded by the ring */
        const struct send_range *range = range_at(channel, at->next);
        at->cursor = next_own(shape, range, index, at->cursor);
        if (at->cursor < range->count)
            return true;
    }
    return false;
}

static struct send_place place_of(const struct send_shape *shape, const struct send_range *range,
                                  uint32_t cursor)
{
    return (struct send_place){range->before + bytes_before(shape, range, cursor),
                               range->before + bytes_before(shape, range, cursor + 1)};
}

/* Mostly a full packet would end there, too: the length of this one is asked for only where it matters. */
static bool ends_after(const struct send_shape *shape, const struct send_range *range, uint32_t cursor,
                       uint64_t until)
{
    uint64_t maximum = range->before + ((uint64_t)cursor + 1) * shape->mtu_bytes;
    return (int64_t)(maximum - until) > 0 && (int64_t)(place_of(shape, range, cursor).end - until) > 0;
}

uint32_t send_channel_peek(struct send_channel *channel, const struct send_shape *shape, uint32_t index,
                           const uint64_t *until, struct fabric_write *writes, uint32_t room)
{
    uint32_t head = atomic_load_explicit(&channel->head, memory_order_acquire);
    struct position at = {next_of(channel), channel->cursor};
    uint32_t count = 0;
    while (count < room && settle(channel, shape, index, head, &at)) {
        const struct send_range *range = range_at(channel, at.next);
        do {
            if (until != NULL && ends_after(shape, range, at.cursor, *until))
                return count;
            writes[count++] = write_of(shape, range, at.cursor);
            at.cursor = next_own(shape, range, index, at.cursor + 1);
        } while (count < room && at.cursor < range->count);
    }
    return count;
}

bool send_channel_front(const struct send_channel *channel, const struct send_shape *shape, uint32_t index,
                        struct send_place *place)
{
    uint32_t head = atomic_load_explicit(&channel->head, memory_order_acquire);
    struct position at = {next_of(channel), channel->cursor};
    if (!settle(channel, shape, index, head, &at))
        return false;
    *place = place_of(shape, range_at(channel, at.next), at.cursor);
    return true;
}

bool send_channel_waits(const struct send_channel *channel, uint64_t *before)
{
    uint32_t next = atomic_load_explicit(&channel->next, memory_order_acquire);
    if (next == atomic_load_explicit(&channel->head, memory_order_relaxed))
        return false;
    *before = range_at(channel, next)->before;
    return true;
}

/* The ranges before `to` have been taken, or dropped: they are released with what was taken so far. */
static void pass(struct send_channel *channel, struct position to)
{
    for (uint32_t i = next_of(channel); i != to.next; i++)
        range_at(channel, i)->taken_end = channel->taken;
    atomic_store_explicit(&channel->next, to.next, memory_order_release);
    channel->cursor = to.cursor;
}

bool send_channel_release(struct send_channel *channel, uint64_t released)
{
    assert(released <= channel->taken);
    uint32_t tail = atomic_load_explicit(&channel->tail, memory_order_relaxed);
    uint32_t first = tail;
    for (; tail != next_of(channel) && range_at(channel, tail)->taken_end <= released; tail++) {
        struct send_message *message = range_at(channel, tail)->message;
        uint32_t left = atomic_fetch_sub_explicit(&message->ranges, 1, memory_order_release);
        assert(left > 0);
        (void)left;
    }
    atomic_store_explicit(&channel->tail, tail, memory_order_release);
    return tail != first;
}

uint32_t send_channel_uses(const struct send_channel *channel, uint32_t lkey)
{
    uint32_t head = atomic_load_explicit(&channel->head, memory_order_relaxed);
    uint32_t uses = 0;
    for (uint32_t i = atomic_load_explicit(&channel->tail, memory_order_relaxed); i != head; i++) {
        const struct send_range *range = range_at(channel, i); /* bounded by the ring */
        uses += range->bytes > 0 && range->lkey == lkey && !is_aborted(range);
    }
    return uses;
}

uint64_t send_channel_take(struct send_channel *channel, const struct send_shape *shape, uint32_t index,
                           uint32_t count)
{
    uint32_t head = atomic_load_explicit(&channel->head, memory_order_acquire);
    struct position at = {next_of(channel), channel->cursor};
    uint64_t bytes = 0;
    for (uint32_t run; count > 0; count -= run) { /* takes a packet or more */
        bool more = settle_peeked(channel, shape, index, head, &at);
        assert(more);
        (void)more;
        pass(channel, at);
        const struct send_range *range = range_at(channel, at.next);
        run = (uint32_t)lh_min(own_run(shape, range, at.cursor), count);
        bytes += bytes_before(shape, range, at.cursor + run) - bytes_before(shape, range, at.cursor);
        at.cursor += run;
        channel->taken += run;
    }
    channel->taken_bytes += bytes;
    settle(channel, shape, index, head, &at);
    pass(channel, at);
    return bytes;
}

uint64_t send_channel_abort_all(struct send_channel *channel, const struct send_shape *shape,
                                uint32_t index)
{
    uint32_t head = atomic_load_explicit(&channel->head, memory_order_acquire);
    for (uint32_t i = next_of(channel); i != head; i++) /* bounded by the ring */
        atomic_store_explicit(&range_at(channel, i)->message->aborted, true, memory_order_release);
    return send_channel_drop_aborted(channel, shape, index);
}

uint64_t send_channel_drop_aborted(struct send_channel *channel, const struct send_shape *shape,
                                   uint32_t index)
{
    uint32_t head = atomic_load_explicit(&channel->head, memory_order_acquire);
    struct position at = {next_of(channel), channel->cursor};
    uint64_t dropped = 0;
    for (; at.next != head; at.next++, at.cursor = 0) {
        const struct send_range *range = range_at(channel, at.next);
        if (!is_aborted(range))
            break;
        /* Packets of one range; the range is part of one message. */
        while ((at.cursor = next_own(shape, range, index, at.cursor)) < range->count)
            dropped += packet_bytes(shape, range, at.cursor++);
    }
    pass(channel, at);
    return dropped;
}

/* ---- clear to send --------------------------------------------------------------------------------- */

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
    lh_time minimum = overdue_ns ? overdue_ns : CTS_FIRST_REPEAT_NS;
    minimum = minimum < SPAN_MAX_NS ? minimum : SPAN_MAX_NS;
    lh_time maximum = lh_max(minimum << REPEAT_BACKOFF_MAX, announcer->silent_ns / SILENCE_FRACTION);
    uint32_t parts = is_hasty(announcer, overdue_ns) ? CTS_HASTE : 1;
    bool patient = overdue_ns != 0 && announcer->waits < CTS_PATIENT_WAITS * parts;
    lh_time wait = announcer->waited_ns;
    if (!patient)
        wait = wait < maximum / 2 ? 2 * wait : maximum;
    wait = lh_max(wait, patient ? minimum / parts : minimum);
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
    return overdue_ns ? lh_min(due, lh_max(now, sent_ns + lh_min(overdue_ns, SPAN_MAX_NS))) : due;
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
