/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/draw_engines.h"

#define MESH_HOSTS_MAX 5u
#define SMALL_MAX      256u
#define SMALL_USUAL    64u

static void draw_queue(struct plan_queue *queue, lh_time delay_ns, struct lh_prng *prng)
{
    queue->capacity = (uint32_t)draw_spread(prng, 1, 64);
    queue->batch = (uint32_t)draw_spread(prng, 1, 16);
    bool late = draw_chance(prng, 0.6);
    lh_time late_ns = draw_spread(prng, 1000, 16 * delay_ns);
    queue->late_ns = late ? late_ns : 0;
}

static void draw_engine(struct plan_engine *engine, struct lh_prng *prng)
{
    engine->workers = (uint8_t)draw_between(prng, 1, PLAN_WORKERS);
    engine->queues = (uint8_t)draw_between(prng, 1, PLAN_QUEUES_MAX);
    engine->receive_buffer_bytes = draw_spread(prng, 8192, 8u << 20);
    lh_time delay_ns = draw_spread(prng, 10 * LH_NS_PER_US, LH_NS_PER_MS);
    for (uint32_t i = 0; i < PLAN_QUEUES_MAX; i++)
        draw_queue(&engine->queue[i], delay_ns, prng);
}

/* One host with up to eight peers, some of which may be on one host; or any with any. */
void draw_engines(struct plan *plan, struct lh_prng *prng)
{
    bool hub = draw_chance(prng, 0.7);
    uint32_t pairs = (uint32_t)draw_between(prng, 2, PLAN_PAIRS_MAX);
    uint32_t apart = (uint32_t)draw_between(prng, 0, 2); /* of three lives with a hub one has few hosts */
    uint32_t hosts = (uint32_t)draw_between(prng, 2, pairs + 1);
    uint32_t mesh = (uint32_t)draw_between(prng, 2, MESH_HOSTS_MAX);
    plan->features |= 1u << FEATURE_engine;
    plan->hub = hub;
    plan->pair_count = pairs;
    plan->hosts = !hub ? mesh : apart > 0 ? pairs + 1 : hosts;
    for (uint32_t i = 0; i < PLAN_HOSTS_MAX; i++)
        draw_engine(&plan->engines[i], prng);
}

static void draw_hosts(const struct plan *plan, uint32_t number, uint8_t host[2], struct lh_prng *prng)
{
    uint32_t from = (uint32_t)lh_prng_below(prng, plan->hosts);
    uint32_t other = (uint32_t)lh_prng_below(prng, plan->hosts - 1);
    bool turned = draw_chance(prng, 0.5);
    uint32_t to = other < from ? other : other + 1;
    if (plan->hub) {
        from = 0;
        to = number < plan->hosts - 1 ? 1 + number : 1 + other;
    }
    host[turned] = (uint8_t)from;
    host[!turned] = (uint8_t)to;
}

void draw_peer(struct plan *plan, uint32_t number, struct lh_prng *prng)
{
    struct plan_pair *pair = &plan->pairs[number];
    pair->raw = false;
    draw_hosts(plan, number, pair->host, prng);
    bool late = draw_chance(prng, 0.3);
    lh_time opens_ns = lh_prng_below(prng, plan->heal_ns);
    pair->opens_ns = late ? opens_ns : 0;
    for (uint32_t side = 0; side < 2; side++) {
        bool alone = draw_chance(prng, 0.25); /* but for a hub */
        bool chained = draw_chance(prng, 0.4);
        pair->shared[side] = !alone || (plan->hub && pair->host[side] == 0);
        pair->chained[side] = chained;
    }
}

void draw_small(struct plan *plan, uint32_t first, struct lh_prng *prng)
{
    bool small = draw_chance(prng, 0.4);
    bool together = draw_chance(prng, 0.5);
    lh_time at_ns = lh_prng_below(prng, plan->heal_ns);
    for (uint32_t i = first; i < plan->event_count; i++) {
        struct plan_event *event = &plan->events[i];
        bool usual = draw_chance(prng, 0.5);
        uint64_t bytes = draw_spread(prng, 1, SMALL_MAX);
        uint64_t more = lh_prng_below(prng, SMALL_MAX);
        bool exact = draw_chance(prng, 0.5);
        if (!small || event->kind != EVENT_message)
            continue;
        bool fits = event->room >= event->bytes;
        event->bytes = event->bytes == 0 ? 0 : usual ? SMALL_USUAL : bytes;
        event->room = !fits ? event->bytes / 2 : event->bytes + (exact ? 0 : more);
        if (together)
            event->at_ns = at_ns;
    }
}

void draw_matches(struct plan *plan, struct lh_prng *prng)
{
    if (draw_chance(prng, 0.5))
        plan->features |= 1u << FEATURE_matches;
    for (uint32_t i = 0; i < plan->pair_count; i++)
        for (uint32_t side = 0; side < 2; side++)
            plan->pairs[i].matches[side] = draw_chance(prng, 0.6);
}

void draw_peer_faults(struct plan *plan, struct lh_prng *prng)
{
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        bool renewed = draw_chance(prng, 0.15);
        uint64_t times = draw_between(prng, 1, 3);
        for (uint64_t j = 0; renewed && j < times; j++) {
            struct plan_event *event = draw_event(plan, EVENT_renew, prng);
            event->pair = (uint8_t)i;
            event->side = (uint8_t)lh_prng_below(prng, 2);
            event->span_ns = sample_span(plan, prng);
        }
    }
    bool gone = draw_chance(prng, 0.3);
    if (gone) {
        struct plan_event *event = draw_event(plan, EVENT_gone, prng);
        event->host = (uint8_t)draw_between(prng, plan->hub ? 1 : 0, plan->hosts - 1);
    }
    bool flooded = draw_chance(prng, 0.2);
    uint64_t floods = draw_between(prng, 1, 3);
    for (uint64_t i = 0; flooded && i < floods; i++) {
        struct plan_event *event = draw_event(plan, EVENT_flood, prng);
        const struct plan_pair *pair = &plan->pairs[lh_prng_below(prng, plan->pair_count)];
        uint64_t side = lh_prng_below(prng, 2);
        event->host = pair->host[side];
        event->peer = pair->host[1 - side];
        event->span_ns = sample_span(plan, prng);
        event->chance = lh_prng_double(prng);
    }
}
