/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/workload/workload.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "collective/schedules.h"
#include "netsim/base/flow_list.h"

/* ---- collective waits ------------------------------------------------------------------------------ */

/*
 * What the flows of a collective wait for: those before them that brought their
 * sender the blocks that they carry.
 *
 * A block that several flows are summed up into has arrived with the last of them: a *join*, a task that
 * waits for two. A flow of a later operation waits for its sender to begin it, too, and a member begins one
 * when it has received everything of the one before, and computed: a task.
 *
 * Or, by steps, a flow waits for everything that its sender receives in the steps before. There are no joins
 * then, but a task for each member and step.
 *
 * Built in passes over the same walk: joins and edges are counted, then edges by node, then they are kept.
 *
 *
 * Within an operation, flow i is number i, and join j is number flows + j. By steps, a member's task for step
 * 1 + i of an operation is join i * members + member.
 */

struct collective_waits {
    const struct transfers *transfers;
    uint32_t operations;
    uint32_t flows; /* of one operation */
    bool by_steps;
    uint32_t *holders; /* collective_waits_places(); what brought each block to each place */
    /* Counted: */
    uint32_t joins; /* of one operation; by steps: tasks of members but those that begin it */
    uint64_t edges; /* of all */
    /* NULL: they are only counted. */
    struct netsim_dependencies *graph;
    bool keeps;
};

#define NOBODY UINT32_MAX

static bool is_of(const struct collective_waits *waits, enum collective collective)
{
    return waits->transfers->schedule->collective == collective;
}

/* Numbers that `holders` has: of each member its blocks, of an all-to-all each block of each row. */
static uint64_t collective_waits_places(const struct transfers *transfers)
{
    return (uint64_t)transfers->shape.ranks * transfers->shape.blocks;
}

/* Of an all-to-all, each block is at one member at a time. */
static uint32_t *holder(const struct collective_waits *waits, uint32_t member, uint32_t block)
{
    size_t row = is_of(waits, COLLECTIVE_ALLTOALL) ? 0 : (size_t)member * waits->transfers->shape.blocks;
    assert(row + block < collective_waits_places(waits->transfers));
    return &waits->holders[row + block];
}

/* ---- nodes ------------------------------------------------------------------------------------------- */

static uint32_t collective_waits_tasks(const struct collective_waits *waits)
{
    return waits->operations * (waits->transfers->shape.ranks + waits->joins);
}

/* Of those tasks: the one with which a member begins an operation. */
static uint32_t collective_waits_begin(const struct collective_waits *waits, uint32_t operation,
                                       uint32_t member)
{
    return operation * waits->transfers->shape.ranks + member;
}

static uint32_t begin_node(const struct collective_waits *waits, uint32_t operation, uint32_t member)
{
    return waits->operations * waits->flows + collective_waits_begin(waits, operation, member);
}

static uint32_t node_of(const struct collective_waits *waits, uint32_t operation, uint32_t number)
{
    if (number < waits->flows)
        return operation * waits->flows + number;
    return waits->operations * (waits->flows + waits->transfers->shape.ranks) + operation * waits->joins +
           number - waits->flows;
}

static void edge(struct collective_waits *waits, uint32_t before, uint32_t after)
{
    if (waits->keeps)
        netsim_dependencies_keep(waits->graph, before, after);
    else if (waits->graph != NULL)
        netsim_dependencies_count(waits->graph, before, after);
    else
        waits->edges++;
}

/* ---- one operation ----------------------------------------------------------------------------------- */

/* Blocks that one flow has brought count once, when they are adjacent. */
static void send(struct collective_waits *waits, uint32_t operation, const struct transfer *transfer,
                 uint32_t number)
{
    uint32_t before = NOBODY;
    for (uint32_t i = 0; i < transfer->count; i++) {
        uint32_t brought = *holder(waits, transfer->from, transfer->first + i);
        if (brought != before && brought != NOBODY)
            edge(waits, node_of(waits, operation, brought), node_of(waits, operation, number));
        before = brought;
    }
    if (operation > 0)
        edge(waits, begin_node(waits, operation, transfer->from), node_of(waits, operation, number));
}

