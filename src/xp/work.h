/*
 * work.h - posted work: from the free list to a queue of a queue pair, and to its completion.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_XP_WORK_H
#define LH_XP_WORK_H

#include "xp/nic.h"

/* Timers of a queue pair. */
enum {
    XP_TIMER_RECEIVE,
    XP_TIMER_SEND,
    XP_TIMER_PACE,
};

static inline uint32_t xp_timer(uint32_t qpn, uint32_t which)
{
    return (qpn - 1) * XP_TIMERS + which;
}

static inline struct xp_transport *xp_transport_of(struct xp_nic *nic, uint32_t qpn)
{
    return &nic->memory.qps[qpn - 1].transport;
}

static inline struct xp_host_qp *xp_host_of(struct xp_nic *nic, uint32_t qpn)
{
    return &nic->memory.host[qpn - 1];
}

/* The first of a queue; NULL: it is empty. */
static inline struct xp_work *xp_first(struct xp_nic *nic, const struct xp_queue *queue)
{
    return queue->first == XP_NONE ? NULL : &nic->memory.works[queue->first];
}

/* -LH_EINVAL, with the number: no such queue pair is open. */
int xp_check_open(const struct xp_nic *nic, uint32_t qpn);

/* Puts it into the list of those that have something to send, if it is not there. */
void xp_ready(struct xp_nic *nic, uint32_t qpn);

/* The first of the queue is now the queue pair's: its deadline counts. */
void xp_begin_receive(struct xp_nic *nic, uint32_t qpn, lh_time now);
void xp_begin_send(struct xp_nic *nic, uint32_t qpn, lh_time now);
/* The first of the queue has ended, and the next one begins. bytes: placed. */
void xp_end_receive(struct xp_nic *nic, uint32_t qpn, enum lh_xp_status status, uint32_t bytes,
                    lh_time now);
void xp_end_send(struct xp_nic *nic, uint32_t qpn, enum lh_xp_status status, lh_time now);

/* A response, or XP_NONE. */
uint32_t xp_take_response(struct xp_nic *nic);
void xp_give_response(struct xp_nic *nic, uint32_t qpn);

#endif
