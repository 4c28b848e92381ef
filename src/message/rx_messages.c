/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx_messages.h"

#include <assert.h>
#include <string.h>

#include "base/bitmap.h"
#include "base/min_max.h"
#include "control/message_control.h"
#include "message/receive_buffer.h"
#include "message/rx_state.h"
#include "sdr/sdr_driver.h"
#include "store/store.h"

/* ---- partial --------------------------------------------------------------------------------------- */

/* Whether this side receives with deadlines. */
static bool partial_is_allowed(const struct rx *rx)
{
    return rx->choice.scheme->deadline && !rx->choice.automatic;
}

static size_t words_bytes(const struct rx *rx, const struct rx_message *message)
{
    return arrived_words(message->capacity, rx->attr->mtu_bytes) * sizeof(uint64_t);
}

bool partial_hold(struct rx *rx, struct rx_message *message)
{
    if (!message->arrived && message->choice.scheme->deadline && message->capacity > 0)
        message->arrived = store_take(rx->store, words_bytes(rx, message));
    return message->arrived || !message->choice.scheme->deadline || message->capacity == 0;
}

static uint64_t first_packet(const struct rx *rx, const struct rx_segment *segment)
{
    return segment->index * rx_message_at(rx, segment->message)->segment_bytes / rx->attr->mtu_bytes;
}

static uint32_t packets_of(const struct rx *rx, const struct rx_segment *segment)
{
    return (segment->bytes + rx->attr->mtu_bytes - 1) / rx->attr->mtu_bytes;
}

/* Closes the receive of a segment's bytes. */
static void partial_close(struct rx *rx, const struct rx_segment *segment)
{
    struct rx_message *message = rx_message_at(rx, segment->message);
    struct sdr_recv_arrived arrived = {
        .bitmap = message->arrived, .first = first_packet(rx, segment), .packets = packets_of(rx, segment)};
    sdr_recv_close(segment->handle, &arrived);
    if (message->guessed && arrived.end_bytes < segment->posted_bytes)
        message->bytes =
            lh_min(message->bytes, segment->index * message->segment_bytes + arrived.end_bytes);
}

/* A segment is whole, or these chunks of it are recovered by its parity: they count as arrived. */
static void partial_add_segment(struct rx *rx, const struct rx_segment *segment)
{
    uint64_t *arrived = rx_message_at(rx, segment->message)->arrived;
    if (arrived)
        lh_bitmap_set_range(arrived, first_packet(rx, segment), packets_of(rx, segment));
}

static void partial_add_recovered(struct rx *rx, const struct rx_segment *segment, const uint8_t *recovered)
{
    uint64_t *arrived = rx_message_at(rx, segment->message)->arrived;
    uint32_t chunk_packets = rx->attr->chunk_bytes / rx->attr->mtu_bytes;
    uint32_t packets = packets_of(rx, segment);
    for (uint32_t i = 0; i < rx_segment_chunks(rx, segment); i++)
        if (recovered[i])
            lh_bitmap_set_range(arrived, first_packet(rx, segment) + (uint64_t)i * chunk_packets,
                                lh_min(chunk_packets, packets - i * chunk_packets));
}

/* Copies what has come of a segment from its memory to the user's parts. */
static void partial_copy(const struct rx *rx, const struct rx_segment *segment)
{
    const struct rx_message *message = rx_message_at(rx, segment->message);
    uint64_t offset = segment->index * message->segment_bytes,
             end = lh_min(offset + segment->bytes, message->bytes);
    const struct arrived arrived = {message->arrived, rx->attr->mtu_bytes, end};
    struct lh_range missing = {.offset = end};
    /* What lies before the next that is missing; each turn takes a range. */
    while (offset < end) {
        if (!message->arrived || !arrived_next_missing(&arrived, offset, &missing))
            missing = (struct lh_range){.offset = end};
        buffer_write(&message->buffer, offset,
                     segment->payload + (offset - segment->index * message->segment_bytes),
                     missing.offset - offset);
        offset = missing.offset + missing.bytes;
    }
}

/* ---- the end ----------------------------------------------------------------------------------------- */

static void zero(const struct rx_message *message, const struct arrived *arrived)
{
    struct lh_range range = {0};
    while (arrived_next_missing(arrived, range.offset + range.bytes, &range))
        buffer_zero(&message->buffer, range.offset, range.bytes);
}

