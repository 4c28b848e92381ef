/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/group/draw.h"

#include <stdio.h>

#define ROW_MIN     64u
#define ROW_MAX     131072u
#define ROW_LARGE   1048576u
#define LIFE_BYTES  2097152u /* of all rows: the arena has room for them at each rank */
#define CALLS_MAX   8u       /* of an epoch */
#define LOSS_MAX    0.2      /* more, in long bursts, is the silence of a dead rank */
#define BURST_MAX   3
#define THREE_HOSTS 3u
#define MEASURING   0x3EA5u
#define WIDTH       0x31DEu

void draw_ranks(struct plan *plan, struct lh_prng *prng)
{
    bool few = draw_chance(prng, 0.5);
    plan->hosts = (uint32_t)draw_between(prng, 2, few ? 4 : PLAN_HOSTS_MAX);
    plan->pair_count = 0;
    plan->features |= 1u << FEATURE_group;
    if (draw_chance(prng, 0.4))
        plan->features |= 1u << FEATURE_sites;
    if (draw_chance(prng, 0.3))
        plan->features |= 1u << FEATURE_measures;
}

/* ---- the group --------------------------------------------------------------------------------------- */

static void draw_sizes(struct lh_attr *attr, struct lh_prng *prng)
{
    lh_attr_init(attr);
    attr->mtu_bytes = 256u << lh_prng_below(prng, 5);
    attr->chunk_bytes = attr->mtu_bytes << lh_prng_below(prng, 4);
    attr->slot_bytes = attr->chunk_bytes * draw_spread(prng, 4, 128);
    if (attr->slot_bytes > 131072)
        attr->slot_bytes = attr->chunk_bytes * (131072 / attr->chunk_bytes);
    attr->slots = 1u << lh_prng_below(prng, 7);
    attr->channels = (uint32_t)draw_between(prng, 1, 4);
    attr->generations = (uint32_t)draw_between(prng, 1, 8);
    attr->window_bytes = attr->chunk_bytes * draw_spread(prng, 1, 128);
    attr->rate_bps = draw_spread(prng, 20000000, 10000000000u);
}

/* One that delivers all, with parameters. */
static void draw_scheme(const struct lh_attr *attr, struct lh_prng *prng, char *text, size_t size)
{
    static const char *const usual[] = {"sr-nack", "sr-rto", "auto", "sr-rto,alpha=1"};
    uint64_t kind = lh_prng_below(prng, 3);
    snprintf(text, size, "%s", usual[lh_prng_below(prng, sizeof usual / sizeof usual[0])]);
    char other[48] = "";
    if (kind == 1)
        draw_code(attr, prng, other, sizeof other);
    if (kind == 2)
        draw_newcomer(PLAN_GROUP_SEEDS, attr, prng, other, sizeof other);
    if (other[0])
        snprintf(text, size, "%s", other);
}

static void draw_congestion(struct lh_prng *prng, char *text, size_t size)
{
    bool chosen = draw_chance(prng, 0.3);
    const char *name = draw_controller(PLAN_GROUP_SEEDS, prng);
    snprintf(text, size, "%s", chosen ? name : "");
}

/* Patient ranks wait longer than any fault lasts: then nobody fails but who dies. Others know of different
 * failures, and may come to different groups: they call nothing more in these. */
static void draw_patience(struct plan *plan, struct lh_prng *prng)
{
    struct plan_group *group = &plan->group;
    bool impatient = plan_has(plan, FEATURE_impatient);
    group->peer_timeout_ns = impatient ? draw_spread(prng, 100 * LH_NS_PER_MS, LH_NS_PER_S)
                                       : draw_between(prng, GROUP_PATIENCE_NS, 4 * GROUP_PATIENCE_NS);
    if (impatient)
        group->epochs = 1;
    for (uint32_t i = 0; i < plan->hosts * plan->hosts && !impatient; i++) {
        struct lh_link_spec *link = &plan->link[i / plan->hosts][i % plan->hosts];
        link->loss = link->loss < LOSS_MAX ? link->loss : LOSS_MAX;
        link->burst_packets = link->burst_packets < BURST_MAX ? link->burst_packets : BURST_MAX;
    }
    for (uint32_t host = 0; host < plan->hosts; host++) {
        bool late = draw_chance(prng, 0.15);
        lh_time at_ns = lh_prng_below(prng, group->peer_timeout_ns / 16);
        group->joins_ns[host] = late ? at_ns : 0;
        group->site[host] = (uint8_t)lh_prng_below(prng, 3);
    }
}

