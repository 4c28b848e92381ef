/*
 * backoff.h - repairs that bring nothing become rarer.
 *
 * A receiver that speaks, and round after round has no chunk more than before, sits behind a queue that
 * drops what the repairs put into it: chunks that take longer to cross a slow link than its control
 * messages are taken for lost, and sent again, each time in the same step with the same queue.
 *
 * This is no congestion control, and more than eight round trips would cost too much where losses come in
 * long rows: it only ends such a step.
 *
 * One timer:
 *   ready   runs from a round of repairs; a round is all repairs within a round trip. Its span is 0 for the
 *           first three rounds after which nothing more has arrived, then two round trips, doubled with each
 *           round, up to 8. A round without a word from the receiver does not count: then it is the path
 *           that is gone, and the probe asks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_BACKOFF_H
#define LH_SCHEMES_SR_BACKOFF_H

#include "schemes/sr/timing.h"

struct sr_backoff {
    uint32_t arrived; /* chunks, as the receiver last said */
    uint32_t barren;  /* rounds since that number grew */
    bool heard;       /* the receiver, since the last round began */
    lh_time round_ends_ns;
    lh_time ready_ns; /* repairs wait until then */
};

void sr_backoff_init(struct sr_backoff *backoff);
/* The receiver says how many chunks have arrived. */
void sr_backoff_on_heard(struct sr_backoff *backoff, uint32_t arrived);
void sr_backoff_on_repair(struct sr_backoff *backoff, const struct sr_timing *timing, lh_time now);
/* When repairs may leave; 0: at once. */
static inline lh_time sr_backoff_expiry(const struct sr_backoff *backoff)
{
    return backoff->ready_ns;
}

#endif
