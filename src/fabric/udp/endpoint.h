/*
 * endpoint.h - creation and end of an endpoint, its slots.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_ENDPOINT_H
#define LH_FABRIC_UDP_ENDPOINT_H

#include "fabric/udp/udp.h"

int udp_endpoint_create(struct fabric *fabric, const struct fabric_endpoint_attr *attr,
                        struct fabric_endpoint **endpoint);
void udp_endpoint_destroy(struct fabric_endpoint *endpoint);
void udp_endpoint_info(struct fabric_endpoint *endpoint, struct qp_info_endpoint *info);
int udp_slot_bind(struct fabric_endpoint *endpoint, uint32_t slot, const struct fabric_slot *what,
                  struct fabric_slot_key *key);
void udp_slot_unbind(struct fabric_endpoint *endpoint, uint32_t slot);
void udp_slots_rest(struct fabric_endpoint *endpoint);
bool udp_takes_pieces(struct fabric_endpoint *endpoint);

#endif
