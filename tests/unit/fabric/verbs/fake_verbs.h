/*
 * fake_verbs.h - a device in memory for unit tests of the verbs fabric: it keeps what is posted, reports what
 * a test puts into its completion queues, and counts what was made of it and not given back.
 *
 * Included once by a test: it defines the calls of libibverbs, which so are not those of a library. It does
 * not show that a NIC does what it is asked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef UNIT_FABRIC_VERBS_FAKE_VERBS_H
#define UNIT_FABRIC_VERBS_FAKE_VERBS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <longhaul/error.h>

#include "fabric/verbs/verbs_parts.h"
#include "fabric/verbs/verbs_queue_pair.h"
#include "wire/roce_packet.h"

#define FAKE_WAITING 1024u
#define FAKE_SENDS   1024u
#define FAKE_BYTES   4096u
#define FAKE_MTU     1024u

struct fake_cq {
    struct ibv_cq cq;
    struct ibv_wc waiting[FAKE_WAITING];
    uint32_t first, end;
};

struct fake_qp {
    struct ibv_qp qp;
    struct ibv_qp_init_attr made;
    uint32_t receives; /* posted, and not used up */
    uint32_t peer_qpn;
    union ibv_gid peer;
};

struct fake_srq {
    struct ibv_srq srq;
    uint32_t receives;
};

struct fake_send {
    struct ibv_qp *qp;
    struct ibv_send_wr request;
    struct ibv_sge piece;
    uint8_t bytes[FAKE_BYTES];
};

static struct {
    int objects;      /* made, and not given back */
    uint32_t calls;   /* that make something */
    uint32_t failing; /* the one that fails; 0: none */
    uint32_t next_key, next_qpn;
    int send_error, receive_error; /* of the next posts */
    uint32_t send_count;
    struct fake_send sends[FAKE_SENDS];
    uint64_t bound_address, bound_bytes; /* of the last window */
    uint32_t unread;                     /* completions in queues that were destroyed */
    lh_time now, now_step;
    struct ibv_async_event events[8]; /* that are read, one after the other */
    uint32_t event_count, events_read, events_acknowledged;
    int bind_error;                 /* of the next binds */
    enum ibv_wc_status bind_status; /* that they end with */
} fake;

static struct ibv_device fake_device = {.name = "fake0"};
static struct ibv_context fake_context;
static struct ibv_pd fake_pd = {.context = &fake_context};
static struct verbs_fabric fabric;
static struct lh_stats stats;

/* Memory for one more object; NULL: this call fails. */
static void *fake_make(size_t bytes)
{
    errno = ENOSPC;
    if (++fake.calls == fake.failing)
        return NULL;
    fake.objects++;
    return calloc(1, bytes);
}

static int fake_give(void *object)
{
    assert_non_null(object);
    fake.objects--;
    free(object);
    return 0;
}

