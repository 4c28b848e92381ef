/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/collective/kind.h"

#include <string.h>

enum place {
    ALLREDUCE,
    REDUCE,
    BROADCAST,
    ALLGATHER,
    REDUCE_SCATTER,
    GATHER,
    SCATTER,
    ALLTOALL,
    BARRIER,
    KINDS
};

static const struct cli_kind kinds[KINDS] = {
    [ALLREDUCE] = {"allreduce", .reduces = true},
    [REDUCE] = {"reduce", .reduces = true, .rooted = true, .out_root = true},
    [BROADCAST] = {"broadcast", .rooted = true},
    [ALLGATHER] = {"allgather", .out_parts = true},
    [REDUCE_SCATTER] = {"reduce-scatter", .reduces = true, .in_parts = true},
    [GATHER] = {"gather", .rooted = true, .out_parts = true, .out_root = true},
    [SCATTER] = {"scatter", .rooted = true, .in_parts = true, .in_root = true},
    [ALLTOALL] = {"alltoall", .in_parts = true, .out_parts = true},
    [BARRIER] = {"barrier"},
};

static enum place place_of(const struct cli_call *call)
{
    return (enum place)(call->kind - kinds);
}

const struct cli_kind *cli_kind_find(const char *name)
{
    for (size_t i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

const char *cli_kind_names(void)
{
    return "allreduce, reduce, broadcast, allgather, reduce-scatter, gather, scatter, alltoall, barrier";
}

/* ---- buffers ----------------------------------------------------------------------------------------- */

size_t cli_call_in(const struct cli_call *call)
{
    if (place_of(call) == BARRIER || (call->kind->in_root && call->rank != call->root))
        return 0;
    return call->count * (call->kind->in_parts ? call->ranks : 1);
}

size_t cli_call_out(const struct cli_call *call)
{
    if (place_of(call) == BARRIER || (call->kind->out_root && call->rank != call->root))
        return 0;
    return call->count * (call->kind->out_parts ? call->ranks : 1);
}

static bool has_parts(const struct cli_call *call)
{
    return call->kind->in_parts || call->kind->out_parts;
}

size_t cli_call_total(const struct cli_call *call)
{
    return place_of(call) == BARRIER ? 0 : call->count * (has_parts(call) ? call->ranks : 1);
}

size_t cli_call_count(const struct cli_call *call, size_t elements)
{
    if (place_of(call) == BARRIER)
        return 0;
    return has_parts(call) ? elements / call->ranks : elements;
}

double cli_call_bus_factor(const struct cli_call *call)
{
    double others = (double)(call->ranks - 1) / call->ranks;
    if (place_of(call) == ALLREDUCE)
        return 2 * others;
    return has_parts(call) ? others : 1;
}

void cli_call_source(const struct cli_call *call, size_t element, uint32_t *source, size_t *index)
{
    *source = call->root;
    *index = element;
    switch (place_of(call)) {
    case ALLGATHER:
    case GATHER:
        *source = (uint32_t)(element / call->count);
        *index = element % call->count;
        break;
    case ALLTOALL:
        *source = (uint32_t)(element / call->count);
        *index = call->rank * call->count + element % call->count;
        break;
    case REDUCE_SCATTER:
    case SCATTER:
        *index = call->rank * call->count + element;
        break;
    default:
        break;
    }
}

int cli_call_start(const struct cli_call *c, struct lh_group *group, const void *in, void *out,
                   const struct lh_collective_options *options, struct lh_collective **op)
{
    switch (place_of(c)) {
    case ALLREDUCE:
        return lh_allreduce(group, in, out, c->count, c->type, c->reduction, options, op);
    case REDUCE:
        return lh_reduce(group, in, out, c->count, c->type, c->reduction, c->root, options, op);
    case BROADCAST:
        return lh_broadcast(group, out, c->count, c->type, c->root, options, op);
    case ALLGATHER:
        return lh_allgather(group, in, out, c->count, c->type, options, op);
    case REDUCE_SCATTER:
        return lh_reduce_scatter(group, in, out, c->count, c->type, c->reduction, options, op);
    case GATHER:
        return lh_gather(group, in, out, c->count, c->type, c->root, options, op);
    case SCATTER:
        return lh_scatter(group, in, out, c->count, c->type, c->root, options, op);
    case ALLTOALL:
        return lh_alltoall(group, in, out, c->count, c->type, options, op);
    default:
        return lh_barrier(group, options, op);
    }
}
