/* SPDX-License-Identifier: BSD-3-Clause */
#include "connection/clearing.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "connection/injector.h"
#include "connection/number.h"
#include "connection/tell.h"
#include "connection/verdict.h"
#include "sdr/driver.h"

#define STARTS_A_STEP 64u /* each says a few things, and the SDR layer's queue takes 256 */

static void pass_by(struct lh_connection *c)
{
    lh_sdr_cts_skip(c->qp);
    c->sender.segment_next++;
    if (c->sender.segment_oldest + 1 == c->sender.segment_next)
        c->sender.segment_oldest++;
}

/* The first clear-to-send of a message decides how it is cut, for the code decides what fits a segment. */
static void cut_message(struct send_message *message, uint64_t segment_bytes)
{
    assert(segment_bytes > 0 && message->started == 0);
    message->segment_bytes = segment_bytes;
    if (message->bytes > 0)
        message->segments = (uint32_t)((message->bytes + segment_bytes - 1) / segment_bytes);
}

/* The segment of a clear-to-send that was checked; NULL when the SDR layer has no place for it now. */
static struct send_segment *take_segment(struct lh_connection *c, struct send_message *message,
                                         const struct lh_scheme *scheme)
{
    struct send_segment *segment = send_segment_at(c, c->sender.segment_next);
    struct sdr_send_handle *handle = NULL;
    struct sdr_send_start_wr wr = {.opcode = SDR_WR_WRITE};
    if (!scheme)
        lh_sdr_cts_skip(c->qp);
    else if (sdr_streaming_send_start(c->qp, &wr, &handle) != SDR_SUCCESS)
        return NULL;
    uint64_t offset = message->started * message->segment_bytes;
    uint64_t left = message->bytes - offset;
    uint32_t bytes = (uint32_t)(left < message->segment_bytes ? left : message->segment_bytes);
    *segment = (struct send_segment){
        .active = true,
        .touched = true,
        .sequence = c->sender.segment_next++,
        .message = message->number,
        .scheme = scheme,
        .handle = handle,
        .machine = segment->machine,
        .payload = bytes ? message->buffer + offset : NULL,
        .bytes = bytes,
        .chunks = (bytes + c->attr.chunk_bytes - 1) / c->attr.chunk_bytes,
        .lkey = message->memory.lkey,
        .next_ns = LH_TIME_NEVER,
    };
    return segment;
}

/* What is received has parity, too, but that is no help: it may be what the peer has no memory to send. */
static bool will_give_parity_back(const struct lh_connection *c)
{
    const struct sender *s = &c->sender;
    for (uint32_t i = 0; i < s->ending_count; i++)
        if (s->ending[i].buffer)
            return true;
    for (uint32_t i = 0; i < c->attr.slots; i++)
        if (s->segments[i].active && s->segments[i].coded.buffer)
            return true;
    return false;
}

/* Memory for the parity of a segment, none when it needs none. False when there is no memory: segments in
 * flight will give theirs back, and where there are none the message ends. */
static bool take_parity(struct lh_connection *c, struct send_message *message,
                        const struct lh_scheme_coding *ops, const struct transfer_cts *cts,
                        struct parity_buffer **buffer)
{
    uint32_t chunks_max = (uint32_t)(message->segment_bytes / c->attr.chunk_bytes);
    size_t bytes = (size_t)ops->extra_chunks(cts->params, chunks_max) * c->attr.chunk_bytes;
    *buffer = bytes > 0 ? parity_take(c, bytes, 0) : NULL;
    if (*buffer || bytes == 0)
        return true;
    if (!will_give_parity_back(c))
        verdict_cancel(c, message, LH_ENOMEM, lh_sdr_now(c->context));
    return false;
}

static void start_coding(const struct lh_connection *c, struct send_segment *segment,
                         const struct transfer_cts *cts, struct parity_buffer *buffer)
{
    struct coded_send *coded = &segment->coded;
    coded->buffer = buffer;
    coded->extra_chunks = segment->scheme->coding->extra_chunks(cts->params, segment->chunks);
    coded->coding = (struct lh_coding){
        .chunks = segment->chunks,
        .chunk_bytes = c->attr.chunk_bytes,
        .bytes = segment->bytes,
        .message = segment->payload,
        .extra = buffer->chunks,
    };
    memcpy(coded->coding.params, cts->params, sizeof coded->coding.params);
}