static void draw_attributes(struct plan *plan, struct lh_prng *prng)
{
    struct plan_group *group = &plan->group;
    group->block_bytes = (uint32_t)draw_spread(prng, 4096, 65536);
    group->blocks = (uint32_t)draw_spread(prng, 4, 64);
    group->receive_buffer_bytes = draw_spread(prng, 65536, 8u << 20);
    group->epochs = (uint32_t)draw_between(prng, 1, PLAN_EPOCHS_MAX);
    for (uint32_t i = 0; i < PLAN_EPOCHS_MAX; i++)
        group->splits[i] = draw_chance(prng, 0.5);
    for (uint32_t across = 0; across < 2; across++) {
        struct lh_attr *attr = &group->attr[across];
        draw_sizes(attr, prng);
        if (!plan_has(plan, FEATURE_pace))
            attr->rate_bps = 0;
        draw_scheme(attr, prng, group->reliability[across], sizeof group->reliability[across]);
        draw_congestion(prng, group->congestion[across], sizeof group->congestion[across]);
    }
}

/* ---- what they call ---------------------------------------------------------------------------------- */

/* Of the whole row. */
static uint64_t draw_row(const struct plan_group *group, struct lh_prng *prng, uint64_t maximum)
{
    uint64_t edges[] = {group->block_bytes, group->attr[0].slot_bytes, 64u * group->attr[0].chunk_bytes};
    uint64_t edge = edges[lh_prng_below(prng, 3)];
    uint64_t bytes = edge * draw_between(prng, 1, 3) + lh_prng_below(prng, 17) - 8;
    uint64_t free_bytes = draw_spread(prng, 1, maximum);
    uint64_t kind = lh_prng_below(prng, 8);
    if (kind == 0)
        return 0;
    if (kind < 3)
        return draw_between(prng, 1, ROW_MIN);
    return kind < 5 && bytes < maximum ? bytes : free_bytes;
}

static uint64_t draw_call(struct plan *plan, uint32_t epoch, uint64_t maximum, struct lh_prng *prng)
{
    uint16_t number = (uint16_t)plan->event_count;
    struct plan_event *event = draw_event(plan, EVENT_collective, prng);
    event->pair = (uint8_t)epoch;
    event->bytes = draw_row(&plan->group, prng, maximum);
    bool late = draw_chance(prng, 0.5), bounded = draw_chance(prng, 0.12), odd = draw_chance(prng, 0.06);
    bool canceled = draw_chance(prng, 0.08);
    lh_time span_ns = sample_span(plan, prng),
            deadline_ns = draw_spread(prng, 20 * LH_NS_PER_US, LH_NS_PER_S);
    event->span_ns = late ? span_ns : 0;
    event->delay_ns = bounded ? deadline_ns : 0;
    event->host = (uint8_t)lh_prng_below(prng, plan->hosts);
    uint64_t differs = draw_between(prng, 1, 7);
    event->room = odd ? differs : 0;
    uint64_t bytes = event->bytes;
    if (!canceled)
        return bytes;
    struct plan_event *cancel = draw_event(plan, EVENT_giveup, prng);
    cancel->host = (uint8_t)lh_prng_below(prng, plan->hosts);
    cancel->target = number;
    return bytes;
}

static void draw_calls(struct plan *plan, struct lh_prng *prng)
{
    bool large = draw_chance(prng, 0.05), together = draw_chance(prng, 0.4);
    uint64_t maximum = draw_spread(prng, 1024, large ? ROW_LARGE : ROW_MAX), left = LIFE_BYTES;
    for (uint32_t epoch = 0; epoch < plan->group.epochs; epoch++) {
        lh_time at_ns = lh_prng_below(prng, plan->heal_ns);
        uint64_t calls = draw_spread(prng, 1, CALLS_MAX);
        for (uint64_t i = 0; i < calls; i++) {
            uint32_t number = plan->event_count;
            left -= draw_call(plan, epoch, maximum < left ? maximum : left, prng);
            left = left > ROW_MIN ? left : 2 * ROW_MIN;
            if (together)
                plan->events[number].at_ns = at_ns;
        }
    }
}

/* ---- what happens to them ---------------------------------------------------------------------------- */

static void draw_fault(struct plan *plan, enum plan_event_kind kind, struct lh_prng *prng)
{
    struct plan_event *event = draw_event(plan, kind, prng);
    lh_time max_ns = plan->group.peer_timeout_ns / 32;
    event->host = (uint8_t)lh_prng_below(prng, plan->hosts);
    uint64_t other = lh_prng_below(prng, plan->hosts - 1);
    event->peer = (uint8_t)(other < event->host ? other : other + 1);
    event->span_ns = sample_span(plan, prng);
    event->chance = lh_prng_double(prng) * lh_prng_double(prng);
    event->delay_ns = sample_span(plan, prng);
    if (plan_has(plan, FEATURE_impatient))
        return;
    event->span_ns = event->span_ns < max_ns ? event->span_ns : max_ns;
    event->delay_ns = event->delay_ns < max_ns ? event->delay_ns : max_ns;
}

