/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/prng.h"
#include "message/attributes.h"
#include "schemes/auto_choice.h"

#define HEALED_RATE_BPS 10000000000u

static const char *const event_names[] = {
#define PLAN_EVENT_NAME(name, words) #name,
    PLAN_EVENTS(PLAN_EVENT_NAME)
#undef PLAN_EVENT_NAME
};

static const char *const feature_names[] = {
#define PLAN_FEATURE_NAME(name, words) #name,
    PLAN_FEATURES(PLAN_FEATURE_NAME)
#undef PLAN_FEATURE_NAME
};

const char *plan_event_name(enum plan_event_kind kind)
{
    return event_names[kind];
}

const char *plan_feature_name(enum plan_feature feature)
{
    return feature_names[feature];
}

bool plan_is_use(enum plan_event_kind kind)
{
    return kind < EVENT_cut || kind >= EVENT_expose;
}

bool plan_any(const struct plan *plan, enum plan_event_kind kind)
{
    for (uint32_t i = 0; i < plan->event_count; i++)
        if (plan->events[i].kind == kind && !plan->events[i].off)
            return true;
    return false;
}

const char *plan_congestion(const struct plan *plan, const struct plan_pair *pair, uint32_t side)
{
    return plan_has(plan, FEATURE_congestion) && pair->congestion[side][0] ? pair->congestion[side] : NULL;
}

static bool is_newcomer(const struct plan *plan, const struct plan_pair *pair, uint32_t side)
{
    return plan_has(plan, FEATURE_newcomer) && pair->newcomer[side][0] != '\0';
}

bool plan_has_deadline(const struct plan *plan, const struct plan_pair *pair, uint32_t side)
{
    return plan_has(plan, FEATURE_deadline) && pair->deadline[side][0] != '\0' &&
           !plan_matches(plan, pair, side);
}

lh_time plan_deadline_ns(const struct plan_pair *pair, uint32_t side)
{
    unsigned us = 0;
    const char *text = strstr(pair->deadline[side], "deadline=");
    if (text && sscanf(text, "deadline=%uus", &us) != 1)
        us = 0; /* auto */
    return us * LH_NS_PER_US;
}

bool plan_recovers(const struct plan *plan, const struct plan_pair *pair, uint32_t side)
{
    return plan_has_deadline(plan, pair, side) && strstr(pair->deadline[side], "code=") != NULL;
}

const char *plan_reliability(const struct plan *plan, const struct plan_pair *pair, uint32_t side)
{
    if (plan_has_deadline(plan, pair, side))
        return pair->deadline[side];
    if (is_newcomer(plan, pair, side))
        return pair->newcomer[side];
    bool codes = plan_has(plan, FEATURE_code) && pair->coded[side][0] != '\0';
    if (plan_chooses(plan, pair, side))
        return pair->automatic[side];
    return codes ? pair->coded[side] : pair->reliability[side];
}

bool plan_chooses(const struct plan *plan, const struct plan_pair *pair, uint32_t side)
{
    return plan_has(plan, FEATURE_auto) && pair->automatic[side][0] != '\0' &&
           !is_newcomer(plan, pair, side) && !plan_has_deadline(plan, pair, side);
}

static uint64_t smallest_segment_bytes(const struct lh_attr *attr)
{
    const struct auto_setup setup = {
        .mtu_bytes = attr->mtu_bytes,
        .chunk_bytes = attr->chunk_bytes,
        .slot_chunks = (uint32_t)(attr->slot_bytes / attr->chunk_bytes),
        .slots = attr->slots,
        .cores = 1,
        .max_overhead = INFINITY,
    };
    struct auto_choice all;
    uint64_t minimum = attr->slot_bytes;
    auto_choice_init(&all, &setup);
    for (uint32_t i = 0; i < all.count; i++) {
        struct scheme_choice choice = {.scheme = all.candidates[i].scheme};
        memcpy(choice.params, all.candidates[i].params, sizeof choice.params);
        uint64_t bytes = scheme_segment_bytes(&choice, attr);
        minimum = bytes < minimum ? bytes : minimum;
    }
    return minimum;
}

uint64_t plan_segment_bytes(const struct plan *plan, const struct plan_pair *pair, uint32_t side)
{
    struct lh_attr attr = pair->attr[side];
    struct scheme_choice choice;
    if (plan_chooses(plan, pair, side))
        return smallest_segment_bytes(&attr);
    attr.reliability = plan_reliability(plan, pair, side);
    if (scheme_choose(&attr, &choice) != 0)
        return 0;
    return scheme_segment_bytes(&choice, &attr);
}

struct lh_link_spec plan_link(const struct plan *plan, uint32_t from, uint32_t to)
{
    struct lh_link_spec link = plan->link[from][to];
    if (!plan_has(plan, FEATURE_loss))
        link.loss = 0;
    if (!plan_has(plan, FEATURE_burst))
        link.burst_packets = 0;
    if (!plan_has(plan, FEATURE_reorder))
        link.reorder = 0;
    if (!plan_has(plan, FEATURE_duplicate))
        link.duplicate = 0;
    if (!plan_has(plan, FEATURE_corrupt))
        link.corrupt = 0;
    if (!plan_has(plan, FEATURE_jitter))
        link.jitter_ns = 0;
    if (!plan_has(plan, FEATURE_rate))
        link.rate_bps = 0;
    return link;
}

struct lh_link_spec plan_clean_link(const struct plan *plan, uint32_t from, uint32_t to)
{
    return (struct lh_link_spec){
        .delay_ns = plan->link[from][to].delay_ns, .rate_bps = HEALED_RATE_BPS, .seed = plan->seed};
}

struct lh_link_spec plan_changed_link(const struct plan *plan, const struct plan_event *event)
{
    struct lh_link_spec link = plan_link(plan, event->host, event->peer);
    struct lh_prng prng;
    lh_prng_seed(&prng, event->seed);
    link.delay_ns = 1 + lh_prng_below(&prng, 4 * link.delay_ns);
    link.rate_bps = 5000000 + lh_prng_below(&prng, 1000000000);
    link.drop_tail = lh_prng_chance(&prng, 0.3);
    link.seed = lh_prng_next(&prng);
    return link;
}
