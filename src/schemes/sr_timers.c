/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/probe.h"

#include "base/least.h"

#define PATIENT_PROBES   3u /* that go out at the same pace: single losses cost no more than one span */
#define SPAN_FACTOR_MAX  8u
#define BLIND_FACTOR_MAX 1024u /* about a second, before a round trip was measured */
#define SILENCE_FRACTION 8u

void sr_probe_init(struct sr_probe *probe)
{
    *probe = (struct sr_probe){.since_ns = LH_TIME_NEVER};
}

void sr_probe_on_injection(struct sr_probe *probe, lh_time now)
{
    probe->since_ns = now;
    probe->silent_ns = now;
}

void sr_probe_on_heard(struct sr_probe *probe, lh_time now)
{
    probe->unanswered = 0;
    probe->silent_ns = now;
    if (probe->since_ns != LH_TIME_NEVER)
        probe->since_ns = now;
}

void sr_probe_on_sent(struct sr_probe *probe, lh_time now)
{
    probe->since_ns = now;
    if (probe->unanswered < UINT32_MAX)
        probe->unanswered++;
}

/* Grows by half from the fourth on. Bounded: 6 rounds reach the maximum. */
static lh_time backed_off(lh_time span, uint32_t unanswered)
{
    lh_time maximum = span * SPAN_FACTOR_MAX;
    for (uint32_t i = PATIENT_PROBES; i <= unanswered && span < maximum; i++)
        span += span / 2 + 1;
    return lh_earlier(span, maximum);
}

static lh_time doubled(lh_time span, uint32_t unanswered)
{
    lh_time maximum = span * BLIND_FACTOR_MAX;
    return unanswered >= 10 ? maximum : span << unanswered;
}

lh_time sr_probe_expiry(const struct sr_probe *probe, const struct sr_timing *timing)
{
    lh_time span = timing->measured ? backed_off(timing->overdue_ns, probe->unanswered)
                                    : doubled(timing->overdue_ns, probe->unanswered);
    if (probe->since_ns == LH_TIME_NEVER)
        return LH_TIME_NEVER;
    lh_time silence = probe->since_ns > probe->silent_ns ? probe->since_ns - probe->silent_ns : 0;
    return sr_after(probe->since_ns, lh_most(span, silence / SILENCE_FRACTION));
}
