/*
 * read_rate.h - what the receiver reads, over spans of some round trips: the most so far, and what it was
 * when its sockets had to drop. Pure.
 *
 * A receiver that is too slow shows itself by drops only once: then the controller takes its pace for the
 * path's. So what it read then stays its rate until it has read more.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_RATE_READ_RATE_H
#define LH_SDR_RATE_READ_RATE_H

#include <longhaul/types.h>

#define READ_RATE_ROUNDS   8u
#define READ_RATE_LEAST_NS (100 * LH_NS_PER_MS) /* what hosts hold back for a while is little against it */

/* All zero: nothing noted yet. */
struct read_rate {
    lh_time since_ns; /* start of this span; 0: none yet */
    uint64_t since_bytes;
    uint64_t since_dropped;
    bool dropped_before;   /* in the last span */
    uint64_t best_bps;     /* of all spans that have ended; 0: none has */
    uint64_t receiver_bps; /* 0: it has dropped nothing, or has read more since */
};

/* In all so far, by the receiver's reports; rtt_ns: the shortest. */
void read_rate_note(struct read_rate *rate, uint64_t arrived_bytes, uint64_t dropped_packets,
                    lh_time rtt_ns, lh_time now);

#endif
