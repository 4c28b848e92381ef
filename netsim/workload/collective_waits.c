/*
 * collective_waits.c - see collective_waits.h.
 *
 * Within an operation, flow i is number i, and join j is number flows + j. By steps, a member's task for step
 * 1 + i of an operation is join i * members + member.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/collective_waits.h"

#include <assert.h>
#include <string.h>

#define NOBODY UINT32_MAX

static bool is_of(const struct collective_waits *waits, enum collective collective)
{
    return waits->transfers->schedule->collective == collective;
}

uint64_t collective_waits_places(const struct transfers *transfers)
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

uint32_t collective_waits_tasks(const struct collective_waits *waits)
{
    return waits->operations * (waits->transfers->shape.ranks + waits->joins);
}

uint32_t collective_waits_begin(const struct collective_waits *waits, uint32_t operation, uint32_t member)
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

/* Later operations have edges that the first one has not: to each flow, and from each of one before. */
void collective_waits_count(struct collective_waits *waits)
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

void collective_waits_fill(struct collective_waits *waits, struct netsim_dependencies *graph)
{
    waits->graph = graph;
    add_operations(waits);
    netsim_dependencies_lay_out(graph);
    waits->keeps = true;
    add_operations(waits);
}
