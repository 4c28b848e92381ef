/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/group/outcome.h"

#include <stdlib.h>
#include <string.h>

#include "collective/operation_digest.h"

/* A tick of a clock that runs at another speed, and what its fabric rounds. */
#define TICK_NS (10 * LH_NS_PER_US)

typedef unsigned long long wide; /* for %llu */

static uint64_t hash_of(const uint8_t *data, size_t bytes)
{
    uint64_t hash = bytes + 1;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ data[i]) * 0x100000001B3u; /* FNV-1a */
    return hash | 1;
}

static struct call *call_of(struct world *world, uint32_t host, uint32_t event)
{
    return &world->ranks->of[host].calls[event];
}

static const char *name_of(const struct call *call)
{
    return call_name(call->plan.call.collective, call->plan.call.uneven ? CALL_UNEVEN : CALL_PLAIN);
}

/* ---- errors ------------------------------------------------------------------------------------------ */

static bool stands_still(const struct world *world, uint32_t host)
{
    for (uint32_t i = 0; i < world->plan->event_count; i++)
        if (world->plan->events[i].kind == EVENT_pause && world->plan->events[i].host == host &&
            !world->plan->events[i].off)
            return true;
    return false;
}

static bool is_canceled(const struct world *world, uint32_t event)
{
    for (uint32_t i = 0; i < world->plan->event_count; i++)
        if (world->plan->events[i].kind == EVENT_giveup && world->plan->events[i].target == event &&
            !world->plan->events[i].off)
            return true;
    return false;
}

/* Of a team: who is dead. */
static bool any_dead(const struct world *world, const struct team *team)
{
    for (uint32_t r = 0; r < team->size; r++)
        if (world->ranks->of[team->hosts[r]].state == RANK_DEAD)
            return true;
    return false;
}

static bool is_odd(const struct world *world, uint32_t event, const struct team *team)
{
    const struct plan_event *of = &world->plan->events[event];
    for (uint32_t r = 0; of->room > 0 && r < team->size; r++)
        if (team->hosts[r] == of->host)
            return true;
    return false;
}

/* Who is named has died. */
static void check_blame(struct world *world, uint32_t host, uint32_t event,
                        const struct lh_collective_result *result)
{
    const struct call *call = call_of(world, host, event);
    uint32_t rank = result->failed_rank;
    if (world_sings_once(world, CANARY_blame))
        rank = call->rank;
    if (ranks_may_fail(world))
        return;
    if (rank >= call->team->size || world->ranks->of[call->team->hosts[rank]].state != RANK_DEAD) {
        world_fail(world, "blame", "host %u: event %u (%s) fails for rank %u, who lives: %s", host, event,
                   name_of(call), rank, result->message);
        return;
    }
    const struct rank *dead = &world->ranks->of[call->team->hosts[rank]];
    lh_time since_ns = dead->died_ns > call->started_ns ? dead->died_ns : call->started_ns;
    lh_time max_ns = 2 * world->plan->group.peer_timeout_ns + world->plan->group.peer_timeout_ns / 2;
    if (world_sings_once(world, CANARY_lengthy))
        max_ns = 0;
    if (world->now - since_ns > max_ns)
        world_fail(world, "prompt", "host %u: event %u (%s) fails %llu ms after the death of rank %u", host,
                   event, name_of(call), (wide)((world->now - since_ns) / LH_NS_PER_MS), rank);
}

/* The two ranks, and what differs. */
static void check_words(struct world *world, uint32_t host, uint32_t event,
                        const struct lh_collective_result *result)
{
    const struct call *call = call_of(world, host, event);
    char rank[24];
    uint32_t odd = 0;
    while (odd < call->team->size && call->team->hosts[odd] != world->plan->events[event].host)
        odd++;
    snprintf(rank, sizeof rank, "rank %u", odd);
    const char *message = world_sings_once(world, CANARY_wordless) ? "" : result->message;
    if (!strstr(message, "ranks disagree") || !strstr(message, rank))
        world_fail(world, "words", "host %u: event %u (%s), where %s is odd: \"%s\"", host, event,
                   name_of(call), rank, message);
}