/* What is stored takes the place of what was there, but for a barrier's messages: each says that others came.
 */
static void arrive(struct collective_waits *waits, uint32_t operation, const struct transfer *transfer,
                   uint32_t number, uint32_t *joins)
{
    for (uint32_t i = 0; i < transfer->count; i++) {
        uint32_t *held = holder(waits, transfer->to, transfer->first + i);
        uint32_t before = *held;
        *held = number;
        if (before == NOBODY || (!transfer->reduce && !is_of(waits, COLLECTIVE_BARRIER)))
            continue;
        *held = waits->flows + (*joins)++;
        edge(waits, node_of(waits, operation, before), node_of(waits, operation, *held));
        edge(waits, node_of(waits, operation, number), node_of(waits, operation, *held));
    }
    if (operation + 1 < waits->operations)
        edge(waits, node_of(waits, operation, number), begin_node(waits, operation + 1, transfer->to));
}

/* Those of a step carry what came in the steps before. */
static void add_step(struct collective_waits *waits, uint32_t operation, uint32_t step, uint32_t *number,
                     uint32_t *joins)
{
    struct transfer transfer = {.step = step};
    uint32_t first = *number;
    while (transfers_next(waits->transfers, &transfer) && transfer.step == step)
        send(waits, operation, &transfer, (*number)++);
    transfer = (struct transfer){.step = step};
    for (uint32_t i = first; i < *number; i++) {
        transfers_next(waits->transfers, &transfer);
        arrive(waits, operation, &transfer, i, joins);
    }
}

static uint32_t add_operation(struct collective_waits *waits, uint32_t operation)
{
    const struct transfers *transfers = waits->transfers;
    uint32_t steps = schedule_steps(transfers->schedule, &transfers->shape), number = 0, joins = 0;
    memset(waits->holders, 0xFF, collective_waits_places(transfers) * sizeof *waits->holders);
    for (uint32_t step = 0; step < steps; step++)
        add_step(waits, operation, step, &number, &joins);
    assert(number == waits->flows);
    for (uint32_t member = 0; member < transfers->shape.ranks && operation + 1 < waits->operations;
         member++)
        edge(waits, begin_node(waits, operation, member), begin_node(waits, operation + 1, member));
    return joins;
}

/* ---- by steps ---------------------------------------------------------------------------------------- */

/* When a member begins a step; that behind the last one is the next operation. */
static uint32_t step_node(const struct collective_waits *waits, uint32_t operation, uint32_t member,
                          uint32_t step)
{
    const struct transfers *transfers = waits->transfers;
    uint32_t members = transfers->shape.ranks;
    if (step == 0)
        return begin_node(waits, operation, member);
    if (step == schedule_steps(transfers->schedule, &transfers->shape))
        return begin_node(waits, operation + 1, member);
    return node_of(waits, operation, waits->flows + (step - 1) * members + member);
}

static void add_operation_by_steps(struct collective_waits *waits, uint32_t operation)
{
    const struct transfers *transfers = waits->transfers;
    uint32_t steps = schedule_steps(transfers->schedule, &transfers->shape);
    uint32_t after =
        operation + 1 < waits->operations ? steps : steps - 1; /* the last that is waited for */
    struct transfer transfer = {0};
    for (uint32_t number = operation * waits->flows; transfers_next(transfers, &transfer); number++) {
        edge(waits, step_node(waits, operation, transfer.from, transfer.step), number);
        if (transfer.step < after)
            edge(waits, number, step_node(waits, operation, transfer.to, transfer.step + 1));
    }
    for (uint32_t member = 0; member < transfers->shape.ranks; member++)
        for (uint32_t step = 0; step < after; step++)
            edge(waits, step_node(waits, operation, member, step),
                 step_node(waits, operation, member, step + 1));
}

/* ---- all --------------------------------------------------------------------------------------------- */

