/*
 * passes.cu - passes over memory before or after a transform: what is missing, what is not finite, long
 * blocks, tiles in place.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/hadamard/cuda/elements.cuh"

#define THREADS 256u
/* Blocks of threads of a pass that takes what it finds, until nothing is left. */
#define GRID_MAX 4096u
/* Of a patch of runs: a line of the cache, and its longest side. */
#define PATCH_BYTES 128u
#define PATCH_WORDS (64u * PATCH_BYTES / 4)

static uint32_t grid_for(uint64_t threads)
{
    const uint64_t blocks = (threads + THREADS - 1) / THREADS;
    return (uint32_t)(blocks < GRID_MAX ? blocks : GRID_MAX);
}

/* ---- what is not finite -------------------------------------------------------------------------------- */

template <int TYPE> static __global__ void check(const cuda_call call, void *data, uint64_t count)
{
    typedef element<TYPE> E;
    typename E::bits *const elements = (typename E::bits *)data;
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    uint64_t zeroed = 0;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads)
        if (!is_finite(E::get(elements[i]))) {
            if (!call.zero) {
                take_min(&call.report->non_finite, i);
                return;
            }
            elements[i] = 0;
            zeroed++;
        }
    if (zeroed)
        count_zeroed(call, zeroed);
}

extern "C" int cuda_check(const struct cuda_call *call, void *data, uint64_t count)
{
    const cudaStream_t stream = (cudaStream_t)call->stream;
    if (count == 0)
        return cudaSuccess;
    if (call->type == LH_HADAMARD_F32)
        check<LH_HADAMARD_F32><<<grid_for(count), THREADS, 0, stream>>>(*call, data, count);
    else if (call->type == LH_HADAMARD_BF16)
        check<LH_HADAMARD_BF16><<<grid_for(count), THREADS, 0, stream>>>(*call, data, count);
    else
        check<LH_HADAMARD_F16><<<grid_for(count), THREADS, 0, stream>>>(*call, data, count);
    return cudaGetLastError();
}

/* ---- what is missing ----------------------------------------------------------------------------------- */

struct corrections {
    cuda_correction list[CUDA_CORRECTIONS_MAX];
};

template <int TYPE>
static __global__ void correct(const cuda_call call, void *data, const __grid_constant__ corrections all,
                               uint32_t block_log)
{
    typedef element<TYPE> E;
    const cuda_correction &mine = all.list[blockIdx.y];
    typename E::bits *const elements = (typename E::bits *)data + mine.from;
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < mine.count; i += threads) {
        float product = 0;
        if (mine.factor != 0) {
            product = E::get(elements[i]) * mine.factor;
            if ((__float_as_uint(product) & 0x7fffffffu) >= E::limit) {
                product = 0;
                take_min(&call.report->not_scaled, (mine.from + i) >> block_log);
            }
        }
        elements[i] = E::put(product);
    }
}

extern "C" int cuda_correct(const struct cuda_call *call, void *data, const struct cuda_correction *list,
                            uint32_t count, uint32_t block_log)
{
    corrections all;
    uint64_t maximum = 0;
    for (uint32_t i = 0; i < count; i++) {
        all.list[i] = list[i];
        maximum = list[i].count > maximum ? list[i].count : maximum;
    }
    if (maximum == 0)
        return cudaSuccess;
    const cudaStream_t stream = (cudaStream_t)call->stream;
    const dim3 grid(grid_for(maximum), count);
    if (call->type == LH_HADAMARD_F32)
        correct<LH_HADAMARD_F32><<<grid, THREADS, 0, stream>>>(*call, data, all, block_log);
    else if (call->type == LH_HADAMARD_BF16)
        correct<LH_HADAMARD_BF16><<<grid, THREADS, 0, stream>>>(*call, data, all, block_log);
    else
        correct<LH_HADAMARD_F16><<<grid, THREADS, 0, stream>>>(*call, data, all, block_log);
    return cudaGetLastError();
}

/* ---- long blocks --------------------------------------------------------------------------------------- */

template <int BITS>
static __global__ void __launch_bounds__(THREADS)
    combine(const cuda_call call, float *data, uint64_t first, uint64_t elements, uint32_t distance_log,
            float scale)
{
    const uint64_t thread = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (thread >= elements >> BITS || canceled(call))
        return;
    const uint64_t distance = 1ull << distance_log;
    const uint64_t from =
        first + (thread >> distance_log << (distance_log + BITS)) + (thread & (distance - 1));
    float x[1 << BITS];
#pragma unroll
    for (int i = 0; i < 1 << BITS; i++)
        x[i] = data[from + i * distance] * scale;
#pragma unroll
    for (int bit = 0; bit < BITS; bit++)
#pragma unroll
        for (int i = 0; i < 1 << BITS; i++)
            if (!(i >> bit & 1)) {
                const float a = x[i], b = x[i | 1 << bit];
                x[i] = a + b;
                x[i | 1 << bit] = a - b;
            }
    bool fits = true;
#pragma unroll
    for (int i = 0; i < 1 << BITS; i++) {
        fits &= is_finite(x[i]);
        data[from + i * distance] = x[i];
    }
    if (!fits)
        take_min(&call.report->too_large, from >> (distance_log + BITS) << (distance_log + BITS));
}

