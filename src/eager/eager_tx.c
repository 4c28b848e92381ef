/* SPDX-License-Identifier: BSD-3-Clause */
#include "eager/eager_tx.h"

#include <assert.h>
#include <string.h>

#include "base/min_max.h"
#include "control/message_control.h"

#define BACKOFF_MAX      6u
#define SILENCE_FRACTION 8u
#define PROBE_MIN_NS     (10 * LH_NS_PER_MS)
#define PROBE_MAX_NS     LH_NS_PER_S
#define ENTRY_BYTES      3u                  /* about: of an entry beyond the message's bytes */
#define ACK_AHEAD_MAX    ((uint32_t)1 << 13) /* messages: an acknowledgement beyond that is damaged */
/* Below a millisecond a retransmission is not missed. */
#define COPY_RTT_MIN_NS   LH_NS_PER_MS
#define COPY_FRACTION     16u /* of a round trip, between a message and its copy: 1.2 round trips for both */
#define COPY_FLIGHT_BYTES 16384u
#define COPIES_MANY       2u
/* Where a message and its copies were lost a burst outlasts them: many copies of few bytes cost little. They
 * end within a quarter of a round trip. */
#define BURST_COPIES       32u
#define BURST_FRACTION     128u /* of a round trip, between them */
#define BURST_FLIGHT_BYTES 256u
#define BURST_WAITS        3u
#define BURST_MEMORY       255u /* measurements without a loss */
#define LAST_UNITS_MAX     16u  /* messages: as many last units share a carrier */
#define LOSS_MANY          0.05
#define LOSS_NONE          1e-4
#define LOSS_CARRIERS      32u  /* of one measurement */
#define LOSS_NEW           0.25 /* weight of the last one */
/* Until more is known. As after a single loss: from there 512 carriers without any bring it below LOSS_NONE.
 * Fewer say little of a loss of 1 %. */
#define LOSS_PRIOR (LOSS_NEW / LOSS_CARRIERS)

static struct outgoing_message *at(const struct outgoing *outgoing, uint32_t number)
{
    return &outgoing->ring[number & (outgoing->capacity - 1)];
}

static bool is_inside(const struct outgoing *outgoing, uint32_t number)
{
    return outgoing->used && number - outgoing->oldest < outgoing->next - outgoing->oldest;
}

/* ---- the ring ---------------------------------------------------------------------------------------- */

bool outgoing_is_full(const struct outgoing *outgoing)
{
    return outgoing->next - outgoing->oldest == outgoing->capacity;
}

size_t outgoing_ring_bytes(uint32_t capacity)
{
    return capacity ? capacity * sizeof(struct outgoing_message) + EAGER_CELLS : 0;
}

bool outgoing_is_empty(const struct outgoing *outgoing)
{
    return outgoing->next == outgoing->oldest && outgoing->cells == 0;
}

void *outgoing_move(struct outgoing *outgoing, void *memory, uint32_t capacity)
{
    struct outgoing_message *ring = memory, *former = outgoing->ring;
    uint8_t *costs = memory ? (uint8_t *)(ring + capacity) : NULL;
    assert((capacity & (capacity - 1)) == 0 && outgoing->next - outgoing->oldest <= capacity);
    assert(memory || outgoing_is_empty(outgoing));
    if (former && memory)
        memcpy(costs, outgoing->costs, EAGER_CELLS);
    for (uint32_t n = outgoing->oldest; n != outgoing->next; n++) /* at most the capacity */
        ring[n & (capacity - 1)] = *at(outgoing, n);
    outgoing->ring = ring;
    outgoing->costs = costs;
    outgoing->capacity = capacity;
    return former;
}

static uint64_t flight_bytes(const struct outgoing_message *message)
{
    return ENTRY_BYTES + (message->is_long ? 0 : message->bytes);
}

