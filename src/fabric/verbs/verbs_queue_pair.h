/*
 * endpoint.h - an endpoint of UC queue pairs through libibverbs: what its files share.
 *
 * Each channel of an endpoint has a queue pair for each generation, one completion queue for what arrives
 * and one for what was sent, each with a completion channel of its own. Control has its own completion queues
 * and one queue pair. Every packet is one RDMA write with immediate that fits one MTU, so the device sends
 * it as an ONLY packet: order never matters, and nothing is ever half received.
 *
 * Threads: everything in verbs_channel belongs to the thread that holds the channel, verbs_control to the
 * control worker, protection to the thread that binds slots; fields behind verbs_fabric.lock are marked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_ENDPOINT_H
#define LH_FABRIC_VERBS_ENDPOINT_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

#include "fabric/fabric.h"
#include "fabric/verbs/device/verbs_fabric.h"
#include "fabric/verbs/pure/sizing.h"
#include "fabric/verbs/pure/tx_limit.h"
#include "fabric/verbs/pure/tx_ring.h"

#define VERBS_INLINE_BYTES 64u /* asked of the device: writes up to it are copied when they are posted */
#define VERBS_ROUTE_TRIES  5u  /* the kernel gives up on a neighbour after about 1 s */
#define VERBS_ASYNC_PERIOD 32u /* control polls between looks for events of the device */

/* A completion queue, and the completion channel that it alone has: an event there is its own. */
struct verbs_cq {
    struct ibv_cq *cq;
    struct ibv_comp_channel *events;
    bool armed;       /* the next completion gives an event */
    uint32_t unacked; /* events that were taken and not acknowledged */
};

/* The two completion queues of a channel, or of control. */
struct verbs_cqs {
    struct verbs_endpoint *endpoint;
    struct verbs_cq recv;
    struct verbs_cq send;
};

struct verbs_channel {
    struct verbs_endpoint *endpoint;
    uint32_t index;
    uint64_t drained;    /* all that waited when endpoint->binds was this has been read */
    uint64_t read;       /* completions of arrivals, ever */
    uint64_t mark_read;  /* the next such moment: when this number was read, */
    uint64_t mark_binds; /* with this number of binds */
    struct verbs_cqs cqs;
    struct ibv_srq *srq; /* NULL: each queue pair has receives of its own */
    struct ibv_qp *qp[QP_INFO_GENERATIONS_MAX];
    uint32_t inline_bytes;
    struct tx_ring ring;
    struct tx_limit limit;
    struct ibv_sge nowhere; /* behind them: where an unsolicited SEND lands */
    uint8_t *bounce;        /* a packet for each write in flight: borrowed payload is copied there */
    struct ibv_mr *bounce_mr;
    struct ibv_send_wr writes[FABRIC_BATCH_MAX];
    struct ibv_sge pieces[FABRIC_BATCH_MAX];
    struct ibv_recv_wr receives[FABRIC_BATCH_MAX];
    struct ibv_wc completions[FABRIC_BATCH_MAX];
};

struct verbs_control {
    struct verbs_cqs cqs;
    struct ibv_qp *qp;
    struct tx_ring ring;
    uint8_t
        *buffers; /* VERBS_CONTROL_SENDS of CONTROL_MESSAGE_MAX bytes, VERBS_CONTROL_RECEIVES of an MTU */
    struct ibv_mr *mr;
    uint32_t polls;
};

/* What keeps late packets out of a slot's buffer. */
struct verbs_guard {
    struct ibv_mw *window; /* made when the slot is used */
    uint32_t binds;        /* of this window, to nothing too: each takes the next of its 256 keys */
    struct ibv_mr *mr;     /* VERBS_PROTECT_MR: while the slot is bound */
    bool bound;
    uint8_t generation;                      /* of the receive that is bound, or was last */
    uint64_t ended[QP_INFO_GENERATIONS_MAX]; /* endpoint->binds when its receive of that generation ended */
};

/* Binds windows: a queue pair that is connected to itself and sends nothing. */
struct verbs_binder {
    struct verbs_fabric *fabric;
    uint64_t binds; /* ever; the number of the last one */
    struct ibv_qp *qp;
    struct ibv_cq *cq;
    struct ibv_mr *anchor; /* the registration of windows that are not bound */
    uint8_t *page;
};

struct verbs_endpoint {
    struct fabric_endpoint base;
    struct fabric_endpoint_attr attr;
    struct verbs_sizes sizes;
    struct verbs_channel **channels;
    struct verbs_control control;
    struct verbs_guard *guards; /* one a slot */
    uint64_t binds;             /* of slots, and ends of them, ever; under the locks of all channels */
    struct verbs_binder binder;
    struct verbs_indirect *indirect; /* NULL but with VERBS_PROTECT_INDIRECT */
    enum verbs_protection protection;
    struct qp_info_endpoint peer;
    uint32_t wire_overhead; /* bytes of a packet besides payload and pad */
    bool connected;
    _Atomic int broken; /* 0, 1: reason is being written, 2: it is there */
    char reason[VERBS_REASON_MAX];
};

int verbs_endpoint_create(struct fabric *fabric, const struct fabric_endpoint_attr *attr,
                          struct fabric_endpoint **endpoint);
void verbs_endpoint_destroy(struct fabric_endpoint *endpoint);
void verbs_endpoint_info(struct fabric_endpoint *endpoint, struct qp_info_endpoint *info);

static inline struct verbs_endpoint *verbs_endpoint_of(struct fabric_endpoint *endpoint)
{
    return (struct verbs_endpoint *)endpoint;
}

static inline struct verbs_fabric *verbs_fabric_of(const struct verbs_endpoint *endpoint)
{
    return (struct verbs_fabric *)endpoint->base.fabric;
}

#endif
