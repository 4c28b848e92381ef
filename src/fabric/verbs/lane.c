/*
 * lane.c - completion queues, and the bell that ends a sleep.
 *
 * A queue that was found empty is armed: its next completion puts an event into the completion channel, whose
 * descriptor then is readable until the event is taken. Arming too late would lose a wake-up, so the queue is
 * looked at once more behind it. An event is taken (one system call) only while the queue is armed, so a
 * queue under load costs none.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/error.h"

/* Acknowledging takes a lock, so it is done for many events at once. */
#define ACK_BATCH 64u

static int open_queue(struct verbs_lane *lane, uint32_t index, uint32_t cqe, struct verbs_cq *queue)
{
    const struct verbs_fabric *fabric = verbs_fabric_of(lane->endpoint);
    int vectors = fabric->context->num_comp_vectors;
    int vector = vectors > 0 ? (int)(index % (uint32_t)vectors) : 0;
    queue->cq = ibv_create_cq(fabric->context, (int)cqe, lane->endpoint, lane->bell, vector);
    if (queue->cq == NULL)
        return lh_fail(LH_EDEVICE, "device %s cannot make a completion queue of %u entries: %s",
                       ibv_get_device_name(fabric->context->device), cqe, strerror(errno));
    return 0;
}

int verbs_lane_open(struct verbs_endpoint *endpoint, struct verbs_lane *lane, uint32_t index,
                    uint32_t recv_cqe, uint32_t send_cqe)
{
    const struct verbs_fabric *fabric = verbs_fabric_of(endpoint);
    lane->endpoint = endpoint;
    lane->bell = ibv_create_comp_channel(fabric->context);
    if (lane->bell == NULL)
        return lh_fail(LH_EDEVICE, "device %s cannot make a completion channel: %s",
                       ibv_get_device_name(fabric->context->device), strerror(errno));
    int flags = fcntl(lane->bell->fd, F_GETFL);
    if (flags < 0 || fcntl(lane->bell->fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return lh_fail(LH_ESYSTEM, "a completion channel cannot be made non-blocking: %s", strerror(errno));
    int error = open_queue(lane, index, recv_cqe, &lane->recv);
    return error != 0 ? error : open_queue(lane, index, send_cqe, &lane->send);
}

static void close_queue(struct verbs_cq *queue)
{
    if (queue->cq == NULL)
        return;
    if (queue->unacked > 0)
        ibv_ack_cq_events(queue->cq, queue->unacked); /* else destroying waits for ever */
    ibv_destroy_cq(queue->cq);
    queue->cq = NULL;
}

void verbs_lane_close(struct verbs_lane *lane)
{
    close_queue(&lane->recv);
    close_queue(&lane->send);
    if (lane->bell != NULL)
        ibv_destroy_comp_channel(lane->bell);
    lane->bell = NULL;
}

/* At most two events are there: each queue is armed once. */
static void take_events(struct verbs_lane *lane)
{
    struct ibv_cq *cq;
    void *context;
    for (int i = 0; i < 2 && ibv_get_cq_event(lane->bell, &cq, &context) == 0; i++) {
        struct verbs_cq *queue = cq == lane->recv.cq ? &lane->recv : &lane->send;
        queue->armed = false;
        if (++queue->unacked == ACK_BATCH) {
            ibv_ack_cq_events(queue->cq, queue->unacked);
            queue->unacked = 0;
        }
    }
}

uint32_t verbs_lane_poll(struct verbs_lane *lane, struct verbs_cq *queue, struct ibv_wc *completions,
                         uint32_t count)
{
    int got = ibv_poll_cq(queue->cq, (int)count, completions);
    if (queue->armed)
        take_events(lane);
    if (got == 0 && !queue->armed && ibv_req_notify_cq(queue->cq, 0) == 0) {
        queue->armed = true;
        got = ibv_poll_cq(queue->cq, (int)count, completions);
    }
    if (got < 0) {
        verbs_endpoint_lost(lane->endpoint, "a completion queue of device %s cannot be read",
                            ibv_get_device_name(queue->cq->context->device));
        return 0;
    }
    return (uint32_t)got;
}
