/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx_injector.h"

#include <assert.h>

#include "base/error.h"
#include "base/min_max.h"
#include "control/message_control.h"
#include "message/tx_state.h"
#include "sdr/sdr_driver.h"

/* ---- backlog --------------------------------------------------------------------------------------- */

void backlog_on_message(struct tx *tx, struct tx_message *message)
{
    message->unstarted_bytes = message->bytes;
    tx->unstarted_bytes += message->bytes;
}

static void take_unstarted(struct tx *tx, struct tx_message *message, uint64_t bytes)
{
    assert(bytes <= message->unstarted_bytes && bytes <= tx->unstarted_bytes);
    message->unstarted_bytes -= bytes;
    tx->unstarted_bytes -= bytes;
}

/* The segment that now has half of the slots behind it. That is news for a machine with parity only: another
 * one may not be stepped without an event. */
void backlog_on_place(struct tx *tx)
{
    uint32_t sequence = tx->segment_next - tx->attr->slots / 2 - 1;
    if (sequence - tx->segment_oldest >= tx->segment_next - tx->segment_oldest)
        return;
    struct tx_segment *segment = tx_segment_at(tx, sequence);
    segment->needs_step |= segment->active && segment->scheme && segment->scheme->coding;
}

void backlog_on_segment(struct tx *tx, struct tx_message *message, struct tx_segment *segment)
{
    take_unstarted(tx, message, lh_min(segment->bytes, message->unstarted_bytes));
    segment->unsent = segment->scheme ? segment->chunks : 0;
    tx->unsent_chunks += segment->unsent;
}

void backlog_on_segment_over(struct tx *tx, struct tx_segment *segment)
{
    assert(segment->unsent <= tx->unsent_chunks);
    tx->unsent_chunks -= segment->unsent;
    segment->unsent = 0;
}

void backlog_on_message_over(struct tx *tx, struct tx_message *message)
{
    take_unstarted(tx, message, message->unstarted_bytes);
}

void backlog_on_injected(struct tx *tx, struct tx_segment *segment, uint32_t end)
{
    uint32_t unsent = segment->chunks - end;
    assert(end <= segment->chunks);
    if (unsent >= segment->unsent)
        return;
    tx->unsent_chunks -= segment->unsent - unsent;
    segment->unsent = unsent;
}

/* A clear-to-send is there, and what it takes to follow it. */
static bool can_start(const struct tx *tx)
{
    struct lh_cts raw;
    struct transfer_cts cts;
    if (tx->unstarted_bytes == 0 || tx->start_waits ||
        tx->segment_next - tx->segment_oldest == tx->attr->slots || tx->ending_count >= tx->attr->slots)
        return false;
    return lh_sdr_cts_peek(tx->qp, &raw) == 0 && transfer_cts_decode(raw.upper, &cts) == 0 && !cts.extra;
}

void backlog_view(struct tx *tx, const struct tx_segment *segment, struct lh_sender_view *view)
{
    uint64_t others = tx->unsent_chunks - segment->unsent;
    uint64_t later = others + tx->unstarted_bytes / tx->attr->chunk_bytes;
    view->later_chunks = (uint32_t)lh_min(later, UINT32_MAX);
    view->flight_chunks = (uint32_t)lh_min(tx->in_flight_bytes / tx->attr->chunk_bytes, UINT32_MAX);
    if (!segment->scheme->coding)
        return;
    view->holds_up = tx->segment_next - segment->sequence > tx->attr->slots / 2;
    view->data_waits = others > 0 || can_start(tx);
    tx->parity_waits |= view->data_waits;
}

void backlog_release(struct tx *tx, lh_time now, lh_time *next)
{
    if (!tx->parity_waits || tx->unsent_chunks > 0 || can_start(tx))
        return;
    tx->parity_waits = false;
    for (uint32_t n = tx->segment_oldest; n != tx->segment_next; n++) { /* at most attr.slots */
        struct tx_segment *segment = tx_segment_at(tx, n);
        if (segment->active && segment->scheme && segment->scheme->coding)
            segment->needs_step = true;
    }
    lh_keep_earlier(next, now);
}

/* ---- to receiver ----------------------------------------------------------------------------------- */

