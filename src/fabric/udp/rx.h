/*
 * rx.h - receives data packets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_RX_H
#define LH_FABRIC_UDP_RX_H

#include "fabric/udp/udp.h"

int udp_poll(struct fabric_endpoint *endpoint, uint32_t channel, struct fabric_arrival *arrivals,
             uint32_t count);
void udp_count_drops(struct fabric_endpoint *endpoint);
/* Takes back arrivals of a slot that were not returned yet. */
void udp_rx_forget(struct udp_channel *channel, uint32_t slot);

#endif
