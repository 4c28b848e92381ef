/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/pure/sizing.h"

#include <assert.h>

#include "base/error.h"

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The largest power of two that is not above; 0 for 0. */
static uint32_t power_below(uint32_t value)
{
    return value == 0 ? 0 : 1u << (31 - __builtin_clz(value));
}

static uint32_t send_depth(const struct verbs_limits *limits, uint32_t channels, uint32_t mtu_bytes)
{
    uint64_t affordable = VERBS_BOUNCE_BYTES_MAX / ((uint64_t)channels * mtu_bytes);
    uint32_t depth = affordable < VERBS_SEND_DEPTH ? (uint32_t)affordable : VERBS_SEND_DEPTH;
    depth = depth > VERBS_SEND_DEPTH_MIN ? depth : VERBS_SEND_DEPTH_MIN;
    return power_below(smaller(depth, smaller(limits->max_qp_wr, limits->max_cqe)));
}

int verbs_sizes_choose(const struct verbs_limits *limits, uint32_t channels, uint32_t generations,
                       uint32_t mtu_bytes, bool own_queues, struct verbs_sizes *sizes)
{
    assert(channels > 0 && generations > 0 && mtu_bytes > 0);
    bool shared = !own_queues && limits->max_srq >= channels && limits->max_srq_wr >= VERBS_RECV_DEPTH_MIN;
    uint32_t queues = shared ? 1 : generations; /* that one completion queue serves */
    uint32_t depth = smaller(VERBS_RECV_DEPTH, limits->max_cqe) / queues;
    depth = power_below(smaller(depth, shared ? limits->max_srq_wr : limits->max_qp_wr));
    uint32_t sends = send_depth(limits, channels, mtu_bytes);
    if (depth < VERBS_RECV_DEPTH_MIN || sends < VERBS_SEND_DEPTH_MIN)
        return lh_fail(LH_EDEVICE,
                       "the device takes %u work requests a queue and %u completions; %u generations need "
                       "%u and %u",
                       limits->max_qp_wr, limits->max_cqe, generations, VERBS_SEND_DEPTH_MIN,
                       VERBS_RECV_DEPTH_MIN * queues);
    *sizes = (struct verbs_sizes){
        .shared = shared,
        .recv_depth = depth,
        .recv_cqe = depth * queues,
        .send_depth = sends,
        .send_cqe = sends,
    };
    return 0;
}
