/*
 * erasure_coding.c - MARK, ACK and REQUEST: encode, decode.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/erasure_coding.h"

#include <assert.h>

#include <longhaul/scheme.h>

#include "base/big_endian.h"

#define PLACES_MAX 255u /* of a code over bytes */

static_assert(EC_REQUEST_BYTES_MAX <= LH_SCHEME_MESSAGE_MAX, "a full request fits a message");
static_assert(EC_REQUEST_BYTES_MAX + EC_RUN_BYTES > LH_SCHEME_MESSAGE_MAX, "it holds as many runs as fit");
static_assert(EC_RUNS_MAX <= UINT8_MAX, "their number fits its byte");

static bool mark_possible(const struct ec_mark *mark)
{
    return (mark->flags & ~(EC_FLAG_PROBE | EC_FLAG_END)) == 0 && mark->mark != 0;
}

size_t ec_mark_encode(const struct ec_mark *mark, uint8_t out[EC_MARK_BYTES])
{
    assert(mark_possible(mark));
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
    return mark_possible(mark) ? 0 : -1;
}

static bool ack_possible(const struct ec_ack *ack)
{
    return ack->mark != 0 || ack->injected == 0;
}

size_t ec_ack_encode(const struct ec_ack *ack, uint8_t out[EC_ACK_BYTES])
{
    assert(ack_possible(ack));
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
    return ack_possible(ack) ? 0 : -1;
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