static void draw_deaths(struct plan *plan, struct lh_prng *prng)
{
    bool dies = draw_chance(prng, 0.35), early = draw_chance(prng, 0.3), two = draw_chance(prng, 0.2);
    for (uint32_t i = 0; dies && i < (two && plan->hosts >= THREE_HOSTS ? 2u : 1u); i++) {
        struct plan_event *event = draw_event(plan, EVENT_gone, prng);
        event->host = (uint8_t)lh_prng_below(prng, plan->hosts);
        if (early)
            event->at_ns /= 16;
    }
}

static void draw_faults(struct plan *plan, struct lh_prng *prng)
{
    static const enum plan_event_kind kinds[] = {EVENT_cut,     EVENT_flap,   EVENT_change,
                                                 EVENT_control, EVENT_hold,   EVENT_pause,
                                                 EVENT_noise,   EVENT_replay, EVENT_mutate};
    for (uint32_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        bool exists = draw_chance(prng, kinds[k] == EVENT_pause ? 0.3 : 0.12);
        uint64_t times = draw_between(prng, 1, 4);
        for (uint64_t i = 0; exists && i < times; i++)
            draw_fault(plan, kinds[k], prng);
    }
    draw_deaths(plan, prng);
}

/* While the ranks agree on who is left: some have its report, and one has not. */
static void draw_death_agreeing(struct plan *plan, struct lh_prng *prng)
{
    bool dies = draw_chance(prng, 0.3), early = draw_chance(prng, 0.5);
    if (!dies || plan->hosts < THREE_HOSTS || plan_has(plan, FEATURE_impatient))
        return;
    struct plan_event *event = draw_event(plan, EVENT_gone, prng);
    event->host = (uint8_t)lh_prng_below(prng, plan->hosts);
    uint64_t other = lh_prng_below(prng, plan->hosts - 1);
    event->peer = (uint8_t)(other < event->host ? other : other + 1);
    event->delay_ns = draw_spread(prng, 10 * LH_NS_PER_US, plan->group.peer_timeout_ns / 32);
    if (early)
        event->at_ns /= 16;
}

/* When it has measured the paths, and the others may know that or not. From a generator of its own. */
static void draw_death_measuring(struct plan *plan)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, plan->seed ^ MEASURING);
    if (!plan_has(plan, FEATURE_measures) || plan->hosts < THREE_HOSTS || !draw_chance(&prng, 0.4))
        return;
    struct plan_event *event = draw_event(plan, EVENT_gone, &prng);
    event->at_ns /= 64;
    event->host = (uint8_t)lh_prng_below(&prng, plan->hosts);
    event->delay_ns = draw_spread(&prng, LH_NS_PER_US, 50 * LH_NS_PER_MS);
    event->target = 1;
}

/* Connections as wide as groups have them: sizes are drawn when the life begins (large.h). From a generator
 * of its own. */
static void draw_width(struct plan *plan)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, plan->seed ^ WIDTH);
    if (draw_chance(&prng, 0.2))
        plan->features |= 1u << FEATURE_large;
}

void draw_group(struct plan *plan, struct lh_prng *prng, bool wild)
{
    draw_attributes(plan, prng);
    draw_width(plan);
    draw_patience(plan, prng);
    draw_calls(plan, prng);
    if (wild) {
        draw_faults(plan, prng);
        draw_death_agreeing(plan, prng);
        draw_death_measuring(plan);
    }
}

void draw_bounded(struct plan *plan, struct lh_prng *prng)
{
    struct plan_group *group = &plan->group;
    plan->features |= 1u << FEATURE_bounded;
    uint64_t kind = lh_prng_below(prng, 4);
    for (uint32_t across = 0; across < 2; across++) {
        bool learned = draw_chance(prng, 0.3);
        lh_time us = draw_spread(prng, 100, group->peer_timeout_ns / 4 / LH_NS_PER_US);
        group->bounded[across] = kind == 0 || kind == across + 1;
        if (!plan_has(plan, FEATURE_sites) || kind == 3)
            group->bounded[across] = true;
        if (!group->bounded[across])
            continue;
        group->bounded_ns[across] = learned ? 0 : us * LH_NS_PER_US;
        char deadline[sizeof "18446744073709551615us"] = "auto";
        if (!learned)
            snprintf(deadline, sizeof deadline, "%lluus", (unsigned long long)us);
        snprintf(group->reliability[across], sizeof group->reliability[across], "bounded:deadline=%s",
                 deadline);
    }
}
