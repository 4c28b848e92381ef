/*
 * Devices that are lost, queue pairs that fail: recorded where it is seen, reported by the next call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/endpoint/failure.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "fabric/verbs/endpoint/queue_pair.h"

/* Events read in one go, so that a flood of them cannot hold a poll. */
#define EVENTS_MAX 16u

void verbs_fabric_fail(struct verbs_fabric *fabric, const char *format, ...)
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