static void set_state(struct outgoing *outgoing, struct outgoing_message *message,
                      enum outgoing_state state)
{
    if (message->state == OUTGOING_MISSING) {
        outgoing->missing--;
        outgoing->resending -= message->units != 0;
        outgoing->in_flight_bytes -= flight_bytes(message);
    }
    outgoing->held -= message->state == OUTGOING_HELD;
    outgoing->delivered -= message->state == OUTGOING_DELIVERED;
    message->state = state;
    if (state == OUTGOING_OVER || state == OUTGOING_DELIVERED || state == OUTGOING_SETTLED) {
        outgoing->cells -= message->cost;
        message->cost = 0;
    }
    if (state == OUTGOING_MISSING) {
        outgoing->missing++;
        outgoing->in_flight_bytes += flight_bytes(message);
    }
    outgoing->held += state == OUTGOING_HELD;
    outgoing->delivered += state == OUTGOING_DELIVERED;
}

void outgoing_add(struct outgoing *outgoing, uint32_t number, const struct outgoing_content *content)
{
    if (!outgoing->used) {
        outgoing->oldest = outgoing->unsent = outgoing->next = outgoing->posted = number;
        outgoing->used = true;
        outgoing->loss = LOSS_PRIOR;
        outgoing->due_ns = LH_TIME_NEVER;
    }
    assert(!outgoing_is_full(outgoing) && number == outgoing->next);
    assert(content->is_long || content->bytes <= EAGER_MAX);
    *at(outgoing, outgoing->next++) = (struct outgoing_message){
        .state = content->is_long ? OUTGOING_LONG : OUTGOING_NEW,
        .is_long = content->is_long,
        .units = content->is_long ? 0 : eager_unit_mask(content->bytes),
        .payload = content->payload,
        .bytes = content->bytes,
        .tag = content->tag,
    };
    if (outgoing->matched)
        outgoing_announce(outgoing, number);
}

void outgoing_announce(struct outgoing *outgoing, uint32_t number)
{
    if (!is_inside(outgoing, number) || at(outgoing, number)->state != OUTGOING_LONG)
        return;
    struct outgoing_message *message = at(outgoing, number);
    message->units = 1;
    if (!number_before(number, outgoing->unsent)) {
        message->state = OUTGOING_NEW;
        return;
    }
    set_state(outgoing, message, OUTGOING_MISSING);
    outgoing->resending++;
}

void outgoing_stop(struct outgoing *outgoing, uint32_t number)
{
    if (!is_inside(outgoing, number))
        return;
    set_state(outgoing, at(outgoing, number), OUTGOING_STOPPED);
    at(outgoing, number)->payload = NULL;
}

void outgoing_forget(struct outgoing *outgoing, uint32_t number)
{
    if (!is_inside(outgoing, number))
        return;
    struct outgoing_message *message = at(outgoing, number);
    set_state(outgoing, message, OUTGOING_OVER);
    message->payload = NULL;
    while (outgoing->oldest != outgoing->next && at(outgoing, outgoing->oldest)->state == OUTGOING_OVER)
        outgoing->oldest++;
    if (number_before(outgoing->unsent, outgoing->oldest))
        outgoing->unsent = outgoing->oldest;
}

/* ---- acknowledgements -------------------------------------------------------------------------------- */

static bool is_in_question(const struct outgoing_message *message)
{
    return message->state == OUTGOING_MISSING || message->state == OUTGOING_HELD;
}

static void learn(struct outgoing *outgoing, struct outgoing_message *message, enum eager_state state)
{
    if (!is_in_question(message) || state == EAGER_MISSING)
        return;
    if (state == EAGER_HELD && (!message->is_long || outgoing->matched))
        set_state(outgoing, message, OUTGOING_HELD);
    else if (message->is_long || state == EAGER_OTHER)
        set_state(outgoing, message, OUTGOING_SETTLED);
    else
        set_state(outgoing, message, OUTGOING_DELIVERED);
}

