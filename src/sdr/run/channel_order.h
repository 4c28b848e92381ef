/*
 * channel_order.h - in which order a worker serves the channels of a QP. Pure.
 *
 * Where a pace lets little out, packets leave in the order of their posts, over all channels: the receiver
 * takes what is overtaken for lost. So the channel whose next packet was posted first is served first, and
 * sends only what was posted before the next packet of every other channel. A channel that its fabric blocks
 * holds up nobody.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_CHANNEL_ORDER_H
#define LH_SDR_CHANNEL_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/qp_info.h"

struct channel_order {
    uint32_t unserved;                     /* bit c: channel c is to be served in this round */
    uint32_t waiting;                      /* bit c: its next packet is known, and others heed it */
    uint64_t fronts[QP_INFO_CHANNELS_MAX]; /* places of these packets (send_channel_front()) */
};

/* The channels of a round. Nothing waits in any of them. */
void channel_order_init(struct channel_order *order, uint32_t channels);
/* The channel's next packet, or that it has none that others heed. */
void channel_order_set(struct channel_order *order, uint32_t channel, bool waiting, uint64_t front);
/* The channel to serve next, which counts as served from now on: of those that wait the earliest, then the
 * others. False: all were served. */
bool channel_order_next(struct channel_order *order, uint32_t *channel);
/* The earliest next packet of the other channels; false: none waits. */
bool channel_order_bound(const struct channel_order *order, uint32_t channel, uint64_t *bound);

#endif
