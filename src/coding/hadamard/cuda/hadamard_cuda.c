/*
 * hadamard_cuda.c - which kernels a call puts on the stream, and in which order.
 *
 * As on the CPU: a block of up to 2^CUDA_BLOCK_LOG_MAX elements, or a group of such, goes straight to its
 * places in the packets. In place that would overwrite blocks that are still to be read, unless a group is
 * whole tiles: there, and with longer blocks, blocks are transformed first, and then the runs of their tile
 * exchanged. Elements that are not finite are found by the results, or before anything is changed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/hadamard_cuda.h>

#include <math.h>

#include "base/error.h"
#include "coding/hadamard/cuda/kernels.h"
#include "coding/hadamard/hadamard_kernel.h"
#include "coding/hadamard/hadamard_regions.h"

struct job {
    const struct lh_hadamard *hadamard;
    struct cuda_call call;
    const void *in;
    void *out;
    uint64_t count;
    bool decode;
};

static uint32_t log_of(uint32_t power)
{
    return (uint32_t)__builtin_ctz(power);
}

/* Looked for before anything is changed: a refused tensor is unchanged in place; long blocks are combined in
 * place. */
static bool checks_first(const struct job *job)
{
    const bool in_place = job->in == job->out;
    const bool combines = job->decode && job->hadamard->block > 1u << CUDA_BLOCK_LOG_MAX;
    return combines || (in_place && !job->call.zero);
}

/* ---- a region ------------------------------------------------------------------------------------------
 */

static int combine(const struct job *job, void *data, const struct region *region, float scale)
{
    const uint64_t elements = region->tiles << (region->block_log + region->stride_log);
    int failed = 0;
    for (uint32_t log = CUDA_BLOCK_LOG_MAX; log < region->block_log && !failed;) {
        const uint32_t left = region->block_log - log;
        const uint32_t bits = left < CUDA_COMBINE_LOG_MAX ? left : CUDA_COMBINE_LOG_MAX;
        failed = cuda_combine(&job->call, data, region->first, elements, log, bits, scale);
        log += bits;
        scale = 1;
    }
    return failed;
}

/* Blocks by themselves, the runs of their tiles exchanged after that or, to decode, before. */
static int transform_blocks(const struct job *job, const struct region *region, struct cuda_tiles tiles)
{
    const bool is_long = region->block_log > CUDA_BLOCK_LOG_MAX;
    void *const before = (void *)(uintptr_t)job->in;
    int failed = 0;
    if (job->decode && region->stride_log > 0)
        failed = cuda_exchange(&job->call, before, tiles.first, tiles.elements, region->block_log,
                               region->stride_log);
    if (!failed && job->decode && is_long) {
        failed = combine(job, before, region, tiles.scale);
        tiles.scale = 1;
    }
    tiles.block_log = is_long ? CUDA_BLOCK_LOG_MAX : region->block_log;
    tiles.stride_log = 0;
    if (!failed)
        failed = cuda_transform(&job->call, &tiles);
    if (!failed && !job->decode && is_long)
        failed = combine(job, job->out, region, 1);
    if (!failed && !job->decode && region->stride_log > 0)
        failed = cuda_exchange(&job->call, job->out, tiles.first, tiles.elements, region->block_log,
                               region->stride_log);
    return failed;
}

static int transform_region(const struct job *job, const struct region *region)
{
    const uint32_t tile_log = region->block_log + region->stride_log;
    const struct cuda_tiles tiles = {
        .in = job->in,
        .out = job->out,
        .first = region->first,
        .elements = region->tiles << tile_log,
        .block_log = region->block_log,
        .stride_log = region->stride_log,
        .scale = (float)(1 / sqrt((double)(UINT64_C(1) << region->block_log))),
        .decode = job->decode,
    };
    const bool in_group = tile_log <= cuda_group_log(job->hadamard->type, &tiles);
    if (region->block_log > CUDA_BLOCK_LOG_MAX ||
        (region->stride_log > 0 && job->in == job->out && !in_group))
        return transform_blocks(job, region, tiles);
    return cuda_transform(&job->call, &tiles);
}

