/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/arrival_model.h"

#include <assert.h>
#include <string.h>

#include <longhaul/types.h>

#include "model/predictor.h"

/* ---- arrival order --------------------------------------------------------------------------------- */

void model_arrival_order_init(struct model_arrival_order *order, struct model_place *places,
                              uint32_t packets)
{
    memset(places, 0, packets * sizeof *places);
    *order = (struct model_arrival_order){.places = places, .packets = packets};
}

/* All numbers that it passed are reordered now. Each is passed once, so a row costs no more than its
 * packets. */
static void move_on(struct model_arrival_order *order, uint32_t number, lh_time now)
{
    for (uint32_t passed = order->next; passed < number; passed++) {
        order->places[passed].reordered_ns = now;
        order->places[passed].reordered_arrival = order->received;
    }
    order->next = number + 1;
}

static void note_reordered(struct model_arrival_order *order, const struct model_place *place, lh_time now)
{
    uint32_t extent = order->received - place->reordered_arrival;
    lh_time late_ns = now > place->reordered_ns ? now - place->reordered_ns : 0;
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

/* ---- arrival watch --------------------------------------------------------------------------------- */

#define EIGHT 8u

void arrival_watch_init(struct arrival_watch *watch)
{
    *watch = (struct arrival_watch){.mark_at = LH_TIME_NEVER};
}

static bool has_arrived(const struct arrival_look *look, uint32_t chunk)
{
    return __atomic_load_n(&look->bitmap[chunk], __ATOMIC_RELAXED) != 0;
}

/* Eight bytes of the bitmap, from a place that is a multiple of eight. Workers write them meanwhile, hence
 * atomic. */
static bool none_of_eight(const uint8_t *bytes)
{
    typedef uint64_t __attribute__((may_alias)) word_of_bytes;
    return __atomic_load_n((const word_of_bytes *)(const void *)bytes, __ATOMIC_RELAXED) == 0;
}

static void count_to(struct arrival_watch *watch, const struct arrival_look *look, uint32_t end,
                     struct path_estimate *estimate)
{
    uint32_t lost = 0, runs = 0;
    assert(end <= look->chunks);
    if (end <= watch->counted)
        return;
    for (uint32_t i = watch->counted; i < end; i++) { /* each chunk once */
        bool is_lost = !has_arrived(look, i);
        lost += is_lost;
        runs += is_lost && !watch->lost_before;
        watch->lost_before = is_lost;
    }
    /* A run that began in an earlier call was counted there. */
    path_estimate_on_chunks(estimate, end - watch->counted, lost, runs);
    watch->counted = end;
}

/* One past the last chunk that has arrived. Looks at what lies behind the last one that was found, so at
 * each chunk some times: a look that finds nothing new costs an eighth of a step a chunk. */
static uint32_t find_frontier(const struct arrival_watch *watch, const struct arrival_look *look)
{
    uint32_t end = look->chunks;
    while (end > watch->frontier) {
        bool at_word = (uintptr_t)(look->bitmap + end) % EIGHT == 0;
        if (at_word && end - watch->frontier >= EIGHT && none_of_eight(look->bitmap + end - EIGHT))
            end -= EIGHT;
        else if (has_arrived(look, end - 1))
            break;
        else
            end--;
    }
    return end;
}

static void pass_over(struct arrival_watch *watch, uint32_t end)
{
    if (end <= watch->counted)
        return;
    watch->counted = end;
    watch->lost_before = false;
    if (watch->mark <= end)
        watch->mark_at = LH_TIME_NEVER;
}

static void move_frontier(struct arrival_watch *watch, const struct arrival_look *look)
{
    uint32_t frontier = find_frontier(watch, look);
    bool known = watch->frontier > 0;
    if (frontier == watch->frontier)
        return;
    if (look->paused && known)
        pass_over(watch, frontier - 1);
    watch->frontier = frontier;
}

/* Chunks before this one can be judged, when the window is over. */
static uint32_t judged(const struct arrival_watch *watch, const struct arrival_look *look)
{
    if (look->later_arrived)
        return look->chunks;
    return watch->frontier > 0 ? watch->frontier - 1 : 0;
}

static uint32_t at_most(uint32_t value, uint32_t maximum)
{
    return value < maximum ? value : maximum;
}

/* The transfer may turn out shorter than its buffer; and a peer may have sent what lies past its end. */
static void cut(struct arrival_watch *watch, uint32_t chunks)
{
    watch->frontier = at_most(watch->frontier, chunks);
    watch->counted = at_most(watch->counted, chunks);
    watch->mark = at_most(watch->mark, chunks);
}

void arrival_watch_look(struct arrival_watch *watch, const struct arrival_look *look,
                        struct path_estimate *estimate)
{
    cut(watch, look->chunks);
    if (watch->mark_at <= look->now) {
        count_to(watch, look, watch->mark, estimate);
        watch->mark_at = LH_TIME_NEVER;
    }
    move_frontier(watch, look);
    uint32_t end = judged(watch, look);
    if (watch->mark_at == LH_TIME_NEVER && end > watch->counted) {
        watch->mark = end;
        watch->mark_at = look->now + look->window_ns;
    }
}

void arrival_watch_end(struct arrival_watch *watch, const struct arrival_look *look,
                       struct path_estimate *estimate)
{
    cut(watch, look->chunks);
    move_frontier(watch, look);
    count_to(watch, look, judged(watch, look), estimate);
    watch->mark_at = LH_TIME_NEVER;
}