static void count_missing(struct rx *rx, const struct rx_message *message, uint64_t bytes)
{
    rx->stats->missing_bytes += bytes;
    rx->stats->messages_partial++;
    rx->stats->messages_preempted += message->end == LH_END_PREEMPTED;
    rx->stats->deadline_hits += message->end == LH_END_DEADLINE;
}

/* Of a message that is delivered without some of its bytes. */
static void hand_over(struct rx *rx, struct rx_message *message, const struct arrived *arrived,
                      uint64_t missing)
{
    struct message_request *request = message->request;
    if (rx->attr->zero_missing)
        zero(message, arrived);
    count_missing(rx, message, missing);
    request->result.missing_bytes = missing;
    request->delivery = (struct message_delivery){message->end, rx->attr->mtu_bytes, message->arrived};
    if (message->arrived)
        store_forget(rx->store, words_bytes(rx, message));
    message->arrived = NULL;
}

/* The message ends so: its request gets what is missing, and its memory. */
static void partial_end(struct rx *rx, struct rx_message *message, int error)
{
    const struct arrived arrived = {message->arrived, rx->attr->mtu_bytes, message->bytes};
    uint64_t missing = 0;
    bool partial = message->arrived || message->end != LH_END_WHOLE;
    if (partial && !error && !message->small)
        arrived_missing(&arrived, &missing);
    if (missing == 0)
        message->end = LH_END_WHOLE; /* the last came while it was ended */
    else
        hand_over(rx, message, &arrived, missing);
    store_give(rx->store, message->arrived, words_bytes(rx, message));
    message->arrived = NULL;
    if (message->number == rx->active && !error)
        rx->active_bytes = message->bytes - missing;
}

/* ---- messages -------------------------------------------------------------------------------------- */

struct rx_message *rx_add_message(struct rx *rx, struct message_request *request,
                                  const struct message_buffer *buffer, uint64_t capacity)
{
    assert(rx->next - rx->oldest < MESSAGES_MAX);
    struct rx_message *message = rx_message_at(rx, rx->next);
    int error = message->notice.error; /* canceled ahead */
    bool forgotten = message->forgotten;
    *message = (struct rx_message){
        .state = RX_OPEN,
        .number = rx->next++,
        .request = request,
        .buffer = *buffer,
        .capacity = capacity,
        .bytes = MESSAGE_BYTES_UNKNOWN,
        .segments = 1,
        .forgotten = forgotten,
        .notice = {.error = error},
    };
    return message;
}

struct rx_message *rx_bind_message(struct rx *rx, uint32_t number, const struct rx_receive *receive)
{
    struct rx_message *message = rx_message_at(rx, number);
    assert(number - rx->oldest < rx->next - rx->oldest && message->state == RX_EMPTY);
    *message = (struct rx_message){
        .state = RX_OPEN,
        .number = number,
        .request = receive->request,
        .buffer = receive->buffer,
        .capacity = receive->capacity,
        .bytes = MESSAGE_BYTES_UNKNOWN,
        .segments = 1,
    };
    if (number_before(number, rx->posting))
        rx->posting = number;
    return message;
}

void rx_take_message(struct rx *rx)
{
    assert(rx->next - rx->oldest < MESSAGES_MAX);
    *rx_message_at(rx, rx->next) = (struct rx_message){.state = RX_OVER, .number = rx->next};
    rx->next++;
    rx->stats->messages_received++;
}

static void finish_message(struct rx *rx, struct rx_message *message, int error, enum rx_state state,
                           lh_time now)
{
    assert(message->state == RX_OPEN && state != RX_OPEN);
    uint64_t bytes = message->bytes == MESSAGE_BYTES_UNKNOWN ? 0 : message->bytes;
    partial_end(rx, message, error);
    message->request->result.tag = message->tag;
    effects_finish(rx->effects, message->request, error, bytes, now);
    message->request = NULL;
    message->state = state;
    if (error)
        rx->stats->messages_failed++;
    else if (message->end == LH_END_WHOLE)
        rx->stats->messages_received++;
}

static bool is_over(const struct rx *rx, uint32_t number)
{
    return number_before(number, rx->oldest) || rx_message_at(rx, number)->state == RX_OVER;
}

