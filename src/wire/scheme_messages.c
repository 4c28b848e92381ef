/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/scheme_messages.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <longhaul/scheme.h>

#include "base/bytes.h"

/* ---- selective repeat ------------------------------------------------------------------------------ */

/* MARK and ACK: encode, decode. */

static_assert(SR_ACK_BYTES_MAX <= LH_SCHEME_MESSAGE_MAX, "a full ACK fits a message");
static_assert(SR_ACK_BYTES_MAX + 8 > LH_SCHEME_MESSAGE_MAX, "an ACK holds as many words as fit");

/* The last base from which all words of an ACK have chunk numbers of 32 bits. */
#define BASE_MAX (UINT32_MAX - 64u * SR_ACK_WORDS_MAX)

static bool mark_possible(const struct sr_mark *mark)
{
    return (mark->flags & ~SR_FLAG_PROBE) == 0 && mark->mark != 0;
}

size_t sr_mark_encode(const struct sr_mark *mark, uint8_t out[SR_MARK_BYTES])
{
    assert(mark_possible(mark));
    out[0] = SR_MARK;
    out[1] = mark->flags;
    lh_put_be16(out + 2, 0);
    lh_put_be32(out + 4, mark->mark);
    lh_put_be32(out + 8, mark->sent_through);
    return SR_MARK_BYTES;
}

int sr_mark_decode(const uint8_t *data, size_t bytes, struct sr_mark *mark)
{
    if (bytes != SR_MARK_BYTES || data[0] != SR_MARK || lh_get_be16(data + 2) != 0)
        return -1;
    *mark = (struct sr_mark){
        .flags = data[1],
        .mark = lh_get_be32(data + 4),
        .sent_through = lh_get_be32(data + 8),
    };
    return mark_possible(mark) ? 0 : -1;
}

static bool ack_possible(const struct sr_ack *ack)
{
    return (ack->flags & ~SR_FLAG_NACK) == 0 && ack->words <= SR_ACK_WORDS_MAX && ack->base % 64 == 0 &&
           ack->base >= ack->cumulative / 64 * 64 && ack->base <= BASE_MAX &&
           ack->arrived >= ack->cumulative;
}

size_t sr_ack_encode(const struct sr_ack *ack, uint8_t *out)
{
    assert(ack_possible(ack));
    out[0] = SR_ACK;
    out[1] = ack->flags;
    lh_put_be16(out + 2, ack->words);
    lh_put_be32(out + 4, ack->mark);
    lh_put_be32(out + 8, ack->cumulative);
    lh_put_be32(out + 12, ack->base);
    lh_put_be32(out + 16, ack->horizon);
    lh_put_be32(out + 20, ack->arrived);
    for (size_t i = 0; i < ack->words; i++)
        lh_put_be64(out + SR_ACK_BYTES + 8 * i, ack->bitmap[i]);
    return SR_ACK_BYTES + 8 * (size_t)ack->words;
}

int sr_ack_decode(const uint8_t *data, size_t bytes, struct sr_ack *ack)
{
    if (bytes < SR_ACK_BYTES || bytes > SR_ACK_BYTES_MAX || data[0] != SR_ACK)
        return -1;
    ack->flags = data[1];
    ack->words = lh_get_be16(data + 2);
    ack->mark = lh_get_be32(data + 4);
    ack->cumulative = lh_get_be32(data + 8);
    ack->base = lh_get_be32(data + 12);
    ack->horizon = lh_get_be32(data + 16);
    ack->arrived = lh_get_be32(data + 20);
    if (!ack_possible(ack) || bytes != SR_ACK_BYTES + 8 * (size_t)ack->words)
        return -1;
    for (size_t i = 0; i < ack->words; i++) /* at most SR_ACK_WORDS_MAX */
        ack->bitmap[i] = lh_get_be64(data + SR_ACK_BYTES + 8 * i);
    return 0;
}

/* ---- erasure coding -------------------------------------------------------------------------------- */

