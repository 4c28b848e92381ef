/*
 * hadamard.c - encodes and decodes tensors: groups of blocks, shared out among threads.
 *
 * Out of place a group goes straight to its places in the packets. In place that would overwrite blocks
 * that are still to be read: there, and with blocks too long for a group, blocks are transformed first, and
 * then the runs of their tile exchanged (in hadamard_blocks.c); and not-finite elements are looked for
 * before anything is changed. Otherwise they are found by the result: one such element makes all of its
 * block NaN or infinite.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/hadamard.h>

#include <assert.h>
#include <math.h>
#include <stdatomic.h>

#include "base/error.h"
#include "coding/encoder.h"
#include "coding/hadamard/hadamard_blocks.h"
#include "coding/hadamard/hadamard_kernel.h"
#include "coding/hadamard/hadamard_regions.h"

/* A share of a thread. */
#define SHARE_ELEMENTS_LOG 17u
/* From so many bytes on results go past the caches: they would not stay there until they are read. */
#define STREAM_BYTES ((size_t)1 << 20)
#define NOWHERE      UINT64_MAX

struct job {
    const struct lh_hadamard *hadamard;
    bool decode;
    const uint8_t *in; /* to decode: may be written */
    uint8_t *out;
    uint64_t count;
    size_t element_bytes;
    struct region regions[REGIONS_MAX];
    uint32_t region_count;
    bool checked; /* all elements are finite, or were zeroed */
    _Atomic uint64_t zeroed;
    _Atomic uint64_t non_finite; /* the first one, or NOWHERE */
    _Atomic uint64_t
        too_large; /* first element of a group with a result that exceeds the type, or NOWHERE */
};

/* What a thread does at once in a region. */
struct cut {
    bool whole_tiles;      /* or else groups that go straight to their places */
    uint32_t blocks_log;   /* of a group or tile */
    uint32_t per_tile_log; /* groups */
    uint64_t groups_a_share;
    uint64_t shares;
    float scale;
};

static uint32_t log_of(uint32_t power)
{
    return (uint32_t)__builtin_ctz(power);
}

static void take_min(_Atomic uint64_t *minimum, uint64_t value)
{
    uint64_t before = atomic_load(minimum);
    while (value < before && !atomic_compare_exchange_weak(minimum, &before, value)) {
    }
}

static struct cut cut_of(const struct job *job, const struct region *region)
{
    const uint32_t run_log = region->block_log - region->stride_log;
    struct cut cut = {.blocks_log = region->stride_log,
                      .scale = (float)(1 / sqrt((double)(UINT64_C(1) << region->block_log)))};
    cut.whole_tiles = region->block_log > GROUP_BLOCK_LOG_MAX ||
                      (region->stride_log > 0 && (const void *)job->in == job->out);
    if (!cut.whole_tiles) {
        uint32_t wanted = run_log < GROUP_LINE_LOG ? GROUP_LINE_LOG - run_log : 0;
        cut.blocks_log = wanted < region->stride_log ? wanted : region->stride_log;
        cut.per_tile_log = region->stride_log - cut.blocks_log;
    }
    const uint32_t group_log = region->block_log + cut.blocks_log;
    cut.groups_a_share =
        group_log < SHARE_ELEMENTS_LOG ? UINT64_C(1) << (SHARE_ELEMENTS_LOG - group_log) : 1;
    const uint64_t groups = region->tiles << cut.per_tile_log;
    cut.shares = (groups + cut.groups_a_share - 1) / cut.groups_a_share;
    return cut;
}

/* ---- a group ------------------------------------------------------------------------------------------
 */

/* The first element of a group's input that is not finite, NOWHERE when none is: of its blocks, to encode;
 * of its part of each packet, to decode. */
static uint64_t non_finite_of(const struct job *job, const struct group_task *task)
{
    const size_t block = (size_t)1 << task->block_log;
    const size_t part = job->decode ? (size_t)task->blocks << task->run_log : task->blocks * block;
    const size_t parts = job->decode ? block >> task->run_log : 1;
    const uint64_t first = (uint64_t)((const uint8_t *)task->in - job->in) / job->element_bytes;
    for (size_t i = 0; i < parts; i++) {
        size_t found = elements_first_non_finite(task->in, i * block, part, task->type);
        if (found < i * block + part)
            return first + found;
    }
    return NOWHERE;
}

static bool transform(const struct job *job, struct group_task *task, struct block_place place,
                      struct block_space *space)
{
    const bool group = task->block_log <= GROUP_BLOCK_LOG_MAX;
    if (job->decode)
        return group ? group_decode(task, place, space) : block_decode(task, place, space);
    return group ? group_encode(task, place, space) : block_encode(task, place, space);
}

