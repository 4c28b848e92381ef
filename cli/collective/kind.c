/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/collective/kind.h"

#include "cli/options/suggest.h"

#include <ctype.h>
#include <string.h>

/* Names are compared up to this length. */
#define NAME_MAX_BYTES 32

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
    GATHERV,
    SCATTERV,
    ALLTOALLV,
    KINDS
};

static const struct cli_kind kinds[KINDS] = {
    [ALLREDUCE] = {"allreduce", .reduces = true, .same = true},
    [REDUCE] = {"reduce", .reduces = true, .rooted = true, .out_root = true},
    [BROADCAST] = {"broadcast", .rooted = true, .same = true},
    [ALLGATHER] = {"allgather", .out_parts = true, .same = true},
    [REDUCE_SCATTER] = {"reduce-scatter", .reduces = true, .in_parts = true},
    [GATHER] = {"gather", .rooted = true, .out_parts = true, .out_root = true},
    [SCATTER] = {"scatter", .rooted = true, .in_parts = true, .in_root = true},
    [ALLTOALL] = {"alltoall", .in_parts = true, .out_parts = true},
    [BARRIER] = {"barrier", .no_data = true},
    [GATHERV] = {"gatherv", .rooted = true, .out_parts = true, .out_root = true, .uneven = true},
    [SCATTERV] = {"scatterv", .rooted = true, .in_parts = true, .in_root = true, .uneven = true},
    [ALLTOALLV] = {"alltoallv", .in_parts = true, .out_parts = true, .uneven = true},
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

/* Small letters alone, and without what nccl-tests call their programs. */
static void simplify(const char *name, char out[NAME_MAX_BYTES])
{
    size_t used = 0;
    for (; *name && strcmp(name, "_perf") != 0; name++)
        if (isalpha((unsigned char)*name) && used + 1 < NAME_MAX_BYTES)
            out[used++] = (char)tolower((unsigned char)*name);
    out[used] = '\0';
}

const char *cli_kind_close(const char *typed)
{
    char name[NAME_MAX_BYTES], kind[NAME_MAX_BYTES];
    simplify(typed, name);
    if (!strcmp(name, "bcast"))
        return kinds[BROADCAST].name;
    for (int exact = 1; exact >= 0; exact--)
        for (size_t i = 0; i < KINDS; i++) {
            simplify(kinds[i].name, kind);
            if (exact ? !strcmp(name, kind) : cli_is_close(name, kind))
                return kinds[i].name;
        }
    return NULL;
}

const char *cli_kind_names(void)
{
    return "allreduce, reduce, broadcast, allgather, reduce-scatter, gather, scatter, alltoall, barrier, "
           "gatherv, scatterv, alltoallv";
}

/* ---- buffers ----------------------------------------------------------------------------------------- */

static bool has_parts(const struct cli_call *call)
{
    return call->kind->in_parts || call->kind->out_parts;
}

/* Elements that a rank has for another one. Of a v-variant all rows, and all columns, have the same sum. */
static size_t part(const struct cli_call *call, uint32_t source, uint32_t destination)
{
    uint64_t place = (uint64_t)source + destination;
    return call->count * (call->kind->uneven ? 1 + (size_t)(place % call->ranks) : 1);
}

/* Counts of a row of parts. */
static size_t counts_of_row(const struct cli_call *call)
{
    size_t ranks = call->ranks;
    return !has_parts(call) ? 1 : call->kind->uneven ? ranks * (ranks + 1) / 2 : ranks;
}

size_t cli_call_in(const struct cli_call *call)
{
    if (place_of(call) == BARRIER || (call->kind->in_root && call->rank != call->root))
        return 0;
    return call->kind->in_parts ? cli_call_total(call) : part(call, call->rank, call->root);
}

size_t cli_call_out(const struct cli_call *call)
{
    if (place_of(call) == BARRIER || (call->kind->out_root && call->rank != call->root))
        return 0;
    return call->kind->out_parts ? cli_call_total(call) : part(call, call->root, call->rank);
}

size_t cli_call_total(const struct cli_call *call)
{
    return place_of(call) == BARRIER ? 0 : call->count * counts_of_row(call);
}

size_t cli_call_count(const struct cli_call *call, size_t elements)
{
    return place_of(call) == BARRIER ? 0 : elements / counts_of_row(call);
}

size_t cli_call_elements_min(const struct cli_call *call)
{
    return counts_of_row(call);
}

double cli_call_bus_factor(const struct cli_call *call)
{
    double others = (double)(call->ranks - 1) / call->ranks;
    if (place_of(call) == ALLREDUCE)
        return 2 * others;
    return has_parts(call) ? others : 1;
}

/* The rank that an element of this rank's output is of, and its place in that part. */
static uint32_t source_of(const struct cli_call *call, size_t *index)
{
    uint32_t source = 0;
    while (*index >= part(call, source, call->rank))
        *index -= part(call, source++, call->rank);
    return source;
}

/* Elements of a rank's input before those for this one. */
static size_t before(const struct cli_call *call, uint32_t source)
{
    size_t sum = 0;
    for (uint32_t r = 0; r < call->rank; r++)
        sum += part(call, source, r);
    return sum;
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
    case GATHERV:
        *source = source_of(call, index);
        break;
    case SCATTERV:
        *index = before(call, call->root) + element;
        break;
    case ALLTOALLV:
        *source = source_of(call, index);
        *index += before(call, *source);
        break;
    default:
        break;
    }
}

static int start_uneven(const struct cli_call *c, struct lh_group *group, const void *in, void *out,
                        const struct lh_collective_options *options, struct lh_collective **op)
{
    size_t ins[LH_GROUP_RANKS_MAX], outs[LH_GROUP_RANKS_MAX];
    for (uint32_t r = 0; r < c->ranks; r++) {
        ins[r] = part(c, c->rank, r);
        outs[r] = part(c, r, c->rank);
    }
    if (place_of(c) == GATHERV)
        return lh_gatherv(group, in, ins[c->root], out, outs, c->type, c->root, options, op);
    if (place_of(c) == SCATTERV)
        return lh_scatterv(group, in, ins, out, outs[c->root], c->type, c->root, options, op);
    return lh_alltoallv(group, in, ins, out, outs, c->type, options, op);
}

int cli_call_start(const struct cli_call *c, struct lh_group *group, const void *in, void *out,
                   const struct lh_collective_options *options, struct lh_collective **op)
{
    if (c->kind->uneven)
        return start_uneven(c, group, in, out, options, op);
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