extern "C" int cuda_combine(const struct cuda_call *call, float *data, uint64_t first, uint64_t elements,
                            uint32_t distance_log, uint32_t bits, float scale)
{
    const cudaStream_t stream = (cudaStream_t)call->stream;
    const unsigned grid = (unsigned)(((elements >> bits) + THREADS - 1) / THREADS);
    switch (bits) {
    case 1:
        combine<1><<<grid, THREADS, 0, stream>>>(*call, data, first, elements, distance_log, scale);
        break;
    case 2:
        combine<2><<<grid, THREADS, 0, stream>>>(*call, data, first, elements, distance_log, scale);
        break;
    case 3:
        combine<3><<<grid, THREADS, 0, stream>>>(*call, data, first, elements, distance_log, scale);
        break;
    case 4:
        combine<4><<<grid, THREADS, 0, stream>>>(*call, data, first, elements, distance_log, scale);
        break;
    default:
        combine<5><<<grid, THREADS, 0, stream>>>(*call, data, first, elements, distance_log, scale);
    }
    return cudaGetLastError();
}

/* ---- tiles in place ------------------------------------------------------------------------------------ */

/* Runs of a tile, 2^stride_log rows of as many; patches of 2^side_log rows and columns. UNIT: two bytes or
 * four. */
struct tile_runs {
    uint32_t stride_log;
    uint32_t run_log; /* in units */
    uint32_t side_log;
};

template <typename UNIT>
static __global__ void exchange(const cuda_call call, UNIT *data, const tile_runs runs)
{
    __shared__ UNIT upper[PATCH_WORDS * 4 / sizeof(UNIT)], lower[PATCH_WORDS * 4 / sizeof(UNIT)];
    const uint32_t patches_log = runs.stride_log - runs.side_log;
    const uint32_t i = blockIdx.x >> patches_log & ((1u << patches_log) - 1);
    const uint32_t j = blockIdx.x & ((1u << patches_log) - 1);
    if (i > j || canceled(call))
        return;
    const uint64_t row_log = runs.stride_log + runs.run_log;
    UNIT *const tile = data + ((uint64_t)(blockIdx.x >> 2 * patches_log) << (row_log + runs.stride_log));
    UNIT *const a =
        tile + ((uint64_t)i << (runs.side_log + row_log)) + ((uint64_t)j << (runs.side_log + runs.run_log));
    UNIT *const b =
        tile + ((uint64_t)j << (runs.side_log + row_log)) + ((uint64_t)i << (runs.side_log + runs.run_log));
    const uint64_t line_log = runs.side_log + runs.run_log; /* of a patch's row */
    const uint64_t units = 1ull << (runs.side_log + line_log);
    if (runs.side_log == 0) {
        for (uint64_t at = threadIdx.x; at < units && i != j; at += blockDim.x) {
            const UNIT kept = a[at];
            a[at] = b[at];
            b[at] = kept;
        }
        return;
    }
    for (uint32_t at = threadIdx.x; at < units; at += blockDim.x) {
        const uint64_t place = ((uint64_t)(at >> line_log) << row_log) + (at & ((1u << line_log) - 1));
        upper[at] = a[place];
        lower[at] = b[place];
    }
    __syncthreads();
    for (uint32_t at = threadIdx.x; at < units; at += blockDim.x) {
        const uint32_t row = at >> line_log;
        const uint32_t column = at >> runs.run_log & ((1u << runs.side_log) - 1);
        const uint32_t other = column << line_log | row << runs.run_log | (at & ((1u << runs.run_log) - 1));
        const uint64_t place = ((uint64_t)row << row_log) + (at & ((1u << line_log) - 1));
        a[place] = lower[other];
        b[place] = upper[other];
    }
}

template <typename UNIT>
static cudaError_t exchange_units(const cuda_call *call, void *data, uint64_t bytes, tile_runs runs)
{
    const uint32_t run_bytes = (uint32_t)sizeof(UNIT) << runs.run_log;
    while (runs.side_log < runs.stride_log && run_bytes << runs.side_log < PATCH_BYTES)
        runs.side_log++;
    const uint64_t patches = bytes / sizeof(UNIT) >> (2 * runs.side_log + runs.run_log);
    exchange<UNIT>
        <<<(unsigned)patches, THREADS, 0, (cudaStream_t)call->stream>>>(*call, (UNIT *)data, runs);
    return cudaGetLastError();
}

extern "C" int cuda_exchange(const struct cuda_call *call, void *data, uint64_t first, uint64_t elements,
                             uint32_t block_log, uint32_t stride_log)
{
    const uint32_t element_bytes = call->type == LH_HADAMARD_F32 ? 4 : 2;
    const uint32_t run_log = block_log - stride_log;
    uint8_t *const at = (uint8_t *)data + first * element_bytes;
    if (element_bytes == 4)
        return exchange_units<uint32_t>(call, at, elements * 4, tile_runs{stride_log, run_log, 0});
    return exchange_units<uint16_t>(call, at, elements * 2, tile_runs{stride_log, run_log, 0});
}

/* ---- reports ------------------------------------------------------------------------------------------- */

extern "C" int cuda_reset(const struct cuda_call *call)
{
    return cudaMemsetAsync(call->report, 0xff, sizeof *call->report, (cudaStream_t)call->stream);
}

extern "C" const char *cuda_error_text(int error)
{
    return cudaGetErrorString((cudaError_t)error);
}
