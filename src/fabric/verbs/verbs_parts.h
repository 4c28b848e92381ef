/*
 * verbs_parts.h - the parts of the verbs fabric: sending, receiving, control, endpoints.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_VERBS_PARTS_H
#define LH_FABRIC_VERBS_VERBS_PARTS_H

#include "fabric/fabric.h"
#include "fabric/verbs/verbs_queue_pair.h"

/* Posts `count` receives to the channel's shared queue, or to the queue pair of that generation. */
int verbs_post_receives(struct verbs_channel *channel, uint32_t generation, uint32_t count);
int verbs_poll(struct fabric_endpoint *endpoint, uint32_t channel, struct fabric_arrival *arrivals,
               uint32_t count);
/* Drops what waits to be read: to users it is lost, like any packet. No poll runs meanwhile. */
void verbs_drain(struct verbs_channel *channel);

/* ---- tx -------------------------------------------------------------------------------------------- */

/* Sends data packets. */

int verbs_post_writes(struct fabric_endpoint *endpoint, uint32_t channel, const struct fabric_write *writes,
                      uint32_t count);
uint64_t verbs_released(struct fabric_endpoint *endpoint, uint32_t channel);

/* ---- control --------------------------------------------------------------------------------------- */

/* Sends and receives control messages. */

int verbs_control_open(struct verbs_endpoint *endpoint);
/* Waits, not for long, until the last messages have left. */
void verbs_control_flush(struct verbs_endpoint *endpoint);
void verbs_control_close(struct verbs_endpoint *endpoint);
int verbs_control_send(struct fabric_endpoint *endpoint, const struct fabric_datagram *datagrams,
                       uint32_t count);
int verbs_control_poll(struct fabric_endpoint *endpoint, struct fabric_control_arrival *arrivals,
                       uint32_t count);

/* ---- verbs endpoint -------------------------------------------------------------------------------- */

/* Creation and end of an endpoint. */

/* ---- protect --------------------------------------------------------------------------------------- */

/* Keeps late packets out of the buffers of receives that are over. */

int verbs_slot_bind(struct fabric_endpoint *endpoint, uint32_t slot, const struct fabric_slot *what,
                    struct fabric_slot_key *key);
void verbs_slot_unbind(struct fabric_endpoint *endpoint, uint32_t slot);

/* ---- verbs ops ------------------------------------------------------------------------------------- */

/* The verbs fabric as the registry of fabrics knows it. */

/* In every build; without libibverbs its open fails with the reason (verbs_absent.c). */
extern const struct fabric_ops fabric_verbs_ops;

#endif
