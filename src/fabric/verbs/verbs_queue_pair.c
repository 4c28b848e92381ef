/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/verbs_queue_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "fabric/fabric.h"
#include "fabric/verbs/verbs_device.h"
#include "fabric/verbs/verbs_sizes.h"
#include "wire/roce_packet.h"

/* ---- endpoint -------------------------------------------------------------------------------------- */

#define VERBS_ROUTE_TRIES 5u /* the kernel gives up on a neighbour after about 1 s */

/* ---- queue pair ------------------------------------------------------------------------------------ */

/* UC queue pairs: made, and brought to where they send and receive. */

#define HOP_LIMIT 64u

static const char *device_of(const struct verbs_fabric *fabric)
{
    return ibv_get_device_name(fabric->context->device);
}

/* From RESET to INIT. -LH_EDEVICE */
static int verbs_qp_init(const struct verbs_fabric *fabric, struct ibv_qp *qp)
{
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT,
        .port_num = fabric->port,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
    };
    int error =
        ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error != 0)
        return lh_fail(LH_EDEVICE, "device %s cannot use a queue pair on port %u: %s", device_of(fabric),
                       fabric->port, strerror(error));
    return 0;
}

int verbs_qp_create(struct verbs_endpoint *endpoint, struct ibv_qp_init_attr *attr, struct ibv_qp **out)
{
    struct verbs_fabric *fabric = verbs_fabric_of(endpoint);
    attr->qp_type = IBV_QPT_UC;
    attr->qp_context = endpoint;
    struct ibv_qp *qp = ibv_create_qp(fabric->pd, attr);
    if (qp == NULL)
        return lh_fail(LH_EDEVICE, "device %s cannot make a UC queue pair (%u sends, %u receives): %s",
                       device_of(fabric), attr->cap.max_send_wr, attr->cap.max_recv_wr, strerror(errno));
    int error = verbs_qp_init(fabric, qp);
    if (error != 0) {
        ibv_destroy_qp(qp);
        return error;
    }
    *out = qp;
    return 0;
}

/* From here on it neither sends nor takes anything. From any thread. */
static void verbs_qp_stop(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    if (qp != NULL)
        ibv_modify_qp(qp, &attr, IBV_QP_STATE); /* of a device that is gone it cannot be, and need not */
}

/* The kernel resolves the peer's link address in here, and returns ETIMEDOUT when the first try was not
 * answered yet. */
static int ready_to_receive(struct verbs_fabric *fabric, struct ibv_qp *qp, const union ibv_gid *peer,
                            uint32_t peer_qpn)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = fabric->path_mtu,
        .dest_qp_num = peer_qpn,
        .ah_attr =
            {
                .grh = {.dgid = *peer, .sgid_index = fabric->gid_index, .hop_limit = HOP_LIMIT},
                .is_global = 1,
                .port_num = fabric->port,
            },
    };
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    int error = ETIMEDOUT;
    for (uint32_t i = 0; i < VERBS_ROUTE_TRIES && error == ETIMEDOUT; i++)
        error = ibv_modify_qp(qp, &attr, mask);
    return error;
}

/* To RTS, with that peer. -LH_EADDR when there is no way to it, -LH_EDEVICE. */
static int verbs_qp_connect(struct verbs_fabric *fabric, struct ibv_qp *qp, const union ibv_gid *peer,
                            uint32_t peer_qpn)
{
    int error = ready_to_receive(fabric, qp, peer, peer_qpn);
    if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH)
        return lh_fail(LH_EADDR,
                       "device %s: no route to the peer: %s (check that this host can ping it from the "
                       "address of GID %u)",
                       device_of(fabric), strerror(error), fabric->gid_index);
    if (error == 0) {
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
        error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    }
    if (error != 0)
        return lh_fail(LH_EDEVICE, "device %s cannot connect a queue pair: %s", device_of(fabric),
                       strerror(error));
    return 0;
}

/* ---- failure --------------------------------------------------------------------------------------- */

