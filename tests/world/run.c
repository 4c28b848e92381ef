/*
 * run.c - one run from end to end: faults first, and what must hold under them; then everything heals,
 * and everything must end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "world/world.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/min_max.h"
#include "world/checks.h"
#include "world/ends.h"
#include "world/engines.h"
#include "world/exchange.h"
#include "world/faults.h"
#include "world/group/ranks.h"
#include "world/healing.h"
#include "world/large.h"
#include "world/memory.h"
#include "world/overdue.h"
#include "world/remote.h"
#include "world/stale.h"
#include "world/switches.h"
#include "world/talk.h"
#include "world/whim.h"

#define TURNS_MAX          3000000u
#define FORGED_WAIT_NS     (2 * LH_NS_PER_S)
#define FORGED_ROUND_TRIPS 1000u
#define CONTENT_BEGINNINGS ((size_t)1 << 20)
#define CONTENT_BYTES      ((size_t)8 << 20) /* of the longest message */

enum life_part {
    PART_ORDER = 1,
    PART_USERS = 16, /* and one more for each pair */
};

/* ---- what its parts share ---------------------------------------------------------------------------- */

void world_fail(struct world *world, const char *checker, const char *format, ...)
{
    if (world_failed(world))
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(world->failure, sizeof world->failure, format, arguments);
    va_end(arguments);
    snprintf(world->checker, sizeof world->checker, "%s", checker);
    world_say(world, "FAILED %s: %s", checker, world->failure);
}

bool world_sings(struct world *world, enum world_canary canary)
{
    if (world->canary != canary)
        return false;
    world->canary_sang = true;
    return true;
}

bool world_sings_once(struct world *world, enum world_canary canary)
{
    return world->canary == canary && !world->canary_sang && world_sings(world, canary);
}

static void print_line(struct world *world, const char *format, va_list arguments)
{
    fprintf(world->text, "%12llu ", (unsigned long long)sim_world_now(world->sim));
    vfprintf(world->text, format, arguments);
    fputc('\n', world->text);
}

void world_say(struct world *world, const char *format, ...)
{
    if (!world->text)
        return;
    va_list arguments;
    va_start(arguments, format);
    print_line(world, format, arguments);
    va_end(arguments);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u; /* 2^64 / golden ratio */
    return hash ^ (hash >> 29);
}

void world_note(struct world *world, uint64_t value, const char *format, ...)
{
    world->hash = mix(mix(world->hash, world->now), value);
    if (!world->text)
        return;
    va_list arguments;
    va_start(arguments, format);
    print_line(world, format, arguments);
    va_end(arguments);
}

void *world_memory(struct world *world, size_t bytes)
{
    (void)world;
    return memory_arena(bytes);
}

const uint8_t *world_content(uint64_t number, size_t bytes)
{
    static _Alignas(64) uint8_t block[CONTENT_BEGINNINGS + CONTENT_BYTES];
    static bool filled;
    if (!filled) {
        struct lh_prng prng;
        lh_prng_seed(&prng, 1);
        for (size_t i = 0; i < sizeof block; i += 8) {
            uint64_t word = lh_prng_next(&prng);
            memcpy(block + i, &word, 8);
        }
        filled = true;
    }
    assert(bytes <= CONTENT_BYTES);
    return block + number % CONTENT_BEGINNINGS;
}

/* ---- time -------------------------------------------------------------------------------------------- */

static void user_acts(struct world *world, struct pair *pair, uint32_t side, lh_time *next)
{
    struct end *end = &pair->ends[side];
    lh_time paused_until_ns = world->hosts[end->host].paused_until_ns;
    if (!pair->up || end->error)
        return;
    if (paused_until_ns > world->now) {
        lh_keep_earlier(next, paused_until_ns);
    } else if (pair->plan->raw) {
        exchange_act(world, pair, side, next);
    } else {
        talk_act(world, pair, side, next);
        remote_act(world, pair, side, next);
        end_note_sub(world, end);
    }
}

static lh_time users_act(struct world *world)
{
    lh_time next = LH_TIME_NEVER;
    for (uint32_t i = 0; i < 2 * world->plan->pair_count; i++)
        user_acts(world, &world->pairs[i / 2], i % 2, &next);
    return next;
}