static void add_operations(struct collective_waits *waits)
{
    for (uint32_t operation = 0; operation < waits->operations; operation++)
        if (waits->by_steps)
            add_operation_by_steps(waits, operation);
        else
            add_operation(waits, operation);
}

/* Sets joins and edges. */
/* Later operations have edges that the first one has not: to each flow, and from each of one before. */
static void collective_waits_count(struct collective_waits *waits)
{
    uint32_t operations = waits->operations;
    const struct transfers *transfers = waits->transfers;
    uint32_t members = transfers->shape.ranks;
    uint64_t between = 2 * (uint64_t)waits->flows + members;
    assert(waits->graph == NULL && operations > 0);
    waits->edges = 0;
    if (waits->by_steps) {
        waits->joins = members * (schedule_steps(transfers->schedule, &transfers->shape) - 1);
        add_operations(waits);
        return;
    }
    waits->operations = 1;
    waits->joins = add_operation(waits, 0);
    waits->operations = operations;
    waits->edges = waits->edges * operations + between * (operations - 1);
}

/* Counts the edges of a graph, lays it out and keeps them. */
static void collective_waits_fill(struct collective_waits *waits, struct netsim_dependencies *graph)
{
    waits->graph = graph;
    add_operations(waits);
    netsim_dependencies_lay_out(graph);
    waits->keeps = true;
    add_operations(waits);
}

/* ---- collective ------------------------------------------------------------------------------------ */

/* Of a broadcast and a reduce, as groups cut them. */
#define BLOCK_BYTES (256u << 10)
/* Members times blocks: there is a number for each (256 MiB). And blocks that all flows of an operation
 * carry, each of which takes some time at set-up. */
#define PLACES_MAX (UINT64_C(1) << 26)
#define MOVED_MAX  (UINT64_C(1) << 28)
#define EDGES_MAX  (UINT64_C(1) << 30)

/* The operation, several times. */
struct group {
    const struct netsim_workload_config *config;
    const struct netsim_graph *graph;
    struct transfers transfers;
    struct site_map map;
    uint32_t members;
};

/* ---- the schedule ------------------------------------------------------------------------------------ */

static int no_schedule(const char *key, const char *value, const char *names)
{
    return lh_fail(LH_EINVAL, "%s: \"%.32s\" is not known (%s)", key, value, names);
}

static void add_name(char *names, size_t size, const char *name)
{
    size_t used = strlen(names);
    snprintf(names + used, size - used, "%s%s", used > 0 ? ", " : "", name);
}

static int no_collective(const char *value)
{
    char names[256] = "";
    for (enum collective each = 0; each < COLLECTIVES; each++)
        if (schedule_find(each, NULL) != NULL)
            add_name(names, sizeof names, collective_name(each));
    return no_schedule("workload.collective", value, names);
}

static int no_such_schedule(const char *value, enum collective collective)
{
    char names[256] = "";
    for (const struct schedule *const *each = schedule_table(); *each != NULL; each++)
        if ((*each)->collective == collective)
            add_name(names, sizeof names, (*each)->name);
    return no_schedule("workload.schedule", value, names);
}

static int find_schedule(const struct netsim_workload_config *config, const struct schedule **schedule)
{
    enum collective collective = 0;
    const char *name = strcmp(config->schedule, "default") == 0 ? NULL : config->schedule;
    while (collective < COLLECTIVES && (strcmp(collective_name(collective), config->collective) != 0 ||
                                        schedule_find(collective, NULL) == NULL))
        collective++;
    if (collective == COLLECTIVES)
        return no_collective(config->collective);
    *schedule = schedule_find(collective, name);
    return *schedule != NULL ? 0 : no_such_schedule(config->schedule, collective);
}

/* ---- members, sites, blocks -------------------------------------------------------------------------- */

static uint32_t host_of(const struct group *group, uint32_t member)
{
    return (uint32_t)((uint64_t)member * group->graph->hosts / group->members);
}

/* Members of a site have consecutive numbers where hosts have. */
static bool is_in_order(const struct group *group)
{
    uint32_t member = 0;
    while (member < group->members && group->map.place_of[member] == member)
        member++;
    return member == group->members;
}

