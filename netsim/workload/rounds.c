/*
 * rounds.c - see rounds.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/rounds.h"

#include <assert.h>

#include "base/error.h"
#include "netsim/workload/host_groups.h"

struct rounds {
    const struct netsim_workload_config *config;
    struct netsim_flow_list *list;
    const struct netsim_graph *graph;
    uint32_t hosts;
    uint32_t senders; /* incast */
    uint32_t *drawn;  /* permutation: to whom each host sends; incast: who sends; else NULL */
    struct netsim_host_groups groups; /* permutation */
    netsim_time now_ps;               /* start of this round */
    struct lh_prng pairs;
    struct lh_prng jitter;
};

static void add_flow(struct rounds *rounds, uint32_t source, uint32_t destination)
{
    netsim_time start_ps = rounds->now_ps;
    if (rounds->config->jitter_ps > 0)
        start_ps += lh_prng_below(&rounds->jitter, rounds->config->jitter_ps + 1);
    assert(source != destination);
    rounds->list->flows[rounds->list->count++] = (struct netsim_flow_request){
        .bytes = rounds->config->bytes, .start_ps = start_ps, .source = source, .destination = destination};
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t kept = *a;
    *a = *b;
    *b = kept;
}

/* A shuffle (Fisher-Yates) that is given up as soon as a host would send to itself. Of all shuffles 1 in e
 * gets through, each with the same chance. */
static bool try_derangement(uint32_t *to, uint32_t hosts, struct lh_prng *prng)
{
    for (uint32_t i = 0; i < hosts; i++)
        to[i] = i;
    for (uint32_t i = hosts; i-- > 0;) {
        swap(&to[i], &to[lh_prng_below(prng, i + 1)]);
        if (to[i] == i)
            return false;
    }
    return true;
}

/* The first `count` of a shuffle of 0 … others - 1, in drawn. */
static void draw_some(struct rounds *rounds, uint32_t count, uint32_t others)
{
    for (uint32_t i = 0; i < others; i++)
        rounds->drawn[i] = i;
    for (uint32_t i = 0; i < count; i++)
        swap(&rounds->drawn[i], &rounds->drawn[i + lh_prng_below(&rounds->pairs, others - i)]);
}

/* Each host of the first group to one of the rest. */
static void add_crossing(struct rounds *rounds)
{
    const struct netsim_host_groups *groups = &rounds->groups;
    draw_some(rounds, groups->senders, rounds->hosts - groups->senders);
    for (uint32_t i = 0; i < groups->senders; i++)
        add_flow(rounds, groups->order[i], groups->order[groups->senders + rounds->drawn[i]]);
}

/* Each host to one other of its group. */
static void add_permutation(struct rounds *rounds)
{
    const struct netsim_host_groups *groups = &rounds->groups;
    for (uint32_t group = 0; group < NETSIM_GROUPS_MAX; group++) {
        const uint32_t *members = groups->order + groups->first[group];
        uint32_t count = groups->first[group + 1] - groups->first[group];
        while (count > 0 && !try_derangement(rounds->drawn, count, &rounds->pairs))
            continue;
        for (uint32_t i = 0; i < count; i++)
            add_flow(rounds, members[i], members[rounds->drawn[i]]);
    }
}

static void add_incast(struct rounds *rounds)
{
    uint32_t receiver = rounds->config->receiver;
    if (receiver == UINT32_MAX)
        receiver = (uint32_t)lh_prng_below(&rounds->pairs, rounds->hosts);
    draw_some(rounds, rounds->senders, rounds->hosts - 1);
    for (uint32_t i = 0; i < rounds->senders; i++) {
        uint32_t sender = rounds->drawn[i];
        add_flow(rounds, sender < receiver ? sender : sender + 1, receiver);
    }
}

static void add_all_to_all(struct rounds *rounds)
{
    for (uint32_t source = 0; source < rounds->hosts; source++) {
        for (uint32_t destination = 0; destination < rounds->hosts; destination++) {
            if (source != destination)
                add_flow(rounds, source, destination);
        }
    }
}

static int check_incast(const struct netsim_workload_config *config, uint32_t hosts)
{
    if (config->senders >= hosts)
        return lh_fail(LH_ERANGE, "workload.senders %u: out of range (1 to %u of %u hosts, one receives)",
                       config->senders, hosts - 1, hosts);
    if (config->receiver != UINT32_MAX && config->receiver >= hosts)
        return lh_fail(LH_ERANGE, "workload.receiver %u: out of range (hosts are 0 to %u)",
                       config->receiver, hosts - 1);
    return 0;
}

