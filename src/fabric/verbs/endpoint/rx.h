/*
 * rx.h - receives data packets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_RX_H
#define LH_FABRIC_VERBS_RX_H

#include "fabric/verbs/endpoint/endpoint.h"

/* Posts `count` receives to the channel's shared queue, or to the queue pair of that generation. */
int verbs_post_receives(struct verbs_channel *channel, uint32_t generation, uint32_t count);
int verbs_poll(struct fabric_endpoint *endpoint, uint32_t channel, struct fabric_arrival *arrivals,
               uint32_t count);
/* Drops what waits to be read: to users it is lost, like any packet. No poll runs meanwhile. */
void verbs_drain(struct verbs_channel *channel);

#endif
