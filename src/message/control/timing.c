/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/control/timing.h"

#define FIRST_INTERVAL_NS (100 * LH_NS_PER_MS) /* before the first round-trip sample */
#define DOUBLINGS_MAX     6u

lh_time timing_refresh_interval(const struct lh_sdr_path *path, uint32_t retransmissions)
{
    lh_time interval_ns = path->overdue_ns ? path->overdue_ns : FIRST_INTERVAL_NS;
    return interval_ns << (retransmissions < DOUBLINGS_MAX ? retransmissions : DOUBLINGS_MAX);
}

struct lh_path_view timing_path_view(const struct lh_sdr_path *path)
{
    return (struct lh_path_view){
        .rtt_ns = path->rtt_ns,
        .rtt_minimum_ns = path->rtt_minimum_ns,
        .overdue_ns = path->overdue_ns,
        .reorder_window_ns = path->reorder_window_ns,
    };
}