/* Messages from `from` on, of those that were sent. */
static void learn_all(struct outgoing *outgoing, uint32_t from, uint32_t messages, enum eager_state state)
{
    uint32_t end = from + messages;
    if (number_before(from, outgoing->oldest))
        from = outgoing->oldest;
    if (number_before(outgoing->unsent, end))
        end = outgoing->unsent;
    for (uint32_t n = from; number_before(n, end); n++) /* at most the ring's capacity */
        learn(outgoing, at(outgoing, n), state);
}

/* Receives are posted: their messages need no cells any more. False: that was known. */
static bool learn_posted(struct outgoing *outgoing, uint32_t posted)
{
    if (!number_before(outgoing->posted, posted))
        return false;
    uint32_t passed = posted - outgoing->posted;
    for (uint32_t i = 0; outgoing->cells > 0 && i < passed && i < EAGER_CELLS;
         i++) { /* no more have a cost */
        uint8_t *cost = &outgoing->costs[(outgoing->posted + i) & (EAGER_CELLS - 1)];
        outgoing->cells -= *cost;
        *cost = 0;
    }
    outgoing->posted = posted;
    return true;
}

void outgoing_on_receive(struct outgoing *outgoing, uint32_t number)
{
    if (!is_inside(outgoing, number))
        return;
    struct outgoing_message *message = at(outgoing, number);
    if (outgoing->matched) { /* says nothing of those before */
        if (is_in_question(message))
            set_state(outgoing, message, OUTGOING_SETTLED);
        return;
    }
    if (message->is_long && message->state == OUTGOING_NEW)
        message->state = OUTGOING_LONG;
    if (learn_posted(outgoing, number + 1)) { /* the peer is there: what was waited for it is over */
        outgoing->backoff = 0;
        outgoing->waited_ns = 0;
        outgoing->due_ns = 0;
    }
}

static void measure_loss(struct outgoing *outgoing, const struct eager_ack *ack)
{
    uint32_t sent = ack->newest + 1 - outgoing->loss_carrier;
    uint32_t received = ack->received - outgoing->loss_received;
    if (sent > INT32_MAX)
        return;
    if (outgoing->backoff > 0 && received < sent)
        outgoing->bursts = BURST_MEMORY;
    if (sent < LOSS_CARRIERS)
        return;
    double loss = received < sent ? (double)(sent - received) / sent : 0;
    outgoing->loss = (1 - LOSS_NEW) * outgoing->loss + LOSS_NEW * loss;
    if (outgoing->bursts > 0 && received >= sent)
        outgoing->bursts--;
    outgoing->loss_carrier = ack->newest + 1;
    outgoing->loss_received = ack->received;
}

/* What is skipped when the next carrier is filled has been passed already. */
static uint32_t passed_end(const struct outgoing *outgoing)
{
    uint32_t end = outgoing->unsent;
    while (end != outgoing->next && at(outgoing, end)->state != OUTGOING_NEW) /* at most the capacity */
        end++;
    return end;
}

/* Messages that are not added yet may be over: their receives were canceled. */
static bool is_possible(const struct outgoing *outgoing, const struct eager_ack *ack)
{
    if (!outgoing->used || !number_before(ack->newest, outgoing->carrier) ||
        ack->posted - ack->base >= ACK_AHEAD_MAX)
        return false;
    uint32_t end = passed_end(outgoing);
    return !number_before(end, ack->base) || (end == outgoing->next && ack->base - end < ACK_AHEAD_MAX);
}

static const struct outgoing_message *oldest_missing(const struct outgoing *outgoing)
{
    for (uint32_t n = outgoing->oldest; outgoing->missing > 0 && n != outgoing->unsent; n++)
        if (at(outgoing, n)->state == OUTGOING_MISSING)
            return at(outgoing, n);
    return NULL;
}