#define QUEUED_MAX_NS    (LH_NS_PER_S / 4) /* rx_state.c wants eight in two seconds */
#define SILENCE_FRACTION 8u

static_assert((HELD_MAX & (HELD_MAX - 1)) == 0, "a ring");

static struct transfer_message lengths_of(const struct tx *tx, const struct tx_segment *segment)
{
    struct transfer_message message = {.kind = TRANSFER_TO_RECEIVER};
    message.body.to_receiver.segment = segment->sequence;
    message.body.to_receiver.message = segment->message;
    message.body.to_receiver.segment_bytes = segment->bytes;
    message.body.to_receiver.message_bytes = tx_message_at(tx, segment->message)->bytes;
    message.body.to_receiver.tag = tx_message_at(tx, segment->message)->tag;
    return message;
}

/* Of the path, since the segment began. */
static lh_time silence(const struct tx *tx, const struct tx_segment *segment, lh_time now)
{
    lh_time from = lh_max(tx->path->last_heard_ns, segment->began_ns);
    return now > from ? now - from : 0;
}

/* Behind a slow link the chunks of a segment wait for long, and so may its lengths. But not as long as chunks
 * wait where none arrives: by its lengths the receiver notices that. Where nothing is heard at all, they are
 * announced as seldom as a machine probes (schemes/sr_timers.h). */
static lh_time next_lengths(const struct tx *tx, const struct tx_segment *segment, lh_time now)
{
    lh_time refresh_ns =
        lh_max(timing_refresh_interval(tx->path, 0), silence(tx, segment, now) / SILENCE_FRACTION);
    return lh_min(now + refresh_ns + queue_delay_now(&tx->delay, now),
                  segment->lengths_sent_ns + refresh_ns + QUEUED_MAX_NS);
}

static uint64_t bytes_left(const struct tx *tx)
{
    return tx->posted_bytes - sdr_qp_send_unsent_bytes(tx->qp);
}

static void send_now(struct tx *tx, struct tx_segment *segment, const struct transfer_message *message,
                     lh_time now)
{
    control_tx_send(tx->qp, message);
    if (segment->lengths_sent_ns == 0)
        segment->began_ns = now;
    segment->lengths_sent_ns = now;
    segment->lengths_after = bytes_left(tx);
    segment->lengths_at = next_lengths(tx, segment, now);
}

void to_receiver_lengths(struct tx *tx, struct tx_segment *segment, lh_time now)
{
    struct transfer_message message = lengths_of(tx, segment);
    bool waits = queue_delay_now(&tx->delay, now) >= QUEUED_MAX_NS;
    if (waits && segment->lengths_sent_ns != 0 && bytes_left(tx) == segment->lengths_after)
        segment->lengths_at = now + QUEUED_MAX_NS; /* the receiver would miss what was not sent */
    else
        send_now(tx, segment, &message, now);
}

static bool chunks_have_left(const struct tx *tx, uint64_t after)
{
    return sdr_qp_send_unsent_bytes(tx->qp) <= tx->posted_bytes - after;
}

void to_receiver_send_held(struct tx *tx)
{
    /* At most HELD_MAX. */
    while (tx->held_tail != tx->held_head) {
        struct held_message *held = ring_at(&tx->held, tx->held_tail);
        if (!chunks_have_left(tx, held->after))
            return;
        lh_sdr_message_send(tx->qp, held->data, held->bytes);
        tx->held_tail++;
    }
}

void to_receiver_scheme(struct tx *tx, struct tx_segment *segment, const uint8_t *data, uint32_t bytes,
                        lh_time now)
{
    struct transfer_message message = lengths_of(tx, segment);
    message.body.to_receiver.scheme = data;
    message.body.to_receiver.scheme_bytes = bytes;
    if (tx->held_head == tx->held_tail && chunks_have_left(tx, tx->posted_bytes)) {
        send_now(tx, segment, &message, now);
        return;
    }
    segment->lengths_at = next_lengths(tx, segment, now);
    uint32_t count = tx->held_head - tx->held_tail;
    if (count == HELD_MAX || !ring_hold(&tx->held, tx->store, tx->held_tail, count + 1))
        return; /* lost; machines expect that */
    struct held_message *held = ring_at(&tx->held, tx->held_head++);
    held->after = tx->posted_bytes;
    held->bytes = (uint32_t)transfer_encode(&message, held->data);
}