/* A group, or a block; `first` is its first element in the tensor. */
static void run_task(struct job *job, struct group_task *task, uint64_t first, struct block_space *space)
{
    const struct block_place place = {job->hadamard->seed, first};
    if (transform(job, task, place, space))
        return;
    if (!job->checked) {
        uint64_t bad = non_finite_of(job, task);
        if (bad != NOWHERE && job->hadamard->non_finite == LH_HADAMARD_REFUSE) {
            take_min(&job->non_finite, bad);
            return;
        }
        if (bad != NOWHERE) {
            uint64_t zeroed = 0;
            task->zeroed = &zeroed;
            bool fits = transform(job, task, place, space);
            atomic_fetch_add(&job->zeroed, zeroed);
            if (fits)
                return;
        }
    }
    take_min(&job->too_large, first);
}

static struct group_task task_of(const struct job *job, const struct region *region, const struct cut *cut)
{
    const size_t bytes = job->count * job->element_bytes;
    return (struct group_task){
        .type = job->hadamard->type,
        .block_log = region->block_log,
        .scale = cut->scale,
        .stream = bytes >= STREAM_BYTES && (const void *)job->in != job->out &&
                  (uintptr_t)job->out % LINE_BYTES == 0,
    };
}

static void run_group(struct job *job, const struct region *region, const struct cut *cut, uint64_t group,
                      struct block_space *space)
{
    const uint32_t run_log = region->block_log - region->stride_log;
    const uint64_t tile =
        region->first + (group >> cut->per_tile_log << (region->block_log + region->stride_log));
    const uint64_t number = group & ((UINT64_C(1) << cut->per_tile_log) - 1);
    const uint64_t blocks = tile + (number << (cut->blocks_log + region->block_log));
    const uint64_t packets = tile + (number << (cut->blocks_log + run_log));
    struct group_task task = task_of(job, region, cut);
    task.run_log = run_log;
    task.blocks = 1u << cut->blocks_log;
    task.stream &= (job->element_bytes << (cut->blocks_log + run_log)) >= LINE_BYTES;
    task.in = job->in + (job->decode ? packets : blocks) * job->element_bytes;
    task.out = job->out + (job->decode ? blocks : packets) * job->element_bytes;
    run_task(job, &task, blocks, space);
}

static void run_tile(struct job *job, const struct region *region, const struct cut *cut, uint64_t tile,
                     struct block_space *space)
{
    const uint32_t run_log = region->block_log - region->stride_log;
    const uint64_t first = region->first + (tile << (region->block_log + region->stride_log));
    const size_t stride = (size_t)1 << region->stride_log;
    const size_t run_bytes = job->element_bytes << run_log;
    const uint8_t *in = job->in + first * job->element_bytes;
    uint8_t *out = job->out + first * job->element_bytes;
    if (job->decode && stride > 1)
        runs_exchange((void *)(uintptr_t)in, stride, run_bytes);
    for (size_t block = 0; block < stride; block++) {
        struct group_task task = task_of(job, region, cut);
        task.run_log = region->block_log;
        task.blocks = 1;
        task.in = in + (block << region->block_log) * job->element_bytes;
        task.out = out + (block << region->block_log) * job->element_bytes;
        run_task(job, &task, first + (block << region->block_log), space);
    }
    if (!job->decode && stride > 1)
        runs_exchange(out, stride, run_bytes);
}

/* ---- shares -------------------------------------------------------------------------------------------
 */

static void store_fence(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence(); /* results that went past the caches are seen by whoever sees this call return
                              */
#endif
}

static void transform_share(void *argument, uint64_t share)
{
    struct job *job = argument;
    const struct region *region = job->regions;
    struct cut cut = cut_of(job, region);
    for (; share >= cut.shares; cut = cut_of(job, region)) {
        share -= cut.shares;
        region++;
    }
    const uint64_t groups = region->tiles << cut.per_tile_log;
    const uint64_t from = share * cut.groups_a_share;
    const uint64_t left = groups - from;
    struct block_space space;
    for (uint64_t i = 0; i < (left < cut.groups_a_share ? left : cut.groups_a_share); i++)
        if (cut.whole_tiles)
            run_tile(job, region, &cut, from + i, &space);
        else
            run_group(job, region, &cut, from + i, &space);
    store_fence();
}

static void check_share(void *argument, uint64_t share)
{
    struct job *job = argument;
    const uint64_t from = share << SHARE_ELEMENTS_LOG;
    uint64_t count = job->count - from;
    if (count >> SHARE_ELEMENTS_LOG)
        count = UINT64_C(1) << SHARE_ELEMENTS_LOG;
    const enum lh_hadamard_type type = job->hadamard->type;
    if (job->hadamard->non_finite == LH_HADAMARD_ZERO) {
        atomic_fetch_add(&job->zeroed,
                         elements_zero_non_finite((void *)(uintptr_t)job->in, from, count, type));
        return;
    }
    uint64_t found = elements_first_non_finite(job->in, from, count, type);
    if (found < from + count)
        take_min(&job->non_finite, found);
}