/* A forger may stop anything: only bounds are left to look at, for a while. It can leave two ends that ask
 * each other for the same chunk every round trip, and never take it: that is no spinning, but on a short
 * link seconds of it are more turns than a run has. */
static bool waited_enough(const struct world *world, const struct pair *pair)
{
    lh_time wait_ns = FORGED_ROUND_TRIPS * check_rtt_well(world, pair);
    wait_ns = wait_ns < FORGED_WAIT_NS ? wait_ns : FORGED_WAIT_NS;
    return world->now > world->plan->heal_ns + wait_ns;
}

static bool is_over(const struct world *world, const struct pair *pair)
{
    if (!pair->up && !pair->closed)
        return false;
    if (!pair->trusted && waited_enough(world, pair))
        return true;
    return pair->plan->raw ? exchange_over(pair) : talk_over(pair) && remote_over(pair);
}

static bool all_over(const struct world *world)
{
    for (uint32_t i = 0; i < world->plan->pair_count; i++)
        if (!is_over(world, &world->pairs[i]))
            return false;
    return ranks_over(world);
}

/* Connections that share an engine do not wait for each other: each is over by its own bound. */
static void check_alone(struct world *world)
{
    for (uint32_t i = 0; i < world->plan->pair_count; i++) {
        const struct pair *pair = &world->pairs[i];
        if (is_over(world, pair))
            continue;
        lh_time over_ns = world_sings_once(world, CANARY_shackled) ? 0 : pair->over_ns;
        if (world->now > over_ns)
            world_fail(world, "ends", "pair %u is not over, and would be if it were alone", i);
    }
}

static void advance(struct world *world, lh_time to)
{
    lh_time event_ns = sim_world_next_event(world->sim);
    if (event_ns < to)
        to = event_ns;
    if (to < world->now)
        to = world->now;
    sim_world_advance(world->sim, to);
    world->now = to;
}

/* An end that asks a dead peer again, every round trip of a short link until its patience is over, wakes all
 * workers of its engine each time. */
static uint64_t turns_max(const struct plan *plan)
{
    return TURNS_MAX * (plan_has(plan, FEATURE_engine) ? (uint64_t)plan->pair_count : 1u);
}

/* Until then, or until everything is over. */
static void run_until(struct world *world, lh_time until_ns, bool or_over)
{
    while (!world_failed(world)) {
        lh_time next = until_ns;
        lh_time faults_ns = world->healed ? LH_TIME_NEVER : faults_act(world);
        lh_keep_earlier(&next, faults_ns);
        lh_keep_earlier(&next, pairs_open_due(world));
        lh_keep_earlier(&next, users_act(world));
        ends_progress(world);
        lh_keep_earlier(&next, ranks_act(world));
        lh_keep_earlier(&next, engines_poll(world));
        lh_keep_earlier(&next, ends_next(world));
        overdue_on_moment(world);
        if (world->now >= until_ns || (or_over && all_over(world)))
            return;
        if (or_over && plan_has(world->plan, FEATURE_engine))
            check_alone(world);
        advance(world, next);
        if (world->turns > turns_max(world->plan))
            world_fail(world, "turns", "%llu rounds, and no end", (unsigned long long)world->turns);
    }
}

/* ---- the run ----------------------------------------------------------------------------------------- */

static void begin_life(struct world *world)
{
    const struct plan *plan = world->plan;
    struct lh_prng root;
    lh_prng_seed(&root, plan->seed ^ 0x11FE);
    int error = sim_world_open("life", plan->hosts > SIM_HOSTS_FEW ? plan->hosts : SIM_HOSTS_FEW,
                               plan->seed, NULL, &world->sim);
    assert(error == 0);
    (void)error;
    world->order = lh_prng_fork(&root, PART_ORDER);
    world->end_of_port = world_memory(world, PLAN_HOSTS_MAX * SIM_PORTS_MAX * sizeof *world->end_of_port);
    memset(world->end_of_port, 0xFF, PLAN_HOSTS_MAX * SIM_PORTS_MAX * sizeof *world->end_of_port);
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        struct pair *pair = &world->pairs[i];
        pair->plan = &plan->pairs[i];
        pair->prng = lh_prng_fork(&root, PART_USERS + i);
        for (uint32_t side = 0; side < 2; side++)
            pair->ends[side] = (struct end){.host = pair->plan->host[side], .pair = (uint16_t)i};
        pair->retry_ns = LH_TIME_NEVER;
        if (pair->plan->raw)
            exchange_make(world, pair);
        else
            talk_make(world, pair);
        remote_make(world, pair);
    }
    switches_open(world);
    check_prepare(world);
    faults_prepare(world);
    engines_make(world);
    ranks_make(world);
    for (uint32_t i = 0; i < plan->pair_count; i++)
        if (plan_has(plan, FEATURE_engine) && plan->pairs[i].opens_ns > 0)
            world->pairs[i].retry_ns = plan->pairs[i].opens_ns;
        else
            pair_open(world, &world->pairs[i]);
}