/* ---- injector -------------------------------------------------------------------------------------- */

/* Waiting in the SDR layer and the fabric: 40 us at 100 Gbit/s; or that many chunks, when they are larger. */
#define QUEUE_BYTES ((uint64_t)512 << 10)
/* At a controller's rate that may be long; what is sent again would wait behind it. */
#define QUEUE_SPAN_NS     (4 * LH_NS_PER_MS)
#define QUEUE_ROUND_TRIPS 8u /* or an eighth of one, when that is longer */
#define BITS_PER_BYTE     8u
#define QUEUE_CHUNKS      2u
#define ROUNDS_MAX        64u /* of a machine whose list was full, in one step */

static uint64_t queue_limit(const struct tx *tx)
{
    uint64_t chunks = (uint64_t)QUEUE_CHUNKS * tx->attr->chunk_bytes;
    uint64_t bytes = QUEUE_BYTES;
    if (tx->path->pace_bps != 0) {
        lh_time part_ns = tx->path->rtt_ns / QUEUE_ROUND_TRIPS;
        lh_time span_ns = lh_max(part_ns, QUEUE_SPAN_NS);
        double paced = (double)tx->path->pace_bps / BITS_PER_BYTE * ((double)span_ns / (double)LH_NS_PER_S);
        bytes = paced < (double)bytes ? (uint64_t)paced : bytes;
    }
    return lh_max(chunks, bytes);
}

static void note_left(struct tx *tx, lh_time now)
{
    uint64_t left = tx->posted_bytes - sdr_qp_send_unsent_bytes(tx->qp);
    lh_time left_ns = lh_sdr_send_left_ns(tx->qp);
    tx->delay.hold_ns = tx->path->overdue_ns;
    queue_delay_on_left(&tx->delay, left, lh_earlier(left_ns, now));
}

struct lh_path_view injector_path_view(struct tx *tx, lh_time now)
{
    struct lh_path_view view = timing_path_view(tx->path);
    note_left(tx, now);
    if (view.rtt_ns == 0)
        return view;
    view.overdue_ns += queue_delay_now(&tx->delay, now);
    return view;
}

bool injector_timers_stop(const struct tx *tx)
{
    return queue_delay_ends(&tx->delay, tx->posted_bytes - sdr_qp_send_unsent_bytes(tx->qp));
}

uint32_t injector_budget_chunks(const struct tx *tx)
{
    uint64_t queued = lh_sdr_send_queued_bytes(tx->qp);
    uint64_t in_flight = tx->in_flight_bytes;
    if (queued == 0 && in_flight == 0 && tx->window_bytes < tx->attr->chunk_bytes)
        return 1; /* or nothing would ever move */
    uint64_t queue_room = lh_sub_sat(queue_limit(tx), queued);
    uint64_t window_room = lh_sub_sat(tx->window_bytes, in_flight);
    return (uint32_t)(lh_min(queue_room, window_room) / tx->attr->chunk_bytes);
}

bool injector_window_is_full(const struct tx *tx)
{
    return lh_sub_sat(tx->window_bytes, tx->in_flight_bytes) < tx->attr->chunk_bytes;
}

bool injector_has_room(const struct tx *tx)
{
    uint64_t limit = queue_limit(tx);
    return (tx->blocked || injector_budget_chunks(tx) > 0) &&
           lh_sub_sat(limit, lh_sdr_send_queued_bytes(tx->qp)) >= limit / 2;
}

static void count_again(struct tx *tx, uint32_t bytes)
{
    tx->stats->tx_retransmitted_bytes += bytes;
    tx->stats->tx_retransmitted_packets += (bytes + tx->attr->mtu_bytes - 1) / tx->attr->mtu_bytes;
}

/* Where chunks lie, here and there: in the message, or past its end among the extra ones. */
struct place {
    struct sdr_send_handle *handle;
    struct sdr_send_continue_wr wr;
};

