/*
 * tx.h - sends data packets and control datagrams.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_TX_H
#define LH_FABRIC_UDP_TX_H

#include "fabric/udp/udp.h"

int udp_post_writes(struct fabric_endpoint *endpoint, uint32_t channel, const struct fabric_write *writes,
                    uint32_t count);
int udp_control_send(struct fabric_endpoint *endpoint, const struct fabric_datagram *datagrams,
                     uint32_t count);
/* See fabric_ops.pace. Any channel may have all of the rate for a moment, since messages are striped. */
void udp_pace(struct fabric_endpoint *endpoint, uint64_t rate_bps);
/* Whether a send that failed so only lost its packet, as any network may. */
bool udp_send_error_is_loss(int error);

#endif
