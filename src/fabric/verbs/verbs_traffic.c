/*
 * control.c - control messages: UC SEND on a queue pair of its own, from and into buffers of its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/endpoint/control.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fabric/verbs/endpoint/completion.h"
#include "fabric/verbs/endpoint/failure.h"
#include "fabric/verbs/endpoint/queue_pair.h"
#include "wire/roce.h"

/* A device that has not sent in that time will not. */
#define LET_OUT_NS_MAX (10 * LH_NS_PER_MS)

/* What any one packet brings fits: a longer one than its receive would stop the queue pair. */
#define RECEIVE_BYTES ROCE_MTU_MAX

#define SEND_BUFFERS_BYTES ((size_t)VERBS_CONTROL_SENDS * CONTROL_MESSAGE_MAX)
#define BUFFERS_BYTES      (SEND_BUFFERS_BYTES + (size_t)VERBS_CONTROL_RECEIVES * RECEIVE_BYTES)

static uint8_t *send_buffer(const struct verbs_control *control, uint64_t number)
{
    return control->buffers + (number & (VERBS_CONTROL_SENDS - 1)) * CONTROL_MESSAGE_MAX;
}

static uint8_t *receive_buffer(const struct verbs_control *control, uint64_t number)
{
    return control->buffers + SEND_BUFFERS_BYTES + number * RECEIVE_BYTES;
}

static int post_receive(struct verbs_endpoint *endpoint, uint64_t number)
{
    struct verbs_control *control = &endpoint->control;
    struct ibv_sge piece = {(uint64_t)(uintptr_t)receive_buffer(control, number), RECEIVE_BYTES,
                            control->mr->lkey};
    struct ibv_recv_wr receive = {.wr_id = number, .sg_list = &piece, .num_sge = 1};
    struct ibv_recv_wr *bad;
    int error = ibv_post_recv(control->qp, &receive, &bad);
    if (error == 0)
        return 0;
    verbs_endpoint_fail(endpoint, "control receives cannot be posted: %s", strerror(error));
    return verbs_endpoint_check(endpoint);
}

static int make_buffers(struct verbs_endpoint *endpoint)
{
    struct verbs_control *control = &endpoint->control;
    size_t bytes = BUFFERS_BYTES;
    control->ring.writes_max = VERBS_CONTROL_SENDS;
    control->ring.batches = calloc(VERBS_CONTROL_SENDS, sizeof(struct tx_batch));
    control->buffers = aligned_alloc(4096, bytes);
    if (control->buffers == NULL || control->ring.batches == NULL)
        return lh_fail(LH_ENOMEM, "no memory for %zu bytes of control messages", bytes);
    control->mr =
        ibv_reg_mr(verbs_fabric_of(endpoint)->pd, control->buffers, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (control->mr == NULL)
        return lh_fail(LH_ENOMEM,
                       "the device cannot hold %zu bytes of control messages in memory (%s): raise the "
                       "limit of locked memory (ulimit -l unlimited)",
                       bytes, strerror(errno));
    return 0;
}

int verbs_control_open(struct verbs_endpoint *endpoint)
{
    struct verbs_control *control = &endpoint->control;
    int error = make_buffers(endpoint);
    if (error == 0)
        error = verbs_cqs_open(endpoint, &control->cqs, 0, VERBS_CONTROL_RECEIVES, VERBS_CONTROL_SENDS);
    if (error != 0)
        return error;
    struct ibv_qp_init_attr attr = {
        .send_cq = control->cqs.send.cq,
        .recv_cq = control->cqs.recv.cq,
        .cap =
            {
                .max_send_wr = VERBS_CONTROL_SENDS,
                .max_recv_wr = VERBS_CONTROL_RECEIVES,
                .max_send_sge = 1,
                .max_recv_sge = 1,
            },
    };
    error = verbs_qp_create(endpoint, &attr, &control->qp);
    for (uint32_t i = 0; i < VERBS_CONTROL_RECEIVES && error == 0; i++)
        error = post_receive(endpoint, i);
    return error;
}

static void reap(struct verbs_endpoint *endpoint)
{
    struct verbs_control *control = &endpoint->control;
    struct ibv_wc completions[FABRIC_BATCH_MAX];
    int count = ibv_poll_cq(control->cqs.send.cq, FABRIC_BATCH_MAX, completions);
    for (int i = 0; i < count; i++) {
        if (completions[i].status != IBV_WC_SUCCESS)
            verbs_endpoint_fail(endpoint, "control queue pair failed: a send ended in \"%s\"",
                                ibv_wc_status_str(completions[i].status));
        tx_ring_complete(&control->ring, completions[i].wr_id);
    }
}

/* The last message, a CLOSE, is still with the device: destroying its queue pair would discard it. */
void verbs_control_flush(struct verbs_endpoint *endpoint)
{
    const struct verbs_control *control = &endpoint->control;
    struct fabric *fabric = endpoint->base.fabric;
    lh_time end = fabric->ops->now(fabric) + LET_OUT_NS_MAX;
    while (control->ring.oldest < control->ring.next && fabric->ops->now(fabric) < end &&
           atomic_load(&endpoint->broken) == 0)
        reap(endpoint);
}

void verbs_control_close(struct verbs_endpoint *endpoint)
{
    struct verbs_control *control = &endpoint->control;
    if (control->qp != NULL)
        ibv_destroy_qp(control->qp);
    verbs_cqs_close(&control->cqs);
    if (control->mr != NULL)
        ibv_dereg_mr(control->mr);
    free(control->buffers);
    free(control->ring.batches);
}

/* 1: sent; 0: no room; or a negative error. */
static int send_one(struct verbs_endpoint *endpoint, const struct fabric_datagram *datagram)
{
    struct verbs_control *control = &endpoint->control;
    assert(datagram->bytes <= CONTROL_MESSAGE_MAX);
    uint8_t *buffer = send_buffer(control, control->ring.taken);
    memcpy(buffer, datagram->data, datagram->bytes);
    struct ibv_sge piece = {(uint64_t)(uintptr_t)buffer, datagram->bytes, control->mr->lkey};
    struct ibv_send_wr send = {
        .wr_id = control->ring.next,
        .sg_list = &piece,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
    };
    struct ibv_send_wr *bad;
    int error = ibv_post_send(control->qp, &send, &bad);
    if (error == ENOMEM)
        return 0;
    if (error != 0) {
        verbs_endpoint_fail(endpoint, "control queue pair refuses to send: %s", strerror(error));
        return verbs_endpoint_check(endpoint);
    }
    tx_ring_push(&control->ring, 1);
    return 1;
}

int verbs_control_send(struct fabric_endpoint *base, const struct fabric_datagram *datagrams,
                       uint32_t count)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    assert(endpoint->connected);
    int error = verbs_endpoint_check(endpoint);
    if (error != 0)
        return error;
    reap(endpoint);
    for (uint32_t i = 0; i < count; i++) {
        if (datagrams[i].corrupt_bit != 0) { /* the receiver would drop it; see tx.c */
            fabric_count(endpoint->attr.stats, link_dropped, 1);
            continue;
        }
        int sent = tx_ring_room(&endpoint->control.ring) > 0 ? send_one(endpoint, &datagrams[i]) : 0;
        if (sent == 1)
            continue;
        if (sent == 0)
            fabric_count(endpoint->attr.stats, tx_backpressure, 1);
        return sent == 0 || i > 0 ? (int)i : sent;
    }
    return (int)count;
}

