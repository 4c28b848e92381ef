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

/* The operation, several times. A member begins a step when it has received all of the one before, and then
 * sends what it has to; it begins an operation when it has ended the one before, and computed. */
struct group {
    const struct schedule *schedule;
    struct schedule_shape shape; /* as many blocks as members; of a barrier one, its message */
    uint32_t operations;
    uint32_t steps;
    uint32_t flows; /* of one operation; they stand together */
    uint32_t hosts; /* of the network, among which the members are spread */
    struct netsim_dependencies *graph;
    bool counting; /* edges are counted first, and kept then */
};

/* ---- the schedule ------------------------------------------------------------------------------------ */

/* A transfer of an operation, and the next one; starts as {0}. */
struct walk {
    uint32_t step;
    uint32_t place;
    struct schedule_cursor cursor;
    struct schedule_transfer transfer;
};

static bool next_transfer(const struct group *group, struct walk *walk)
{
    uint32_t steps = schedule_steps(group->schedule, &group->shape);
    while (walk->step < steps) {
        if (schedule_next_send(group->schedule, &group->shape, walk->place, walk->step, &walk->cursor,
                               &walk->transfer))
            return true;
        walk->cursor = (struct schedule_cursor){0};
        walk->place = (walk->place + 1) % group->shape.ranks;
        walk->step += walk->place == 0;
    }
    return false;
}

static uint32_t count_transfers(const struct group *group)
{
    struct walk walk = {0};
    uint32_t count = 0;
    while (next_transfer(group, &walk))
        count++;
    return count;
}

/* Blocks are the tensor's bytes, shared out evenly. Products have at most 60 bits: 2^44 bytes, 2^16
 * blocks. */
static uint64_t bytes_of(const struct schedule_shape *shape, const struct schedule_transfer *transfer,
                         uint64_t bytes)
{
    uint64_t first = transfer->first % shape->blocks;
    return bytes * (first + transfer->count) / shape->blocks - bytes * first / shape->blocks;
}

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

/* ---- flows and steps --------------------------------------------------------------------------------- */

/* The node at which a member begins a step of an operation; the step behind the last is the end. */
static uint32_t task_of(const struct group *group, uint32_t operation, uint32_t place, uint32_t step)
{
    return group->graph->flows + (operation * group->shape.ranks + place) * (group->steps + 1) + step;
}

static uint32_t host_of(const struct group *group, uint32_t place)
{
    return (uint32_t)((uint64_t)place * group->hosts / group->shape.ranks);
}

static void add_flows(const struct group *group, const struct netsim_workload *workload)
{
    struct netsim_flow_request *flows = workload->list->flows;
    struct walk walk = {0};
    for (uint32_t i = 0; i < group->flows; i++) {
        next_transfer(group, &walk);
        flows[i] = (struct netsim_flow_request){
            .bytes = bytes_of(&group->shape, &walk.transfer, workload->config->bytes),
            .source = host_of(group, walk.place),
            .destination = host_of(group, walk.transfer.peer),
        };
        for (uint32_t operation = 1; operation < group->operations; operation++)
            flows[operation * group->flows + i] = flows[i];
    }
}

/* ---- the graph --------------------------------------------------------------------------------------- */

static void edge(const struct group *group, uint32_t before, uint32_t after)
{
    if (group->counting)
        netsim_dependencies_count(group->graph, before, after);
    else
        netsim_dependencies_keep(group->graph, before, after);
}

static void add_operation(const struct group *group, uint32_t operation)
{
    uint32_t number = operation * group->flows;
    struct walk walk = {0};
    for (; next_transfer(group, &walk); number++) {
        edge(group, task_of(group, operation, walk.place, walk.step), number);
        edge(group, number, task_of(group, operation, walk.transfer.peer, walk.step + 1));
    }
    for (uint32_t place = 0; place < group->shape.ranks; place++) {
        for (uint32_t step = 0; step < group->steps; step++)
            edge(group, task_of(group, operation, place, step), task_of(group, operation, place, step + 1));
        if (operation + 1 < group->operations)
            edge(group, task_of(group, operation, place, group->steps),
                 task_of(group, operation + 1, place, 0));
    }
}

static void add_edges(struct group *group, bool counting)
{
    group->counting = counting;
    for (uint32_t operation = 0; operation < group->operations; operation++)
        add_operation(group, operation);
}

static uint32_t tasks_of_operation(const struct group *group)
{
    return group->shape.ranks * (group->steps + 1);
}

static uint64_t count_edges(const struct group *group)
{
    uint64_t tasks = tasks_of_operation(group);
    return group->operations * (2 * (uint64_t)group->flows + tasks) - group->shape.ranks;
}

static void add_spans(const struct group *group, netsim_time compute_ps)
{
    for (uint32_t operation = 1; operation < group->operations; operation++)
        for (uint32_t place = 0; place < group->shape.ranks; place++)
            group->graph->spans_ps[task_of(group, operation, place, 0) - group->graph->flows] = compute_ps;
}

/* ---- all --------------------------------------------------------------------------------------------- */

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

static int prepare(struct group *group, const struct netsim_workload_config *config)
{
    uint32_t members = config->members != 0 ? config->members : group->hosts;
    int rc = find_schedule(config, &group->schedule);
    if (rc == 0)
        rc = check(config, group->hosts, members);
    if (rc != 0)
        return rc;
    bool data = group->schedule->collective != COLLECTIVE_BARRIER;
    group->shape = (struct schedule_shape){.ranks = members, .blocks = data ? members : 1};
    if (schedule_shape_check(group->schedule, &group->shape) != 0)
        return lh_fail(LH_ERANGE, "workload.members %u: too many for %s (lower it)", members,
                       config->collective);
    group->operations = config->rounds;
    group->steps = schedule_steps(group->schedule, &group->shape);
    double tasks = (double)members * (group->steps + 1);
    rc = netsim_workload_check_count(config->rounds * tasks);
    if (rc != 0)
        return rc;
    group->flows = count_transfers(group);
    return netsim_workload_check_count((double)config->rounds * group->flows);
}

int netsim_workload_collective(const struct netsim_workload *workload)
{
    struct netsim_flow_list *list = workload->list;
    struct group group = {.graph = &list->dependencies, .hosts = workload->graph->hosts};
    int rc = prepare(&group, workload->config);
    if (rc != 0)
        return rc;
    list->count = list->dependents = group.operations * group.flows;
    list->of_operation = group.flows;
    list->flows = netsim_arena_take(workload->arena, list->count, sizeof *list->flows);
    netsim_dependencies_init(group.graph, list->count, group.operations * tasks_of_operation(&group),
                             count_edges(&group), workload->arena);
    if (workload->arena->base == NULL)
        return 0;
    add_flows(&group, workload);
    add_spans(&group, workload->config->compute_ps);
    add_edges(&group, true);
    netsim_dependencies_lay_out(group.graph);
    add_edges(&group, false);
    return 0;
}
