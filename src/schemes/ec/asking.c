/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/asking.h"

#include <assert.h>
#include <string.h>

static lh_time later(lh_time a, lh_time b)
{
    return a > b ? a : b;
}

static uint32_t parts(const struct ec_asking *asking)
{
    return (asking->count + EC_RUNS_MAX - 1) / EC_RUNS_MAX;
}

void ec_asking_init(struct ec_asking *asking)
{
    asking->round = 0;
    asking->heard = true; /* nobody has to ask for round 0 */
    asking->end_ns = LH_TIME_NEVER;
    asking->next_part = 0;
    asking->repeats_left = 0;
    asking->repeat_ns = LH_TIME_NEVER;
    asking->repeat_span_ns = 0;
    asking->count = 0;
    sr_backoff_init(&asking->backoff);
}

bool ec_asking_on_mark(struct ec_asking *asking, const struct ec_mark *mark, uint32_t arrived, lh_time now)
{
    if (mark->round > asking->round)
        return false;
    sr_backoff_on_heard(&asking->backoff, arrived);
    if (mark->round < asking->round) {
        if (!asking->heard && (mark->flags & EC_FLAG_PROBE))
            asking->next_part = 0;
        return true;
    }
    asking->heard = true;
    asking->repeats_left = 0;
    asking->next_part = parts(asking);
    if ((mark->flags & EC_FLAG_END) && asking->end_ns == LH_TIME_NEVER)
        asking->end_ns = now;
    return true;
}

/* beta * RTT. Spans are at most 2^56 ns (sr_timing.c), so nothing wraps. */
static lh_time beta_span(uint32_t beta_hundredths, const struct sr_timing *timing)
{
    lh_time rtt = timing->rtt_ns;
    return rtt / 100 * beta_hundredths + rtt % 100 * beta_hundredths / 100;
}

lh_time ec_asking_fallback_expiry(const struct ec_asking *asking, uint32_t beta_hundredths,
                                  lh_time last_arrival_ns, const struct sr_timing *timing)
{
    if (asking->end_ns == LH_TIME_NEVER)
        return LH_TIME_NEVER;
    lh_time span = timing->window_ns;
    if (asking->round == 0)
        span = later(span, beta_span(beta_hundredths, timing));
    lh_time expiry = sr_after(asking->end_ns, span);
    if (last_arrival_ns != LH_TIME_NEVER)
        expiry = later(expiry, sr_after(last_arrival_ns, timing->window_ns));
    return later(expiry, sr_backoff_expiry(&asking->backoff));
}

void ec_asking_on_fallback_expired(struct ec_asking *asking, uint32_t count, const struct sr_timing *timing,
                                   lh_time now)
{
    assert(count >= 1 && count <= EC_PARTS_MAX * EC_RUNS_MAX);
    assert(asking->heard && asking->end_ns <= now && asking->round < UINT32_MAX);
    sr_backoff_on_repair(&asking->backoff, timing, now);
    asking->round++;
    asking->heard = false;
    asking->end_ns = LH_TIME_NEVER;
    asking->count = count;
    asking->next_part = 0;
    asking->repeats_left = EC_ASKING_REPEATS;
    asking->repeat_span_ns = timing->window_ns;
    asking->repeat_ns = sr_after(now, timing->window_ns);
}

lh_time ec_asking_repeat_expiry(const struct ec_asking *asking)
{
    return asking->repeats_left > 0 ? asking->repeat_ns : LH_TIME_NEVER;
}

void ec_asking_on_repeat_expired(struct ec_asking *asking, lh_time now)
{
    assert(asking->repeats_left > 0 && asking->repeat_ns <= now);
    asking->repeats_left--;
    asking->repeat_span_ns *= 2;
    asking->repeat_ns = sr_after(now, asking->repeat_span_ns);
    asking->next_part = 0;
}

bool ec_asking_next(const struct ec_asking *asking, struct ec_request *request)
{
    if (asking->next_part >= parts(asking))
        return false;
    uint32_t first = asking->next_part * EC_RUNS_MAX;
    uint32_t left = asking->count - first;
    request->round = asking->round;
    request->part = (uint8_t)asking->next_part;
    request->parts = (uint8_t)parts(asking);
    request->count = (uint8_t)(left < EC_RUNS_MAX ? left : EC_RUNS_MAX);
    memcpy(request->runs, asking->runs + first, request->count * sizeof(request->runs[0]));
    return true;
}

void ec_asking_on_sent(struct ec_asking *asking)
{
    assert(asking->next_part < parts(asking));
    asking->next_part++;
}