/* Whether the completion is a message; its bytes are copied out. */
static bool take(struct verbs_endpoint *endpoint, const struct ibv_wc *completion,
                 struct fabric_control_arrival *arrival)
{
    if (completion->status != IBV_WC_SUCCESS) {
        verbs_endpoint_fail(endpoint, "control queue pair failed: a receive ended in \"%s\"",
                            ibv_wc_status_str(completion->status));
        return false;
    }
    if (completion->opcode != IBV_WC_RECV || completion->byte_len > CONTROL_MESSAGE_MAX) {
        fabric_count(endpoint->attr.stats, bad_header, 1);
        return false;
    }
    arrival->bytes = completion->byte_len;
    memcpy(arrival->data, receive_buffer(&endpoint->control, completion->wr_id), completion->byte_len);
    return true;
}

int verbs_control_poll(struct fabric_endpoint *base, struct fabric_control_arrival *arrivals,
                       uint32_t count)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    struct verbs_control *control = &endpoint->control;
    if (control->polls++ % VERBS_ASYNC_PERIOD == 0)
        verbs_read_events(verbs_fabric_of(endpoint));
    int error = verbs_endpoint_check(endpoint);
    if (error != 0)
        return error;
    struct ibv_wc completions[FABRIC_BATCH_MAX];
    uint32_t room = count < FABRIC_BATCH_MAX ? count : FABRIC_BATCH_MAX;
    uint32_t found = 0;
    uint32_t got = 0;
    uint32_t looked = 0;
    do { /* again while all are bad: 0 messages means that none waits, and the next one gives an event */
        got = verbs_cqs_poll(&control->cqs, &control->cqs.recv, completions, room);
        looked += got;
        for (uint32_t i = 0; i < got; i++) {
            found += take(endpoint, &completions[i], &arrivals[found]);
            if (completions[i].status == IBV_WC_SUCCESS)
                post_receive(endpoint, completions[i].wr_id);
        }
    } while (got > 0 && found == 0 && looked <= VERBS_CONTROL_RECEIVES &&
             atomic_load(&endpoint->broken) == 0);
    if (got > 0 && found == 0 && endpoint->attr.wake != NULL) /* they come faster than they are read */
        endpoint->attr.wake(endpoint->attr.wake_context, FABRIC_CONTROL);
    return (int)found;
}
