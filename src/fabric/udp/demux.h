/*
 * demux.h - the front socket: control messages, and data packets of RoCE hardware.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_DEMUX_H
#define LH_FABRIC_UDP_DEMUX_H

#include "fabric/udp/udp.h"

int udp_demux_open(struct udp_fabric *fabric);
void udp_demux_close(struct udp_fabric *fabric);
int udp_control_send(struct fabric_endpoint *endpoint, const struct fabric_datagram *datagrams,
                     uint32_t count);
int udp_control_poll(struct fabric_endpoint *endpoint, struct fabric_control_arrival *arrivals,
                     uint32_t count);
void udp_control_proven(struct fabric_endpoint *endpoint, const struct fabric_control_arrival *arrival);
/* Reads the front socket if no other thread does, on behalf of a channel with a hardware peer. */
void udp_demux_try(struct udp_endpoint *endpoint);

#endif
