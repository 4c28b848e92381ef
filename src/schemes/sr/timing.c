/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/timing.h"

#include <assert.h>

/* Two years: sums of a few spans stay far from wrapping, whatever the path claims to be. */
#define SPAN_MAX_NS (LH_TIME_NEVER >> 8)

struct sr_timing sr_timing_of(const struct lh_path_view *path)
{
    struct sr_timing timing = {.measured = path->rtt_ns != 0};
    if (!timing.measured) {
        timing.rtt_ns = SR_INITIAL_RTT_NS;
        timing.overdue_ns = SR_INITIAL_RTT_NS;
        timing.window_ns =
            SR_INITIAL_RTT_NS / 8; /* the share that a measured path starts from (base/rtt.h) */
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
