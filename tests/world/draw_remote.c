/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/draw_remote.h"

#include <longhaul/onesided.h>

#define REGIONS_MAX    3u /* of a pair */
#define OPERATIONS_MAX 6u /* of a region */
#define REGION_MIN     16u
#define REGION_MAX     16384u
#define REGION_LARGE   131072u
/* A region, its operations, a cancel of each, and a revocation. */
#define EVENTS_MAX (2 + 2 * OPERATIONS_MAX)

static struct plan_event *draw_of(struct plan *plan, enum plan_event_kind kind, uint32_t pair, uint8_t side,
                                  lh_time since_ns, struct lh_prng *prng)
{
    struct plan_event *event = draw_event(plan, kind, prng);
    event->pair = (uint8_t)pair;
    event->side = side;
    event->at_ns = since_ns + lh_prng_below(prng, plan->heal_ns - since_ns);
    return event;
}

/* Of any length within the region; around half of those that fit a small message are small. */
static void draw_place(struct plan_event *event, uint64_t region_bytes, struct lh_prng *prng)
{
    bool whole = draw_chance(prng, 0.15);
    bool some = draw_chance(prng, 0.95);
    uint64_t bytes = some ? draw_spread(prng, 1, region_bytes) : 0;
    event->bytes = whole ? region_bytes : bytes;
    event->room = lh_prng_below(prng, region_bytes - event->bytes + 1);
}

static void draw_operation(struct plan *plan, uint32_t target, bool cancels, struct lh_prng *prng)
{
    const struct plan_event region = plan->events[target];
    uint16_t number = (uint16_t)plan->event_count;
    bool writes = draw_chance(prng, 0.6);
    struct plan_event *event = draw_of(plan, writes ? EVENT_write : EVENT_read, region.pair,
                                       (uint8_t)(1 - region.side), region.at_ns, prng);
    event->target = (uint16_t)target;
    draw_place(event, region.bytes, prng);
    lh_time at_ns = event->at_ns;
    bool canceled = draw_chance(prng, 0.3);
    if (!cancels || !canceled)
        return;
    struct plan_event *cancel = draw_of(plan, EVENT_cancel, region.pair, 0, at_ns, prng);
    cancel->target = number;
}

static void draw_region(struct plan *plan, uint32_t pair, struct lh_prng *prng)
{
    static const uint64_t accesses[] = {LH_ACCESS_WRITE | LH_ACCESS_READ, LH_ACCESS_WRITE | LH_ACCESS_READ,
                                        LH_ACCESS_WRITE, LH_ACCESS_READ};
    uint16_t number = (uint16_t)plan->event_count;
    bool early = draw_chance(prng, 0.6);
    bool large = draw_chance(prng, 0.05);
    bool cancels = draw_chance(prng, 0.25);
    bool revoked = draw_chance(prng, 0.35);
    uint8_t side = (uint8_t)lh_prng_below(prng, 2);
    struct plan_event *event = draw_of(plan, EVENT_expose, pair, side, 0, prng);
    if (early)
        event->at_ns = 0;
    event->bytes = draw_spread(prng, REGION_MIN, large ? REGION_LARGE : REGION_MAX);
    event->room = accesses[lh_prng_below(prng, sizeof accesses / sizeof accesses[0])];
    lh_time at_ns = event->at_ns;
    uint64_t operations = draw_between(prng, 1, OPERATIONS_MAX);
    for (uint64_t i = 0; i < operations; i++)
        draw_operation(plan, number, cancels, prng);
    if (!revoked)
        return;
    event = draw_of(plan, EVENT_revoke, pair, side, at_ns, prng);
    event->target = number;
}

static void draw_notices(struct plan_queue *queue, const struct plan_queue *like, struct lh_prng *prng)
{
    *queue = *like;
    queue->capacity = (uint32_t)draw_between(prng, 1, 8);
}

void draw_remote(struct plan *plan, struct lh_prng *prng)
{
    plan->features |= 1u << FEATURE_onesided;
    for (uint32_t i = 0; i < PLAN_HOSTS_MAX; i++)
        draw_notices(&plan->engines[i].notices, &plan->engines[i].queue[0], prng);
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        bool some = draw_chance(prng, 0.8);
        uint64_t regions = draw_between(prng, 1, REGIONS_MAX);
        for (; some && regions > 0 && plan->event_count + EVENTS_MAX <= PLAN_EVENTS_MAX; regions--)
            draw_region(plan, i, prng);
    }
}
