/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/run/channel_order.h"

void channel_order_init(struct channel_order *order, uint32_t channels)
{
    order->unserved = channels;
    order->waiting = 0;
}

void channel_order_set(struct channel_order *order, uint32_t channel, bool waiting, uint64_t front)
{
    uint32_t bit = (uint32_t)1 << channel;
    order->waiting = waiting ? order->waiting | bit : order->waiting & ~bit;
    order->fronts[channel] = front;
}

/* Of a set that is not empty. Places wrap. */
static uint32_t earliest(const struct channel_order *order, uint32_t channels)
{
    uint32_t first = (uint32_t)__builtin_ctz(channels);
    for (channels &= channels - 1; channels != 0; channels &= channels - 1) {
        uint32_t c = (uint32_t)__builtin_ctz(channels);
        if ((int64_t)(order->fronts[c] - order->fronts[first]) < 0)
            first = c;
    }
    return first;
}

bool channel_order_next(struct channel_order *order, uint32_t *channel)
{
    if (order->unserved == 0)
        return false;
    uint32_t waiting = order->unserved & order->waiting;
    *channel = waiting != 0 ? earliest(order, waiting) : (uint32_t)__builtin_ctz(order->unserved);
    order->unserved &= ~((uint32_t)1 << *channel);
    return true;
}

bool channel_order_bound(const struct channel_order *order, uint32_t channel, uint64_t *bound)
{
    uint32_t others = order->waiting & ~((uint32_t)1 << channel);
    if (others == 0)
        return false;
    *bound = order->fronts[earliest(order, others)];
    return true;
}
