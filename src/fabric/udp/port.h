/*
 * port.h - the sockets of a channel index: the shared one, and direct ones that channels have for a while.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_PORT_H
#define LH_FABRIC_UDP_PORT_H

#include "fabric/udp/udp.h"

/* Opens the ports of that many channels, those that are not yet. Under the fabric's lock. */
int udp_ports_open(struct udp_fabric *fabric, uint32_t channels);
void udp_ports_close(struct udp_fabric *fabric);

/* Gives a connected channel a direct socket, if one is to be had; else asks whoever has been quiet longest to
 * leave his. Nothing depends on it but speed. By the owner of the channel (nothing waits to be returned),
 * under the lock. */
void udp_port_promote(struct udp_channel *channel);
/* From now on the channel's packets come to the shared socket; false: the kernel refuses. By the owner. */
bool udp_port_begin_leave(struct udp_channel *channel);
/* Gives the direct socket, which is empty, to whoever wants it. By the owner, under the lock. */
void udp_port_leave(struct udp_channel *channel);

#endif