static void start_segment(struct lh_connection *c, struct send_message *message,
                          const struct transfer_cts *cts, lh_time now)
{
    bool fits = message->bytes <= cts->room;
    const struct lh_scheme *scheme = scheme_find(c->attr.scheme, cts->scheme);
    const struct lh_scheme *used = fits && message->bytes > 0 ? scheme : NULL;
    struct parity_buffer *buffer = NULL;
    if (used && used->coding && !take_parity(c, message, used->coding, cts, &buffer))
        return;
    struct send_segment *segment = take_segment(c, message, used);
    if (!segment) {
        if (buffer)
            parity_give(c, buffer);
        return;
    }
    /* Of one that is too long only the lengths are told: the receiver refuses it. */
    message->started = fits ? message->started + 1 : message->segments;
    if (!message->injected)
        message->request->result.started_ns = now;
    message->injected = true;
    tell_lengths(c, segment, now);
    if (!segment->scheme)
        return;
    if (buffer)
        start_coding(c, segment, cts, buffer);
    struct lh_transfer transfer = {
        .chunks = segment->chunks, .chunk_bytes = c->attr.chunk_bytes, .stats = &c->stats};
    memcpy(transfer.params, cts->params, sizeof transfer.params);
    scheme->sender_start(segment->machine, &transfer, now);
    injector_run(c, segment, now);
}

/* 0: not even one group of chunks and its parity fits; or the scheme is not known. */
static uint64_t segment_bytes_of(const struct lh_connection *c, const struct lh_scheme *scheme,
                                 const struct transfer_cts *cts)
{
    struct scheme_choice choice = {.scheme = scheme};
    if (!scheme || !scheme->params_valid(cts->params))
        return 0;
    memcpy(choice.params, cts->params, sizeof choice.params);
    return scheme_segment_bytes(&choice, &c->attr);
}

/* Whether the peer may ask for this. Ends the connection when it may not. */
static bool check_cts(struct lh_connection *c, const struct send_message *message, const struct lh_cts *raw,
                      const struct transfer_cts *cts)
{
    const struct lh_scheme *scheme = scheme_find(c->attr.scheme, cts->scheme);
    uint64_t segment_bytes = segment_bytes_of(c, scheme, cts);
    uint64_t left = message->bytes - message->started * segment_bytes;
    uint64_t bytes = left < segment_bytes ? left : segment_bytes;
    char words[CONNECTION_TEXT_MAX];
    if (!scheme)
        snprintf(words, sizeof words, "peer wants reliability scheme %u, which this side does not know",
                 cts->scheme);
    else if (!scheme->params_valid(cts->params))
        snprintf(words, sizeof words, "peer wants %s with impossible parameters", scheme->name);
    else if (segment_bytes == 0)
        snprintf(words, sizeof words, "peer wants %s with parity that does not fit a slot", scheme->name);
    else if (message->bytes / segment_bytes >= INT32_MAX)
        snprintf(words, sizeof words, "peer cut message %u into more than %d segments", cts->message,
                 INT32_MAX);
    else if (message->started > 0 && segment_bytes != message->segment_bytes)
        snprintf(words, sizeof words, "peer cut message %u into other segments half way", cts->message);
    else if (cts->segment != message->started)
        snprintf(words, sizeof words, "peer cleared segment %u of message %u, and %u is next", cts->segment,
                 cts->message, message->started);
    else if (message->bytes <= cts->room && raw->length_bytes < bytes)
        snprintf(words, sizeof words, "peer cleared %u bytes for a segment of %llu", raw->length_bytes,
                 (unsigned long long)bytes);
    else
        return true;
    connection_fail(c, LH_EPROTOCOL, words);
    return false;
}

static void start_message_segment(struct lh_connection *c, struct send_message *message,
                                  const struct transfer_cts *cts, lh_time now)
{
    if (message->started == 0)
        cut_message(message, segment_bytes_of(c, scheme_find(c->attr.scheme, cts->scheme), cts));
    start_segment(c, message, cts, now);
}