static void share_out(struct job *job, uint64_t shares, void (*run)(void *job, uint64_t share))
{
    if (job->hadamard->encoder) {
        encoder_share_out(job->hadamard->encoder, shares, run, job);
        return;
    }
    for (uint64_t share = 0; share < shares; share++)
        run(job, share);
}

static void transform_all(struct job *job)
{
    uint64_t shares = 0;
    for (uint32_t i = 0; i < job->region_count; i++)
        shares += cut_of(job, &job->regions[i]).shares;
    share_out(job, shares, transform_share);
}

/* ---- calls --------------------------------------------------------------------------------------------
 */

void lh_hadamard_init(struct lh_hadamard *hadamard, enum lh_hadamard_type type)
{
    uint32_t block = LH_HADAMARD_PAYLOAD_BYTES / (uint32_t)element_bytes(type);
    *hadamard = (struct lh_hadamard){.type = type, .block = block, .stride = block};
}

static bool power_of_two(uint32_t number)
{
    return number > 0 && (number & (number - 1)) == 0;
}

int lh_hadamard_check(const struct lh_hadamard *hadamard)
{
    const enum lh_hadamard_type type = hadamard->type;
    if (type != LH_HADAMARD_F32 && type != LH_HADAMARD_BF16 && type != LH_HADAMARD_F16)
        return lh_fail(LH_EINVAL, "hadamard: unknown type %d (LH_HADAMARD_F32, _BF16 or _F16)", (int)type);
    if (hadamard->non_finite != LH_HADAMARD_REFUSE && hadamard->non_finite != LH_HADAMARD_ZERO)
        return lh_fail(LH_EINVAL, "hadamard: unknown mode %d (LH_HADAMARD_REFUSE or _ZERO)",
                       (int)hadamard->non_finite);
    if (!power_of_two(hadamard->block))
        return lh_fail(LH_EINVAL, "hadamard: block of %u elements: not a power of two", hadamard->block);
    const uint32_t block_max = type == LH_HADAMARD_F32 ? LH_HADAMARD_BLOCK_MAX : LH_HADAMARD_HALF_BLOCK_MAX;
    if (hadamard->block > block_max)
        return lh_fail(LH_EINVAL, "hadamard: block of %u elements: exceeds the type's maximum of %u",
                       hadamard->block, block_max);
    if (!power_of_two(hadamard->stride))
        return lh_fail(LH_EINVAL, "hadamard: stride %u: not a power of two", hadamard->stride);
    if (hadamard->stride > hadamard->block)
        return lh_fail(LH_EINVAL, "hadamard: stride %u exceeds the block of %u elements", hadamard->stride,
                       hadamard->block);
    return 0;
}

static int start_job(struct job *job, const struct lh_hadamard *hadamard, const void *in, void *out,
                     size_t count)
{
    int failed = lh_hadamard_check(hadamard);
    if (failed)
        return failed;
    const size_t bytes = element_bytes(hadamard->type);
    if (count > SIZE_MAX / bytes)
        return lh_fail(LH_EINVAL, "hadamard: %zu elements exceed the memory", count);
    const uintptr_t a = (uintptr_t)in, b = (uintptr_t)out;
    if (a != b && (a < b ? b - a : a - b) < count * bytes)
        return lh_fail(LH_EINVAL,
                       "hadamard: input and output overlap at a distance of %zu bytes (use separate "
                       "buffers, or the same address)",
                       (size_t)(a < b ? b - a : a - b));
    *job = (struct job){.hadamard = hadamard, .in = in, .out = out, .count = count, .element_bytes = bytes};
    atomic_store(&job->non_finite, NOWHERE);
    atomic_store(&job->too_large, NOWHERE);
    job->region_count = regions_cut(count, log_of(hadamard->block), log_of(hadamard->stride), job->regions);
    return 0;
}

static void set_result(struct lh_hadamard_result *result, uint64_t zeroed, uint64_t index)
{
    if (result)
        *result = (struct lh_hadamard_result){zeroed, index};
}

