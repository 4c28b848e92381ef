/*
 * control.h - sends and receives control messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_CONTROL_H
#define LH_FABRIC_VERBS_CONTROL_H

#include "fabric/verbs/endpoint/endpoint.h"

int verbs_control_open(struct verbs_endpoint *endpoint);
/* Waits, not for long, until the last messages have left. */
void verbs_control_flush(struct verbs_endpoint *endpoint);
void verbs_control_close(struct verbs_endpoint *endpoint);
int verbs_control_send(struct fabric_endpoint *endpoint, const struct fabric_datagram *datagrams,
                       uint32_t count);
int verbs_control_poll(struct fabric_endpoint *endpoint, struct fabric_control_arrival *arrivals,
                       uint32_t count);

#endif
