/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/pure/tx_limit.h"

#include <assert.h>

void tx_limit_init(struct tx_limit *limit, uint32_t least, uint32_t most)
{
    assert(least > 0 && least <= most);
    *limit = (struct tx_limit){.least = least, .most = most, .writes = least};
}

static uint32_t clamp(const struct tx_limit *limit, uint64_t writes)
{
    if (writes < limit->least)
        return limit->least;
    return writes < limit->most ? (uint32_t)writes : limit->most;
}

static void look_again(struct tx_limit *limit, uint64_t released, lh_time now)
{
    limit->reached = false;
    limit->since_ns = now;
    limit->released = released;
}

void tx_limit_on_released(struct tx_limit *limit, uint64_t released, uint32_t in_flight, lh_time now)
{
    if (in_flight == 0) {
        if (limit->reached)
            limit->writes = clamp(limit, 2 * (uint64_t)limit->writes);
        look_again(limit, released, now);
        return;
    }
    lh_time span_ns = now - limit->since_ns;
    if (span_ns < TX_LIMIT_NS)
        return;
    /* An interval is a millisecond or, without a poll, a little more: no product overflows. */
    uint64_t sent = released - limit->released;
    limit->writes = clamp(limit, sent * TX_LIMIT_NS / span_ns);
    look_again(limit, released, now);
}

uint32_t tx_limit_room(struct tx_limit *limit, uint32_t in_flight, uint32_t wanted)
{
    uint32_t room = in_flight < limit->writes ? limit->writes - in_flight : 0;
    if (wanted <= room)
        return wanted;
    limit->reached = true;
    return room;
}
