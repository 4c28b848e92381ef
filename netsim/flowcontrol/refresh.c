/*
 * refresh.c - a signal that still holds is refreshed, so that a lost frame costs at most a period.
 *
 * One timer: due_ns, of the next refresh.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <assert.h>
#include <inttypes.h>

#include "base/error.h"
#include "netsim/flowcontrol/link_bytes.h"

/* Pauses take at most one part in SHARE of the link back. */
#define SHARE 10u

#define PAUSE_BYTES ((uint64_t)LH_PFC_QUANTA_MAX * LH_PFC_QUANTUM_BYTES)
#define MTU_MAX     65535u

/* ---- configuration ----------------------------------------------------------------------------------- */

static lh_time span_ns(uint64_t bytes, uint64_t rate_bps)
{
    assert(rate_bps > 0 && bytes <= PAUSE_BYTES);
    return bytes * FLOW_BIT_NS_PER_BYTE / rate_bps;
}

lh_time lh_pfc_refresh_max(uint64_t rate_bps, uint32_t mtu_bytes)
{
    assert(rate_bps > 0 && mtu_bytes <= MTU_MAX);
    return span_ns(PAUSE_BYTES - mtu_bytes - LH_PFC_FRAME_BYTES, rate_bps);
}

lh_time lh_pfc_refresh_min(uint64_t rate_bps)
{
    return span_ns((uint64_t)SHARE * LH_PFC_FRAME_BYTES, rate_bps) + 1;
}

int lh_pfc_refresh_check(lh_time period_ns, uint64_t rate_bps, uint32_t mtu_bytes)
{
    if (rate_bps < FLOW_RATE_MIN || rate_bps > FLOW_RATE_MAX)
        return lh_fail(LH_ERANGE, "a rate of %" PRIu64 " bit/s: %" PRIu64 " to %" PRIu64, rate_bps,
                       FLOW_RATE_MIN, FLOW_RATE_MAX);
    if (mtu_bytes > MTU_MAX)
        return lh_fail(LH_ERANGE, "packets of %u bytes: out of range (at most %u)", mtu_bytes, MTU_MAX);
    if (period_ns > lh_pfc_refresh_max(rate_bps, mtu_bytes))
        return lh_fail(LH_ERANGE,
                       "refresh of a pause every %" PRIu64
                       " ns: too late, with packets of %u bytes at %" PRIu64 " bit/s at most every %" PRIu64
                       " ns (shorten it)",
                       period_ns, mtu_bytes, rate_bps, lh_pfc_refresh_max(rate_bps, mtu_bytes));
    if (period_ns < lh_pfc_refresh_min(rate_bps))
        return lh_fail(LH_ERANGE,
                       "refresh of a pause every %" PRIu64 " ns: takes more than a tenth of %" PRIu64
                       " bit/s: %" PRIu64 " ns or more (lengthen it)",
                       period_ns, rate_bps, lh_pfc_refresh_min(rate_bps));
    return 0;
}

/* ---- the machine ------------------------------------------------------------------------------------- */

void lh_flow_refresh_init(struct lh_flow_refresh *refresh, lh_time period_ns)
{
    assert(period_ns > 0);
    *refresh = (struct lh_flow_refresh){.period_ns = period_ns, .due_ns = LH_TIME_NEVER};
}

void lh_flow_refresh_on_said(struct lh_flow_refresh *refresh, lh_time now)
{
    assert(now < LH_TIME_NEVER - refresh->period_ns);
    refresh->due_ns = now + refresh->period_ns;
}

void lh_flow_refresh_end(struct lh_flow_refresh *refresh)
{
    refresh->due_ns = LH_TIME_NEVER;
}

bool lh_flow_refresh_on_expired(struct lh_flow_refresh *refresh, lh_time now)
{
    if (now < refresh->due_ns)
        return false;
    /* A refresh that was missed is not made up for. */
    lh_time late_ns = (now - refresh->due_ns) % refresh->period_ns;
    lh_flow_refresh_on_said(refresh, now - late_ns);
    assert(refresh->due_ns > now);
    return true;
}
