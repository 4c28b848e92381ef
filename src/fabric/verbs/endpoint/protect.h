/*
 * protect.h - keeps late packets out of the buffers of receives that are over.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_PROTECT_H
#define LH_FABRIC_VERBS_PROTECT_H

#include "fabric/verbs/endpoint/endpoint.h"

/* Chooses what the device has, or what the name asks for: then -LH_EDEVICE when it has not. */
int verbs_protect_open(struct verbs_endpoint *endpoint);
void verbs_protect_close(struct verbs_endpoint *endpoint);
int verbs_slot_bind(struct fabric_endpoint *endpoint, uint32_t slot, const struct fabric_slot *what,
                    struct fabric_slot_key *key);
void verbs_slot_unbind(struct fabric_endpoint *endpoint, uint32_t slot);

#endif
