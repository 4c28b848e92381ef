/*
 * send.h - the sending half of a simulated endpoint: packets are encoded, tapped, and given to the link.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FABRIC_SEND_H
#define LH_NETSIM_FABRIC_SEND_H

#include "fabric/fabric.h"

int sim_post_writes(struct fabric_endpoint *endpoint, uint32_t channel, const struct fabric_write *writes,
                    uint32_t count);
int sim_control_send(struct fabric_endpoint *endpoint, const struct fabric_datagram *datagrams,
                     uint32_t count);
lh_time sim_pump(struct fabric_endpoint *endpoint, uint32_t channel, lh_time now);

#endif