/* False when the SDR layer has no place for it now. */
static bool open_parity(struct lh_connection *c, struct send_segment *segment, const struct lh_cts *raw)
{
    struct sdr_send_start_wr wr = {.opcode = SDR_WR_WRITE};
    if (raw->length_bytes < (uint64_t)segment->coded.extra_chunks * c->attr.chunk_bytes) {
        connection_fail(c, LH_EPROTOCOL, "peer cleared less than the parity of a segment to be sent");
        return false;
    }
    if (sdr_streaming_send_start(c->qp, &wr, &segment->coded.handle) != SDR_SUCCESS)
        return false;
    c->sender.segment_next++;
    segment->touched = true;
    return true;
}

bool clearing_use_parity(struct lh_connection *c)
{
    struct sender *s = &c->sender;
    bool any = false;
    /* Each turn takes a place of the ring. */
    while (s->segment_next - s->segment_oldest < c->attr.slots && s->ending_count < c->attr.slots) {
        struct lh_cts raw;
        struct transfer_cts cts;
        if (lh_sdr_cts_peek(c->qp, &raw) != 0 || transfer_cts_decode(raw.upper, &cts) != 0 || !cts.extra)
            return any;
        uint32_t before = s->segment_next - 1;
        struct send_segment *segment = send_segment_at(c, before);
        bool lives = segment->active && segment->sequence == before && segment->message == cts.message;
        if (!lives || segment->coded.extra_chunks == 0)
            pass_by(c);
        else if (!open_parity(c, segment, &raw))
            return any;
        any = true;
    }
    return any;
}

/* The message whose segments are started next, or NULL. */
static struct send_message *current_message(struct lh_connection *c)
{
    struct sender *s = &c->sender;
    for (; s->current != s->next; s->current++) { /* at most MESSAGES_MAX */
        struct send_message *message = send_message_at(c, s->current);
        if (message->state == SEND_OPEN && message->started < message->segments)
            return message;
    }
    return NULL;
}

/* Uses one clear-to-send. False when there is none for now. */
static bool use_cts(struct lh_connection *c, struct send_message *message, lh_time now)
{
    struct lh_cts raw;
    struct transfer_cts cts;
    uint32_t before = c->sender.segment_next;
    if (lh_sdr_cts_peek(c->qp, &raw) != 0) {
        c->sender.cts_wanted = true;
        return false;
    }
    assert(raw.sequence == before);
    if (transfer_cts_decode(raw.upper, &cts) != 0) {
        connection_fail(c, LH_EPROTOCOL, "peer sent a clear-to-send that cannot be");
        return false;
    }
    if (cts.extra) { /* clearing_use_parity() had no place for it, and tries again */
        c->sender.cts_wanted = true;
        return false;
    }
    if (number_before(cts.message, message->number))
        pass_by(c);
    else if (cts.message == message->number && check_cts(c, message, &raw, &cts))
        start_message_segment(c, message, &cts, now);
    return c->error == 0 && c->sender.segment_next != before;
}

/* Of the newest clear-to-send, unless it was passed by. */
static void note_started(struct lh_connection *c, lh_time *next)
{
    struct send_segment *segment = send_segment_at(c, c->sender.segment_next - 1);
    if (!segment->active || segment->sequence != c->sender.segment_next - 1)
        return;
    c->sender.closed |= segment->hungry;
    lh_keep_earlier(next, segment->next_ns);
    lh_keep_earlier(next, segment->tell_at);
}

void clearing_start_segments(struct lh_connection *c, lh_time now, lh_time *next)
{
    struct sender *s = &c->sender;
    struct send_message *message;
    for (uint32_t i = 0; c->error == 0 && !s->blocked && (message = current_message(c)) != NULL; i++) {
        /* The oldest must arrive first: its place is wanted. And what was aborted must leave the queue. */
        if (s->segment_next - s->segment_oldest == c->attr.slots || s->ending_count >= c->attr.slots)
            return;
        if (i == STARTS_A_STEP) {
            c->touched = true;
            lh_keep_earlier(next, now);
            return;
        }
        s->closed |= injector_budget_chunks(c) == 0;
        if (s->closed || !use_cts(c, message, now))
            return;
        note_started(c, next);
        if (clearing_use_parity(c)) {
            c->touched = true;
            lh_keep_earlier(next, now);
        }
    }
}
