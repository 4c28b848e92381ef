/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/parts.h"

#include <assert.h>

#include "base/error.h"
#include "collective/run/layout.h"
#include "collective/schedule/pairwise.h"
#include "collective/schedule/sequential.h"

const char *parts_collective_name(enum collective collective)
{
    switch (collective) {
    case COLLECTIVE_GATHER:
        return "gatherv";
    case COLLECTIVE_SCATTER:
        return "scatterv";
    case COLLECTIVE_ALLTOALL:
        return "alltoallv";
    default:
        return NULL;
    }
}

const struct schedule *parts_schedule(enum collective collective)
{
    switch (collective) {
    case COLLECTIVE_GATHER:
        return &sequential_gather;
    case COLLECTIVE_SCATTER:
        return &sequential_scatter;
    default:
        assert(collective == COLLECTIVE_ALLTOALL);
        return &pairwise_alltoall;
    }
}

/* ---- making them ------------------------------------------------------------------------------------- */

static bool is_root(const struct parts_request *request)
{
    return request->rank == request->root;
}

/* What a rank has for another one. */
static uint64_t in_count(const struct parts_request *request, uint32_t rank)
{
    switch (request->collective) {
    case COLLECTIVE_GATHER:
        return rank == request->root ? request->count : 0;
    case COLLECTIVE_SCATTER:
        return is_root(request) ? request->in_counts[rank] : 0;
    default:
        return request->in_counts[rank];
    }
}

static uint64_t out_count(const struct parts_request *request, uint32_t rank)
{
    switch (request->collective) {
    case COLLECTIVE_SCATTER:
        return rank == request->root ? request->count : 0;
    case COLLECTIVE_GATHER:
        return is_root(request) ? request->out_counts[rank] : 0;
    default:
        return request->out_counts[rank];
    }
}

static int add(struct parts *parts, const struct parts_request *request, uint32_t rank, uint64_t elements,
               uint64_t *before, struct part *part)
{
    bool own = rank == request->rank;
    uint64_t per_block = parts->per_block;
    if (elements > LAYOUT_ELEMENTS_MAX - parts->elements)
        return lh_fail(LH_EINVAL, "%s: %llu elements for or of rank %u: out of range",
                       parts_collective_name(request->collective), (unsigned long long)elements, rank);
    uint64_t blocks = own ? 0 : elements / per_block + (elements % per_block > 0);
    if (blocks > SCHEDULE_BLOCKS_MAX - parts->blocks)
        return lh_fail(LH_EINVAL,
                       "%s: %llu elements for or of rank %u: too many blocks (raise block_bytes)",
                       parts_collective_name(request->collective), (unsigned long long)elements, rank);
    *part = (struct part){
        .before = *before, .elements = elements, .first = parts->blocks, .blocks = (uint32_t)blocks};
    *before += elements;
    parts->blocks += (uint32_t)blocks;
    parts->elements += elements;
    return 0;
}

static struct schedule_extent extent_of(const struct part *part)
{
    return (struct schedule_extent){part->first, part->blocks};
}

static void set_extents(struct parts *parts, const struct parts_request *request)
{
    uint32_t ranks = request->ranks, own = request->rank;
    bool gathers = request->collective == COLLECTIVE_GATHER;
    for (uint32_t r = 0; r < ranks; r++) {
        if (request->collective == COLLECTIVE_ALLTOALL) {
            parts->extents[(size_t)own * ranks + r] = extent_of(&parts->in[r]);
            if (r != own)
                parts->extents[(size_t)r * ranks + own] = extent_of(&parts->out[r]);
        } else if (is_root(request)) {
            parts->extents[r] = extent_of(gathers ? &parts->out[r] : &parts->in[r]);
        } else if (r == own) {
            parts->extents[r] = extent_of(gathers ? &parts->in[request->root] : &parts->out[request->root]);
        }
    }
}

static int fill(struct parts *parts, const struct parts_request *request)
{
    uint64_t before = 0;
    int error = 0;
    for (uint32_t r = 0; r < request->ranks && !error; r++)
        error = add(parts, request, r, in_count(request, r), &before, &parts->in[r]);
    parts->in_blocks = parts->blocks;
    before = 0;
    for (uint32_t r = 0; r < request->ranks && !error; r++)
        error = add(parts, request, r, out_count(request, r), &before, &parts->out[r]);
    const struct part *in = &parts->in[request->rank], *out = &parts->out[request->rank];
    if (!error && in->elements != out->elements)
        return lh_fail(LH_EINVAL, "%s: rank %u has %llu elements for itself, and gets %llu",
                       parts_collective_name(request->collective), request->rank,
                       (unsigned long long)in->elements, (unsigned long long)out->elements);
    if (!error)
        set_extents(parts, request);
    return error;
}

static size_t extents_of(const struct parts_request *request)
{
    size_t ranks = request->ranks;
    return request->collective == COLLECTIVE_ALLTOALL ? ranks * ranks : ranks;
}

size_t parts_memory(const struct parts_request *request)
{
    return 2 * (size_t)request->ranks * sizeof(struct part) +
           extents_of(request) * sizeof(struct schedule_extent);
}

int parts_make(const struct parts_request *request, void *memory, struct parts *parts)
{
    struct part *of = memory;
    assert(request->per_block > 0 && request->rank < request->ranks);
    *parts = (struct parts){.ranks = request->ranks,
                            .in = of,
                            .out = of + request->ranks,
                            .extents = (struct schedule_extent *)(of + 2 * (size_t)request->ranks),
                            .per_block = request->per_block};
    return fill(parts, request);
}

/* ---- blocks ------------------------------------------------------------------------------------------ */

const struct part *parts_find(const struct parts *parts, uint32_t block)
{
    const struct part *of = block < parts->in_blocks ? parts->in : parts->out;
    uint32_t low = 0,
             high = parts->ranks; /* the last that begins at the block, or before: it is not empty */
    assert(block < parts->blocks);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (of[middle].first <= block)
            low = middle;
        else
            high = middle;
    }
    assert(block - of[low].first < of[low].blocks);
    return &of[low];
}

uint64_t parts_before(const struct parts *parts, const struct part *part, uint32_t block)
{
    return part->before + (block - part->first) * parts->per_block;
}

uint64_t parts_elements(const struct parts *parts, const struct part *part, uint32_t block)
{
    uint64_t left = part->elements - (block - part->first) * parts->per_block;
    return left < parts->per_block ? left : parts->per_block;
}