/* ---- the library's calls ----------------------------------------------------------------------------- */

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t bytes, uint64_t iova,
                                unsigned access)
{
    (void)iova, (void)access;
    struct ibv_mr *mr = fake_make(sizeof *mr);
    if (mr)
        *mr = (struct ibv_mr){.context = pd->context,
                              .pd = pd,
                              .addr = address,
                              .length = bytes,
                              .lkey = ++fake.next_key,
                              .rkey = ++fake.next_key};
    return mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t bytes, int access)
{
    return ibv_reg_mr_iova2(pd, address, bytes, (uintptr_t)address, (unsigned)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    return fake_give(mr);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct ibv_comp_channel *channel = fake_make(sizeof *channel);
    if (channel)
        *channel = (struct ibv_comp_channel){.context = context, .fd = eventfd(0, EFD_CLOEXEC)};
    return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    close(channel->fd);
    return fake_give(channel);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int vector)
{
    (void)vector;
    struct fake_cq *made = fake_make(sizeof *made);
    if (!made)
        return NULL;
    made->cq =
        (struct ibv_cq){.context = context, .channel = channel, .cq_context = cq_context, .cqe = cqe};
    return &made->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    const struct fake_cq *queue = (struct fake_cq *)cq;
    fake.unread += queue->end - queue->first;
    return fake_give(cq);
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned events)
{
    (void)cq, (void)events;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
    (void)channel, (void)cq, (void)context;
    return -1;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    (void)context;
    if (fake.events_read == fake.event_count)
        return -1;
    *event = fake.events[fake.events_read++];
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    (void)event;
    fake.events_acknowledged++;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct fake_srq *made = fake_make(sizeof *made);
    if (!made)
        return NULL;
    made->srq = (struct ibv_srq){.context = pd->context, .pd = pd, .srq_context = attr->srq_context};
    return &made->srq;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
    return fake_give(srq);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct fake_qp *made = fake_make(sizeof *made);
    if (!made)
        return NULL;
    made->made = *attr;
    made->qp = (struct ibv_qp){.context = pd->context,
                               .pd = pd,
                               .qp_context = attr->qp_context,
                               .send_cq = attr->send_cq,
                               .recv_cq = attr->recv_cq,
                               .srq = attr->srq,
                               .qp_num = ++fake.next_qpn,
                               .state = IBV_QPS_RESET,
                               .qp_type = attr->qp_type};
    return &made->qp;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    struct fake_qp *made = (struct fake_qp *)qp;
    if (++fake.calls == fake.failing)
        return EINVAL;
    if (mask & IBV_QP_DEST_QPN)
        made->peer_qpn = attr->dest_qp_num;
    if (mask & IBV_QP_AV)
        made->peer = attr->ah_attr.grh.dgid;
    qp->state = attr->qp_state;
    return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    return fake_give(qp);
}

/* ---- the device's ------------------------------------------------------------------------------------ */

/* A completion that the next poll finds. */
static void fake_complete(struct ibv_cq *cq, struct ibv_wc completion)
{
    struct fake_cq *queue = (struct fake_cq *)cq;
    assert_true(queue->end < FAKE_WAITING);
    queue->waiting[queue->end++] = completion;
}

static int fake_poll(struct ibv_cq *cq, int count, struct ibv_wc *completions)
{
    struct fake_cq *queue = (struct fake_cq *)cq;
    int found = 0;
    while (found < count && queue->first < queue->end)
        completions[found++] = queue->waiting[queue->first++];
    return found;
}

static int fake_notify(struct ibv_cq *cq, int solicited)
{
    (void)cq, (void)solicited;
    return 0;
}

static int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
    *bad = request;
    if (fake.send_error)
        return fake.send_error;
    for (; request; request = request->next) {
        assert_true(fake.send_count < FAKE_SENDS);
        struct fake_send *send = &fake.sends[fake.send_count++];
        *send = (struct fake_send){.qp = qp, .request = *request};
        if (request->num_sge == 0)
            continue;
        send->piece = request->sg_list[0];
        assert_true(send->piece.length <= FAKE_BYTES);
        memcpy(send->bytes, (const void *)(uintptr_t)send->piece.addr, send->piece.length);
    }
    return 0;
}

static int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *request, struct ibv_recv_wr **bad)
{
    *bad = request;
    for (; request && !fake.receive_error; request = request->next)
        ((struct fake_qp *)qp)->receives++;
    return fake.receive_error;
}

static int fake_post_srq(struct ibv_srq *srq, struct ibv_recv_wr *request, struct ibv_recv_wr **bad)
{
    *bad = request;
    for (; request && !fake.receive_error; request = request->next)
        ((struct fake_srq *)srq)->receives++;
    return fake.receive_error;
}

static struct ibv_mw *fake_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    struct ibv_mw *window = fake_make(sizeof *window);
    if (window)
        *window =
            (struct ibv_mw){.context = pd->context, .pd = pd, .type = type, .rkey = fake.next_key += 256};
    return window;
}

static int fake_dealloc_mw(struct ibv_mw *window)
{
    return fake_give(window);
}