static void heal_and_wait(struct world *world)
{
    lh_time bound_ns = world->ranks ? ranks_bound(world) : healing_bound(world);
    lh_time healed_ns = world->now;
    if (world_sings(world, CANARY_tardy))
        bound_ns /= 1000;
    faults_heal(world);
    run_until(world, healed_ns + bound_ns, true);
    world->heal_share = (double)(world->now - healed_ns) / (double)bound_ns;
    if (!all_over(world))
        world_fail(world, "ends", "not everything is over %llu ms after the network is well",
                   (unsigned long long)((world->now - healed_ns) / LH_NS_PER_MS));
    /* What is still on the way comes late. */
    lh_time longest_ns = 0;
    for (uint32_t i = 0; i < world->plan->pair_count; i++)
        if (world->pairs[i].rtt_max_ns > longest_ns)
            longest_ns = world->pairs[i].rtt_max_ns;
    run_until(world, world->now + 2 * longest_ns + switches_max_ns(world->plan, 0), false);
}

static void end_life(struct world *world)
{
    memory_refuse(0, 0);
    engines_check_refusals(world);
    for (uint32_t i = 0; i < 2 * world->plan->pair_count; i++)
        end_close(world, world_end(world, i), false);
    for (uint32_t i = 0; i < world->plan->pair_count; i++) {
        struct pair *pair = &world->pairs[i];
        if (pair->plan->raw)
            exchange_check(world, pair);
        else
            talk_check(world, pair);
        remote_check(world, pair);
    }
    engines_end(world);
    ranks_end(world);
    world->hash = mix(world->hash, sim_world_trace(world->sim));
    world->hash = mix(world->hash, world->turns);
}

void world_run(const struct plan *plan, enum world_canary canary, FILE *text, struct world_report *report)
{
    static struct world world;
    static struct plan enlarged;
    int64_t blocks = memory_blocks();
    memset(&world, 0, sizeof world);
    memory_arena_clear();
    memory_refuse(0, 0);
    if (plan_has(plan, FEATURE_large)) {
        enlarged = *plan;
        plan_enlarge(&enlarged);
        plan = &enlarged;
    }
    world.plan = plan;
    world.canary = canary;
    world.text = text;
    whim_set(plan_has(plan, FEATURE_whim), plan->seed);
    stale_begin(&world);
    begin_life(&world);
    if (world_sings(&world, CANARY_fall))
        abort();
    if (world_sings(&world, CANARY_alarm))
        raise(SIGALRM);
    run_until(&world, plan->heal_ns, false);
    if (!world_failed(&world))
        heal_and_wait(&world);
    end_life(&world);
    lh_time took_ns = world.now;
    sim_world_destroy(world.sim);
    world.text = NULL;
    if (world_sings(&world, CANARY_leak))
        memory_lose_block();
    if (memory_blocks() != blocks)
        world_fail(&world, "leak", "%lld blocks of memory were not given back",
                   (long long)(memory_blocks() - blocks));
    memory_find_block();
    *report = (struct world_report){.hash = world.hash,
                                    .turns = world.turns,
                                    .took_ns = took_ns,
                                    .delivered = world.delivered,
                                    .canceled = world.canceled,
                                    .truncated = world.truncated,
                                    .exchanged = world.exchanged,
                                    .operated = world.operated,
                                    .lied = world.lied,
                                    .heal_share = world.heal_share,
                                    .canary_sang = world.canary_sang};
    memcpy(report->checker, world.checker, sizeof report->checker);
    memcpy(report->failure, world.failure, sizeof report->failure);
}
