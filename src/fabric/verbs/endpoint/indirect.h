/*
 * indirect.h - indirect keys of mlx5 (indirect_mlx5.c; indirect_absent.c in a build without); unproven on
 * hardware.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_INDIRECT_H
#define LH_FABRIC_VERBS_INDIRECT_H

#include "fabric/verbs/endpoint/endpoint.h"

struct verbs_indirect;
/* Whether they may be asked of that device. */
bool verbs_indirect_possible(struct ibv_device *device);
/* Makes endpoint->indirect. -LH_EDEVICE when the device, or this build, has none. */
int verbs_indirect_open(struct verbs_endpoint *endpoint);
void verbs_indirect_close(struct verbs_indirect *indirect);
/* Binds the slot's key of that generation to what lies in the registration; keys are zero-based. */
int verbs_indirect_bind(struct verbs_indirect *indirect, uint32_t slot, const struct fabric_slot *what,
                        const struct ibv_mr *mr, struct fabric_slot_key *key);
/* What comes with that key from now on lands nowhere. */
int verbs_indirect_unbind(struct verbs_indirect *indirect, uint32_t slot);

#endif
