/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/pacer.h"

#include <assert.h>

__extension__ typedef unsigned __int128 wide; /* bytes x 8 x 10^9 */

/* The bucket is kept as the moment at which it is full: what it lacks is (free - now) * rate. */

static lh_time span_of(const struct pacer *pacer, uint64_t bytes)
{
    return (lh_time)((wide)bytes * 8 * LH_NS_PER_S / pacer->rate_bps);
}

void pacer_init(struct pacer *pacer, uint64_t rate_bps, uint64_t burst_bytes)
{
    assert(rate_bps == 0 || burst_bytes > 0);
    *pacer = (struct pacer){.rate_bps = rate_bps, .burst_bytes = burst_bytes};
}

uint64_t pacer_allowance(const struct pacer *pacer, lh_time now)
{
    if (pacer->rate_bps == 0)
        return UINT64_MAX;
    lh_time lacking_ns = pacer->free_ns > now ? pacer->free_ns - now : 0;
    wide lacking = (wide)lacking_ns * pacer->rate_bps / (8 * LH_NS_PER_S);
    return lacking >= pacer->burst_bytes ? 0 : pacer->burst_bytes - (uint64_t)lacking;
}

void pacer_on_sent(struct pacer *pacer, lh_time now, uint64_t bytes)
{
    if (pacer->rate_bps == 0)
        return;
    pacer->free_ns = (pacer->free_ns > now ? pacer->free_ns : now) + span_of(pacer, bytes);
}

lh_time pacer_ready(const struct pacer *pacer, lh_time now, uint64_t bytes)
{
    if (pacer->rate_bps == 0)
        return now;
    assert(bytes <= pacer->burst_bytes);
    lh_time slack = span_of(pacer, pacer->burst_bytes - bytes);
    return pacer->free_ns > now + slack ? pacer->free_ns - slack : now;
}
