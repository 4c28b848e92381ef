/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/ack_pace.h"

#define RTO_ARRIVALS_MIN  64u
#define NACK_ARRIVALS_MIN 16u

void sr_ack_pace_init(struct sr_ack_pace *pace, bool nack, lh_time now)
{
    *pace = (struct sr_ack_pace){.nack = nack, .last_ack_ns = now, .last_arrival_ns = now};
}

void sr_ack_pace_on_arrivals(struct sr_ack_pace *pace, uint32_t count, lh_time now)
{
    pace->unacknowledged += count;
    pace->last_arrival_ns = now;
}

void sr_ack_pace_on_ack(struct sr_ack_pace *pace, lh_time now)
{
    pace->unacknowledged = 0;
    pace->last_ack_ns = now;
}

lh_time sr_ack_pace_expiry(const struct sr_ack_pace *pace, uint32_t chunks, const struct sr_timing *timing)
{
    if (pace->unacknowledged == 0)
        return LH_TIME_NEVER;
    uint32_t minimum = pace->nack ? NACK_ARRIVALS_MIN : RTO_ARRIVALS_MIN;
    uint32_t eighth = chunks / 8;
    if (pace->unacknowledged >= (eighth > minimum ? eighth : minimum))
        return 0;
    if (!pace->nack)
        return sr_after(pace->last_ack_ns, sr_ack_spacing(timing));
    return lh_earlier(sr_after(pace->last_ack_ns, timing->rtt_ns),
                      sr_after(pace->last_arrival_ns, sr_ack_spacing(timing)));
}
