/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx/cts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/earlier.h"
#include "base/least.h"
#include "message/control/machine.h"
#include "message/control/number.h"
#include "message/scheme/scheme_choice.h"
#include "message/tx/backlog.h"
#include "message/tx/cancel.h"
#include "message/tx/injector.h"
#include "message/tx/memory.h"
#include "message/tx/to_receiver.h"

#define STARTS_A_STEP 64u /* each sends a few messages, and the SDR layer's queue takes 256 */

static bool ring_is_full(const struct tx *tx)
{
    return tx->segment_next - tx->segment_oldest == tx->attr->slots;
}

/* While the ring is not full: it takes a place, too. */
static void pass_by(struct tx *tx)
{
    assert(!ring_is_full(tx));
    lh_sdr_cts_skip(tx->qp);
    tx->segment_next++;
    if (tx->segment_oldest + 1 == tx->segment_next)
        tx->segment_oldest++;
    backlog_on_place(tx); /* of no place that was passed by: the ring may have no memory yet */
}

/* The first clear-to-send of a message decides how it is cut, for the code decides what fits a segment. */
static void cut_message(struct tx_message *message, uint64_t segment_bytes)
{
    assert(segment_bytes > 0 && message->started == 0);
    message->segment_bytes = segment_bytes;
    if (message->bytes > 0)
        message->segments = (uint32_t)((message->bytes + segment_bytes - 1) / segment_bytes);
}

/* False when the SDR layer has no place for it now. */
static bool start_send(struct tx *tx, struct sdr_send_handle **handle)
{
    struct sdr_send_start_wr wr = {.opcode = SDR_WR_WRITE};
    tx->start_refused = sdr_streaming_send_start(tx->qp, &wr, handle) != SDR_SUCCESS;
    return !tx->start_refused;
}

/* Memory for the state of a sender's machine. False: none for now. */
static bool hold_machine(struct tx *tx, struct tx_segment *segment, const struct lh_scheme *scheme,
                         uint32_t chunks)
{
    tx->start_refused =
        !machine_hold(&segment->machine, &segment->machine_bytes, tx->store, scheme->sender_bytes(chunks));
    return !tx->start_refused;
}

static struct segment_range next_range(const struct tx *tx, const struct tx_message *message)
{
    uint64_t offset = message->started * message->segment_bytes;
    uint64_t bytes = lh_least(message->bytes - offset, message->segment_bytes);
    return (struct segment_range){offset, (uint32_t)bytes, tx->attr->chunk_bytes};
}

/* The segment of a clear-to-send that was checked; NULL when the SDR layer has no place for it now. */
static struct tx_segment *take_segment(struct tx *tx, struct tx_message *message,
                                       const struct lh_scheme *scheme, const struct segment_range *range,
                                       const struct tx_place *place)
{
    struct tx_segment *segment = tx_segment_at(tx, tx->segment_next);
    struct sdr_send_handle *handle = NULL;
    uint32_t chunks = (range->bytes + range->chunk_bytes - 1) / range->chunk_bytes;
    if (!scheme)
        lh_sdr_cts_skip(tx->qp);
    else if (!hold_machine(tx, segment, scheme, chunks) || !start_send(tx, &handle))
        return NULL;
    *segment = (struct tx_segment){
        .active = true,
        .needs_step = true,
        .sequence = tx->segment_next++,
        .message = message->number,
        .scheme = scheme,
        .handle = handle,
        .machine = segment->machine,
        .machine_bytes = segment->machine_bytes,
        .payload = place->payload,
        .bytes = range->bytes,
        .chunks = chunks,
        .lkey = place->lkey,
        .copied = place->copied,
        .pieces = place->pieces,
        .next_ns = LH_TIME_NEVER,
    };
    memory_copy(message, range, segment);
    backlog_on_place(tx);
    backlog_on_segment(tx, message, segment);
    return segment;
}

/* What a segment needs besides its place in the ring. */
struct segment_memory {
    struct tx_place place;
    struct parity_buffer *parity; /* NULL: it needs none */
};

static void give_memory(const struct tx *tx, const struct segment_memory *memory)
{
    if (memory->place.copied)
        parity_give(tx->parity, memory->place.copied);
    if (memory->parity)
        parity_give(tx->parity, memory->parity);
}

