/*
 * Completion queues, and the events that end a sleep.
 *
 * A queue that was found empty is armed: its next completion puts an event into the completion channel, whose
 * descriptor then is readable until the event is taken. Arming too late would lose a wake-up, so the queue is
 * polled once more after it. An event is taken (one system call) only while the queue is armed, so a
 * queue under load costs none.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/endpoint/completion.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/error.h"
#include "fabric/verbs/endpoint/failure.h"

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