static int check_permutation(struct rounds *rounds)
{
    const struct netsim_workload_config *config = rounds->config;
    int rc = netsim_host_groups_count(&rounds->groups, config->matrix, rounds->graph);
    if (rc == 0 && rounds->hosts - rounds->groups.senders < rounds->groups.senders &&
        config->matrix == NETSIM_ACROSS)
        return lh_fail(LH_EINVAL,
                       "workload.matrix: across, %u hosts of site 0 would each send to one of %u others "
                       "(place as many there, or choose uniform)",
                       rounds->groups.senders, rounds->hosts - rounds->groups.senders);
    return rc;
}

static int check_times(const struct netsim_workload_config *config)
{
    uint64_t gaps_ps = 0;
    if (config->rounds < 1)
        return lh_fail(LH_ERANGE, "workload.rounds 0: out of range (at least 1)");
    if (__builtin_mul_overflow(config->gap_ps, (uint64_t)config->rounds - 1, &gaps_ps) ||
        gaps_ps > NETSIM_TIME_MAX || config->jitter_ps > NETSIM_TIME_MAX - gaps_ps)
        return lh_fail(LH_ERANGE,
                       "workload.gap: the last of %u rounds would start after the end of time, 106 days "
                       "(take fewer rounds, or less gap or jitter)",
                       config->rounds);
    return 0;
}

static uint64_t round_flows(const struct rounds *rounds)
{
    switch (rounds->config->kind) {
    case NETSIM_PERMUTATION:
        return rounds->groups.senders;
    case NETSIM_INCAST:
        return rounds->senders;
    default:
        assert(rounds->config->kind == NETSIM_ALL_TO_ALL);
        return (uint64_t)rounds->hosts * (rounds->hosts - 1);
    }
}

static void add_round(struct rounds *rounds)
{
    bool permutation = rounds->config->kind == NETSIM_PERMUTATION;
    if (permutation && rounds->config->matrix == NETSIM_ACROSS)
        add_crossing(rounds);
    else if (permutation)
        add_permutation(rounds);
    else if (rounds->config->kind == NETSIM_INCAST)
        add_incast(rounds);
    else
        add_all_to_all(rounds);
}

/* Also sets the number of flows. */
static int check(struct rounds *rounds, uint64_t *count)
{
    int rc = netsim_workload_check_bytes(rounds->config);
    if (rc == 0)
        rc = check_times(rounds->config);
    if (rc == 0 && rounds->config->kind == NETSIM_INCAST)
        rc = check_incast(rounds->config, rounds->hosts);
    if (rc == 0 && rounds->config->kind == NETSIM_PERMUTATION)
        rc = check_permutation(rounds);
    if (rc != 0)
        return rc;
    /* Below 2^64: fewer than 2^32 flows in a round. */
    *count = round_flows(rounds) * rounds->config->rounds;
    return netsim_workload_check_count((double)*count);
}

int netsim_workload_rounds(const struct netsim_workload *workload)
{
    const struct netsim_workload_config *config = workload->config;
    struct rounds rounds = {.config = config,
                            .list = workload->list,
                            .graph = workload->graph,
                            .hosts = workload->graph->hosts,
                            .senders = config->senders,
                            .pairs = lh_prng_fork(workload->prng, NETSIM_DRAW_PAIRS),
                            .jitter = lh_prng_fork(workload->prng, NETSIM_DRAW_JITTER)};
    if (rounds.senders == 0)
        rounds.senders = rounds.hosts - 1;
    uint64_t count = 0;
    int rc = check(&rounds, &count);
    if (rc != 0)
        return rc;

    struct netsim_flow_list *list = workload->list;
    bool shuffled = config->jitter_ps > 0;
    list->flows = netsim_arena_take(workload->arena, count, sizeof *list->flows);
    rounds.drawn = netsim_arena_take(workload->arena, rounds.hosts, sizeof *rounds.drawn);
    if (config->kind == NETSIM_PERMUTATION)
        rounds.groups.order = netsim_arena_take(workload->arena, rounds.hosts, sizeof *rounds.groups.order);
    struct netsim_flow_request *scratch =
        netsim_arena_take(workload->arena, shuffled ? count : 0, sizeof *scratch);
    list->count = (uint32_t)count;
    if (workload->arena->base == NULL)
        return 0;
    list->count = 0;
    if (config->kind == NETSIM_PERMUTATION)
        netsim_host_groups_sort(&rounds.groups);
    for (uint32_t i = 0; i < config->rounds; i++, rounds.now_ps += config->gap_ps)
        add_round(&rounds);
    assert(list->count == count);
    if (shuffled)
        netsim_flow_list_sort(list, scratch);
    return 0;
}