void rx_retire(struct rx *rx)
{
    /* Both bounded by their rings. */
    for (; rx->segment_oldest != rx->segment_next; rx->segment_oldest++) {
        struct rx_segment *segment = rx_segment_at(rx, rx->segment_oldest);
        bool open = segment->state == SEGMENT_OPEN || segment->state == SEGMENT_PARITY;
        bool failed = segment->state == SEGMENT_FAILED && !is_over(rx, segment->message);
        if (open || failed || segment->coded.jobs > 0)
            break;
        segment->state = SEGMENT_FREE;
    }
    while (rx->oldest != rx->next && rx_message_at(rx, rx->oldest)->state == RX_OVER) {
        *rx_message_at(rx, rx->oldest) = (struct rx_message){0};
        rx->oldest++;
    }
    if (number_before(rx->posting, rx->oldest))
        rx->posting = rx->oldest;
}

static void close_parity(struct rx *rx, struct rx_segment *segment, enum rx_segment_state state)
{
    struct coded_rx *coded = &segment->coded;
    if (coded->handle) {
        struct rx_segment *place = rx_segment_at(rx, segment->sequence + 1);
        assert(place->state == SEGMENT_PARITY);
        sdr_recv_complete(coded->handle);
        coded->handle = NULL;
        coded->bitmap = NULL;
        place->state = state;
    }
    if (segment->sequence + 1 == rx->segment_next)
        rx->parity_due = false;
    if (coded->buffer && coded->jobs == 0) {
        parity_give(rx->parity, coded->buffer);
        coded->buffer = NULL;
    }
}

static void give_copied(struct rx *rx, struct rx_segment *segment)
{
    if (segment->copied)
        parity_give(rx->parity, segment->copied);
    segment->copied = NULL;
}

void rx_close_segment(struct rx *rx, struct rx_segment *segment, enum rx_segment_state state)
{
    assert(segment->state == SEGMENT_OPEN);
    partial_close(rx, segment);
    segment->handle = NULL;
    segment->bitmap = NULL;
    segment->state = state;
    close_parity(rx, segment, state);
    if (state != SEGMENT_DONE)
        give_copied(rx, segment);
}

static void rx_deliver_message(struct rx *rx, struct rx_message *message, lh_time now);

void rx_finish_segment(struct rx *rx, struct rx_segment *segment, lh_time now)
{
    struct rx_message *message = rx_message_at(rx, segment->message);
    assert(segment->state == SEGMENT_DONE && message->state == RX_OPEN &&
           message->done < message->segments);
    if (segment->copied)
        partial_copy(rx, segment);
    give_copied(rx, segment);
    message->done++;
    if (message->done == message->segments)
        rx_deliver_message(rx, message, now);
}

/* All segments that an open message will have are finished. Of one that was cut the sender is told so. */
static void rx_deliver_message(struct rx *rx, struct rx_message *message, lh_time now)
{
    finish_message(rx, message, 0, message->cut ? RX_REFUSED : RX_OVER, now);
    if (!message->cut)
        return;
    message->notice.error = 0;
    rx->refusing++;
    abort_send(&message->notice, rx->qp, TRANSFER_REFUSE, message->number, rx->path, now);
}

void rx_end_message(struct rx *rx, struct rx_message *message, int error, enum rx_state state, lh_time now)
{
    for (uint32_t n = rx->segment_oldest; n != rx->segment_next; n++) { /* at most attr.slots */
        struct rx_segment *segment = rx_segment_at(rx, n);
        if (segment->state == SEGMENT_OPEN && segment->message == message->number)
            rx_close_segment(rx, segment, SEGMENT_FAILED);
    }
    finish_message(rx, message, error, state, now);
}

/* ---- done ------------------------------------------------------------------------------------------ */

#define REFRESHES 3u
/* Of a round trip: past a burst of losses; few messages wait for the next ones. */
#define FIRST_FRACTION   64u
#define REFRESH_FRACTION 8u

bool done_is(const struct rx *rx, const struct rx_segment *segment)
{
    return segment->state == SEGMENT_DONE && !(rx->placed_first && segment->coded.jobs > 0);
}

static uint64_t bitmap_of(const struct rx *rx)
{
    uint64_t bitmap = 0;
    for (uint32_t i = 0; i < TRANSFER_DONE_BITS && rx->segment_oldest + i != rx->segment_next; i++)
        if (done_is(rx, rx_segment_at(rx, rx->segment_oldest + i)))
            bitmap |= (uint64_t)1 << i;
    return bitmap;
}