/* *count: becomes less where the chunks do not lie in one place. */
static struct place place_of(const struct tx *tx, const struct tx_segment *segment, uint32_t first,
                             uint32_t *count)
{
    struct segment_piece piece = {segment->payload, segment->lkey, 0};
    bool extra = first >= segment->chunks;
    uint32_t from = extra ? first - segment->chunks : first;
    uint32_t chunks = extra ? segment->coded.extra_chunks : segment->chunks;
    assert(*count > 0 && from < chunks && *count <= chunks - from);
    assert(!extra || segment->coded.handle);
    if (extra)
        piece = (struct segment_piece){segment->coded.buffer->chunks, segment->coded.buffer->lkey, 0};
    else if (segment->pieces)
        piece = pieces_at(segment->pieces, from, tx->attr->chunk_bytes, count);
    uint64_t offset = (uint64_t)from * tx->attr->chunk_bytes;
    uint64_t wanted = (uint64_t)*count * tx->attr->chunk_bytes;
    uint64_t left = extra ? wanted : segment->bytes - offset;
    const uint8_t *bytes = piece.address + (uint64_t)(from - piece.first) * tx->attr->chunk_bytes;
    return (struct place){
        .handle = extra ? segment->coded.handle : segment->handle,
        .wr =
            {
                .length = (uint32_t)(wanted < left ? wanted : left),
                .local_addr = (uint64_t)(uintptr_t)bytes,
                .lkey = piece.lkey,
                .remote_offset = from,
            },
    };
}

/* What the calls below return: 0, a positive lh_error with which the message is to be aborted, or this. */
#define QUEUE_FULL (-LH_EAGAIN)

/* Of the chunks those that lie in one place first; the action becomes the rest. */
static int inject_run(struct tx *tx, struct tx_segment *segment, struct lh_action *action, lh_time now)
{
    uint32_t count = action->what.chunks.count;
    struct place place = place_of(tx, segment, action->what.chunks.first, &count);
    uint32_t bytes = place.wr.length;
    int rc = sdr_streaming_send_continue(place.handle, &place.wr);
    if (rc == SDR_RETRY)
        return QUEUE_FULL;
    if (rc != SDR_SUCCESS && lh_sdr_error(tx->qp) == 0)
        return LH_EKEY; /* the memory is not what it was */
    action->what.chunks.first += count;
    action->what.chunks.count -= count;
    if (rc != SDR_SUCCESS)
        return 0; /* the queue pair ended: the next step sees that */
    tx->posted_bytes += bytes;
    queue_delay_on_posted(&tx->delay, tx->posted_bytes, now);
    if (action->what.chunks.again)
        count_again(tx, bytes);
    else if (action->what.chunks.first <= segment->chunks)
        backlog_on_injected(tx, segment, action->what.chunks.first);
    return 0;
}

static int inject(struct tx *tx, struct tx_segment *segment, struct lh_action *action, lh_time now)
{
    int rc = 0;
    while (rc == 0 && action->what.chunks.count > 0) /* at most PIECES_MAX */
        rc = inject_run(tx, segment, action, now);
    return rc;
}

static void encode(struct tx *tx, struct tx_segment *segment, const struct lh_action *action)
{
    struct coded_tx *coded = &segment->coded;
    struct coder_result result;
    assert(coded->buffer);
    const struct coder_job job = {
        .owner = segment,
        .ops = segment->scheme->coding,
        .coding = &coded->coding,
        .group = action->what.encode.group,
        .first_row = action->what.encode.first_row,
        .rows = action->what.encode.rows,
        .number = coded->asked++,
    };
    if (coder_submit(tx->coder, &job, &result))
        injector_on_encoded(tx, &result);
}

static int carry_out_one(struct tx *tx, struct tx_segment *segment, struct lh_action *action, lh_time now)
{
    switch (action->kind) {
    case LH_ACTION_SEND_CHUNKS:
        return inject(tx, segment, action, now);
    case LH_ACTION_SEND_MESSAGE:
        assert(action->what.message.bytes <= LH_SCHEME_MESSAGE_MAX);
        to_receiver_scheme(tx, segment, action->what.message.data, action->what.message.bytes, now);
        return 0;
    case LH_ACTION_FAIL:
        return abort_error(action->what.error);
    case LH_ACTION_ENCODE:
        encode(tx, segment, action);
        return 0;
    case LH_ACTION_SENT:
        assert(segment->scheme->deadline && !segment->leaving && !segment->sent);
        segment->leaving = true;
        tx->leaving++;
        return 0;
    case LH_ACTION_FINISH:
    case LH_ACTION_COMPLETE:
        break;
    }
    assert(false); /* only a receiver completes */
    return 0;
}

