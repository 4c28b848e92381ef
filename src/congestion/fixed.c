/* SPDX-License-Identifier: BSD-3-Clause */
#include "congestion/controllers.h"

#include "base/error.h"
#include "base/min_max.h"

struct fixed {
    uint64_t given_bps; /* 0: nothing was told */
    uint64_t rate_bps;
    lh_time rtt_minimum_ns; /* 0: unknown */
};

static int fixed_parse(const char *text, uint8_t params[LH_CONGESTION_PARAMS])
{
    (void)params;
    if (*text == '\0')
        return 0;
    return lh_fail(LH_EINVAL, "fixed has no parameter \"%s\" (its rate is the link's)", text);
}

static void fixed_start(void *state, const struct lh_congestion_path *path,
                        const uint8_t params[LH_CONGESTION_PARAMS], lh_time now)
{
    (void)params, (void)now;
    uint64_t rate_bps = path->rate_bps != 0 ? path->rate_bps : LH_RATE_NONE;
    *(struct fixed *)state = (struct fixed){
        .given_bps = path->rate_bps,
        .rate_bps = rate_bps < path->rate_max_bps ? rate_bps : path->rate_max_bps,
        .rtt_minimum_ns = path->rtt_ns,
    };
}

static void fixed_on_feedback(void *state, const struct lh_congestion_feedback *feedback)
{
    struct fixed *fixed = state;
    if (feedback->rtt_ns != 0)
        fixed->rtt_minimum_ns = fixed->rtt_minimum_ns == 0
                                    ? feedback->rtt_ns
                                    : lh_earlier(fixed->rtt_minimum_ns, feedback->rtt_ns);
}

static void fixed_on_timer(void *state, lh_time now)
{
    (void)state, (void)now;
}

static void fixed_decide(const void *state, lh_time now, struct lh_congestion_decision *decision)
{
    (void)now;
    *decision = (struct lh_congestion_decision){
        .rate_bps = ((const struct fixed *)state)->rate_bps,
        .window_bytes = UINT64_MAX,
        .total_bytes = UINT64_MAX,
        .next_ns = LH_TIME_NEVER,
    };
}

static void fixed_view(const void *state, struct lh_congestion_view *view)
{
    const struct fixed *fixed = state;
    *view = (struct lh_congestion_view){
        .bandwidth_bps = fixed->given_bps,
        .rtt_minimum_ns = fixed->rtt_minimum_ns,
        .state = "fixed",
    };
}

const struct lh_congestion fixed_congestion = {
    .name = "fixed",
    .help = "no parameters; the given rate, without control",
    .parse = fixed_parse,
    .state_bytes = sizeof(struct fixed),
    .start = fixed_start,
    .on_feedback = fixed_on_feedback,
    .on_timer = fixed_on_timer,
    .decide = fixed_decide,
    .view = fixed_view,
};
