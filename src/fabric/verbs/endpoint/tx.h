/*
 * tx.h - sends data packets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_TX_H
#define LH_FABRIC_VERBS_TX_H

#include "fabric/verbs/endpoint/endpoint.h"

int verbs_post_writes(struct fabric_endpoint *endpoint, uint32_t channel, const struct fabric_write *writes,
                      uint32_t count);
uint64_t verbs_released(struct fabric_endpoint *endpoint, uint32_t channel);

#endif