static struct transfer_message message_of(struct rx *rx, uint32_t sequence)
{
    rx_retire(rx);
    struct transfer_message message = {.kind = TRANSFER_DONE};
    message.body.done.segment = sequence;
    message.body.done.below = rx->segment_oldest;
    message.body.done.bitmap = bitmap_of(rx);
    return message;
}

void done_answer(struct rx *rx, uint32_t sequence)
{
    struct transfer_message message = message_of(rx, sequence);
    control_tx_send(rx->qp, &message);
}

void done_note(struct rx *rx, uint32_t sequence)
{
    /* One DONE for all that arrived in a step, unless its bitmap does not reach that far. */
    uint32_t reach = rx->segment_oldest + TRANSFER_DONE_BITS;
    if (rx->done.wanted && !number_before(rx->done.segment, reach))
        done_answer(rx, rx->done.segment);
    rx->done.segment = sequence;
    rx->done.wanted = true;
    rx->done.any = true;
}

static lh_time interval(const struct rx *rx)
{
    uint32_t fraction = rx->done.refreshes_left == REFRESHES ? FIRST_FRACTION : REFRESH_FRACTION;
    return rx->path->rtt_ns ? rx->path->rtt_ns / fraction : timing_refresh_interval(rx->path, 0);
}

static void announce(struct rx *rx, lh_time now)
{
    done_answer(rx, rx->done.segment);
    rx->done.refresh_at = now + interval(rx);
}

static void on_refresh_expired(struct rx *rx, lh_time now)
{
    rx->done.refreshes_left--;
    announce(rx, now);
}

void done_step(struct rx *rx, lh_time now, lh_time *next)
{
    struct done_state *done = &rx->done;
    if (done->wanted) {
        done->wanted = false;
        done->refreshes_left = REFRESHES;
        announce(rx, now);
    } else if (done->refreshes_left > 0 && done->refresh_at <= now) {
        on_refresh_expired(rx, now);
    }
    if (done->refreshes_left > 0)
        lh_keep_earlier(next, done->refresh_at);
}

struct transfer_message done_last(struct rx *rx)
{
    /* Before the first arrival: one that is over, or was never sent. */
    return message_of(rx, rx->done.any ? rx->done.segment : rx->segment_oldest - 1);
}

/* ---- decoding -------------------------------------------------------------------------------------- */

/* The bitmaps as they are, for the decoder: the slots are closed and used again before it is done. */
static void keep_bitmaps(const struct rx_segment *segment, uint32_t chunks)
{
    const struct coded_rx *coded = &segment->coded;
    uint8_t *notes = coded->buffer->notes;
    assert(chunks + coded->extra_chunks <= coded->buffer->notes_bytes);
    for (uint32_t i = 0; i < chunks; i++)
        notes[i] = __atomic_load_n(&segment->bitmap[i], __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < coded->extra_chunks; i++)
        notes[chunks + i] = __atomic_load_n(&coded->bitmap[i], __ATOMIC_ACQUIRE);
}

static void submit(struct rx *rx, struct rx_segment *segment, lh_time now)
{
    const struct lh_scheme_coding *ops = segment->scheme->coding;
    struct coded_rx *coded = &segment->coded;
    uint32_t groups = ops->groups(coded->coding.params, coded->coding.chunks);
    uint32_t threads = rx->attr->coders == LH_NO_CODERS ? 1 : rx->attr->coders;
    uint32_t jobs = groups < threads ? groups : threads;
    const uint8_t *notes = coded->buffer->notes;
    assert(jobs > 0);
    coded->jobs = jobs;
    for (uint32_t i = 0; i < jobs; i++) {
        uint32_t from = (uint32_t)((uint64_t)groups * i / jobs);
        uint32_t to = (uint32_t)((uint64_t)groups * (i + 1) / jobs);
        const struct coder_job job = {
            .owner = segment,
            .ops = ops,
            .coding = &coded->coding,
            .group = from,
            .groups = to - from,
            .chunks = notes,
            .extra = notes + coded->coding.chunks,
        };
        struct coder_result result;
        if (coder_submit(rx->coder, &job, &result))
            decoding_on_decoded(rx, &result, now);
    }
}