/* As groups do: an all-to-all sends parts of adjacent ranks together. */
static bool uses_map(const struct group *group)
{
    enum collective collective = group->transfers.schedule->collective;
    if (collective == COLLECTIVE_BARRIER || group->map.sites == 1)
        return false;
    return collective != COLLECTIVE_ALLTOALL || is_in_order(group);
}

static void find_sites(struct group *group, uint32_t *numbers)
{
    uint32_t *sites = numbers + site_map_numbers(group->members);
    if (group->graph->sites == 1)
        return;
    for (uint32_t member = 0; member < group->members; member++)
        sites[member] = group->graph->nodes[host_of(group, member)].site;
    site_map_build(&group->map, sites, NULL, group->members, numbers);
    if (uses_map(group))
        group->transfers.shape.map = &group->map;
}

static bool has_parts(enum collective collective)
{
    return collective != COLLECTIVE_BROADCAST && collective != COLLECTIVE_REDUCE;
}

/* As many blocks as bytes at most; together: those of a flow. */
static uint64_t blocks_of(const struct group *group, uint32_t *together)
{
    const struct netsim_workload_config *config = group->config;
    enum collective collective = group->transfers.schedule->collective;
    uint64_t parts = has_parts(collective) ? group->members : 1;
    uint64_t maximum =
        config->block_bytes == 0 && !has_parts(collective) ? BLOCK_BYTES : config->block_bytes;
    uint64_t part_bytes = (config->bytes + parts - 1) / parts;
    *together = UINT32_MAX;
    if (collective == COLLECTIVE_BARRIER)
        return 1;
    if (maximum == 0)
        return parts;
    uint64_t blocks = parts * ((part_bytes + maximum - 1) / maximum);
    uint64_t fit = maximum / ((config->bytes + blocks - 1) / blocks);
    *together = fit < UINT32_MAX ? (uint32_t)fit : UINT32_MAX;
    return blocks;
}

static int check(const struct netsim_workload_config *config, uint32_t hosts, uint32_t members)
{
    if (members > hosts || members < 2)
        return lh_fail(LH_ERANGE, "workload.members %u: out of range (2 to %u hosts)", members, hosts);
    if (config->rounds < 1)
        return lh_fail(LH_ERANGE, "workload.rounds 0: out of range (at least 1)");
    if (config->bytes < members)
        return lh_fail(LH_ERANGE, "workload.bytes %llu: below one byte for each of %u members (raise it)",
                       (unsigned long long)config->bytes, members);
    if (config->compute_ps > NETSIM_TIME_MAX / config->rounds)
        return lh_fail(LH_ERANGE,
                       "workload.compute: the last of %u rounds would begin beyond 106 days, the end of "
                       "virtual time (take fewer rounds)",
                       config->rounds);
    return netsim_workload_check_bytes(config);
}

static int check_blocks(const struct group *group, uint64_t blocks)
{
    const struct netsim_workload_config *config = group->config;
    if (blocks <= config->bytes && blocks * group->members <= PLACES_MAX && blocks <= SCHEDULE_BLOCKS_MAX)
        return 0;
    if (config->block_bytes == 0 && has_parts(group->transfers.schedule->collective))
        return lh_fail(LH_ERANGE, "workload.members %u: too many for %s (lower it)", group->members,
                       config->collective);
    return lh_fail(
        LH_ERANGE,
        "workload.block: %llu blocks of %llu bytes for %u members: out of range (1 to %llu, of a "
        "byte at least; raise it)",
        (unsigned long long)blocks, (unsigned long long)config->bytes, group->members,
        (unsigned long long)(PLACES_MAX / group->members));
}