/* Devices that are lost, queue pairs that fail: recorded where it is seen, reported by the next call. */

/* Events read in one go, so that a flood of them cannot hold a poll. */
#define EVENTS_MAX 16u

/* Ends the fabric, or one endpoint; the first reason stays. */
static void verbs_fabric_fail(struct verbs_fabric *fabric, const char *format, ...)
{
    if (atomic_load(&fabric->gone))
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fabric->reason, sizeof fabric->reason, format, arguments);
    va_end(arguments);
    atomic_store(&fabric->gone, true);
}

/* Users own their memory again once the failure is reported: nothing may be sent from it or land in it. */
static void stop(struct verbs_endpoint *endpoint)
{
    for (uint32_t c = 0; endpoint->channels != NULL && c < endpoint->attr.channels; c++)
        for (uint32_t i = 0; endpoint->channels[c] != NULL && i < endpoint->attr.generations; i++)
            verbs_qp_stop(endpoint->channels[c]->qp[i]);
    verbs_qp_stop(endpoint->control.qp);
}

void verbs_endpoint_fail(struct verbs_endpoint *endpoint, const char *format, ...)
{
    int whole = 0;
    if (!atomic_compare_exchange_strong(&endpoint->broken, &whole, 1)) {
        while (atomic_load(&endpoint->broken) !=
               2) /* until another thread has stopped it: some system calls */
            sched_yield();
        return;
    }
    stop(endpoint);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(endpoint->reason, sizeof endpoint->reason, format, arguments);
    va_end(arguments);
    atomic_store(&endpoint->broken, 2);
}

int verbs_endpoint_check(struct verbs_endpoint *endpoint)
{
    struct verbs_fabric *fabric = verbs_fabric_of(endpoint);
    /* A port that went down may come up again, and would send what still waits. */
    if (atomic_load_explicit(&fabric->gone, memory_order_acquire))
        verbs_endpoint_fail(endpoint, "%s", fabric->reason);
    if (atomic_load_explicit(&endpoint->broken, memory_order_acquire) == 0)
        return 0;
    verbs_endpoint_fail(endpoint, "a queue pair failed"); /* it is: waits until it has been stopped */
    return lh_fail(LH_EDEVICE, "%s", endpoint->reason);
}

/* Under the lock. */
static void on_event(struct verbs_fabric *fabric, const struct ibv_async_event *event)
{
    const char *device = ibv_get_device_name(fabric->context->device);
    const char *what = ibv_event_type_str(event->event_type);
    switch (event->event_type) {
    case IBV_EVENT_DEVICE_FATAL:
        verbs_fabric_fail(fabric, "device %s is gone (%s)", device, what);
        break;
    case IBV_EVENT_PORT_ERR:
        if (event->element.port_num == fabric->port)
            verbs_fabric_fail(fabric, "port %u of device %s went down (%s)", fabric->port, device, what);
        break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        verbs_endpoint_fail(event->element.qp->qp_context, "queue pair %u of device %s failed (%s)",
                            event->element.qp->qp_num, device, what);
        break;
    case IBV_EVENT_CQ_ERR:
        verbs_endpoint_fail(event->element.cq->cq_context, "a completion queue of device %s failed (%s)",
                            device, what);
        break;
    case IBV_EVENT_SRQ_ERR:
        verbs_endpoint_fail(event->element.srq->srq_context, "a receive queue of device %s failed (%s)",
                            device, what);
        break;
    default: /* addresses that come and go, a port that comes up: nothing of ours */
        break;
    }
}

void verbs_read_events(struct verbs_fabric *fabric)
{
    if (pthread_mutex_trylock(&fabric->lock) != 0)
        return;
    struct ibv_async_event event;
    for (uint32_t i = 0; i < EVENTS_MAX && ibv_get_async_event(fabric->context, &event) == 0; i++) {
        on_event(fabric, &event);
        ibv_ack_async_event(&event);
    }
    pthread_mutex_unlock(&fabric->lock);
}