static bool has_reason(struct world *world, uint32_t event, const struct call *call, int error)
{
    if (world_sings_once(world, CANARY_baseless))
        return false;
    switch (error) {
    case -LH_EPEER:
        return any_dead(world, call->team) || ranks_may_fail(world);
    case -LH_ECLOSED: /* by who gave this rank up */
        return ranks_may_fail(world);
    case -LH_EPROTOCOL:
        return is_odd(world, event, call->team);
    case -LH_ETIMEDOUT:
        return world->plan->events[event].delay_ns > 0;
    case -LH_ECANCELED:
        return is_canceled(world, event);
    default:
        return false;
    }
}

static void check_input(struct world *world, uint32_t host, uint32_t event)
{
    const struct call *call = call_of(world, host, event);
    size_t width = lh_type_bytes(call->plan.call.type);
    if (call->plan.in_place || call->in_bytes == 0)
        return;
    uint8_t *wanted = world_memory(world, call->in_bytes);
    call_fill(&world->plan->events[event], &call->plan, (uint8_t)host, wanted, call->in_bytes / width);
    if (world_sings_once(world, CANARY_eaten))
        call->in[0] ^= 1;
    if (memcmp(wanted, call->in, call->in_bytes) != 0)
        world_fail(world, "input", "host %u: event %u (%s) changes its input", host, event, name_of(call));
}

static void check_error(struct world *world, uint32_t host, uint32_t event,
                        const struct lh_collective_result *result)
{
    const struct call *call = call_of(world, host, event);
    if (!has_reason(world, event, call, result->error)) {
        world_fail(world, "verdict", "host %u: event %u (%s) ends with %d for no reason: %s", host, event,
                   name_of(call), result->error, result->message);
        return;
    }
    if (result->error == -LH_EPEER)
        check_blame(world, host, event, result);
    if (result->error == -LH_EPROTOCOL)
        check_words(world, host, event, result);
}

void outcome_check_refusal(struct world *world, uint32_t host, uint32_t event, int error)
{
    const struct call *call = call_of(world, host, event);
    if (!has_reason(world, event, call, error))
        world_fail(world, "verdict", "host %u: event %u (%s) is refused with %d for no reason: %s", host,
                   event, name_of(call), error, lh_last_error());
}

/* ---- hops that may lose something -------------------------------------------------------------------- */

#define RELIABLE_BYTES 4096u /* of a row: whatever its hops */

static bool is_across(const struct world *world, uint32_t one, uint32_t other)
{
    return plan_has(world->plan, FEATURE_sites) &&
           world->plan->group.site[one] != world->plan->group.site[other];
}

static bool is_bounded(const struct world *world, const struct call *call)
{
    const struct team *team = call->team;
    size_t bytes = call_row(&call->plan, team->size) * lh_type_bytes(call->plan.call.type);
    bool some = false;
    for (uint32_t i = 0; i < team->size; i++)
        for (uint32_t j = 0; j < i; j++)
            some |= world->plan->group.bounded[is_across(world, team->hosts[i], team->hosts[j])];
    return some && !call->plan.options.reliable && bytes > RELIABLE_BYTES;
}

/* When all hops of a rank are, and have a deadline that was given; 0: not so. */
static lh_time bounded_ns(const struct world *world, uint32_t host, const struct call *call)
{
    const struct plan_group *group = &world->plan->group;
    lh_time max_ns = 0;
    for (uint32_t r = 0; r < call->team->size; r++) {
        uint32_t across = is_across(world, host, call->team->hosts[r]);
        if (call->team->hosts[r] == host)
            continue;
        if (!group->bounded[across] || group->bounded_ns[across] == 0)
            return 0;
        max_ns = group->bounded_ns[across] > max_ns ? group->bounded_ns[across] : max_ns;
    }
    return is_bounded(world, call) ? max_ns : 0;
}

/* ---- results ----------------------------------------------------------------------------------------- */

static bool has_output(const struct call *call)
{
    enum collective collective = call->plan.call.collective;
    bool at_root = collective == COLLECTIVE_REDUCE || collective == COLLECTIVE_GATHER;
    return collective != COLLECTIVE_BARRIER && (!at_root || call->rank == call->plan.call.root);
}

static uint64_t number_of(const struct team *team)
{
    uint64_t number = 1;
    for (uint32_t r = 0; r < team->size; r++)
        number = number * 10 + team->hosts[r];
    return number;
}