/* The rest of the list. When the queue is full the list is kept, and its segment blocks. */
static int carry_out(struct tx *tx, struct tx_segment *segment, lh_time now)
{
    for (; tx->actions_at < tx->actions->count; tx->actions_at++) {
        int rc = carry_out_one(tx, segment, &tx->actions->list[tx->actions_at], now);
        if (rc == QUEUE_FULL)
            tx->blocked = segment;
        if (rc)
            return rc;
    }
    return 0;
}

static uint32_t chunks_of(const struct lh_actions *actions)
{
    uint32_t chunks = 0;
    for (uint32_t i = 0; i < actions->count; i++)
        if (actions->list[i].kind == LH_ACTION_SEND_CHUNKS)
            chunks += actions->list[i].what.chunks.count;
    return chunks;
}

static void note_in_flight(struct tx *tx, struct tx_segment *segment, uint32_t chunks)
{
    tx->in_flight_bytes -= (uint64_t)segment->in_flight_chunks * tx->attr->chunk_bytes;
    segment->in_flight_chunks = chunks;
    tx->in_flight_bytes += (uint64_t)chunks * tx->attr->chunk_bytes;
}

/* While something waits for the pace, or for credit, timers move on with its wait: a machine that is stepped
 * whenever one seems due is stepped for ever. What it wants sent would wait behind that, too. */
static void note_next(struct tx *tx, struct tx_segment *segment, lh_time next_ns,
                      const struct lh_sender_view *view)
{
    segment->next_ns = next_ns;
    segment->moves = view->path.rtt_ns != 0 && queue_delay_moves(&tx->delay, next_ns, view->now);
    segment->behind = queue_delay_oldest(&tx->delay);
}

static void step_machine(struct tx *tx, struct tx_segment *segment, lh_time now)
{
    struct lh_actions *actions = tx->actions;
    struct lh_sender_view view = {.now = now, .path = injector_path_view(tx, now)};
    view.budget_chunks = tx->closed ? 0 : injector_budget_chunks(tx);
    view.extra_open = segment->coded.handle != NULL;
    view.encoded = segment->coded.encoded;
    view.withdrawn = segment->withdrawn;
    backlog_view(tx, segment, &view);
    actions->count = 0;
    actions->next_ns = LH_TIME_NEVER;
    actions->in_flight_chunks = 0;
    tx->actions_at = 0;
    segment->scheme->sender_step(segment->machine, &view, actions);
    uint32_t chunks = chunks_of(actions);
    assert(actions->count <= LH_ACTIONS_MAX && chunks <= view.budget_chunks);
    note_in_flight(tx, segment, actions->in_flight_chunks);
    note_next(tx, segment, actions->next_ns, &view);
    segment->rtt_ns = view.path.rtt_ns;
    segment->budget_limited = chunks == view.budget_chunks;
    segment->needs_step = actions->count == LH_ACTIONS_MAX;
}

int injector_run(struct tx *tx, struct tx_segment *segment, lh_time now)
{
    assert(segment->active && segment->scheme && !tx->blocked);
    for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
        step_machine(tx, segment, now);
        int rc = carry_out(tx, segment, now);
        if (rc || !segment->needs_step)
            return rc == QUEUE_FULL ? 0 : rc;
    }
    segment->next_ns = now; /* not done yet, and others want their turn */
    segment->moves = false;
    return 0;
}

int injector_continue(struct tx *tx, struct tx_segment *segment, lh_time now)
{
    assert(tx->blocked == segment);
    tx->blocked = NULL;
    int rc = carry_out(tx, segment, now);
    if (rc == 0)
        segment->needs_step = true;
    return rc == QUEUE_FULL ? 0 : rc;
}

