/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/choice.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "collective/schedule/schedule_table.h"

/* Of a message at both hosts, and of the sums: estimates, not measured. They weigh little where a round trip
 * takes a millisecond; between ranks of a host the choice is only as good as they are. */
#define MESSAGE_NS        20000.0
#define REDUCE_NS_A_BYTE  0.2
#define RATE_UNKNOWN_BPS  1e10
#define BITS_A_NANOSECOND 1e9

/* What a rank does at most, by the table of docs/collectives.md. */
struct cost {
    double steps;
    double sent;    /* in bytes of a row */
    double reduced; /* likewise */
};

struct problem {
    double ranks;
    double sites;
    double largest; /* ranks of a site */
    double blocks;  /* of a row */
    double floor_log;
    double ceil_log;
    bool power;
};

static struct cost ring(const struct problem *p)
{
    return (struct cost){p->ranks - 1, (p->ranks - 1) / p->ranks, (p->ranks - 1) / p->ranks};
}

static struct cost ring_twice(const struct problem *p)
{
    struct cost once = ring(p);
    return (struct cost){2 * once.steps, 2 * once.sent, once.reduced};
}

static struct cost bruck(const struct problem *p)
{
    struct cost once = ring(p);
    return (struct cost){p->ceil_log, once.sent, once.reduced};
}

static struct cost bruck_twice(const struct problem *p)
{
    struct cost once = bruck(p);
    return (struct cost){2 * once.steps, 2 * once.sent, once.reduced};
}

static struct cost bruck_pairs(const struct problem *p)
{
    return (struct cost){p->ceil_log, p->ceil_log / 2, 0};
}

static struct cost halving(const struct problem *p)
{
    struct cost power = {2 * p->floor_log, 2 * ring(p).sent, ring(p).reduced};
    return p->power ? power : (struct cost){power.steps + 2, 3, 2};
}

static struct cost direct(const struct problem *p)
{
    return (struct cost){1, p->ranks - 1, p->ranks - 1};
}

/* Steps inside a site cost no round trip. */
static struct cost hierarchical(const struct problem *p)
{
    if (p->sites < 2)
        return (struct cost){INFINITY, 0, 0};
    return (struct cost){p->largest > 1 ? 2 : 1, 2 * (p->sites - 1) / p->sites / p->largest, 1};
}

/* Each site gets each block once, over a link of its own. */
static struct cost hybrid(const struct problem *p)
{
    if (p->sites < 2)
        return (struct cost){INFINITY, 0, 0};
    double log = ceil(log2(p->sites));
    return (struct cost){log, (log + p->blocks - 1) / p->blocks, 1};
}

static struct cost pipeline(const struct problem *p)
{
    double steps = p->ceil_log + p->blocks - 1;
    return (struct cost){p->ceil_log, steps / p->blocks, 1};
}

static struct cost tree(const struct problem *p)
{
    return (struct cost){p->ceil_log, p->ceil_log, 1};
}

static struct cost chain(const struct problem *p)
{
    return (struct cost){p->ranks - 1, (p->ranks - 2 + p->blocks) / p->blocks, 1};
}

static struct cost tree_of_parts(const struct problem *p)
{
    return (struct cost){p->ceil_log, (p->ranks - 1) / p->ranks, 0};
}

static struct cost only(const struct problem *p)
{
    return (struct cost){p->ceil_log, 0, 0};
}

static const struct {
    enum collective collective;
    const char *name;
    struct cost (*cost)(const struct problem *problem);
} costs[] = {
    {COLLECTIVE_ALLREDUCE, "direct", direct},
    {COLLECTIVE_ALLREDUCE, "hierarchical", hierarchical},
    {COLLECTIVE_ALLREDUCE, "halving-doubling", halving},
    {COLLECTIVE_ALLREDUCE, "bruck", bruck_twice},
    {COLLECTIVE_ALLREDUCE, "ring", ring_twice},
    {COLLECTIVE_REDUCE_SCATTER, "bruck", bruck},
    {COLLECTIVE_REDUCE_SCATTER, "ring", ring},
    {COLLECTIVE_ALLGATHER, "bruck", bruck},
    {COLLECTIVE_ALLGATHER, "ring", ring},
    {COLLECTIVE_ALLTOALL, "pairwise", ring},
    {COLLECTIVE_ALLTOALL, "bruck", bruck_pairs},
    {COLLECTIVE_BROADCAST, "binomial-pipeline", pipeline},
    {COLLECTIVE_BROADCAST, "binomial-tree", tree},
    {COLLECTIVE_BROADCAST, "chain", chain},
    {COLLECTIVE_REDUCE, "binomial-pipeline", pipeline},
    {COLLECTIVE_BROADCAST, "hybrid", hybrid},
    {COLLECTIVE_REDUCE, "hybrid", hybrid},
    {COLLECTIVE_REDUCE, "binomial-tree", tree},
    {COLLECTIVE_REDUCE, "chain", chain},
    {COLLECTIVE_SCATTER, "binomial-tree", tree_of_parts},
    {COLLECTIVE_GATHER, "binomial-tree", tree_of_parts},
    {COLLECTIVE_BARRIER, "dissemination", only},
};

static uint32_t floor_log2(uint32_t value)
{
    return 31 - (uint32_t)__builtin_clz(value);
}

static bool adds(enum collective collective)
{
    return collective == COLLECTIVE_ALLREDUCE || collective == COLLECTIVE_REDUCE ||
           collective == COLLECTIVE_REDUCE_SCATTER;
}

uint64_t choice_expected_ns(const struct schedule *schedule, uint32_t ranks, uint64_t bytes,
                            uint64_t block_bytes, const struct choice_path *path)
{
    bool power = (ranks & (ranks - 1)) == 0;
    const struct problem problem = {
        .ranks = ranks,
        .sites = path->sites,
        .largest = path->largest,
        .blocks = bytes > block_bytes ? (double)bytes / (double)block_bytes : 1,
        .floor_log = floor_log2(ranks),
        .ceil_log = floor_log2(ranks) + !power,
        .power = power,
    };
    double rate = path->rate_bps > 0 ? (double)path->rate_bps : RATE_UNKNOWN_BPS;
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        if (costs[i].collective != schedule->collective || strcmp(costs[i].name, schedule->name) != 0)
            continue;
        struct cost cost = costs[i].cost(&problem);
        double reduced = adds(schedule->collective) ? cost.reduced : 0;
        if (isinf(cost.steps))
            return UINT64_MAX;
        return (uint64_t)(cost.steps * ((double)path->rtt_ns / 2 + MESSAGE_NS) +
                          cost.sent * (double)bytes * 8 * BITS_A_NANOSECOND / rate +
                          reduced * (double)bytes * REDUCE_NS_A_BYTE);
    }
    return UINT64_MAX;
}

const struct schedule *choice_make(enum collective collective, uint32_t ranks, uint64_t bytes,
                                   uint64_t block_bytes, const struct choice_path *path)
{
    const struct schedule *best = schedule_find(collective, NULL);
    uint64_t least = choice_expected_ns(best, ranks, bytes, block_bytes, path);
    for (const struct schedule *const *s = schedule_table(); *s; s++) {
        if ((*s)->collective != collective)
            continue;
        uint64_t expected = choice_expected_ns(*s, ranks, bytes, block_bytes, path);
        if (expected < least) {
            least = expected;
            best = *s;
        }
    }
    return best;
}