static void prepare(struct rx *rx, struct rx_segment *segment, const struct rx_message *message)
{
    struct coded_rx *coded = &segment->coded;
    uint32_t chunks = rx_segment_chunks(rx, segment);
    assert(coded->buffer && coded->bitmap);
    coded->coding = (struct lh_coding){
        .chunks = chunks,
        .chunk_bytes = rx->attr->chunk_bytes,
        .bytes = segment->bytes,
        .room = segment->payload,
        .extra = coded->buffer->chunks,
    };
    memcpy(coded->coding.params, message->choice.params, sizeof coded->coding.params);
    coded->coding.message = coded->coding.room;
    keep_bitmaps(segment, chunks);
}

static void decode_segment(struct rx *rx, struct rx_segment *segment, lh_time now)
{
    segment->coded.jobs = 1; /* until the jobs are counted: the buffer stays */
    rx_close_segment(rx, segment, SEGMENT_DONE);
    if (!rx->placed_first)
        done_note(rx, segment->sequence);
    submit(rx, segment, now);
}

static void decoding_hand_over(struct rx *rx, struct rx_segment *segment, lh_time now)
{
    rx_close_segment(rx, segment, SEGMENT_DONE);
    rx_finish_segment(rx, segment, now);
    done_note(rx, segment->sequence); /* last: it may free the place */
}

void decoding_segment_done(struct rx *rx, struct rx_segment *segment, bool whole, lh_time now)
{
    struct rx_message *message = rx_message_at(rx, segment->message);
    assert(message->state == RX_OPEN && message->bytes != MESSAGE_BYTES_UNKNOWN);
    auto_scheme_segment_over(rx, segment, now);
    if (segment->scheme->deadline)
        partial_add_segment(rx, segment);
    if (whole) {
        decoding_hand_over(rx, segment, now);
        return;
    }
    prepare(rx, segment, message);
    decode_segment(rx, segment, now);
}

/* Whether parity recovers some of its chunks. A packet that comes between this and the close is counted,
 * too. */
static bool recovers(struct rx *rx, struct rx_segment *segment, const struct rx_message *message)
{
    struct coded_rx *coded = &segment->coded;
    if (message->guessed || coded->arrived == 0 || !coded->buffer || !coded->bitmap)
        return false;
    prepare(rx, segment, message);
    uint32_t chunks = coded->coding.chunks;
    uint8_t *notes = coded->buffer->notes, *recovered = notes + chunks + coded->extra_chunks;
    uint32_t count = segment->scheme->coding->recoverable(coded->coding.params, chunks, notes,
                                                          notes + chunks, recovered);
    if (count > 0)
        partial_add_recovered(rx, segment, recovered);
    return count > 0;
}

void decoding_segment_partial(struct rx *rx, struct rx_segment *segment, enum lh_end end, lh_time now)
{
    struct rx_message *message = rx_message_at(rx, segment->message);
    assert(message->state == RX_OPEN && segment->scheme->deadline);
    auto_scheme_segment_over(rx, segment, now);
    if (end > message->end)
        message->end = end;
    if (recovers(rx, segment, message))
        decode_segment(rx, segment, now);
    else
        decoding_hand_over(rx, segment, now);
}

void decoding_on_decoded(struct rx *rx, const struct coder_result *result, lh_time now)
{
    struct rx_segment *segment = result->owner;
    rx->stats->decode_ns += result->took_ns;
    rx->stats->chunks_recovered += result->recovered;
    assert(segment->state == SEGMENT_DONE && segment->coded.jobs > 0);
    if (--segment->coded.jobs > 0)
        return;
    parity_give(rx->parity, segment->coded.buffer);
    segment->coded.buffer = NULL;
    rx_finish_segment(rx, segment, now);
    if (rx->placed_first)
        done_note(rx, segment->sequence); /* last: it may free the place */
}

void decoding_finish(struct rx *rx, lh_time now)
{
    struct coder_result result;
    while (coder_finish_decoding(rx->coder, &result)) /* at most CODER_JOBS_MAX */
        decoding_on_decoded(rx, &result, now);
}

/* ---- deadline -------------------------------------------------------------------------------------- */

static bool waits(const struct rx *rx, const struct rx_message *message)
{
    return message->state == RX_OPEN && !rx_is_carried(rx, message) && message->capacity > 0;
}