void injector_on_encoded(struct tx *tx, const struct coder_result *result)
{
    struct tx_segment *segment = result->owner;
    struct coded_tx *coded = &segment->coded;
    tx->stats->encode_ns += result->took_ns;
    assert(result->number - coded->encoded < LH_ENCODES_MAX);
    coded->ran |= (uint64_t)1 << (result->number - coded->encoded);
    for (; coded->ran & 1; coded->ran >>= 1) /* at most LH_ENCODES_MAX */
        coded->encoded++;
    segment->needs_step = true;
}

/* Gives back the sends that were aborted, as far as they have ended. */
void injector_collect_ended(struct tx *tx)
{
    for (uint32_t i = 0; i < tx->ending_count;) { /* at most 2 * attr.slots */
        int completed = 0;
        sdr_send_poll(tx->ending[i].handle, &completed, NULL);
        if (!completed) {
            i++;
            continue;
        }
        if (tx->ending[i].buffer)
            parity_give(tx->parity, tx->ending[i].buffer);
        tx->ending[i] = tx->ending[--tx->ending_count];
    }
}

void injector_collect(struct tx *tx, lh_time now)
{
    note_left(tx, now);
    injector_collect_ended(tx);
    to_receiver_send_held(tx);
}

/* Whether nothing is read of it any more; it is NULL then. */
static bool has_left(struct tx *tx, struct sdr_send_handle **handle, bool *ended)
{
    int completed = !*handle;
    if (!completed && !*ended)
        *ended = sdr_streaming_send_end(*handle) == SDR_SUCCESS;
    tx->end_refused |= !completed && !*ended;
    if (!completed && *ended)
        sdr_send_poll(*handle, &completed, NULL);
    if (completed)
        *handle = NULL;
    return completed;
}

bool injector_has_left(struct tx *tx, struct tx_segment *segment)
{
    assert(segment->leaving);
    bool data = has_left(tx, &segment->handle, &segment->ended);
    bool parity = has_left(tx, &segment->coded.handle, &segment->coded.ended);
    if (!data || !parity)
        return false;
    segment->leaving = false;
    tx->leaving--;
    return true;
}

static void drop_queued(struct sdr_send_handle *handle, bool *ended)
{
    if (!handle)
        return;
    lh_sdr_streaming_send_abort(handle);
    *ended = true;
}

void injector_drop_queued(struct tx *tx, struct tx_segment *segment)
{
    if (tx->blocked == segment)
        return; /* the rest of its list is to be carried out */
    drop_queued(segment->handle, &segment->ended);
    drop_queued(segment->coded.handle, &segment->coded.ended);
}

/* Ends a send, if there is one, and gives the buffer back that it sent from, if it is ours, when nothing
 * reads it any more. */
static void end_send(struct tx *tx, struct sdr_send_handle **handle, struct parity_buffer *buffer)
{
    int completed = !*handle;
    if (*handle && sdr_streaming_send_end(*handle) == SDR_SUCCESS)
        sdr_send_poll(*handle, &completed, NULL);
    if (!completed) {
        /* What is still queued has arrived before, or is given up. */
        lh_sdr_streaming_send_abort(*handle);
        assert(tx->ending_count < 2 * tx->attr->slots);
        tx->ending[tx->ending_count++] = (struct ending_send){*handle, buffer};
    } else if (buffer) {
        parity_give(tx->parity, buffer);
    }
    *handle = NULL;
}

void injector_end_segment(struct tx *tx, struct tx_segment *segment)
{
    if (tx->blocked == segment)
        tx->blocked = NULL;
    note_in_flight(tx, segment, 0);
    backlog_on_segment_over(tx, segment);
    tx->leaving -= segment->leaving;
    segment->leaving = false;
    if (segment->coded.asked != segment->coded.encoded)
        coder_drop(tx->coder, segment);
    end_send(tx, &segment->handle, segment->copied);
    end_send(tx, &segment->coded.handle, segment->coded.buffer);
    segment->coded.buffer = NULL;
    segment->copied = NULL;
    segment->pieces = NULL;
}

void injector_close(struct tx *tx)
{
    for (; tx->ending_count > 0; tx->ending_count--) /* at most 2 * attr.slots */
        if (tx->ending[tx->ending_count - 1].buffer)
            parity_give(tx->parity, tx->ending[tx->ending_count - 1].buffer);
}
