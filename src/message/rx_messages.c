/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/rx/decoding.h"

#include <assert.h>
#include <string.h>

#include "message/rx/auto_scheme.h"
#include "message/rx/done.h"
#include "message/rx/messages.h"
#include "message/rx/partial.h"

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

static void hand_over(struct rx *rx, struct rx_segment *segment, lh_time now)
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
        hand_over(rx, segment, now);
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
        hand_over(rx, segment, now);
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