/* MARK, ACK and REQUEST: encode, decode. */

#define PLACES_MAX 255u /* of a code over bytes */

static_assert(EC_REQUEST_BYTES_MAX <= LH_SCHEME_MESSAGE_MAX, "a full request fits a message");
static_assert(EC_REQUEST_BYTES_MAX + EC_RUN_BYTES > LH_SCHEME_MESSAGE_MAX, "it holds as many runs as fit");
static_assert(EC_RUNS_MAX <= UINT8_MAX, "their number fits its byte");

static bool erasure_coding_mark_possible(const struct ec_mark *mark)
{
    return (mark->flags & ~(EC_FLAG_PROBE | EC_FLAG_END)) == 0 && mark->mark != 0;
}

size_t ec_mark_encode(const struct ec_mark *mark, uint8_t out[EC_MARK_BYTES])
{
    assert(erasure_coding_mark_possible(mark));
    out[0] = EC_MARK;
    out[1] = mark->flags;
    lh_put_be16(out + 2, 0);
    lh_put_be32(out + 4, mark->mark);
    lh_put_be32(out + 8, mark->round);
    lh_put_be32(out + 12, mark->injected);
    return EC_MARK_BYTES;
}

int ec_mark_decode(const uint8_t *data, size_t bytes, struct ec_mark *mark)
{
    if (bytes != EC_MARK_BYTES || data[0] != EC_MARK || lh_get_be16(data + 2) != 0)
        return -1;
    *mark = (struct ec_mark){
        .flags = data[1],
        .mark = lh_get_be32(data + 4),
        .round = lh_get_be32(data + 8),
        .injected = lh_get_be32(data + 12),
    };
    return erasure_coding_mark_possible(mark) ? 0 : -1;
}

static bool erasure_coding_ack_possible(const struct ec_ack *ack)
{
    return ack->mark != 0 || ack->injected == 0;
}

size_t ec_ack_encode(const struct ec_ack *ack, uint8_t out[EC_ACK_BYTES])
{
    assert(erasure_coding_ack_possible(ack));
    lh_put_be32(out, (uint32_t)EC_ACK << 24);
    lh_put_be32(out + 4, ack->mark);
    lh_put_be32(out + 8, ack->injected);
    lh_put_be32(out + 12, ack->arrived);
    return EC_ACK_BYTES;
}

int ec_ack_decode(const uint8_t *data, size_t bytes, struct ec_ack *ack)
{
    if (bytes != EC_ACK_BYTES || lh_get_be32(data) != (uint32_t)EC_ACK << 24)
        return -1;
    *ack = (struct ec_ack){
        .mark = lh_get_be32(data + 4),
        .injected = lh_get_be32(data + 8),
        .arrived = lh_get_be32(data + 12),
    };
    return erasure_coding_ack_possible(ack) ? 0 : -1;
}

static bool run_possible(const struct ec_run *run)
{
    return run->count >= 1 && (uint32_t)run->first + run->count <= PLACES_MAX;
}

static bool runs_possible(const struct ec_request *request)
{
    for (uint32_t i = 0; i < request->count; i++) /* at most EC_RUNS_MAX */
        if (!run_possible(&request->runs[i]) ||
            (i > 0 && !ec_run_follows(&request->runs[i - 1], &request->runs[i])))
            return false;
    return true;
}

static bool request_header_possible(const struct ec_request *request)
{
    bool last = request->part + 1u == request->parts;
    return request->round != 0 && request->parts <= EC_PARTS_MAX && request->part < request->parts &&
           request->count >= 1 && request->count <= EC_RUNS_MAX && (last || request->count == EC_RUNS_MAX);
}