int outgoing_on_ack(struct outgoing *outgoing, const struct eager_ack *ack, lh_time now)
{
    if (!is_possible(outgoing, ack))
        return -1;
    uint32_t before = 2 * outgoing->missing + outgoing->held; /* less of it: something has arrived */
    if (!ack->is_part && number_before(outgoing->oldest, ack->base))
        learn_all(outgoing, outgoing->oldest, ack->base - outgoing->oldest, EAGER_DELIVERED);
    uint32_t from = ack->base;
    for (uint32_t i = 0; i < ack->run_count; i++) { /* at most EAGER_RUNS_MAX */
        learn_all(outgoing, from, ack->runs[i].messages, ack->runs[i].state);
        from += ack->runs[i].messages;
    }
    bool progress = !outgoing->matched && learn_posted(outgoing, ack->posted);
    progress |= 2 * outgoing->missing + outgoing->held != before;
    bool newer = !outgoing->acknowledged || number_before(outgoing->newest, ack->newest);
    if (newer) {
        outgoing->newest = ack->newest;
        outgoing->acknowledged = true;
        measure_loss(outgoing, ack);
    }
    bool slower = outgoing->backoff > 0;
    outgoing->silent_ns = 0;
    if (progress || (newer && outgoing->missing == 0)) {
        outgoing->backoff = 0;
        outgoing->waited_ns = 0;
    }
    outgoing->probe_from_ns = now;
    const struct outgoing_message *oldest = oldest_missing(outgoing);
    if (slower || outgoing->held > 0 || (oldest && number_before(oldest->carrier, outgoing->newest)))
        outgoing->due_ns = now;
    return 0;
}

bool outgoing_next_delivered(const struct outgoing *outgoing, uint32_t *number)
{
    if (outgoing->delivered == 0)
        return false;
    if (number_before(*number, outgoing->oldest))
        *number = outgoing->oldest;
    while (*number != outgoing->unsent && at(outgoing, *number)->state != OUTGOING_DELIVERED)
        ++*number; /* at most the capacity */
    return *number != outgoing->unsent;
}

/* ---- repair ------------------------------------------------------------------------------------------ */

static void resend(struct outgoing *outgoing, struct outgoing_message *message)
{
    message->units = message->is_long ? 1 : eager_unit_mask(message->bytes);
    outgoing->resending++;
}

static lh_time copy_spacing(const struct outgoing_message *message, const struct outgoing_path *path)
{
    return path->rtt_ns / (message->burst ? BURST_FRACTION : COPY_FRACTION);
}

static void set_copies(const struct outgoing *outgoing, struct outgoing_message *message,
                       const struct outgoing_path *path, lh_time now)
{
    message->copies = 0;
    message->burst = outgoing->bursts > 0 && outgoing->in_flight_bytes <= BURST_FLIGHT_BYTES;
    if (path->rtt_minimum_ns < COPY_RTT_MIN_NS || outgoing->in_flight_bytes > COPY_FLIGHT_BYTES ||
        (outgoing->loss < LOSS_NONE && !message->burst))
        return;
    message->copies = outgoing->loss > LOSS_MANY ? COPIES_MANY : 1;
    if (message->burst)
        message->copies = BURST_COPIES;
    message->copy_at = now + copy_spacing(message, path);
}

/* Whether it is to be sent again now; else *due is lowered to when that may be. */
static bool is_due(const struct outgoing *outgoing, struct outgoing_message *message,
                   const struct outgoing_path *path, lh_time now, lh_time *due)
{
    if (outgoing->acknowledged && number_before(message->carrier, outgoing->newest)) {
        lh_time lost_at = message->sent_ns + path->rtt_ns + path->reorder_window_ns;
        if (lost_at <= now)
            return true;
        lh_keep_earlier(due, lost_at);
    }
    if (message->copies == 0)
        return false;
    lh_time spacing_ns = copy_spacing(message, path);
    if (message->copy_at <= now + spacing_ns / 4) { /* with those that are due soon */
        message->copies--;
        message->copy_at = now + spacing_ns * (message->burst ? 1 : 2);
        if (message->copies > 0)
            lh_keep_earlier(due, message->copy_at);
        return true;
    }
    lh_keep_earlier(due, message->copy_at);
    return false;
}