/* The one whose deadline counted has ended. */
static void on_active_ended(struct rx *rx, lh_time now)
{
    if (rx->active_at != 0 && rx->active_bytes != MESSAGE_BYTES_UNKNOWN)
        auto_deadline_on_end(&rx->automatic_deadline,
                             now > rx->active_since_ns ? now - rx->active_since_ns : 0, rx->active_bytes);
    if (rx->active_at != 0)
        rx->active_since_ns = now;
    rx->active_at = 0;
    rx->active_bytes = MESSAGE_BYTES_UNKNOWN;
}

/* The first message that waits; NULL: none does. */
static struct rx_message *active_message(struct rx *rx, lh_time now)
{
    if (rx->active - rx->oldest > rx->next - rx->oldest) { /* it has retired */
        on_active_ended(rx, now);
        rx->active = rx->oldest;
    }
    for (; rx->active != rx->next; rx->active++) { /* at most MESSAGES_MAX */
        struct rx_message *message = rx_message_at(rx, rx->active);
        if (waits(rx, message))
            return message;
        on_active_ended(rx, now);
    }
    return NULL;
}

static lh_time deadline_of(const struct rx *rx, const struct rx_message *message)
{
    lh_time ns = rx->choice.scheme->deadline(rx->choice.params);
    if (ns != LH_DEADLINE_AUTO)
        return ns;
    return auto_deadline_of(&rx->automatic_deadline, message->capacity, rx->path->rtt_ns,
                            rx->attr->peer_timeout_ns / 2);
}

static void set_expiry(struct rx *rx, const struct rx_message *message)
{
    rx->active_since_ns = lh_max(message->request->result.started_ns, rx->active_since_ns);
    lh_time ns = deadline_of(rx, message);
    rx->active_at = ns == LH_DEADLINE_NONE ? LH_TIME_NEVER : rx->active_since_ns + ns;
}

/* Delivers it as it is: what is not posted yet never will be. */
static void end_message(struct rx *rx, struct rx_message *message, lh_time now)
{
    uint32_t number = message->number;
    message->cut = message->bytes == MESSAGE_BYTES_UNKNOWN || message->posted < message->segments;
    message->end = LH_END_DEADLINE;
    message->guessed = message->bytes == MESSAGE_BYTES_UNKNOWN;
    if (message->guessed)
        message->bytes = message->capacity;
    message->segments = (uint32_t)lh_min(message->posted, message->segments);
    if (message->done == message->segments) {
        rx_deliver_message(rx, message, now);
        return;
    }
    for (uint32_t n = rx->segment_oldest; n != rx->segment_next; n++) { /* at most attr.slots */
        struct rx_segment *segment = rx_segment_at(rx, n);
        if (segment->state == SEGMENT_OPEN && segment->message == number)
            decoding_segment_partial(rx, segment, LH_END_DEADLINE, now);
    }
}

/* The message whose deadline has passed; NULL: none's has, or what is decoded ends it. */
static struct rx_message *due_message(struct rx *rx, lh_time now, lh_time *next)
{
    struct rx_message *message = partial_is_allowed(rx) ? active_message(rx, now) : NULL;
    if (!message)
        return NULL;
    if (rx->active_at == 0)
        set_expiry(rx, message);
    if (rx->active_at > now)
        lh_keep_earlier(next, rx->active_at);
    return rx->active_at > now || message->end == LH_END_DEADLINE ? NULL : message;
}

void deadline_step(struct rx *rx, lh_time now, lh_time *next)
{
    struct rx_message *message;
    while ((message = due_message(rx, now, next)) != NULL) /* at most one for each message */
        end_message(rx, message, now);
}

void deadline_on_posted(struct rx *rx, lh_time now, lh_time *next)
{
    if (due_message(rx, now, next))
        lh_keep_earlier(next, now);
}

bool deadline_waits(const struct rx *rx)
{
    return partial_is_allowed(rx) && rx->oldest != rx->next;
}

void deadline_end_some(struct rx *rx, deadline_ends *ends, const void *context, lh_time now)
{
    if (!partial_is_allowed(rx))
        return;
    for (uint32_t n = rx->oldest; n != rx->next; n++) { /* at most MESSAGES_MAX */
        struct rx_message *message = rx_message_at(rx, n);
        if (waits(rx, message) && message->bytes != MESSAGE_BYTES_UNKNOWN &&
            message->end != LH_END_DEADLINE && ends(context, message->tag))
            end_message(rx, message, now);
    }
    decoding_finish(rx, now);
}