size_t ec_request_encode(const struct ec_request *request, uint8_t *out)
{
    assert(request_header_possible(request) && runs_possible(request));
    out[0] = EC_REQUEST;
    out[1] = request->part;
    out[2] = request->parts;
    out[3] = request->count;
    lh_put_be32(out + 4, request->round);
    for (uint32_t i = 0; i < request->count; i++) { /* at most EC_RUNS_MAX */
        uint8_t *run = out + EC_REQUEST_BYTES + i * EC_RUN_BYTES;
        lh_put_be32(run, request->runs[i].group);
        run[4] = request->runs[i].first;
        run[5] = request->runs[i].count;
    }
    return EC_REQUEST_BYTES + (size_t)request->count * EC_RUN_BYTES;
}

int ec_request_decode(const uint8_t *data, size_t bytes, struct ec_request *request)
{
    if (bytes < EC_REQUEST_BYTES || bytes > EC_REQUEST_BYTES_MAX || data[0] != EC_REQUEST)
        return -1;
    request->part = data[1];
    request->parts = data[2];
    request->count = data[3];
    request->round = lh_get_be32(data + 4);
    if (!request_header_possible(request) ||
        bytes != EC_REQUEST_BYTES + (size_t)request->count * EC_RUN_BYTES)
        return -1;
    for (uint32_t i = 0; i < request->count; i++) { /* at most EC_RUNS_MAX */
        const uint8_t *run = data + EC_REQUEST_BYTES + i * EC_RUN_BYTES;
        request->runs[i] = (struct ec_run){lh_get_be32(run), run[4], run[5]};
    }
    return runs_possible(request) ? 0 : -1;
}

/* ---- hybrid ---------------------------------------------------------------------------------------- */

static_assert(HYBRID_ROWS_BYTES + HYBRID_ROWS_MAX == LH_SCHEME_MESSAGE_MAX, "as many as fit");

static int possible(const struct hybrid_rows *rows)
{
    return rows->count >= 1 && rows->count <= HYBRID_ROWS_MAX &&
           rows->first <= UINT32_MAX - HYBRID_ROWS_MAX;
}

size_t hybrid_rows_encode(const struct hybrid_rows *rows, uint8_t *out)
{
    assert(possible(rows));
    out[0] = HYBRID_ROWS_KIND;
    out[1] = 0;
    lh_put_be16(out + 2, rows->count);
    lh_put_be32(out + 4, rows->mark);
    lh_put_be32(out + 8, rows->first);
    memcpy(out + HYBRID_ROWS_BYTES, rows->rows, rows->count);
    return HYBRID_ROWS_BYTES + (size_t)rows->count;
}

int hybrid_rows_decode(const uint8_t *data, size_t bytes, struct hybrid_rows *rows)
{
    if (bytes < HYBRID_ROWS_BYTES || data[0] != HYBRID_ROWS_KIND || data[1] != 0)
        return -1;
    rows->count = lh_get_be16(data + 2);
    rows->mark = lh_get_be32(data + 4);
    rows->first = lh_get_be32(data + 8);
    if (!possible(rows) || bytes != HYBRID_ROWS_BYTES + (size_t)rows->count)
        return -1;
    memcpy(rows->rows, data + HYBRID_ROWS_BYTES, rows->count);
    return 0;
}

/* ---- bounded completion ---------------------------------------------------------------------------- */

static bool kind_known(uint32_t kind)
{
    return kind == BOUNDED_END || kind == BOUNDED_ACK;
}

size_t bounded_message_encode(const struct bounded_message *message, uint8_t out[BOUNDED_MESSAGE_BYTES])
{
    assert(kind_known(message->kind));
    lh_put_be32(out, (uint32_t)message->kind << 24);
    lh_put_be32(out + 4, message->place);
    return BOUNDED_MESSAGE_BYTES;
}

int bounded_message_decode(const uint8_t *data, size_t bytes, struct bounded_message *message)
{
    if (bytes != BOUNDED_MESSAGE_BYTES || !kind_known(data[0]) || (lh_get_be32(data) & 0xffffff) != 0)
        return -1;
    *message = (struct bounded_message){.kind = (enum bounded_kind)data[0], .place = lh_get_be32(data + 4)};
    return 0;
}