/* Twice the last wait. What was waited counts, and not how often: as many doublings of a round trip with a
 * clock jump in it, that was measured meanwhile, could be minutes. A receiver that is gone gets few packets,
 * and one that comes back is noticed within 1/8 of its absence. */
static lh_time patience(const struct outgoing *outgoing, const struct outgoing_path *path)
{
    lh_time wait = lh_min(2 * outgoing->waited_ns, path->overdue_ns << BACKOFF_MAX);
    return lh_max(lh_max(wait, path->overdue_ns), outgoing->silent_ns / SILENCE_FRACTION);
}

/* Nothing is heard of it, nor of its copies. A path that is cut is not flooded: copies end soon. */
static void on_silence(struct outgoing *outgoing, struct outgoing_message *message,
                       const struct outgoing_path *path, lh_time now, lh_time *due)
{
    if (outgoing->loss >= LOSS_NONE)
        outgoing->bursts = BURST_MEMORY;
    message->copies = 0;
    if (outgoing->backoff < BURST_WAITS)
        set_copies(outgoing, message, path, now);
    if (message->copies > 0)
        lh_keep_earlier(due, message->copy_at);
}

/* Of the oldest message that is missing: then nothing is known of any, and the answer shows what is lost. */
static bool is_overdue(struct outgoing *outgoing, struct outgoing_message *message,
                       const struct outgoing_path *path, lh_time now, lh_time *due)
{
    lh_time overdue_at = message->sent_ns + patience(outgoing, path);
    bool overdue = overdue_at <= now;
    if (overdue) {
        outgoing->probe = true;
        outgoing->waited_ns = patience(outgoing, path);
        outgoing->silent_ns += outgoing->waited_ns;
        on_silence(outgoing, message, path, now, due);
        outgoing->backoff += outgoing->backoff < BACKOFF_MAX;
        overdue_at = now + patience(outgoing, path);
    }
    lh_keep_earlier(due, overdue_at);
    return overdue;
}

static void poll_probe(struct outgoing *outgoing, const struct outgoing_path *path, lh_time now,
                       lh_time *due)
{
    lh_time interval_ns = path->overdue_ns > PROBE_MIN_NS ? path->overdue_ns : PROBE_MIN_NS;
    interval_ns <<= outgoing->backoff;
    interval_ns = interval_ns < PROBE_MAX_NS ? interval_ns : PROBE_MAX_NS;
    if (outgoing->probe_from_ns + interval_ns <= now) {
        outgoing->probe = true;
        outgoing->backoff += outgoing->backoff < BACKOFF_MAX;
        outgoing->probe_from_ns = now;
    }
    lh_keep_earlier(due, outgoing->probe_from_ns + interval_ns);
}

void outgoing_poll(struct outgoing *outgoing, const struct outgoing_path *path, lh_time now)
{
    lh_time due = LH_TIME_NEVER;
    bool first = true;
    if (!outgoing->used || outgoing->due_ns > now)
        return;
    for (uint32_t n = outgoing->oldest; outgoing->missing > 0 && n != outgoing->unsent;
         n++) { /* the capacity */
        struct outgoing_message *message = at(outgoing, n);
        if (message->state != OUTGOING_MISSING)
            continue;
        bool overdue = first && is_overdue(outgoing, message, path, now, &due);
        if (message->units == 0 && (is_due(outgoing, message, path, now, &due) || overdue))
            resend(outgoing, message);
        first = false;
    }
    if (outgoing->missing == 0 && (outgoing->held > 0 || outgoing->blocked))
        poll_probe(outgoing, path, now, &due);
    outgoing->due_ns = due;
}

/* ---- carriers ---------------------------------------------------------------------------------------- */

