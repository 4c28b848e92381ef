/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/backoff.h"

#define PATIENT_ROUNDS 3u /* repairs are lost, too: no reason yet to wait */
#define DOUBLINGS_MAX  3u /* 100 losses of one chunk in a row still cost less than 1000 round trips */

void sr_backoff_init(struct sr_backoff *backoff)
{
    *backoff = (struct sr_backoff){0};
}

void sr_backoff_on_heard(struct sr_backoff *backoff, uint32_t arrived)
{
    backoff->heard = true;
    if (arrived <= backoff->arrived)
        return;
    backoff->arrived = arrived;
    backoff->barren = 0;
    backoff->ready_ns = 0;
}

void sr_backoff_on_repair(struct sr_backoff *backoff, const struct sr_timing *timing, lh_time now)
{
    if (now < backoff->round_ends_ns)
        return;
    if (backoff->heard && backoff->barren < PATIENT_ROUNDS + DOUBLINGS_MAX)
        backoff->barren++;
    backoff->heard = false;
    backoff->round_ends_ns = sr_after(now, timing->rtt_ns);
    if (backoff->barren > PATIENT_ROUNDS)
        backoff->ready_ns = sr_after(now, timing->rtt_ns << (backoff->barren - PATIENT_ROUNDS));
}
