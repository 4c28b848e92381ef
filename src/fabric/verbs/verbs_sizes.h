/*
 * sizing.h - how deep the queues of an endpoint are, so that none can overflow. Pure.
 *
 * A completion queue that overflows is the end of its queue pairs, so it has room for a completion of each
 * receive that is posted, and for each send in flight (in an error all of them complete, signalled or not).
 * There is one pair of completion queues a channel: Soft-RoCE has at most 32767 entries in one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_SIZING_H
#define LH_FABRIC_VERBS_SIZING_H

#include <stdbool.h>
#include <stdint.h>

#define VERBS_RECV_DEPTH       16384u /* receives of a channel that are posted; packets that may wait */
#define VERBS_RECV_DEPTH_MIN   64u    /* one batch */
#define VERBS_SEND_DEPTH       1024u  /* writes of a channel in flight */
#define VERBS_SEND_DEPTH_MIN   128u
#define VERBS_BOUNCE_BYTES_MAX ((uint64_t)32 << 20) /* of an endpoint, for borrowed payload */
#define VERBS_CONTROL_RECEIVES 256u
#define VERBS_CONTROL_SENDS    128u

/* What a device can do. */
struct verbs_limits {
    uint32_t max_qp_wr;
    uint32_t max_srq;
    uint32_t max_srq_wr;
    uint32_t max_cqe;
};

struct verbs_sizes {
    bool shared;         /* receive queue: one a channel, else one a queue pair */
    uint32_t recv_depth; /* of each receive queue; a power of two */
    uint32_t recv_cqe;
    uint32_t send_depth; /* of each channel, over all its queue pairs; a power of two */
    uint32_t send_cqe;
};

/* -LH_EDEVICE: the device has not even the least. */
int verbs_sizes_choose(const struct verbs_limits *limits, uint32_t channels, uint32_t generations,
                       uint32_t mtu_bytes, bool own_queues, struct verbs_sizes *sizes);

#endif
