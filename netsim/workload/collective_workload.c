/*
 * collective.c - see collective.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/collective.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "collective/schedule/schedule_table.h"
#include "netsim/workload/collective_waits.h"

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
    uint64_t most = config->block_bytes == 0 && !has_parts(collective) ? BLOCK_BYTES : config->block_bytes;
    uint64_t part_bytes = (config->bytes + parts - 1) / parts;
    *together = UINT32_MAX;
    if (collective == COLLECTIVE_BARRIER)
        return 1;
    if (most == 0)
        return parts;
    uint64_t blocks = parts * ((part_bytes + most - 1) / most);
    uint64_t fit = most / ((config->bytes + blocks - 1) / blocks);
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
                       "workload.compute: the last of %u rounds would begin after the end of time, 106 "
                       "days (take fewer rounds)",
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
        rc = lh_fail(
            LH_ERANGE,
            "workload.rounds %u: flows wait %llu times for others, at most %llu (lower it, or raise "
            "workload.block)",
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
