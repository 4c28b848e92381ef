/*
 * channel.h - creation and end of a channel: its queue pairs, posted receives, memory for borrowed payload.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_CHANNEL_H
#define LH_FABRIC_VERBS_CHANNEL_H

#include "fabric/verbs/endpoint/endpoint.h"

int verbs_channel_create(struct verbs_endpoint *endpoint, uint32_t index, struct verbs_channel **channel);
void verbs_channel_destroy(struct verbs_channel *channel);

#endif