/* ---- connect --------------------------------------------------------------------------------------- */

/*
 * Learning who the peer is, and connecting every queue pair to one of his.
 *
 * The peer is a device like ours, or the udp fabric. That one must hold the RoCE port, since a device sends
 * to no other.
 */

static int check_identity(const struct verbs_endpoint *endpoint, const struct qp_info_endpoint *peer)
{
    uint32_t family = verbs_gid_family(verbs_fabric_of(endpoint)->gid.raw);
    if (peer->fabric != QP_INFO_UDP && peer->fabric != QP_INFO_VERBS)
        return lh_fail(LH_EHANDSHAKE,
                       "peer fabric %u: unsupported (verbs connects to udp (%u) and verbs (%u))",
                       peer->fabric, QP_INFO_UDP, QP_INFO_VERBS);
    if (peer->family != family)
        return lh_fail(LH_EADDR,
                       "address family mismatch: peer IPv%u, this side IPv%u (open both devices with the "
                       "same family: verbs:DEVICE/ip=%u)",
                       peer->family, family, peer->family);
    int error = endpoint_check_peer(&endpoint->attr, peer);
    if (error != 0)
        return error;
    if (peer->control_port != ROCE_UDP_PORT)
        return lh_fail(
            LH_EADDR,
            "the peer listens on UDP port %u, and RoCE hardware sends to %u only, which another process or "
            "connection of that address holds (ss -ulpn sport = :%u): stop it, or use another address",
            peer->control_port, ROCE_UDP_PORT, ROCE_UDP_PORT);
    return 0;
}

static int check_numbers(const struct qp_info_endpoint *peer)
{
    if (!endpoint_check_qpns(peer))
        return lh_fail(LH_EHANDSHAKE, "QP number of the peer: out of range (1 to 0xFFFFFF)");
    return 0;
}

int verbs_endpoint_connect(struct fabric_endpoint *base, const struct qp_info_endpoint *peer)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    struct verbs_fabric *fabric = verbs_fabric_of(endpoint);
    if (endpoint->connected)
        return lh_fail(LH_ESTATE, "endpoint is already connected");
    int error = verbs_endpoint_check(endpoint);
    if (error == 0)
        error = check_identity(endpoint, peer);
    if (error == 0)
        error = check_numbers(peer);
    union ibv_gid gid;
    verbs_gid_from_address(peer->family, peer->address, gid.raw);
    if (error == 0)
        error = verbs_qp_connect(fabric, endpoint->control.qp, &gid, peer->control_qpn);
    for (uint32_t channel = 0; channel < peer->channels && error == 0; channel++)
        for (uint32_t generation = 0; generation < peer->generations && error == 0; generation++)
            error = verbs_qp_connect(fabric, endpoint->channels[channel]->qp[generation], &gid,
                                     peer->qpn[generation][channel]);
    if (error != 0)
        return error;
    endpoint->peer = *peer;
    endpoint->connected = true;
    return 0;
}

/* ---- completion ------------------------------------------------------------------------------------ */

/*
 * Completion queues, and the events that end a sleep.
 *
 * A queue that was found empty is armed: its next completion puts an event into the completion channel, whose
 * descriptor then is readable until the event is taken. Arming too late would lose a wake-up, so the queue is
 * polled once more after it. An event is taken (one system call) only while the queue is armed, so a
 * queue under load costs none.
 */

/* Acknowledging takes a lock, so it is done for many events at once. */
#define ACK_BATCH 64u

