/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/rate/read_rate.h"

#include "base/least.h"

__extension__ typedef unsigned __int128 wide;

#define BITS_PER_BYTE 8u
#define FASTER        4u /* by this part it has read more */

static uint64_t rate_of(uint64_t bytes, lh_time span_ns)
{
    wide bps = span_ns > 0 ? (wide)bytes * BITS_PER_BYTE * LH_NS_PER_S / span_ns : 0;
    return bps < UINT64_MAX ? (uint64_t)bps : UINT64_MAX;
}

/* Drops of one pause are reported in two spans, maybe. */
static void end_span(struct read_rate *rate, uint64_t bps, bool dropped)
{
    rate->best_bps = lh_most(rate->best_bps, bps);
    if (dropped && !rate->dropped_before)
        rate->receiver_bps = lh_most(bps, 1);
    else if (dropped || rate->dropped_before)
        rate->receiver_bps = lh_most(rate->receiver_bps, bps);
    else if (lh_left(bps, rate->receiver_bps) > rate->receiver_bps / FASTER)
        rate->receiver_bps = 0;
    rate->dropped_before = dropped;
}

void read_rate_note(struct read_rate *rate, uint64_t arrived_bytes, uint64_t dropped_packets,
                    lh_time rtt_ns, lh_time now)
{
    lh_time span_ns = now - rate->since_ns;
    uint64_t bps = rate_of(arrived_bytes - rate->since_bytes, span_ns);
    bool dropped = dropped_packets > rate->since_dropped, first = rate->since_ns == 0;
    if (dropped && rate->receiver_bps == 0)
        rate->receiver_bps = first ? 1 : lh_most(bps, 1);
    if (!first && span_ns < lh_most(READ_RATE_ROUNDS * rtt_ns, READ_RATE_LEAST_NS))
        return;
    if (!first)
        end_span(rate, bps, dropped);
    rate->since_ns = now;
    rate->since_bytes = arrived_bytes;
    rate->since_dropped = dropped_packets;
}
