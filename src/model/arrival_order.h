/*
 * arrival_order.h - which packets of a numbered row arrived, how often, and in which order.
 *
 * Words of RFC 4737: a packet is *reordered* when one with a higher number arrived before it. Its *extent*
 * is how many arrivals lie between it and the first that overtook it (at least 1), its *late time* the time
 * between those two. Copies of a packet that arrived before are duplicates, and nothing else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_ARRIVAL_ORDER_H
#define LH_MODEL_ARRIVAL_ORDER_H

#include <longhaul/types.h>

/* What is known of one number. */
struct model_place {
    lh_time overtaken_ns;       /* when a higher number arrived first, if it did */
    uint32_t overtaken_arrival; /* the how-manieth arrival that was */
    bool arrived;
};

struct model_arrival_order {
    struct model_place *places; /* the caller's */
    uint32_t packets;           /* numbers 0 … packets - 1 */
    uint32_t next;              /* one above the highest that arrived */
    uint32_t received;          /* without duplicates */
    uint32_t duplicates;
    uint32_t reordered;
    uint32_t extent_max;
    uint64_t extent_sum;
    lh_time late_max_ns;
};

/* With memory for `packets` places, which it clears. */
void model_arrival_order_init(struct model_arrival_order *order, struct model_place *places,
                              uint32_t packets);
/* number < packets. */
void model_arrival_order_add(struct model_arrival_order *order, uint32_t number, lh_time now);
bool model_arrival_order_has(const struct model_arrival_order *order, uint32_t number);

#endif