/* All but the map, for which memory is needed. */
static int prepare(struct group *group)
{
    const struct netsim_workload_config *config = group->config;
    group->members = config->members != 0 ? config->members : group->graph->hosts;
    int rc = find_schedule(config, &group->transfers.schedule);
    if (rc == 0)
        rc = check(config, group->graph->hosts, group->members);
    if (rc != 0)
        return rc;
    uint64_t blocks = blocks_of(group, &group->transfers.together);
    rc = check_blocks(group, blocks);
    if (rc != 0)
        return rc;
    group->transfers.shape = (struct schedule_shape){.ranks = group->members, .blocks = (uint32_t)blocks};
    if (schedule_shape_check(group->transfers.schedule, &group->transfers.shape) != 0)
        return lh_fail(LH_ERANGE, "workload.members %u: too many for %s (lower it)", group->members,
                       config->collective);
    return 0;
}

/* ---- flows ------------------------------------------------------------------------------------------- */

static int count_flows(const struct group *group, uint32_t *flows)
{
    const struct transfers *transfers = &group->transfers;
    uint32_t steps = schedule_steps(transfers->schedule, &transfers->shape);
    uint64_t blocks = 0;
    int rc = netsim_workload_check_count((double)group->config->rounds * group->members * (steps + 1));
    if (rc != 0)
        return rc;
    *flows = transfers_count(transfers, NETSIM_FLOWS_MAX, &blocks);
    if (blocks > MOVED_MAX)
        return lh_fail(LH_ERANGE,
                       "workload.members %u: flows of an operation carry %llu blocks, at most %llu (lower "
                       "it, or raise workload.block)",
                       group->members, (unsigned long long)blocks, (unsigned long long)MOVED_MAX);
    return netsim_workload_check_count((double)group->config->rounds * *flows);
}

static int count_waits(struct collective_waits *waits)
{
    collective_waits_count(waits);
    int rc = netsim_workload_check_count((double)waits->operations *
                                         ((double)waits->joins + waits->transfers->shape.ranks));
    if (rc == 0 && waits->edges > EDGES_MAX)
        rc = lh_fail(LH_ERANGE,
                     "workload.rounds %u: %llu dependencies between flows exceed the maximum of %llu "
                     "(lower it, or raise workload.block)",
                     waits->operations, (unsigned long long)waits->edges, (unsigned long long)EDGES_MAX);
    return rc;
}

static void add_flows(const struct group *group, struct netsim_flow_list *list)
{
    struct transfer transfer = {0};
    for (uint32_t i = 0; i < list->of_operation; i++) {
        transfers_next(&group->transfers, &transfer);
        list->flows[i] = (struct netsim_flow_request){
            .bytes = transfer_bytes(&group->transfers, &transfer, group->config->bytes),
            .source = host_of(group, transfer.from),
            .destination = host_of(group, transfer.to),
        };
    }
    for (uint32_t i = list->of_operation; i < list->count; i++)
        list->flows[i] = list->flows[i - list->of_operation];
}

static void add_spans(const struct group *group, const struct collective_waits *waits,
                      struct netsim_dependencies *graph)
{
    for (uint32_t operation = 1; operation < waits->operations; operation++)
        for (uint32_t member = 0; member < group->members; member++)
            graph->spans_ps[collective_waits_begin(waits, operation, member)] = group->config->compute_ps;
}

/* ---- all --------------------------------------------------------------------------------------------- */

/* The map of sites, and its members' sites. */
static uint64_t map_numbers(uint32_t members)
{
    return site_map_numbers(members) + members;
}

int netsim_workload_collective_scratch(const struct netsim_workload_config *config,
                                       const struct netsim_graph *graph, uint64_t *numbers)
{
    struct group group = {.config = config, .graph = graph};
    int rc = prepare(&group);
    if (rc == 0)
        *numbers = map_numbers(group.members) + collective_waits_places(&group.transfers);
    return rc;
}