/* scheme: NULL: no chunks are sent. False when there is no memory now, or the message has ended. */
static bool take_memory(struct tx *tx, struct tx_message *message, const struct lh_scheme *scheme,
                        const struct transfer_cts *cts, const struct segment_range *range,
                        struct segment_memory *memory, lh_time now)
{
    const struct lh_scheme_coding *coding = scheme ? scheme->coding : NULL;
    uint32_t chunks_max = (uint32_t)(message->segment_bytes / tx->attr->chunk_bytes);
    size_t bytes =
        coding ? (size_t)coding->extra_chunks(cts->params, chunks_max) * tx->attr->chunk_bytes : 0;
    *memory = (struct segment_memory){0};
    if (scheme && !memory_place(tx, message, range, bytes > 0, &memory->place, now))
        return false;
    if (memory_take(tx, message, bytes, 0, &memory->parity, now))
        return true;
    give_memory(tx, memory);
    return false;
}

static void start_coding(const struct tx *tx, struct tx_segment *segment, const struct transfer_cts *cts,
                         struct parity_buffer *buffer)
{
    struct coded_tx *coded = &segment->coded;
    coded->buffer = buffer;
    coded->extra_chunks = segment->scheme->coding->extra_chunks(cts->params, segment->chunks);
    coded->coding = (struct lh_coding){
        .chunks = segment->chunks,
        .chunk_bytes = tx->attr->chunk_bytes,
        .bytes = segment->bytes,
        .message = segment->payload,
        .extra = buffer->chunks,
    };
    memcpy(coded->coding.params, cts->params, sizeof coded->coding.params);
}

static void start_segment(struct tx *tx, struct tx_message *message, const struct transfer_cts *cts,
                          lh_time now)
{
    bool fits = message->bytes <= cts->room;
    const struct lh_scheme *scheme = scheme_find(tx->attr->scheme, cts->scheme);
    const struct lh_scheme *used = fits && message->bytes > 0 ? scheme : NULL;
    const struct segment_range range = next_range(tx, message);
    struct segment_memory memory;
    if (!take_memory(tx, message, used, cts, &range, &memory, now))
        return;
    struct tx_segment *segment = take_segment(tx, message, used, &range, &memory.place);
    if (!segment) {
        give_memory(tx, &memory);
        return;
    }
    /* Of one that is too long only the lengths are announced: the receiver refuses it. */
    message->started = fits ? message->started + 1 : message->segments;
    if (!fits)
        backlog_on_message_over(tx, message);
    if (!message->injected)
        message->request->result.started_ns = now;
    message->injected = true;
    to_receiver_lengths(tx, segment, now);
    if (!segment->scheme)
        return;
    if (memory.parity)
        start_coding(tx, segment, cts, memory.parity);
    struct lh_transfer transfer = {
        .chunks = segment->chunks, .chunk_bytes = tx->attr->chunk_bytes, .stats = tx->stats};
    memcpy(transfer.params, cts->params, sizeof transfer.params);
    scheme->sender_start(segment->machine, &transfer, now);
    int error = injector_run(tx, segment, now);
    if (error)
        cancel_message(tx, message, error, now);
}

/* 0: not even one group of chunks and its parity fits; or the scheme is not known. */
static uint64_t segment_bytes_of(const struct tx *tx, const struct lh_scheme *scheme,
                                 const struct transfer_cts *cts)
{
    struct scheme_choice choice = {.scheme = scheme};
    if (!scheme || !scheme->params_valid(cts->params))
        return 0;
    memcpy(choice.params, cts->params, sizeof choice.params);
    return scheme_segment_bytes(&choice, tx->attr);
}

