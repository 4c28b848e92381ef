/*
 * receive.h - the receiving half of a simulated endpoint: what waits in a queue is judged when it is
 * polled.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FABRIC_RECEIVE_H
#define LH_NETSIM_FABRIC_RECEIVE_H

#include "fabric/fabric.h"

int sim_poll(struct fabric_endpoint *endpoint, uint32_t channel, struct fabric_arrival *arrivals,
             uint32_t count);
/* See fabric_ops. */
lh_time sim_arrived(struct fabric_endpoint *endpoint, uint32_t channel);
int sim_control_poll(struct fabric_endpoint *endpoint, struct fabric_control_arrival *arrivals,
                     uint32_t count);

#endif