int netsim_workload_collective(const struct netsim_workload *workload)
{
    struct netsim_flow_list *list = workload->list;
    struct group group = {.config = workload->config, .graph = workload->graph};
    int rc = prepare(&group);
    if (rc != 0)
        return rc;
    find_sites(&group, workload->scratch);
    rc = count_flows(&group, &list->of_operation);
    if (rc != 0)
        return rc;
    struct collective_waits waits = {.transfers = &group.transfers,
                                     .operations = group.config->rounds,
                                     .flows = list->of_operation,
                                     .by_steps = group.config->by_steps,
                                     .holders = workload->scratch + map_numbers(group.members)};
    rc = count_waits(&waits);
    if (rc != 0)
        return rc;
    list->in_order = !waits.by_steps;
    list->count = list->dependents = waits.operations * waits.flows;
    list->flows = netsim_arena_take(workload->arena, list->count, sizeof *list->flows);
    netsim_dependencies_init(&list->dependencies, list->count, collective_waits_tasks(&waits), waits.edges,
                             workload->arena);
    if (workload->arena->base == NULL)
        return 0;
    add_flows(&group, list);
    add_spans(&group, &waits, &list->dependencies);
    collective_waits_fill(&waits, &list->dependencies);
    return 0;
}

/* ---- rounds ---------------------------------------------------------------------------------------- */

struct rounds {
    const struct netsim_workload_config *config;
    struct netsim_flow_list *list;
    const struct netsim_graph *graph;
    uint32_t hosts;
    uint32_t senders;  /* incast */
    uint32_t *sampled; /* permutation: to whom each host sends; incast: who sends; else NULL */
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
static void sample_some(struct rounds *rounds, uint32_t count, uint32_t others)
{
    for (uint32_t i = 0; i < others; i++)
        rounds->sampled[i] = i;
    for (uint32_t i = 0; i < count; i++)
        swap(&rounds->sampled[i], &rounds->sampled[i + lh_prng_below(&rounds->pairs, others - i)]);
}

/* Each host of the first group to one of the rest. */
static void add_crossing(struct rounds *rounds)
{
    const struct netsim_host_groups *groups = &rounds->groups;
    sample_some(rounds, groups->senders, rounds->hosts - groups->senders);
    for (uint32_t i = 0; i < groups->senders; i++)
        add_flow(rounds, groups->order[i], groups->order[groups->senders + rounds->sampled[i]]);
}

/* Each host to one other of its group. */
static void add_permutation(struct rounds *rounds)
{
    const struct netsim_host_groups *groups = &rounds->groups;
    for (uint32_t group = 0; group < NETSIM_GROUPS_MAX; group++) {
        const uint32_t *members = groups->order + groups->first[group];
        uint32_t count = groups->first[group + 1] - groups->first[group];
        while (count > 0 && !try_derangement(rounds->sampled, count, &rounds->pairs))
            continue;
        for (uint32_t i = 0; i < count; i++)
            add_flow(rounds, members[i], members[rounds->sampled[i]]);
    }
}

static void add_incast(struct rounds *rounds)
{
    uint32_t receiver = rounds->config->receiver;
    if (receiver == UINT32_MAX)
        receiver = (uint32_t)lh_prng_below(&rounds->pairs, rounds->hosts);
    sample_some(rounds, rounds->senders, rounds->hosts - 1);
    for (uint32_t i = 0; i < rounds->senders; i++) {
        uint32_t sender = rounds->sampled[i];
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
                       "workload.matrix: across, %u hosts of site 0, but %u others to send to (place as "
                       "many there, or choose uniform)",
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
        return lh_fail(
            LH_ERANGE,
            "workload.gap: the last of %u rounds would start beyond 106 days, the end of virtual time "
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
static int rounds_check(struct rounds *rounds, uint64_t *count)
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
                            .pairs = lh_prng_fork(workload->prng, NETSIM_SAMPLE_PAIRS),
                            .jitter = lh_prng_fork(workload->prng, NETSIM_SAMPLE_JITTER)};
    if (rounds.senders == 0)
        rounds.senders = rounds.hosts - 1;
    uint64_t count = 0;
    int rc = rounds_check(&rounds, &count);
    if (rc != 0)
        return rc;

    struct netsim_flow_list *list = workload->list;
    bool shuffled = config->jitter_ps > 0;
    list->flows = netsim_arena_take(workload->arena, count, sizeof *list->flows);
    rounds.sampled = netsim_arena_take(workload->arena, rounds.hosts, sizeof *rounds.sampled);
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