/* Whether the peer may ask for this. Ends the connection when it may not. */
static bool check_cts(struct tx *tx, const struct tx_message *message, const struct lh_cts *raw,
                      const struct transfer_cts *cts)
{
    const struct lh_scheme *scheme = scheme_find(tx->attr->scheme, cts->scheme);
    uint64_t segment_bytes = segment_bytes_of(tx, scheme, cts);
    uint64_t left = message->bytes - message->started * segment_bytes;
    uint64_t bytes = left < segment_bytes ? left : segment_bytes;
    char reason[REASON_MAX / 2];
    if (!scheme)
        snprintf(reason, sizeof reason,
                 "peer chose reliability scheme %u: unknown here (pass it as lh_attr.scheme)", cts->scheme);
    else if (!scheme->params_valid(cts->params))
        snprintf(reason, sizeof reason, "peer chose %s with invalid parameters", scheme->name);
    else if (segment_bytes == 0)
        snprintf(reason, sizeof reason, "peer chose %s: its parity exceeds a slot", scheme->name);
    else if (message->bytes / segment_bytes >= INT32_MAX)
        snprintf(reason, sizeof reason, "peer cut message %u into more than %d segments", cts->message,
                 INT32_MAX);
    else if (message->started > 0 && segment_bytes != message->segment_bytes)
        snprintf(reason, sizeof reason, "peer changed the segment size within message %u", cts->message);
    else if (cts->segment != message->started)
        snprintf(reason, sizeof reason, "peer cleared segment %u of message %u (expected %u)", cts->segment,
                 cts->message, message->started);
    else if (message->bytes <= cts->room && raw->length_bytes < bytes)
        snprintf(reason, sizeof reason, "peer cleared %u bytes for a segment of %llu bytes",
                 raw->length_bytes, (unsigned long long)bytes);
    else
        return true;
    effects_fail(tx->effects, LH_EPROTOCOL, reason);
    return false;
}

static void start_message_segment(struct tx *tx, struct tx_message *message, const struct transfer_cts *cts,
                                  lh_time now)
{
    outgoing_on_receive(&tx->outgoing, message->number);
    if (message->started == 0)
        cut_message(message, segment_bytes_of(tx, scheme_find(tx->attr->scheme, cts->scheme), cts));
    start_segment(tx, message, cts, now);
}

/* False when the SDR layer has no place for it now. */
static bool open_parity(struct tx *tx, struct tx_segment *segment, const struct lh_cts *raw)
{
    if (raw->length_bytes < (uint64_t)segment->coded.extra_chunks * tx->attr->chunk_bytes) {
        effects_fail(tx->effects, LH_EPROTOCOL,
                     "peer cleared less than the parity of a segment to be sent");
        return false;
    }
    if (!start_send(tx, &segment->coded.handle))
        return false;
    tx->segment_next++;
    backlog_on_place(tx);
    segment->needs_step = true;
    return true;
}

bool cts_use_parity(struct tx *tx)
{
    bool any = false;
    /* Each turn takes a place of the ring. */
    while (!ring_is_full(tx) && tx->ending_count < tx->attr->slots) {
        struct lh_cts raw;
        struct transfer_cts cts;
        if (lh_sdr_cts_peek(tx->qp, &raw) != 0 || transfer_cts_decode(raw.upper, &cts) != 0 || !cts.extra)
            return any;
        uint32_t before = tx->segment_next - 1;
        struct tx_segment *segment = tx->segments ? tx_segment_at(tx, before) : NULL;
        bool lives =
            segment && segment->active && segment->sequence == before && segment->message == cts.message;
        if (!lives || segment->coded.extra_chunks == 0 || segment->leaving || segment->sent)
            pass_by(tx);
        else if (!open_parity(tx, segment, &raw))
            return any;
        any = true;
    }
    return any;
}

/* The message whose segments are started next, or NULL. */
static struct tx_message *current_message(struct tx *tx)
{
    for (; tx->current != tx->next; tx->current++) { /* at most MESSAGES_MAX */
        struct tx_message *message = tx_message_at(tx, tx->current);
        if (message->state == TX_OPEN && message->started < message->segments)
            return message;
    }
    return NULL;
}

/* Where receives choose their messages, clear-to-sends name them in any order. The message of the next one,
 * or NULL: there is none, or no place, for now. */