/* ---- what is missing -----------------------------------------------------------------------------------
 */

/* Corrections, put on the stream when there is a kernel's full. */
struct corrections {
    const struct job *job;
    struct cuda_correction list[CUDA_CORRECTIONS_MAX];
    uint32_t count;
};

static int flush(struct corrections *corrections)
{
    const struct job *job = corrections->job;
    const uint32_t count = corrections->count;
    corrections->count = 0;
    if (count == 0)
        return 0;
    return cuda_correct(&job->call, (void *)(uintptr_t)job->in, corrections->list, count,
                        log_of(job->hadamard->block));
}

/* Consecutive elements with one factor are one correction. */
static int add(struct corrections *corrections, struct cuda_correction correction)
{
    if (corrections->count > 0) {
        struct cuda_correction *last = &corrections->list[corrections->count - 1];
        if (last->factor == correction.factor && last->from + last->count == correction.from) {
            last->count += correction.count;
            return 0;
        }
    }
    int failed = corrections->count == CUDA_CORRECTIONS_MAX ? flush(corrections) : 0;
    corrections->list[corrections->count++] = correction;
    return failed;
}

static int zero_missing(struct corrections *corrections, const struct lh_hadamard_arrival *arrival)
{
    const uint64_t unit = element_bytes(corrections->job->hadamard->type);
    int failed = 0;
    for (uint64_t i = 0; i < arrival->missing_count && !failed; i++) {
        const struct lh_range *range = &arrival->missing[i];
        const uint64_t from = range->offset / unit;
        const uint64_t end = (range->offset + range->bytes + unit - 1) / unit;
        if (range->bytes > 0)
            failed = add(corrections, (struct cuda_correction){from, end - from, 0});
    }
    return failed ? failed : flush(corrections);
}

/* After what is missing was zeroed: one element could be in both. */
static int scale_packets(struct corrections *corrections, const struct lh_hadamard_arrival *arrival)
{
    const struct job *job = corrections->job;
    const uint64_t block = job->hadamard->block;
    int failed = 0;
    for (uint64_t at = 0, packet = 0; at < job->count && !failed; at += block, packet++) {
        const uint32_t came = arrival->contributions[packet];
        const uint64_t left = job->count - at;
        const float factor = came == 0 ? 0 : (float)arrival->contributors / (float)came;
        if (came < arrival->contributors)
            failed = add(corrections, (struct cuda_correction){at, left < block ? left : block, factor});
    }
    return failed ? failed : flush(corrections);
}

