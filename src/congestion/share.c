/* SPDX-License-Identifier: BSD-3-Clause */
#include "congestion/share.h"

#include <assert.h>
#include <math.h>

#define FIRST_PACKETS    10
#define DOUBLINGS        20.0
#define TARGET_RANGE     4.0
#define BURST_OF_WINDOW  (1.0 / 16)
#define STEP_OF_ROOT     0.5
#define OF_REMEMBERED    0.5
#define BITS_NS_A_BYTE_S 8e9

double share_step_bytes(double window_bytes, uint32_t mtu_bytes)
{
    double step = STEP_OF_ROOT * sqrt(window_bytes * mtu_bytes);
    return step > mtu_bytes ? step : mtu_bytes;
}

double share_smallness(double window_bytes, uint32_t mtu_bytes)
{
    if (window_bytes <= mtu_bytes)
        return 1;
    double smallness = 1 - log2(window_bytes / mtu_bytes) / DOUBLINGS;
    return smallness > 0 ? smallness : 0;
}

double share_target_ns(double base_ns, double window_bytes, uint32_t mtu_bytes)
{
    return base_ns * (1 + TARGET_RANGE * share_smallness(window_bytes, mtu_bytes));
}

double share_first_window_bytes(const struct lh_congestion_path *path)
{
    double least = (double)FIRST_PACKETS * path->mtu_bytes;
    double window = 0;
    if (path->rate_bps != 0)
        window = share_bytes_of((double)path->rate_bps, (double)path->rtt_ns);
    else if (path->remembered_rate_bps != 0)
        window = OF_REMEMBERED * share_bytes_of((double)path->remembered_rate_bps, (double)path->rtt_ns);
    return window > least ? window : least;
}

double share_bytes_of(double rate_bps, double rtt_ns)
{
    return rate_bps * rtt_ns / BITS_NS_A_BYTE_S;
}

double share_rate_of(double bytes, double rtt_ns)
{
    assert(rtt_ns > 0);
    return bytes / rtt_ns * BITS_NS_A_BYTE_S;
}

double share_delivered_bps(const struct lh_congestion_feedback *feedback)
{
    return feedback->rate_is_limited ? 0 : (double)feedback->rate_bps;
}

uint64_t share_rate_within(double rate_bps, const struct lh_congestion_path *path)
{
    double bounded = fmin(fmax(rate_bps, SHARE_RATE_MIN_BPS), SHARE_RATE_MAX_BPS);
    uint64_t rate = (uint64_t)bounded;
    return rate < path->rate_max_bps ? rate : path->rate_max_bps;
}

uint64_t share_window_within(double window_bytes, const struct lh_congestion_path *path)
{
    uint64_t window = window_bytes < path->mtu_bytes ? path->mtu_bytes
                      : window_bytes < 9e18          ? (uint64_t)window_bytes
                                                     : UINT64_MAX;
    return window < path->window_max_bytes ? window : path->window_max_bytes;
}

uint64_t share_burst_bytes(double window_bytes, const struct lh_congestion_path *path)
{
    return share_window_within(window_bytes * BURST_OF_WINDOW, path);
}
