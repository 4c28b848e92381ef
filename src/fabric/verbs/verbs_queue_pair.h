/*
 * verbs_queue_pair.h - UC queue pairs of an endpoint: creation, states, completions, failures.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_VERBS_QUEUE_PAIR_H
#define LH_FABRIC_VERBS_VERBS_QUEUE_PAIR_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

#include "fabric/fabric.h"
#include "fabric/verbs/verbs_device.h"
#include "fabric/verbs/verbs_sizes.h"

/* ---- endpoint -------------------------------------------------------------------------------------- */

/*
 * An endpoint of UC queue pairs through libibverbs: what its files share.
 *
 * Each channel of an endpoint has a queue pair for each generation, one completion queue for what arrives
 * and one for what was sent, each with a completion channel of its own. Control has its own completion queues
 * and one queue pair. Every packet is one RDMA write with immediate that fits one MTU, so the device sends
 * it as an ONLY packet: order never matters, and nothing is ever half received.
 *
 * Threads: everything in verbs_channel belongs to the thread that holds the channel, verbs_control to the
 * control worker, protection to the thread that binds slots; fields behind verbs_fabric.lock are marked.
 */

#define VERBS_INLINE_BYTES 64u /* asked of the device: writes up to it are copied when they are posted */
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

/* ---- queue pair ------------------------------------------------------------------------------------ */

/* A UC queue pair with those queues and sizes, in INIT: it takes receives. -LH_EDEVICE */
int verbs_qp_create(struct verbs_endpoint *endpoint, struct ibv_qp_init_attr *attr, struct ibv_qp **qp);

/* ---- connect --------------------------------------------------------------------------------------- */

/* Connects every queue pair to one of the peer. */

int verbs_endpoint_connect(struct fabric_endpoint *endpoint, const struct qp_info_endpoint *peer);

/* ---- failure --------------------------------------------------------------------------------------- */

/*
 * Devices that are lost and queue pairs that fail: recorded where they are seen, reported by
 * the next call.
 */

void verbs_endpoint_fail(struct verbs_endpoint *endpoint, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* 0, or -LH_EDEVICE with the reason. */
int verbs_endpoint_check(struct verbs_endpoint *endpoint);
/* Reads the events of the device, unless another thread does. */
void verbs_read_events(struct verbs_fabric *fabric);

/* ---- completion ------------------------------------------------------------------------------------ */

/* Completion queues, and the events that end a sleep. */

int verbs_cqs_open(struct verbs_endpoint *endpoint, struct verbs_cqs *cqs, uint32_t index,
                   uint32_t recv_cqe, uint32_t send_cqe);
void verbs_cqs_close(struct verbs_cqs *cqs);
/* Completions, 0 … count. When there are none the queue is armed, so that the next one gives an event,
 * and polled once more. */
uint32_t verbs_cqs_poll(struct verbs_cqs *cqs, struct verbs_cq *queue, struct ibv_wc *completions,
                        uint32_t count);

/* ---- binder ---------------------------------------------------------------------------------------- */

/* Binds memory windows of type 1. */

int verbs_binder_open(struct verbs_endpoint *endpoint);
void verbs_binder_close(struct verbs_binder *binder);
/* Binds the window to that memory, or to nothing when bytes is 0; it holds when this returns. -LH_EDEVICE
 */
int verbs_binder_bind(struct verbs_binder *binder, struct ibv_mw *window, struct ibv_mr *mr,
                      uint64_t address, uint64_t bytes);
/* Until that request is done, passing over others, which were given up earlier and may still complete; `what`
 * is it, for the error: "bind a memory window". */
int verbs_binder_wait(struct ibv_cq *cq, uint64_t wr_id, const char *what);

/* ---- indirect -------------------------------------------------------------------------------------- */

/*
 * Indirect keys of mlx5 (verbs_indirect_mlx5.c; verbs_indirect_absent.c in a build without); unproven on
 * hardware.
 */

struct verbs_indirect;
/* Whether they may be asked of that device. */
bool verbs_indirect_possible(struct ibv_device *device);
/* Makes endpoint->indirect. -LH_EDEVICE when the device, or this build, has none. */
int verbs_indirect_open(struct verbs_endpoint *endpoint);
void verbs_indirect_close(struct verbs_indirect *indirect);
/* Binds the slot's key of that generation to what lies in the registration; keys are zero-based. */
int verbs_indirect_bind(struct verbs_indirect *indirect, uint32_t slot, const struct fabric_slot *what,
                        const struct ibv_mr *mr, struct fabric_slot_key *key);
/* What comes with that key from now on lands nowhere. */
int verbs_indirect_unbind(struct verbs_indirect *indirect, uint32_t slot);

#endif