static bool has_begun(const struct rx *rx, const struct rx_message *message)
{
    for (uint32_t n = rx->segment_oldest; n != rx->segment_next; n++) { /* at most attr.slots */
        const struct rx_segment *segment = rx_segment_at(rx, n);
        bool own = segment->message == message->number && segment->state != SEGMENT_FREE;
        if (own && segment->last_arrival_ns != LH_TIME_NEVER && segment->last_arrival_ns != 0)
            return true;
    }
    return message->done > 0;
}

void deadline_on_closed(struct rx *rx, lh_time now)
{
    if (!partial_is_allowed(rx))
        return;
    for (uint32_t n = rx->oldest; n != rx->next; n++) { /* at most MESSAGES_MAX */
        struct rx_message *message = rx_message_at(rx, n);
        if (waits(rx, message) && message->bytes != MESSAGE_BYTES_UNKNOWN && has_begun(rx, message))
            end_message(rx, message, now);
    }
    decoding_finish(rx, now);
}

/* ---- refuse ---------------------------------------------------------------------------------------- */

void refuse_message(struct rx *rx, struct rx_message *message, int error, lh_time now)
{
    assert(message->state == RX_OPEN);
    decoding_finish(rx, now); /* nothing may change the buffer afterwards */
    if (message->state == RX_OVER)
        return;
    message->notice.error = abort_error(error);
    rx_end_message(rx, message, -message->notice.error, RX_REFUSED, now);
    rx->refusing++;
    abort_send(&message->notice, rx->qp, TRANSFER_REFUSE, message->number, rx->path, now);
}

void refuse_answer(struct rx *rx, uint32_t number)
{
    int error = rx_message_known(rx, number) ? rx_message_at(rx, number)->notice.error : 0;
    control_tx_abort(rx->qp, TRANSFER_REFUSE, number, error);
}

/* False: no memory. */
static bool cancel_ahead(struct rx *rx, uint32_t number, int error)
{
    if (!ring_hold(&rx->messages, rx->store, rx->oldest, number - rx->oldest + 1))
        return false;
    rx_message_at(rx, number)->notice.error = error;
    if (number_before(rx->ahead, number + 1) || !number_before(rx->next, rx->ahead))
        rx->ahead = number + 1;
    return true;
}

void refuse_on_cancel(struct rx *rx, const struct transfer_message *message, lh_time now)
{
    uint32_t number = message->body.verdict.message;
    if (!number_before(number, rx->oldest)) {
        int error = abort_error((int)message->body.verdict.error);
        if (number - rx->oldest >= MESSAGES_MAX)
            return; /* no place to remember it: the sender sends it again */
        if (!number_before(number, rx->next)) {
            if (!cancel_ahead(rx, number, error))
                return; /* likewise */
        } else if (rx_message_at(rx, number)->state == RX_OPEN) {
            struct rx_message *own = rx_message_at(rx, number);
            refuse_message(rx, own, error, now);
            if (own->state == RX_REFUSED)
                return; /* that was the answer */
        }
    }
    refuse_answer(rx, number);
}

void refuse_on_forget(struct rx *rx, const struct transfer_message *message)
{
    uint32_t number = message->body.verdict.message;
    if (!rx_message_known(rx, number))
        return;
    struct rx_message *own = rx_message_at(rx, number);
    if (own->state == RX_REFUSED) {
        own->state = RX_OVER;
        rx->refusing--;
    } else if (own->state == RX_EMPTY && own->notice.error) {
        own->forgotten = true;
    }
    rx_retire(rx);
}

void refuse_on_refresh_expired(struct rx *rx, lh_time now, lh_time *next)
{
    if (rx->refusing == 0)
        return;
    for (uint32_t n = rx->oldest; n != rx->next; n++) { /* at most MESSAGES_MAX */
        struct rx_message *message = rx_message_at(rx, n);
        if (message->state == RX_REFUSED)
            abort_on_refresh_expired(&message->notice, rx->qp, TRANSFER_REFUSE, n, rx->path, now, next);
    }
}