static int open_events(const struct verbs_fabric *fabric, struct verbs_cq *queue)
{
    queue->events = ibv_create_comp_channel(fabric->context);
    if (queue->events == NULL)
        return lh_fail(LH_EDEVICE, "device %s cannot make a completion channel: %s",
                       ibv_get_device_name(fabric->context->device), strerror(errno));
    int flags = fcntl(queue->events->fd, F_GETFL);
    if (flags < 0 || fcntl(queue->events->fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return lh_fail(LH_ESYSTEM, "a completion channel cannot be made non-blocking: %s", strerror(errno));
    return 0;
}

static int open_queue(struct verbs_cqs *cqs, uint32_t index, uint32_t cqe, struct verbs_cq *queue)
{
    const struct verbs_fabric *fabric = verbs_fabric_of(cqs->endpoint);
    int vectors = fabric->context->num_comp_vectors;
    int vector = vectors > 0 ? (int)(index % (uint32_t)vectors) : 0;
    int error = open_events(fabric, queue);
    if (error != 0)
        return error;
    queue->cq = ibv_create_cq(fabric->context, (int)cqe, cqs->endpoint, queue->events, vector);
    if (queue->cq == NULL)
        return lh_fail(LH_EDEVICE, "device %s cannot make a completion queue of %u entries: %s",
                       ibv_get_device_name(fabric->context->device), cqe, strerror(errno));
    return 0;
}

int verbs_cqs_open(struct verbs_endpoint *endpoint, struct verbs_cqs *cqs, uint32_t index,
                   uint32_t recv_cqe, uint32_t send_cqe)
{
    cqs->endpoint = endpoint;
    int error = open_queue(cqs, index, recv_cqe, &cqs->recv);
    return error != 0 ? error : open_queue(cqs, index, send_cqe, &cqs->send);
}

static void close_queue(struct verbs_cq *queue)
{
    if (queue->cq != NULL && queue->unacked > 0)
        ibv_ack_cq_events(queue->cq, queue->unacked); /* else destroying waits for ever */
    if (queue->cq != NULL)
        ibv_destroy_cq(queue->cq);
    if (queue->events != NULL)
        ibv_destroy_comp_channel(queue->events);
    *queue = (struct verbs_cq){0};
}

void verbs_cqs_close(struct verbs_cqs *cqs)
{
    close_queue(&cqs->recv);
    close_queue(&cqs->send);
}

/* At most one is there: a queue is armed for one. */
static void take_event(struct verbs_cq *queue)
{
    struct ibv_cq *cq;
    void *context;
    if (ibv_get_cq_event(queue->events, &cq, &context) != 0)
        return;
    queue->armed = false;
    if (++queue->unacked == ACK_BATCH) {
        ibv_ack_cq_events(queue->cq, queue->unacked);
        queue->unacked = 0;
    }
}

uint32_t verbs_cqs_poll(struct verbs_cqs *cqs, struct verbs_cq *queue, struct ibv_wc *completions,
                        uint32_t count)
{
    int got = ibv_poll_cq(queue->cq, (int)count, completions);
    if (queue->armed)
        take_event(queue);
    if (got == 0 && !queue->armed && ibv_req_notify_cq(queue->cq, 0) == 0) {
        queue->armed = true;
        got = ibv_poll_cq(queue->cq, (int)count, completions);
    }
    if (got < 0) {
        verbs_endpoint_fail(cqs->endpoint, "a completion queue of device %s cannot be read",
                            ibv_get_device_name(queue->cq->context->device));
        return 0;
    }
    return (uint32_t)got;
}

/* ---- binder ---------------------------------------------------------------------------------------- */

/*
 * Binding memory windows of type 1: a queue pair that is connected to itself, so that windows can
 * be bound before there is a peer, and a failed bind takes no traffic with it.
 */

#define BINDS      16u
#define PAGE_BYTES 4096u
/* A bind takes microseconds; a device that does not answer for so long is gone. */
#define BIND_NS_MAX (2 * LH_NS_PER_S)

static lh_time now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (lh_time)time.tv_sec * LH_NS_PER_S + (lh_time)time.tv_nsec;
}

static int make_anchor(const struct verbs_fabric *fabric, struct verbs_binder *binder)
{
    binder->page = aligned_alloc(PAGE_BYTES, PAGE_BYTES);
    if (binder->page == NULL)
        return lh_fail(LH_ENOMEM, "no memory for a page");
    binder->anchor =
        ibv_reg_mr(fabric->pd, binder->page, PAGE_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    if (binder->anchor == NULL)
        return lh_fail(LH_EDEVICE, "device %s cannot register memory for windows: %s",
                       ibv_get_device_name(fabric->context->device), strerror(errno));
    return 0;
}

int verbs_binder_open(struct verbs_endpoint *endpoint)
{
    struct verbs_fabric *fabric = verbs_fabric_of(endpoint);
    struct verbs_binder *binder = &endpoint->binder;
    binder->fabric = fabric;
    int error = make_anchor(fabric, binder);
    if (error != 0)
        return error;
    binder->cq = ibv_create_cq(fabric->context, (int)BINDS, endpoint, NULL, 0);
    if (binder->cq == NULL)
        return lh_fail(LH_EDEVICE, "device %s cannot make a completion queue: %s",
                       ibv_get_device_name(fabric->context->device), strerror(errno));
    struct ibv_qp_init_attr attr = {
        .send_cq = binder->cq,
        .recv_cq = binder->cq,
        .cap = {.max_send_wr = BINDS, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
    };
    error = verbs_qp_create(endpoint, &attr, &binder->qp);
    return error != 0 ? error : verbs_qp_connect(fabric, binder->qp, &fabric->gid, binder->qp->qp_num);
}

void verbs_binder_close(struct verbs_binder *binder)
{
    if (binder->qp != NULL)
        ibv_destroy_qp(binder->qp);
    if (binder->cq != NULL)
        ibv_destroy_cq(binder->cq);
    if (binder->anchor != NULL)
        ibv_dereg_mr(binder->anchor);
    free(binder->page);
    *binder = (struct verbs_binder){0};
}

int verbs_binder_wait(struct ibv_cq *cq, uint64_t wr_id, const char *what)
{
    struct ibv_wc completion;
    lh_time end = now() + BIND_NS_MAX;
    int count = 0;
    do { /* until the deadline */
        count = ibv_poll_cq(cq, 1, &completion);
        if (count > 0 && completion.wr_id != wr_id)
            count = 0;
    } while (count == 0 && now() < end);
    if (count <= 0)
        return lh_fail(LH_EDEVICE, "device timeout: cannot %s", what);
    if (completion.status != IBV_WC_SUCCESS)
        return lh_fail(LH_EDEVICE, "the device refuses to %s: %s", what,
                       ibv_wc_status_str(completion.status));
    return 0;
}

/* A bind that fails stops the queue pair; the slots that are bound still have to be closed through it. */
static void revive(struct verbs_binder *binder)
{
    struct verbs_fabric *fabric = binder->fabric;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    char reason[VERBS_REASON_MAX];
    snprintf(reason, sizeof reason, "%s", lh_last_error()); /* that is the reason for the caller */
    if (ibv_modify_qp(binder->qp, &attr, IBV_QP_STATE) == 0 && verbs_qp_init(fabric, binder->qp) == 0)
        verbs_qp_connect(fabric, binder->qp, &fabric->gid, binder->qp->qp_num);
    lh_fail(LH_EDEVICE, "%s", reason);
}

int verbs_binder_bind(struct verbs_binder *binder, struct ibv_mw *window, struct ibv_mr *mr,
                      uint64_t address, uint64_t bytes)
{
    struct ibv_mw_bind bind = {
        .wr_id = ++binder->binds,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info =
            {
                .mr = bytes > 0 ? mr : binder->anchor,
                .addr = bytes > 0 ? address : (uint64_t)(uintptr_t)binder->page,
                .length = bytes,
                .mw_access_flags = bytes > 0 ? (unsigned)IBV_ACCESS_REMOTE_WRITE : 0u,
            },
    };
    int error = ibv_bind_mw(binder->qp, window, &bind);
    if (error != 0)
        return lh_fail(LH_EDEVICE, "the device cannot bind a memory window: %s", strerror(error));
    error = verbs_binder_wait(binder->cq, binder->binds, "bind a memory window");
    if (error != 0)
        revive(binder);
    return error;
}
