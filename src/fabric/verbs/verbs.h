/*
 * verbs.h - the fabric of UC queue pairs through libibverbs, from inside.
 *
 * Each channel of an endpoint has a queue pair for each generation, one completion queue for what arrives
 * and one for what was sent, each with a completion channel that it rings. Control is a lane of its own
 * with one queue pair. Every packet is one RDMA write with immediate that fits one MTU, so the device sends
 * it as an ONLY packet: order never matters, and nothing is ever half received.
 *
 * Threads: everything in verbs_channel belongs to the thread that holds the channel, verbs_control to the
 * control worker, protection to who binds slots; what lies behind verbs_fabric.lock says so.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_VERBS_H
#define LH_FABRIC_VERBS_VERBS_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

#include "fabric/fabric.h"
#include "fabric/verbs/gid.h"
#include "fabric/verbs/memory.h"
#include "fabric/verbs/name.h"
#include "fabric/verbs/ops.h"
#include "fabric/verbs/sizing.h"
#include "fabric/verbs/tx_limit.h"
#include "fabric/verbs/tx_ring.h"

#define VERBS_REASON_MAX   160u
#define VERBS_GIDS_MAX     256u /* entries of a port that are looked at */
#define VERBS_INLINE_BYTES 64u  /* asked of the device: writes up to it are copied when they are posted */
#define VERBS_ROUTE_TRIES  5u   /* the kernel gives up on a neighbour after about 1 s */
#define VERBS_ASYNC_PERIOD 32u  /* control polls between looks for events of the device */

struct verbs_fabric {
    struct fabric base;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_device_attr device;
    struct verbs_name name;
    uint8_t port;
    uint8_t gid_index;
    enum ibv_mtu path_mtu; /* what one packet takes */
    uint32_t mtu_bytes;    /* the same in bytes */
    union ibv_gid gid;
    struct verbs_memory memory;
    _Atomic bool gone; /* the device or its port; nothing can be sent any more */
    char reason[VERBS_REASON_MAX];
    pthread_mutex_t lock; /* of reason while gone is false, and of reading events of the device */
    char warning[VERBS_REASON_MAX];
};

/* A completion queue, and the completion channel that it alone rings: who takes an event knows whose it is.
 */
struct verbs_cq {
    struct ibv_cq *cq;
    struct ibv_comp_channel *bell;
    bool armed;       /* the next completion rings */
    uint32_t unacked; /* events that were taken and not acknowledged */
};

/* The two completion queues of a channel, or of control. */
struct verbs_lane {
    struct verbs_endpoint *endpoint;
    struct verbs_cq recv;
    struct verbs_cq send;
};

struct verbs_channel {
    struct verbs_endpoint *endpoint;
    uint32_t index;
    uint64_t drained;    /* all that waited when endpoint->binds was this has been read */
    uint64_t read;       /* completions of arrivals, ever */
    uint64_t mark_read;  /* such a moment that is being waited for: at so many read, */
    uint64_t mark_binds; /* with so many binds */
    struct verbs_lane lane;
    struct ibv_srq *srq; /* NULL: each queue pair has receives of its own */
    struct ibv_qp *qp[QP_INFO_GENERATIONS_MAX];
    uint32_t inline_bytes;
    struct tx_ring ring;
    struct tx_limit limit;
    struct ibv_sge nowhere; /* behind them: where a SEND lands that nobody asked for */
    uint8_t *bounce;        /* a packet for each write in flight: borrowed payload is copied there */
    struct ibv_mr *bounce_mr;
    struct ibv_send_wr writes[FABRIC_BATCH_MAX];
    struct ibv_sge pieces[FABRIC_BATCH_MAX];
    struct ibv_recv_wr receives[FABRIC_BATCH_MAX];
    struct ibv_wc completions[FABRIC_BATCH_MAX];
};

