/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr_timers.h"

#include <assert.h>

#include <longhaul/scheme.h>

#include "base/min_max.h"

/* ---- timing ---------------------------------------------------------------------------------------- */

/* Two years: sums of a few spans stay far from wrapping, whatever the path claims to be. */
#define SPAN_MAX_NS (LH_TIME_NEVER >> 8)

struct sr_timing sr_timing_of(const struct lh_path_view *path)
{
    struct sr_timing timing = {.measured = path->rtt_ns != 0};
    if (!timing.measured) {
        timing.rtt_ns = SR_INITIAL_RTT_NS;
        timing.overdue_ns = SR_INITIAL_RTT_NS;
        timing.window_ns =
            SR_INITIAL_RTT_NS / 8; /* the share that a measured path starts from (sdr/qp_path.h) */
        return timing;
    }
    timing.rtt_ns = lh_earlier(path->rtt_ns, SPAN_MAX_NS);
    timing.overdue_ns = lh_earlier(path->overdue_ns, SPAN_MAX_NS);
    if (timing.overdue_ns < timing.rtt_ns)
        timing.overdue_ns = timing.rtt_ns;
    timing.window_ns = lh_earlier(path->reorder_window_ns, timing.overdue_ns);
    if (timing.window_ns == 0)
        timing.window_ns = 1;
    assert(timing.rtt_ns > 0 && timing.overdue_ns >= timing.window_ns);
    return timing;
}

/* ---- backoff --------------------------------------------------------------------------------------- */

#define PATIENT_ROUNDS 3u /* repairs are lost, too: no reason yet to wait */
#define DOUBLINGS_MAX  3u /* 100 losses of one chunk in a row still cost less than 1000 round trips */

void sr_backoff_init(struct sr_backoff *backoff)
{
    *backoff = (struct sr_backoff){0};
}

void sr_backoff_on_feedback(struct sr_backoff *backoff, uint32_t arrived)
{
    backoff->received = true;
    if (arrived <= backoff->arrived)
        return;
    backoff->arrived = arrived;
    backoff->barren = 0;
}

void sr_backoff_on_repair(struct sr_backoff *backoff, const struct sr_timing *timing, lh_time now)
{
    if (backoff->begun && now < sr_after(backoff->round_ns, timing->rtt_ns))
        return;
    if (backoff->received && backoff->barren < PATIENT_ROUNDS + DOUBLINGS_MAX)
        backoff->barren++;
    backoff->received = false;
    backoff->begun = true;
    backoff->round_ns = now;
}

lh_time sr_backoff_expiry(const struct sr_backoff *backoff, const struct sr_timing *timing)
{
    if (backoff->barren <= PATIENT_ROUNDS)
        return 0;
    return sr_after(backoff->round_ns, timing->rtt_ns << (backoff->barren - PATIENT_ROUNDS));
}

/* ---- ack pace -------------------------------------------------------------------------------------- */

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

/* ---- probe ----------------------------------------------------------------------------------------- */

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

void sr_probe_on_feedback(struct sr_probe *probe, lh_time now)
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
    return sr_after(probe->since_ns, lh_max(span, silence / SILENCE_FRACTION));
}
