/*
 * tx_limit.h - limit of the writes that a device may hold unsent. Pure.
 *
 * What waits in a device has left as far as anybody above knows, and control messages pass it by: a deep
 * queue of a slow device makes repairs of what was never sent. A shallow one makes a fast device wait. So
 * the limit follows what the device sends in TX_LIMIT_NS: it doubles when the device had run dry behind it,
 * and falls to what was measured when it had not.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_TX_LIMIT_H
#define LH_FABRIC_VERBS_TX_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include <longhaul/types.h>

#define TX_LIMIT_NS LH_NS_PER_MS /* what may wait unseen; a worker comes round far more often */

struct tx_limit {
    uint32_t least; /* the limit never leaves these two */
    uint32_t most;
    uint32_t writes; /* in flight, at most */
    bool reached;    /* a write had to wait for it since the last check */
    lh_time since_ns;
    uint64_t released; /* at that time */
};

void tx_limit_init(struct tx_limit *limit, uint32_t least, uint32_t most);
/* So many of all writes ever taken are released now, and in_flight are not. */
void tx_limit_on_released(struct tx_limit *limit, uint64_t released, uint32_t in_flight, lh_time now);
/* Writes that may be added to those in flight, of `wanted`. */
uint32_t tx_limit_room(struct tx_limit *limit, uint32_t in_flight, uint32_t wanted);

#endif