/* False: it does not fit. */
static bool write_unit(const struct outgoing *outgoing, uint32_t number, uint8_t unit,
                       struct eager_writer *writer)
{
    struct outgoing_message *message = at(outgoing, number);
    struct eager_entry entry = {
        .message = number,
        .bytes = message->bytes,
        .is_long = message->is_long,
        .unit = unit,
        .tag = message->tag,
    };
    entry.data_bytes = message->is_long ? 0 : eager_unit_bytes(message->bytes, unit);
    uint8_t *payload;
    if (!eager_write_entry(writer, &entry, &payload))
        return false;
    if (entry.data_bytes > 0)
        memcpy(payload, message->payload + (size_t)unit * EAGER_UNIT_BYTES, entry.data_bytes);
    message->units ^= (uint8_t)(1u << unit);
    message->carrier = outgoing->carrier;
    return true;
}

/* Writes units of a message; false when one does not fit. */
static bool write_units(const struct outgoing *outgoing, uint32_t number, struct eager_writer *writer,
                        bool *any)
{
    const struct outgoing_message *message = at(outgoing, number);
    while (message->units != 0) { /* a unit each turn */
        if (!write_unit(outgoing, number, (uint8_t)__builtin_ctz(message->units), writer))
            return false;
        *any = true;
    }
    return true;
}

static void fill_resent(struct outgoing *outgoing, const struct outgoing_path *path, lh_time now,
                        struct eager_writer *writer, bool *any)
{
    for (uint32_t n = outgoing->oldest; outgoing->resending > 0 && n != outgoing->unsent;
         n++) { /* capacity */
        struct outgoing_message *message = at(outgoing, n);
        if (message->state != OUTGOING_MISSING || message->units == 0)
            continue;
        if (!write_units(outgoing, n, writer, any))
            return;
        message->sent_ns = now;
        lh_keep_earlier(&outgoing->due_ns, now + patience(outgoing, path));
        outgoing->resending--;
    }
}

/* With `matched`: an announcement takes a place, too. */
static uint32_t cost_of(const struct outgoing_message *message)
{
    return message->is_long ? 1 : eager_cells(message->bytes);
}

/* Whether the receiver has a place, as far as is known. */
static bool has_place(const struct outgoing *outgoing, const struct outgoing_message *message,
                      uint32_t number)
{
    if (outgoing->matched)
        return message->cost > 0 || outgoing->cells + cost_of(message) <= EAGER_CELLS;
    bool ahead = !number_before(number, outgoing->posted);
    bool begun = outgoing->costs[number & (EAGER_CELLS - 1)] > 0;
    uint32_t cells = message->is_long || begun ? 0 : eager_cells(message->bytes);
    return !ahead || (number - outgoing->posted < EAGER_CELLS && outgoing->cells + cells <= EAGER_CELLS);
}

/* Behind so many bytes of messages that are only begun. */
static bool window_is_open(const struct outgoing *outgoing, const struct outgoing_message *message,
                           uint64_t begun_bytes, const struct outgoing_path *path)
{
    uint64_t in_flight_bytes = outgoing->in_flight_bytes + begun_bytes;
    return in_flight_bytes == 0 || in_flight_bytes + flight_bytes(message) <= path->window_bytes;
}

/* Some of its units are in a carrier. */
static void take_cells(struct outgoing *outgoing, struct outgoing_message *message, uint32_t number)
{
    bool matched = outgoing->matched;
    uint8_t *cost = matched ? &message->cost : &outgoing->costs[number & (EAGER_CELLS - 1)];
    if (*cost > 0 || (!matched && (number_before(number, outgoing->posted) || message->is_long)))
        return;
    *cost = (uint8_t)cost_of(message);
    outgoing->cells += *cost;
}

/* All its units are. */
static void on_sent(struct outgoing *outgoing, struct outgoing_message *message,
                    const struct outgoing_path *path, lh_time now)
{
    message->sent_ns = now;
    set_copies(outgoing, message, path, now);
    set_state(outgoing, message, OUTGOING_MISSING);
    lh_keep_earlier(&outgoing->due_ns, message->copies > 0 ? message->copy_at : now + path->overdue_ns);
}

