/*
 * ack_pace.h - when a receiver acknowledges although nobody asks and nothing is missing.
 *
 * Timers:
 *   periodic   sr-rto: a quarter round trip after the last ACK; sr-nack: a whole one, for there an ACK only
 *              opens the sender's window and restates what an earlier one said. Runs while there are
 *              unacknowledged arrivals.
 *   pause      sr-nack: a quarter round trip after the newest arrival: the flow has stopped, for want of
 *              window perhaps.
 *
 * And by count: every 64 (sr-rto) or 16 (sr-nack) arrivals, or an eighth of the message when that is more.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_ACK_PACE_H
#define LH_SCHEMES_SR_ACK_PACE_H

#include "schemes/sr/timing.h"

struct sr_ack_pace {
    bool nack;
    uint32_t unacknowledged; /* arrivals since the last ACK */
    lh_time last_ack_ns;     /* or the start */
    lh_time last_arrival_ns;
};

void sr_ack_pace_init(struct sr_ack_pace *pace, bool nack, lh_time now);
void sr_ack_pace_on_arrivals(struct sr_ack_pace *pace, uint32_t count, lh_time now);
void sr_ack_pace_on_ack(struct sr_ack_pace *pace, lh_time now);
/* When an ACK is due: 0 when the count says so, LH_TIME_NEVER when all is acknowledged. */
lh_time sr_ack_pace_expiry(const struct sr_ack_pace *pace, uint32_t chunks, const struct sr_timing *timing);

#endif
