/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/pacer.h"

#include <assert.h>

#include "base/min_max.h"

__extension__ typedef unsigned __int128 wide; /* bytes x 8 x 10^9 */

#define WORK_A_BYTE (8 * LH_NS_PER_S) /* divided by the rate: nanoseconds */

/* The bucket is kept as the moment at which it is full: what it lacks is (free - now) * rate. */

static lh_time span_of(const struct pacer *pacer, uint64_t bytes)
{
    return (lh_time)((wide)bytes * WORK_A_BYTE / pacer->rate_bps);
}

void pacer_init(struct pacer *pacer, uint64_t rate_bps, uint64_t burst_bytes)
{
    assert(rate_bps == 0 || burst_bytes > 0);
    *pacer = (struct pacer){.rate_bps = rate_bps, .burst_bytes = burst_bytes};
}

void pacer_change(struct pacer *pacer, lh_time now, uint64_t rate_bps, uint64_t burst_bytes)
{
    assert(rate_bps == 0 || burst_bytes > 0);
    if (pacer->rate_bps == rate_bps && pacer->burst_bytes == burst_bytes)
        return;
    if (pacer->rate_bps == 0 || rate_bps == 0) {
        pacer_init(pacer, rate_bps, burst_bytes);
        return;
    }
    wide missing_work = 0;
    if (pacer->free_ns > now)
        missing_work = (wide)(pacer->free_ns - now) * pacer->rate_bps + pacer->free_remainder;
    wide full = (wide)burst_bytes * WORK_A_BYTE + missing_work,
         held = (wide)pacer->burst_bytes * WORK_A_BYTE;
    missing_work = full > held ? full - held : 0;
    pacer->rate_bps = rate_bps;
    pacer->burst_bytes = burst_bytes;
    pacer->free_ns = now + (lh_time)(missing_work / rate_bps);
    pacer->free_remainder = (uint64_t)(missing_work % rate_bps);
}

uint64_t pacer_allowance(const struct pacer *pacer, lh_time now)
{
    if (pacer->rate_bps == 0)
        return UINT64_MAX;
    if (pacer->free_ns < now) /* the rest is less than a nanosecond: it is over, too */
        return pacer->burst_bytes;
    lh_time missing_ns = pacer->free_ns - now;
    wide missing_work =
        ((wide)missing_ns * pacer->rate_bps + pacer->free_remainder + WORK_A_BYTE - 1) / WORK_A_BYTE;
    return missing_work >= pacer->burst_bytes ? 0 : pacer->burst_bytes - (uint64_t)missing_work;
}

void pacer_bound(struct pacer *pacer, lh_time now, uint64_t bytes)
{
    if (pacer->rate_bps == 0 || bytes >= pacer->burst_bytes)
        return;
    lh_time free_ns = now + span_of(pacer, pacer->burst_bytes - bytes);
    if (pacer->free_ns >= free_ns)
        return;
    pacer->free_ns = free_ns;
    pacer->free_remainder = 0;
}

void pacer_on_sent(struct pacer *pacer, lh_time now, uint64_t bytes)
{
    if (pacer->rate_bps == 0)
        return;
    if (pacer->free_ns < now) {
        pacer->free_ns = now;
        pacer->free_remainder = 0;
    }
    /* The part of a nanosecond is carried on, or single small packets at a high rate would cost nothing. */
    wide work = (wide)bytes * WORK_A_BYTE + pacer->free_remainder;
    pacer->free_ns += (lh_time)(work / pacer->rate_bps);
    pacer->free_remainder = (uint64_t)(work % pacer->rate_bps);
}

void pacer_on_refused(struct pacer *pacer, uint64_t bytes)
{
    if (pacer->rate_bps == 0)
        return;
    wide work = (wide)pacer->free_ns * pacer->rate_bps + pacer->free_remainder;
    wide back = (wide)bytes * WORK_A_BYTE;
    work = work > back ? work - back : 0;
    pacer->free_ns = (lh_time)(work / pacer->rate_bps);
    pacer->free_remainder = (uint64_t)(work % pacer->rate_bps);
}

lh_time pacer_ready(const struct pacer *pacer, lh_time now, uint64_t bytes)
{
    if (pacer->rate_bps == 0)
        return now;
    if (bytes > pacer->burst_bytes)
        return lh_max(now, pacer->free_ns + (pacer->free_remainder > 0)) +
               span_of(pacer, bytes - pacer->burst_bytes);
    lh_time slack = span_of(pacer, pacer->burst_bytes - bytes);
    lh_time free_ns = pacer->free_ns + (pacer->free_remainder > 0);
    return free_ns > now + slack ? free_ns - slack : now;
}
