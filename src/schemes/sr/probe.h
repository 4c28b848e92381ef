/*
 * probe.h - asks the receiver to speak when it has been silent for too long.
 *
 * One timer:
 *   probe   runs from the newest of: an injection of new chunks, something heard, a probe. (Not of repairs:
 *           a sender whose chunks all arrived, but who never heard so, would repair for ever and never
 *           ask.) Its span is overdue_ns; from the fourth probe without an answer on it grows by half each
 *           time, up to 8 times overdue_ns. Before a round trip was measured it doubles each time, up to
 *           1024 times. It is never less than 1/8 of the silence: a path that comes back is noticed within
 *           1/8 of the time for which it was down, and a peer that is gone for long gets few probes.
 *
 * There is no end to it: the connection ends a transfer whose peer is gone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_PROBE_H
#define LH_SCHEMES_SR_PROBE_H

#include "schemes/sr/timing.h"

struct sr_probe {
    lh_time since_ns;    /* LH_TIME_NEVER: nothing was injected yet, so nothing can be asked */
    lh_time silent_ns;   /* the newest injection, or something heard */
    uint32_t unanswered; /* probes since something was heard */
};

void sr_probe_init(struct sr_probe *probe);
/* New chunks were injected. */
void sr_probe_on_injection(struct sr_probe *probe, lh_time now);
void sr_probe_on_heard(struct sr_probe *probe, lh_time now);
void sr_probe_on_sent(struct sr_probe *probe, lh_time now);
/* When the next probe is due; LH_TIME_NEVER before the first injection. */
lh_time sr_probe_expiry(const struct sr_probe *probe, const struct sr_timing *timing);

#endif