/* All ranks have the same bits; so whose are the same as those that were right need no other check. */
static bool is_known(struct world *world, uint32_t host, uint32_t event, struct call *call)
{
    struct ranks *ranks = world->ranks;
    uint64_t team = number_of(call->team), hash = hash_of(call->out, call->out_bytes);
    if (call->odd || !call_is_same(&call->plan) || is_bounded(world, call))
        return false;
    if (ranks->same_team[event] != team) {
        ranks->same[event] = hash;
        ranks->same_team[event] = team;
        return false;
    }
    if (world_sings_once(world, CANARY_apart))
        hash++;
    if (hash != ranks->same[event])
        world_fail(world, "same", "host %u: event %u (%s) has other bits than those of another rank", host,
                   event, name_of(call));
    return true;
}

static void check_success(struct world *world, uint32_t host, uint32_t event, uint64_t missing)
{
    struct call *call = call_of(world, host, event);
    struct call_loss loss = {.bounded = is_bounded(world, call), .missing = missing};
    char what[96];
    if (call->odd && call->team->size > 1)
        return; /* nobody took part in that */
    if (!has_output(call))
        return;
    if (call->out_bytes > 0 && world_sings_once(world, CANARY_summed))
        call->out[call->out_bytes / 2] ^= 0x41;
    if (!call_is_right(&world->plan->events[event], &call->plan, call->team, call->rank, call->out, &loss,
                       what, sizeof what))
        world_fail(world, "result", "host %u: event %u, %s of %zu %s, %s, by rank %u of %u: %s is wrong",
                   host, event, name_of(call), call->plan.call.count, lh_type_name(call->plan.call.type),
                   lh_reduction_name(call->plan.call.reduction), call->rank, call->team->size, what);
    bool sums = collective_call_reduces(call->plan.call.collective);
    if (missing > 0 && (!loss.bounded || (!sums && loss.zero < missing)))
        world_fail(world, "missing", "host %u: event %u (%s) reports %llu missing bytes, and %llu are 0",
                   host, event, name_of(call), (wide)missing, (wide)loss.zero);
}

static void check_guard(struct world *world, uint32_t host, uint32_t event, const uint8_t *buffer,
                        size_t bytes)
{
    for (uint32_t i = 0; buffer && i < GUARD_BYTES; i++)
        if (buffer[-1 - (ptrdiff_t)i] != GUARD_BYTE || buffer[bytes + i] != GUARD_BYTE) {
            world_fail(world, "guard", "host %u: event %u changes a byte beside a buffer of %zu bytes",
                       host, event, bytes);
            return;
        }
}

static uint64_t buffers_hash(const struct call *call)
{
    return hash_of(call->in, call->in_bytes) * 3 + hash_of(call->out, call->out_bytes);
}

static void check_deadline(struct world *world, uint32_t host, uint32_t event,
                           const struct lh_collective_result *result)
{
    const struct call *call = call_of(world, host, event);
    lh_time deadline_ns = call->plan.options.deadline_ns, other_ns = bounded_ns(world, host, call);
    if (other_ns > 0 && (deadline_ns == 0 || other_ns < deadline_ns))
        deadline_ns = other_ns;
    if (deadline_ns > 0 && world_sings_once(world, CANARY_belated))
        deadline_ns = 0;
    else if (deadline_ns == 0 || stands_still(world, host))
        return;
    if (result->ended_ns - result->started_ns > deadline_ns + TICK_NS)
        world_fail(world, "expiry", "host %u: event %u (%s) has a deadline of %llu us, and ends after %llu",
                   host, event, name_of(call), (wide)(deadline_ns / LH_NS_PER_US),
                   (wide)((result->ended_ns - result->started_ns) / LH_NS_PER_US));
}

void outcome_check(struct world *world, uint32_t host, uint32_t event, struct lh_collective_result result)
{
    struct call *call = call_of(world, host, event);
    check_input(world, host, event);
    check_deadline(world, host, event, &result);
    if (result.error)
        check_error(world, host, event, &result);
    else if (!is_known(world, host, event, call))
        check_success(world, host, event, result.missing_bytes);
    call->left = buffers_hash(call);
    world->delivered += result.error == 0;
    world->canceled += result.error != 0;
}

void outcome_check_kept(struct world *world, uint32_t host, uint32_t event)
{
    const struct call *call = call_of(world, host, event);
    if (!call->done)
        return;
    check_guard(world, host, event, call->in, call->in_bytes);
    check_guard(world, host, event, call->out, call->out_bytes);
    if (buffers_hash(call) != call->left)
        world_fail(world, "late", "host %u: event %u (%s) changes a buffer after its end", host, event,
                   name_of(call));
}