/* Another key for each bind: 256 of a window. */
static int fake_bind_mw(struct ibv_qp *qp, struct ibv_mw *window, struct ibv_mw_bind *bind)
{
    if (fake.bind_error)
        return fake.bind_error;
    window->rkey = (window->rkey & ~0xFFu) | ((window->rkey + 1) & 0xFFu);
    fake.bound_address = bind->bind_info.addr;
    fake.bound_bytes = bind->bind_info.length;
    fake_complete(qp->send_cq, (struct ibv_wc){.wr_id = bind->wr_id, .status = fake.bind_status});
    return 0;
}

static lh_time fake_now(struct fabric *base)
{
    (void)base;
    return fake.now += fake.now_step;
}

static const struct fabric_ops fake_ops = {.name = "verbs", .now = fake_now};

/* ---- an endpoint ------------------------------------------------------------------------------------- */

/* Two channels, two generations, 4 slots; stripes of 2 packets. */
static inline struct fabric_endpoint_attr fake_attr(void)
{
    return (struct fabric_endpoint_attr){.channels = 2,
                                         .generations = 2,
                                         .mtu_bytes = FAKE_MTU,
                                         .slots = 4,
                                         .slot_bytes = 1 << 20,
                                         .stripe_packets = 2,
                                         .split = {10, 18, 4},
                                         .stats = &stats};
}

/* The device is open, and has shared receive queues. */
static inline void fake_begin(enum verbs_protection protection)
{
    static const uint8_t gid[16] = {[10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = 7};
    memset(&fake, 0, sizeof fake);
    memset(&stats, 0, sizeof stats);
    fake_context = (struct ibv_context){.device = &fake_device};
    fake_context.ops = (struct ibv_context_ops){.poll_cq = fake_poll,
                                                .req_notify_cq = fake_notify,
                                                .post_send = fake_post_send,
                                                .post_recv = fake_post_recv,
                                                .post_srq_recv = fake_post_srq,
                                                .alloc_mw = fake_alloc_mw,
                                                .bind_mw = fake_bind_mw,
                                                .dealloc_mw = fake_dealloc_mw};
    memset(&fabric, 0, sizeof fabric);
    fabric.base.ops = &fake_ops;
    fabric.context = &fake_context;
    fabric.pd = &fake_pd;
    fabric.device = (struct ibv_device_attr){
        .max_qp_wr = 1 << 15, .max_srq = 64, .max_srq_wr = 1 << 15, .max_cqe = 1 << 15};
    fabric.name.protection = protection;
    fabric.name.gid_index = -1;
    fabric.port = 1;
    fabric.path_mtu = IBV_MTU_1024;
    fabric.mtu_bytes = FAKE_MTU;
    memcpy(fabric.gid.raw, gid, sizeof gid);
    pthread_mutex_init(&fabric.lock, NULL);
    verbs_memory_open(&fabric.memory, fabric.pd, true);
}

static inline struct verbs_endpoint *fake_open(const struct fabric_endpoint_attr *attr)
{
    struct fabric_endpoint *endpoint;
    if (verbs_endpoint_create(&fabric.base, attr, &endpoint) != 0)
        fail_msg("%s", lh_last_error());
    return verbs_endpoint_of(endpoint);
}

/* To itself, as it were: another device with the same numbers. */
static inline void fake_connect(struct verbs_endpoint *endpoint)
{
    struct qp_info_endpoint info;
    verbs_endpoint_info(&endpoint->base, &info);
    assert_int_equal(verbs_endpoint_connect(&endpoint->base, &info), 0);
}

/* Nothing is left of the device. */
static inline void fake_end(struct verbs_endpoint *endpoint)
{
    if (endpoint)
        verbs_endpoint_destroy(&endpoint->base);
    verbs_memory_close(&fabric.memory);
    pthread_mutex_destroy(&fabric.lock);
    assert_int_equal(fake.objects, 0);
}

#endif
