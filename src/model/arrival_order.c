/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/arrival_order.h"

#include <assert.h>
#include <string.h>

void model_arrival_order_init(struct model_arrival_order *order, struct model_place *places,
                              uint32_t packets)
{
    memset(places, 0, packets * sizeof *places);
    *order = (struct model_arrival_order){.places = places, .packets = packets};
}

/* All numbers that it passed are overtaken now. Each is passed once, so a row costs no more than its
 * packets. */
static void move_on(struct model_arrival_order *order, uint32_t number, lh_time now)
{
    for (uint32_t passed = order->next; passed < number; passed++) {
        order->places[passed].overtaken_ns = now;
        order->places[passed].overtaken_arrival = order->received;
    }
    order->next = number + 1;
}

static void note_reordered(struct model_arrival_order *order, const struct model_place *place, lh_time now)
{
    uint32_t extent = order->received - place->overtaken_arrival;
    lh_time late_ns = now > place->overtaken_ns ? now - place->overtaken_ns : 0;
    assert(extent > 0);
    order->reordered++;
    order->extent_sum += extent;
    if (extent > order->extent_max)
        order->extent_max = extent;
    if (late_ns > order->late_max_ns)
        order->late_max_ns = late_ns;
}

void model_arrival_order_add(struct model_arrival_order *order, uint32_t number, lh_time now)
{
    assert(number < order->packets);
    struct model_place *place = &order->places[number];
    if (place->arrived) {
        order->duplicates++;
        return;
    }
    if (number >= order->next)
        move_on(order, number, now);
    else
        note_reordered(order, place, now);
    place->arrived = true;
    order->received++;
}

bool model_arrival_order_has(const struct model_arrival_order *order, uint32_t number)
{
    return number < order->packets && order->places[number].arrived;
}