struct verbs_control {
    struct verbs_lane lane;
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
    struct ibv_mr *anchor; /* what a window that is not bound is said to lie in */
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

/* ---- device.c ---- */
/* Opens the device, port and GID that fabric->name asks for. -LH_EDEVICE tells what was looked at. */
int verbs_device_open(struct verbs_fabric *fabric);
uint32_t verbs_mtu_bytes(enum ibv_mtu mtu);
/* The port's addresses, at most VERBS_GIDS_MAX; returns how many. */
uint32_t verbs_device_gids(struct ibv_context *context, uint8_t port, struct verbs_gid *gids);

/* ---- devices.c ---- */
#define VERBS_NO_DEVICE                                                                                    \
    "this machine has no RDMA device; with a NIC, load its driver and install ibverbs-providers; "         \
    "without, "                                                                                            \
    "\"modprobe rdma_rxe; rdma link add rxe0 type rxe netdev IFACE\" makes one in software"
int verbs_devices(struct fabric_device_list *list);

/* ---- trouble.c: what went wrong, told by whoever is asked next ---- */
/* Ends the fabric, or one endpoint; the first reason stays. */
void verbs_fabric_lost(struct verbs_fabric *fabric, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void verbs_endpoint_lost(struct verbs_endpoint *endpoint, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* 0, or -LH_EDEVICE with the reason. */
int verbs_trouble(struct verbs_endpoint *endpoint);
/* Reads what the device has to tell, unless another thread does. */
void verbs_read_events(struct verbs_fabric *fabric);

/* ---- lane.c: completion queues and their bells ---- */
int verbs_lane_open(struct verbs_endpoint *endpoint, struct verbs_lane *lane, uint32_t index,
                    uint32_t recv_cqe, uint32_t send_cqe);
void verbs_lane_close(struct verbs_lane *lane);
/* Completions, 0 … count. When there are none the queue is armed, so that the next one rings the bell, and
 * looked at once more. */
uint32_t verbs_lane_poll(struct verbs_lane *lane, struct verbs_cq *queue, struct ibv_wc *completions,
                         uint32_t count);

/* ---- queue_pair.c ---- */
/* From RESET to INIT. -LH_EDEVICE */
int verbs_qp_init(const struct verbs_fabric *fabric, struct ibv_qp *qp);
/* A UC queue pair with those queues and sizes, in INIT: it takes receives. -LH_EDEVICE */
int verbs_qp_create(struct verbs_endpoint *endpoint, struct ibv_qp_init_attr *attr, struct ibv_qp **qp);
/* From here on it neither sends nor takes anything. From any thread. */
void verbs_qp_stop(struct ibv_qp *qp);
/* To RTS, with that peer. -LH_EADDR when there is no way to it, -LH_EDEVICE. */
int verbs_qp_connect(struct verbs_fabric *fabric, struct ibv_qp *qp, const union ibv_gid *peer,
                     uint32_t peer_qpn);

/* ---- endpoint.c, connect.c ---- */
int verbs_endpoint_create(struct fabric *fabric, const struct fabric_endpoint_attr *attr,
                          struct fabric_endpoint **endpoint);
void verbs_endpoint_destroy(struct fabric_endpoint *endpoint);
void verbs_endpoint_info(struct fabric_endpoint *endpoint, struct qp_info_endpoint *info);
int verbs_endpoint_connect(struct fabric_endpoint *endpoint, const struct qp_info_endpoint *peer);

/* ---- channel.c ---- */
int verbs_channel_create(struct verbs_endpoint *endpoint, uint32_t index, struct verbs_channel **channel);
void verbs_channel_destroy(struct verbs_channel *channel);

/* ---- protect.c ---- */
/* Chooses what the device has, or what the name asks for: then -LH_EDEVICE when it has not. */
int verbs_protect_open(struct verbs_endpoint *endpoint);
void verbs_protect_close(struct verbs_endpoint *endpoint);
int verbs_slot_bind(struct fabric_endpoint *endpoint, uint32_t slot, const struct fabric_slot *what,
                    struct fabric_slot_key *key);
void verbs_slot_unbind(struct fabric_endpoint *endpoint, uint32_t slot);

/* ---- binder.c ---- */
int verbs_binder_open(struct verbs_endpoint *endpoint);
void verbs_binder_close(struct verbs_binder *binder);
/* Binds the window to that memory, or to nothing when bytes is 0; it holds when this returns. -LH_EDEVICE
 */
int verbs_binder_bind(struct verbs_binder *binder, struct ibv_mw *window, struct ibv_mr *mr,
                      uint64_t address, uint64_t bytes);
/* Until that request is done, passing over others, which were given up earlier and may still complete; `what`
 * is it, for the error: "bind a memory window". */
int verbs_binder_wait(struct ibv_cq *cq, uint64_t wr_id, const char *what);

/* ---- mlx5.c, mlx5_absent.c: indirect keys; unproven on hardware ---- */
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

/* ---- tx.c ---- */
int verbs_post_writes(struct fabric_endpoint *endpoint, uint32_t channel, const struct fabric_write *writes,
                      uint32_t count);
uint64_t verbs_released(struct fabric_endpoint *endpoint, uint32_t channel);

/* ---- rx.c ---- */
/* Posts so many receives to the channel's shared queue, or to the queue pair of that generation. */
int verbs_post_receives(struct verbs_channel *channel, uint32_t generation, uint32_t count);
int verbs_poll(struct fabric_endpoint *endpoint, uint32_t channel, struct fabric_arrival *arrivals,
               uint32_t count);
/* Drops what waits to be read: to users it is lost, like any packet. No poll runs meanwhile. */
void verbs_drain(struct verbs_channel *channel);

/* ---- control.c ---- */
int verbs_control_open(struct verbs_endpoint *endpoint);
/* Waits, not for long, until the last messages have left. */
void verbs_control_let_out(struct verbs_endpoint *endpoint);
void verbs_control_close(struct verbs_endpoint *endpoint);
int verbs_control_send(struct fabric_endpoint *endpoint, const struct fabric_datagram *datagrams,
                       uint32_t count);
int verbs_control_poll(struct fabric_endpoint *endpoint, struct fabric_control_arrival *arrivals,
                       uint32_t count);

static inline struct verbs_endpoint *verbs_endpoint_of(struct fabric_endpoint *endpoint)
{
    return (struct verbs_endpoint *)endpoint;
}

static inline struct verbs_fabric *verbs_fabric_of(const struct verbs_endpoint *endpoint)
{
    return (struct verbs_fabric *)endpoint->base.fabric;
}

#endif