static struct tx_message *cleared_message(struct tx *tx)
{
    struct lh_cts raw;
    struct transfer_cts cts;
    for (uint32_t i = 0; i < STARTS_A_STEP; i++) {
        if (ring_is_full(tx))
            return NULL; /* those of messages that are over wait for the oldest segment, too */
        if (lh_sdr_cts_peek(tx->qp, &raw) != 0)
            break;
        if (transfer_cts_decode(raw.upper, &cts) != 0 || !number_before(cts.message, tx->next)) {
            effects_fail(tx->effects, LH_EPROTOCOL, "clear-to-send of no message from the peer");
            return NULL;
        }
        if (cts.extra) /* cts_use_parity() had no place for it, and tries again */
            break;
        bool known = cts.message - tx->oldest < tx->next - tx->oldest;
        struct tx_message *message = known ? tx_message_at(tx, cts.message) : NULL;
        if (message && message->state == TX_OPEN && message->started < message->segments)
            return message;
        pass_by(tx);
    }
    tx->cts_wanted = tx->oldest != tx->next;
    return NULL;
}

static struct tx_message *next_message(struct tx *tx)
{
    return tx->outgoing.matched ? cleared_message(tx) : current_message(tx);
}

/* Uses one clear-to-send. False when there is none for now. */
static bool use_cts(struct tx *tx, struct tx_message *message, lh_time now)
{
    struct lh_cts raw;
    struct transfer_cts cts;
    uint32_t before = tx->segment_next;
    if (lh_sdr_cts_peek(tx->qp, &raw) != 0) {
        tx->cts_wanted = true;
        return false;
    }
    assert(raw.sequence == before);
    if (transfer_cts_decode(raw.upper, &cts) != 0) {
        effects_fail(tx->effects, LH_EPROTOCOL, "malformed clear-to-send from the peer");
        return false;
    }
    if (cts.extra) { /* cts_use_parity() had no place for it, and tries again */
        tx->cts_wanted = true;
        return false;
    }
    if (number_before(cts.message, message->number))
        pass_by(tx);
    else if (cts.message == message->number && check_cts(tx, message, &raw, &cts))
        start_message_segment(tx, message, &cts, now);
    return !tx->effects->failure && tx->segment_next != before;
}

/* Of the newest clear-to-send, unless it was passed by. */
static void note_started(struct tx *tx, lh_time *next)
{
    struct tx_segment *segment = tx_segment_at(tx, tx->segment_next - 1);
    if (!segment->active || segment->sequence != tx->segment_next - 1)
        return;
    tx->closed |= segment->budget_limited;
    lh_keep_earlier(next, segment->next_ns);
    lh_keep_earlier(next, segment->lengths_at);
}

/* Those of messages that were sent without: no message waits for one. */
static void pass_by_small(struct tx *tx)
{
    struct lh_cts raw;
    struct transfer_cts cts;
    for (uint32_t i = 0; i < STARTS_A_STEP && !tx->effects->failure; i++) {
        cts_use_parity(tx);
        if (ring_is_full(tx) || lh_sdr_cts_peek(tx->qp, &raw) != 0 ||
            transfer_cts_decode(raw.upper, &cts) != 0 || cts.extra || !number_before(cts.message, tx->next))
            return;
        pass_by(tx);
    }
}

void cts_start_segments(struct tx *tx, lh_time now, lh_time *next)
{
    struct tx_message *message;
    struct lh_cts raw;
    for (uint32_t i = 0; !tx->effects->failure && !tx->blocked && (message = next_message(tx)) != NULL;
         i++) {
        /* The oldest must arrive first: its place is wanted. And what was aborted must leave the queue. */
        if (ring_is_full(tx) || tx->ending_count >= tx->attr->slots)
            return;
        if (i == STARTS_A_STEP) {
            lh_keep_earlier(next, now); /* the engine steps again at once */
            return;
        }
        tx->closed |= injector_budget_chunks(tx) == 0;
        if (tx->closed)
            return;
        bool cleared = lh_sdr_cts_peek(tx->qp, &raw) == 0;
        bool used = use_cts(tx, message, now);
        tx->start_waits = cleared && !used;
        if (!used)
            return;
        note_started(tx, next);
        if (cts_use_parity(tx))
            lh_keep_earlier(next, now);
    }
    if (tx->eager && !tx->outgoing.matched && tx->current == tx->next)
        pass_by_small(tx);
}
