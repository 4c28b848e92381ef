/*
 * link_bytes.h - what a link carries in a time, in whole bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FLOWCONTROL_LINK_BYTES_H
#define LH_NETSIM_FLOWCONTROL_LINK_BYTES_H

#include <assert.h>

#include <longhaul/types.h>

/* Faster than any link, slower than any; longer than any round trip on earth. */
#define FLOW_RATE_MIN ((uint64_t)1000000)
#define FLOW_RATE_MAX ((uint64_t)100000000000000)
#define FLOW_SPAN_MAX ((lh_time)2 * LH_NS_PER_S)

#define FLOW_BIT_NS_PER_BYTE ((uint64_t)8 * LH_NS_PER_S)

/* Rounded up. No step overflows: the rest of the rate is below 8e9, and the span at most 2e9. */
static inline uint64_t flow_bytes_in(uint64_t rate_bps, lh_time span_ns)
{
    assert(rate_bps <= FLOW_RATE_MAX && span_ns <= FLOW_SPAN_MAX);
    uint64_t whole = rate_bps / FLOW_BIT_NS_PER_BYTE * span_ns;
    uint64_t rest = rate_bps % FLOW_BIT_NS_PER_BYTE * span_ns;
    return whole + (rest + FLOW_BIT_NS_PER_BYTE - 1) / FLOW_BIT_NS_PER_BYTE;
}

#endif
