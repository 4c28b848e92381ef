/*
 * shared_rate.h - a rate that several senders have together. Pure.
 *
 * A sender reserves a *turn*: so many bytes, and the moment from which on the rate lets them out. It has
 * one at a time, and turns follow each other in the order in which they were reserved. So senders that
 * always have something to send get equal shares, in bytes, and what one leaves is the others'.
 *
 * A single small packet does not wait behind the turns of others, if its sender has used less than its
 * share: it leaves at once, and later turns are that much later.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_RATE_SHARED_RATE_H
#define LH_SDR_RATE_SHARED_RATE_H

#include <stdbool.h>

#include "congestion/pacer.h"

#define SHARED_RATE_SMALL    4096u /* bytes */
#define SHARED_RATE_TURN_MAX ((uint64_t)64 * 1024)
#define SHARED_RATE_TURN_MIN ((uint64_t)8 * 1024)

/* All zero: no rate. */
struct shared_rate {
    struct pacer pacer;
    uint64_t turn_bytes;
    uint64_t
        virtual_bytes; /* of each sender that always has something to send: the start of the latest turn */
};

/* Of one sender. All zero: it has none. */
struct rate_turn {
    lh_time at_ns;
    uint64_t bytes; /* reserved, and not sent yet */
    uint64_t ended; /* its last one, by virtual_bytes */
};

/* 0: no rate. */
void shared_rate_init(struct shared_rate *rate, uint64_t rate_bps);
static inline bool shared_rate_is_on(const struct shared_rate *rate)
{
    return rate->pacer.rate_bps != 0;
}
/* How many of the bytes that it has to send may leave now: 0, and then none before turn->at_ns, or at least
 * `first`, which is as much as its next packet can have. Reserves a turn for it where it has none. */
uint64_t shared_rate_room(struct shared_rate *rate, struct rate_turn *turn, uint64_t waiting,
                          uint64_t first, lh_time now);
/* So many of them left. */
void shared_rate_on_sent(struct rate_turn *turn, uint64_t bytes);

#endif