static int check_arrival(const struct lh_hadamard_arrival *arrival, const struct job *job)
{
    const uint64_t bytes = job->count * element_bytes(job->hadamard->type);
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

static int correct(const struct job *job, const struct lh_hadamard_arrival *arrival)
{
    struct corrections corrections = {.job = job, .count = 0};
    int failed = zero_missing(&corrections, arrival);
    if (!failed && arrival->contributions)
        failed = scale_packets(&corrections, arrival);
    return failed;
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static int check_places(const struct job *job)
{
    const size_t bytes = element_bytes(job->hadamard->type);
    const uintptr_t a = (uintptr_t)job->in, b = (uintptr_t)job->out, report = (uintptr_t)job->call.report;
    if (job->count > SIZE_MAX / bytes)
        return lh_fail(LH_EINVAL, "hadamard: %llu elements exceed the memory",
                       (unsigned long long)job->count);
    if (a != b && (a < b ? b - a : a - b) < job->count * bytes)
        return lh_fail(LH_EINVAL,
                       "hadamard: input and output overlap at a distance of %zu bytes (use separate "
                       "buffers, or the same address)",
                       (size_t)(a < b ? b - a : a - b));
    if (a % bytes || b % bytes)
        return lh_fail(LH_EINVAL, "hadamard: input or output not aligned to its elements of %zu bytes",
                       bytes);
    if (report == 0 || report % sizeof(uint64_t))
        return lh_fail(LH_EINVAL, "hadamard: report not aligned to 8 bytes of device memory");
    return 0;
}

static int start_job(struct job *job, const struct lh_hadamard *hadamard, const void *in, void *out,
                     size_t count, struct lh_hadamard_cuda_report *report, void *stream)
{
    int failed = lh_hadamard_check(hadamard);
    if (failed)
        return failed;
    *job = (struct job){.hadamard = hadamard, .in = in, .out = out, .count = count};
    job->call = (struct cuda_call){
        .type = hadamard->type,
        .zero = hadamard->non_finite == LH_HADAMARD_ZERO,
        .seed = hadamard->seed,
        .report = report,
        .stream = stream,
    };
    return check_places(job);
}

static int run_job(struct job *job, const struct lh_hadamard_arrival *arrival)
{
    struct region regions[REGIONS_MAX];
    const uint32_t count =
        regions_cut(job->count, log_of(job->hadamard->block), log_of(job->hadamard->stride), regions);
    const bool check = checks_first(job);
    int failed = cuda_reset(&job->call);
    if (!failed && arrival)
        failed = correct(job, arrival);
    if (!failed && check)
        failed = cuda_check(&job->call, (void *)(uintptr_t)job->in, job->count);
    job->call.look = !check;
    job->call.cancel = check;
    for (uint32_t i = 0; i < count && !failed; i++)
        failed = transform_region(job, &regions[i]);
    return failed ? lh_fail(LH_EDEVICE, "hadamard: CUDA: %s", cuda_error_text(failed)) : 0;
}

int lh_hadamard_cuda_encode(const struct lh_hadamard *hadamard, const void *in, void *out, size_t count,
                            struct lh_hadamard_cuda_report *report, void *stream)
{
    struct job job;
    int failed = start_job(&job, hadamard, in, out, count, report, stream);
    return failed ? failed : run_job(&job, NULL);
}

int lh_hadamard_cuda_decode(const struct lh_hadamard *hadamard, const struct lh_hadamard_arrival *arrival,
                            void *in, void *out, size_t count, struct lh_hadamard_cuda_report *report,
                            void *stream)
{
    struct job job;
    int failed = start_job(&job, hadamard, in, out, count, report, stream);
    if (!failed && arrival)
        failed = check_arrival(arrival, &job);
    job.decode = true;
    return failed ? failed : run_job(&job, arrival);
}

int lh_hadamard_cuda_result(const struct lh_hadamard *hadamard,
                            const struct lh_hadamard_cuda_report *report, struct lh_hadamard_result *result)
{
    const bool found = report->non_finite != CUDA_NOWHERE;
    const bool scaled = report->not_scaled == CUDA_NOWHERE || hadamard->non_finite == LH_HADAMARD_ZERO;
    const uint64_t index = !scaled ? CUDA_NOWHERE : found ? report->non_finite : report->too_large;
    if (result)
        *result = (struct lh_hadamard_result){report->zeroed_less_one + 1, index};
    if (!scaled)
        return lh_fail(LH_ERANGE,
                       "hadamard: packet %llu has an element that is not finite, before or after scaling",
                       (unsigned long long)report->not_scaled);
    if (found)
        return lh_fail(LH_ERANGE,
                       "hadamard: element %llu is NaN or infinite (LH_HADAMARD_ZERO zeroes such)",
                       (unsigned long long)index);
    if (index != CUDA_NOWHERE)
        return lh_fail(LH_ERANGE,
                       "hadamard: the transform of the block at element %llu exceeds the type (scale the "
                       "tensor down)",
                       (unsigned long long)index);
    return 0;
}