/* Checks first where that is necessary, then transforms. */
static int run_job(struct job *job, struct lh_hadamard_result *result)
{
    job->checked = (const void *)job->in == job->out ||
                   (job->decode && job->hadamard->block > 1u << GROUP_BLOCK_LOG_MAX);
    if (job->checked)
        share_out(job, (job->count + (1u << SHARE_ELEMENTS_LOG) - 1) >> SHARE_ELEMENTS_LOG, check_share);
    if (atomic_load(&job->non_finite) == NOWHERE)
        transform_all(job);
    const uint64_t non_finite = atomic_load(&job->non_finite);
    const uint64_t too_large = atomic_load(&job->too_large);
    const uint64_t index = non_finite != NOWHERE ? non_finite : too_large;
    set_result(result, atomic_load(&job->zeroed), index);
    if (non_finite != NOWHERE)
        return lh_fail(LH_ERANGE,
                       "hadamard: element %llu is NaN or infinite (LH_HADAMARD_ZERO zeroes such)",
                       (unsigned long long)index);
    if (too_large != NOWHERE)
        return lh_fail(LH_ERANGE,
                       "hadamard: the transform of the block at element %llu exceeds the type (scale the "
                       "tensor down)",
                       (unsigned long long)index);
    return 0;
}

int lh_hadamard_encode(const struct lh_hadamard *hadamard, const void *in, void *out, size_t count,
                       struct lh_hadamard_result *result)
{
    struct job job;
    set_result(result, 0, NOWHERE);
    int failed = start_job(&job, hadamard, in, out, count);
    if (failed)
        return failed;
    return run_job(&job, result);
}

static int check_arrival(const struct lh_hadamard_arrival *arrival, const struct job *job)
{
    const uint64_t bytes = job->count * job->element_bytes;
    for (uint64_t i = 0; i < arrival->missing_count; i++) {
        const struct lh_range *range = &arrival->missing[i];
        if (range->offset > bytes || range->bytes > bytes - range->offset)
            return lh_fail(LH_EINVAL,
                           "hadamard: missing range of %llu bytes at %llu exceeds the tensor of %llu",
                           (unsigned long long)range->bytes, (unsigned long long)range->offset,
                           (unsigned long long)bytes);
    }
    if (!arrival->contributions)
        return 0;
    const uint64_t packets = (job->count + job->hadamard->block - 1) / job->hadamard->block;
    for (uint64_t i = 0; i < packets; i++)
        if (arrival->contributions[i] > arrival->contributors)
            return lh_fail(LH_EINVAL, "hadamard: packet %llu has %u contributions of %u contributors",
                           (unsigned long long)i, arrival->contributions[i], arrival->contributors);
    return 0;
}

/* Zeroes elements of which bytes are missing. */
static void zero_missing(const struct job *job, uint8_t *in, const struct lh_hadamard_arrival *arrival)
{
    const uint64_t unit = job->element_bytes;
    for (uint64_t i = 0; i < arrival->missing_count; i++) {
        const struct lh_range *range = &arrival->missing[i];
        const uint64_t from = range->offset / unit * unit;
        const uint64_t end = (range->offset + range->bytes + unit - 1) / unit * unit;
        if (range->bytes > 0)
            memset(in + from, 0, end - from);
    }
}

/* Scales packets of which contributions are missing, and zeroes those that have none. */
static int scale_packets(const struct job *job, uint8_t *in, const struct lh_hadamard_arrival *arrival)
{
    const struct lh_hadamard *hadamard = job->hadamard;
    for (uint64_t at = 0, packet = 0; at < job->count; at += hadamard->block, packet++) {
        const uint32_t came = arrival->contributions[packet];
        const uint64_t left = job->count - at;
        const uint64_t count = left < hadamard->block ? left : hadamard->block;
        if (came == 0)
            memset(in + at * job->element_bytes, 0, count * job->element_bytes);
        else if (came < arrival->contributors &&
                 !elements_scale(in, at, count, hadamard->type,
                                 (float)arrival->contributors / (float)came) &&
                 hadamard->non_finite == LH_HADAMARD_REFUSE)
            return lh_fail(
                LH_ERANGE,
                "hadamard: packet %llu has an element that is not finite, before or after scaling by %u/%u",
                (unsigned long long)packet, arrival->contributors, came);
    }
    return 0;
}

int lh_hadamard_decode(const struct lh_hadamard *hadamard, const struct lh_hadamard_arrival *arrival,
                       void *in, void *out, size_t count, struct lh_hadamard_result *result)
{
    struct job job;
    set_result(result, 0, NOWHERE);
    int failed = start_job(&job, hadamard, in, out, count);
    if (failed)
        return failed;
    job.decode = true;
    if (arrival) {
        failed = check_arrival(arrival, &job);
        if (failed)
            return failed;
        zero_missing(&job, in, arrival);
        if (arrival->contributions)
            failed = scale_packets(&job, in, arrival);
        if (failed)
            return failed;
    }
    return run_job(&job, result);
}