static bool may_send(struct outgoing *outgoing, const struct outgoing_message *message, uint32_t number,
                     const struct outgoing_path *path, lh_time now)
{
    outgoing->blocked = !has_place(outgoing, message, number);
    if (outgoing->blocked && outgoing->due_ns == LH_TIME_NEVER)
        outgoing->due_ns = now; /* nothing is in flight whose acknowledgement would tell of a place */
    return !outgoing->blocked && window_is_open(outgoing, message, 0, path);
}

/* False: the message is not begun. Never all that is left of it: messages are sent whole in order. */
static bool begin_with_last_unit(struct outgoing *outgoing, uint32_t number, struct eager_writer *writer,
                                 bool *any)
{
    struct outgoing_message *message = at(outgoing, number);
    uint8_t last = (uint8_t)(eager_units(message->bytes) - 1);
    if (message->is_long || message->units >> last == 0)
        return true;
    if (message->units == 1u << last)
        return last > 0;
    if (!write_unit(outgoing, number, last, writer))
        return false;
    take_cells(outgoing, message, number);
    *any = true;
    return true;
}

/* The last units of messages are short. Each would take a carrier of its own, since no full one fits beside
 * it: those of the next messages go together, ahead of what is before them. One that is not begun ends that:
 * its place must not be taken by those that wait for it. */
static void fill_last_units(struct outgoing *outgoing, const struct outgoing_path *path,
                            struct eager_writer *writer, bool *any)
{
    uint64_t begun_bytes = 0;
    uint32_t number = outgoing->unsent;
    for (uint32_t i = 0; i < LAST_UNITS_MAX && number != outgoing->next; i++, number++) {
        const struct outgoing_message *message = at(outgoing, number);
        if (message->state != OUTGOING_NEW)
            continue;
        if (!has_place(outgoing, message, number) ||
            !window_is_open(outgoing, message, begun_bytes, path) ||
            !begin_with_last_unit(outgoing, number, writer, any))
            return;
        begun_bytes += flight_bytes(message);
    }
}

static void fill_new(struct outgoing *outgoing, const struct outgoing_path *path, lh_time now,
                     struct eager_writer *writer, bool *any)
{
    outgoing->blocked = false;
    for (; outgoing->unsent != outgoing->next; outgoing->unsent++) { /* at most the capacity */
        struct outgoing_message *message = at(outgoing, outgoing->unsent);
        if (message->state != OUTGOING_NEW)
            continue;
        bool began = false;
        if (!may_send(outgoing, message, outgoing->unsent, path, now))
            return;
        bool whole = write_units(outgoing, outgoing->unsent, writer, &began);
        if (began)
            take_cells(outgoing, message, outgoing->unsent);
        *any |= began;
        if (!whole) {
            fill_last_units(outgoing, path, writer, any);
            return;
        }
        on_sent(outgoing, message, path, now);
    }
}

uint64_t outgoing_several_units(const struct outgoing *outgoing)
{
    if (!outgoing->used || outgoing->unsent == outgoing->next)
        return 0;
    const struct outgoing_message *message = at(outgoing, outgoing->unsent);
    if (message->state != OUTGOING_NEW || message->is_long || eager_units(message->bytes) == 1)
        return 0;
    return message->bytes - (uint64_t)__builtin_ctz(message->units) * EAGER_UNIT_BYTES;
}

bool outgoing_fill(struct outgoing *outgoing, const struct outgoing_path *path, lh_time now,
                   struct eager_writer *writer)
{
    bool any = outgoing->probe;
    if (!outgoing->used)
        return false;
    if (outgoing->probe)
        eager_write_probe(writer);
    fill_resent(outgoing, path, now, writer, &any);
    if (outgoing->resending == 0)
        fill_new(outgoing, path, now, writer, &any);
    if (!any)
        return false;
    outgoing->probe = false;
    outgoing->carrier++;
    return true;
}
