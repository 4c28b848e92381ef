/*
 * delivery.c - what came of a message with a deadline: read from its request.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include "base/error.h"
#include "message/buffer/arrived.h"
#include "message/requests.h"

static int check(struct lh_request *request, struct lh_result *result)
{
    if (!lh_test(request, result))
        return lh_fail(LH_ESTATE, "request is pending: wait for it");
    if (request->sending)
        return lh_fail(LH_ESTATE, "request is a send: only a receive has missing ranges");
    if (result->error)
        return lh_fail(LH_ESTATE, "receive has failed: %s", lh_strerror(result->error));
    return 0;
}

static struct arrived arrived_of(const struct lh_request *request)
{
    const struct message_delivery *delivery = &request->part.delivery;
    return (struct arrived){
        .bits = delivery->arrived,
        .packet_bytes = delivery->packet_bytes,
        .bytes = request->part.result.missing_bytes > 0 ? request->part.result.bytes : 0,
    };
}

int64_t lh_missing(struct lh_request *request, uint64_t first, struct lh_range *ranges, uint64_t count)
{
    struct lh_result result;
    int error = check(request, &result);
    if (error)
        return error;
    struct arrived arrived = arrived_of(request);
    struct lh_range range = {0};
    int64_t taken = 0;
    /* Each turn is a range: at most half as many as the message has packets. */
    for (uint64_t i = 0; (uint64_t)taken < count; i++) {
        if (arrived.bytes == 0 || !arrived_next_missing(&arrived, range.offset + range.bytes, &range))
            break;
        if (i >= first)
            ranges[taken++] = range;
    }
    return taken;
}

int lh_delivery(struct lh_request *request, struct lh_delivery *delivery)
{
    struct lh_result result;
    int error = check(request, &result);
    if (error)
        return error;
    *delivery = (struct lh_delivery){.end = request->part.delivery.end, .arrived_bytes = result.bytes};
    if (result.missing_bytes == 0)
        return 0;
    struct arrived arrived = arrived_of(request);
    delivery->missing_ranges = arrived_missing(&arrived, &delivery->missing_bytes);
    delivery->arrived_bytes -= delivery->missing_bytes;
    lh_missing(request, 0, delivery->missing, LH_MISSING_INLINE);
    return 0;
}
