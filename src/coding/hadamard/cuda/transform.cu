/*
 * transform.cu - blocks in the registers of a warp: 32 or 64 elements a thread, of which each load of 16
 * bytes brings some.
 *
 * An element's number in its warp's chunk is, from the lowest bit on: its place in the 16 bytes, the thread,
 * the load. Butterflies within a thread take the first and the last of these bits, shuffles those between.
 * A block of at most a chunk needs no other warp.
 *
 * With S = 1 results go straight back. With a stride a thread block has a group: whole tiles, or B blocks of
 * one, which own B * p/S consecutive elements of each packet: its rows. They pass through shared memory, in
 * the order of the packets, so that both sides are read and written in whole sectors, 16 bytes a thread.
 * There a word's bank is mixed with higher bits of its number (swizzled): blocks of a group and packets would
 * else meet in one.
 *
 * Elements that are not finite are found by the results: they make all of their block NaN or infinite. Only
 * then the warp loads its chunk again, and looks at each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/hadamard/cuda/elements.cuh"

/* A thread block has at least 128 threads, and at most what shared memory takes. */
#define GROUP_LOG_MIN  12u
#define GROUP_LOG_MAX  14u
#define ROW_LOG_MIN    5u /* bytes of each packet: a sector */
#define DIRECT_THREADS 128u
#define STAGED_THREADS 512u
#define WHOLE_WARP     0xffffffffu

static uint32_t group_log_in_use;

/* What the kernel gets: where a group is, and where its elements are in the packets. */
struct transform {
    cuda_call call;
    cuda_tiles tiles;
    uint32_t group_log;
    uint32_t blocks_log; /* B: of a group, in a tile */
    bool whole;          /* a group is whole tiles */
    bool aligned;        /* to 16 bytes, which rows fill, too */
};

static __device__ uint32_t sign_word(uint64_t seed, uint64_t element)
{
    uint64_t z = seed + (element / 64 + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    return (uint32_t)(z >> element % 64);
}

/* ---- a chunk of a warp: R registers a thread, V of them from one load ---------------------------------- */

template <int TYPE, int R> struct chunk {
    typedef element<TYPE> E;
    static constexpr int V = 4 * E::per_word;
    static constexpr int V_LOG = V == 4 ? 2 : 3;
    static constexpr int R_LOG = R == 32 ? 5 : 6;
    static constexpr uint32_t ELEMENTS = 32 * R;

    /* Of the chunk's elements, from `at` on in memory, those before `left`; the others are 0. */
    static __device__ void load(float (&x)[R], const void *in, uint64_t at, uint64_t left, bool aligned)
    {
        const uint32_t lane = threadIdx.x % 32;
        const typename E::bits *from = (const typename E::bits *)in + at;
        if (aligned && left >= ELEMENTS) {
#pragma unroll
            for (int j = 0; j < R / V; j++) {
                const uint4 four = *(const uint4 *)(from + (j * 32 + lane) * V);
                E::unpack(four.x, &x[j * V]);
                E::unpack(four.y, &x[j * V + E::per_word]);
                E::unpack(four.z, &x[j * V + 2 * E::per_word]);
                E::unpack(four.w, &x[j * V + 3 * E::per_word]);
            }
            return;
        }
#pragma unroll
        for (int r = 0; r < R; r++) {
            const uint32_t e = (r / V * 32 + lane) * V + r % V;
            x[r] = e < left ? E::get(from[e]) : 0;
        }
    }

    static __device__ void store(const float (&x)[R], void *out, uint64_t at, uint64_t left, bool aligned)
    {
        const uint32_t lane = threadIdx.x % 32;
        typename E::bits *to = (typename E::bits *)out + at;
        if (aligned && left >= ELEMENTS) {
#pragma unroll
            for (int j = 0; j < R / V; j++)
                *(uint4 *)(to + (j * 32 + lane) * V) =
                    make_uint4(E::pack(&x[j * V]), E::pack(&x[j * V + E::per_word]),
                               E::pack(&x[j * V + 2 * E::per_word]), E::pack(&x[j * V + 3 * E::per_word]));
            return;
        }
#pragma unroll
        for (int r = 0; r < R; r++) {
            const uint32_t e = (r / V * 32 + lane) * V + r % V;
            if (e < left)
                to[e] = E::put(x[r]);
        }
    }

    /* Between elements whose numbers differ in one of the lowest block_log bits. */
    static __device__ void butterflies(float (&x)[R], uint32_t block_log)
    {
#pragma unroll
        for (int bit = 0; bit < R_LOG; bit++)
            if (block_log > (bit < V_LOG ? bit : bit + 5))
#pragma unroll
                for (int r = 0; r < R; r++)
                    if (!(r >> bit & 1)) {
                        const float a = x[r], b = x[r | 1 << bit];
                        x[r] = a + b;
                        x[r | 1 << bit] = a - b;
                    }
#pragma unroll
        for (int bit = 0; bit < 5; bit++)
            if (block_log > V_LOG + bit) {
                const float own = threadIdx.x >> bit & 1 ? -1 : 1;
#pragma unroll
                for (int r = 0; r < R; r++)
                    x[r] = fmaf(own, x[r], __shfl_xor_sync(WHOLE_WARP, x[r], 1 << bit));
            }
    }

    /* Multiplies by the signs of the elements from `element` on, a multiple of the chunk or all of a shorter
     * tile, and by `scale`. */
    static __device__ void apply_signs(float (&x)[R], uint64_t seed, uint64_t element, float scale)
    {
        const uint32_t lane = threadIdx.x % 32;
        uint32_t words[R / 32];
#pragma unroll
        for (int i = 0; i < R / 32; i++)
            words[i] = sign_word(seed, element + (uint64_t)(i * 32 + lane) * 32);
#pragma unroll
        for (int j = 0; j < R / V; j++) {
            const uint32_t word = __shfl_sync(WHOLE_WARP, words[j * V / 32], (j * V % 32) + lane * V / 32);
            const uint32_t bits = word >> lane * V % 32;
#pragma unroll
            for (int c = 0; c < V; c++)
                x[j * V + c] =
                    __uint_as_float(__float_as_uint(x[j * V + c]) ^ (bits << (31 - c) & 0x80000000u)) *
                    scale;
        }
    }

    static __device__ bool exceeds(const float (&x)[R])
    {
        float largest = 0;
#pragma unroll
        for (int r = 0; r < R; r++)
            largest = larger(largest, fabsf(x[r]));
        return __any_sync(WHOLE_WARP, __float_as_uint(largest) >= E::limit);
    }
};

/* ---- a group in shared memory -------------------------------------------------------------------------- */

/* Mixes into a word's bank one of these for each higher bit of its number that is set: found by a search,
 * such that the words that a warp moves at once, as rows or as registers, are all in different banks. (Of 150
 * shapes of tile and type 148; in two, banks are met twice.) Linear: of the exclusive or of two numbers it is
 * that of both places. */
static __device__ inline uint32_t swizzle(uint32_t word)
{
    constexpr uint32_t banks[] = {30, 21, 31, 9, 15, 17, 3, 2, 5};
    uint32_t mixed = word;
#pragma unroll
    for (int bit = 0; bit < 9; bit++)
        mixed ^= (word >> (5 + bit) & 1) * banks[bit];
    return mixed;
}

/* Where an element of a group, numbered block by block, is in the order of its packets. */
static __device__ inline uint32_t packet_order(const transform &t, uint32_t g)
{
    const uint32_t run_log = t.tiles.block_log - t.tiles.stride_log;
    const uint32_t run = g & ((1u << run_log) - 1);
    const uint32_t packet = g >> run_log & ((1u << t.tiles.stride_log) - 1);
    const uint32_t block = g >> t.tiles.block_log & ((1u << t.blocks_log) - 1);
    const uint32_t tile_log = t.tiles.block_log + t.blocks_log;
    return g >> tile_log << tile_log | packet << (run_log + t.blocks_log) | block << run_log | run;
}

template <int TYPE> static __device__ inline uint32_t byte_of(uint32_t place)
{
    if (element<TYPE>::per_word == 1)
        return swizzle(place) * 4;
    return swizzle(place / 2) * 4 + place % 2 * 2;
}

struct group {
    uint64_t blocks;  /* first element of its blocks, from the region's first */
    uint64_t packets; /* and of its part of the first packet */
    uint64_t left;    /* elements */
    uint32_t row_log; /* log2 of its elements in a packet; a group of whole tiles is one row */
};

static __device__ group group_of(const transform &t)
{
    group here;
    if (t.whole) {
        here.blocks = here.packets = (uint64_t)blockIdx.x << t.group_log;
        here.row_log = t.group_log;
        here.left = t.tiles.elements - here.blocks;
        return here;
    }
    const uint32_t per_tile_log = t.tiles.stride_log - t.blocks_log;
    const uint64_t number = blockIdx.x & ((1u << per_tile_log) - 1);
    const uint64_t tile = (uint64_t)(blockIdx.x >> per_tile_log)
                          << (t.tiles.block_log + t.tiles.stride_log);
    here.row_log = t.tiles.block_log - t.tiles.stride_log + t.blocks_log;
    here.blocks = tile + (number << t.group_log);
    here.packets = tile + (number << here.row_log);
    here.left = 1ull << t.group_log;
    return here;
}

/* From the first element of its rows to that at a place of the group. Of the sum of two places that share no
 * bit it is the sum. */
static __device__ inline uint32_t row_offset(const transform &t, const group &here, uint32_t place)
{
    return (place >> here.row_log << t.tiles.block_log) + (place & ((1u << here.row_log) - 1));
}

/* Between memory and the group, STORE: back. All loads of a thread are in flight at once. */
template <int TYPE, int R, bool STORE>
static __device__ void move_rows(const transform &t, const group &here, uint32_t *staged)
{
    typedef chunk<TYPE, R> C;
    typedef typename element<TYPE>::bits bits;
    const uint64_t first = t.tiles.first + here.packets;
    if (!t.aligned || here.left >> t.group_log == 0) {
        for (uint32_t place = threadIdx.x; place < 1u << t.group_log; place += blockDim.x) {
            bits *const mine = (bits *)((char *)staged + byte_of<TYPE>(place));
            const uint64_t at = first + row_offset(t, here, place);
            if (!STORE)
                *mine = place < here.left ? ((const bits *)t.tiles.in)[at] : 0;
            else if (place < here.left)
                ((bits *)t.tiles.out)[at] = *mine;
        }
        return;
    }
    const uint64_t own = first + row_offset(t, here, threadIdx.x * C::V);
    uint4 four[R / C::V];
#pragma unroll
    for (int i = 0; i < R / C::V && !STORE; i++)
        four[i] =
            *(const uint4 *)((const bits *)t.tiles.in + own + row_offset(t, here, i * blockDim.x * C::V));
#pragma unroll
    for (int i = 0; i < R / C::V; i++) {
        const uint32_t word = swizzle(threadIdx.x * 4) ^ swizzle(i * blockDim.x * 4);
        if (STORE) {
            *(uint4 *)((bits *)t.tiles.out + own + row_offset(t, here, i * blockDim.x * C::V)) =
                make_uint4(staged[word], staged[word ^ 1], staged[word ^ 2], staged[word ^ 3]);
        } else {
            staged[word] = four[i].x;
            staged[word ^ 1] = four[i].y;
            staged[word ^ 2] = four[i].z;
            staged[word ^ 3] = four[i].w;
        }
    }
}

/* Between a warp's registers and their places, AT_ONCE elements that follow each other in both. Numbers go by
 * Gray code, so that each place is one exclusive or away from the one before. */
template <int TYPE, int R, bool STORE, int AT_ONCE>
static __device__ __forceinline__ void move_places(const transform &t, float (&x)[R], uint32_t first,
                                                   void *staged)
{
    typedef chunk<TYPE, R> C;
    typedef element<TYPE> E;
    uint32_t masks[C::R_LOG];
#pragma unroll
    for (int bit = 0; bit < C::R_LOG; bit++)
        masks[bit] = byte_of<TYPE>(packet_order(t, 1u << (bit < C::V_LOG ? bit : bit + 5)));
    uint32_t place = byte_of<TYPE>(packet_order(t, first + threadIdx.x % 32 * C::V));
#pragma unroll
    for (int i = 0; i < R / AT_ONCE; i++) {
        const int r = (i ^ i >> 1) * AT_ONCE;
        char *const at = (char *)staged + place;
        if (AT_ONCE == E::per_word && STORE)
            *(uint32_t *)at = E::pack(&x[r]);
        else if (AT_ONCE == E::per_word)
            E::unpack(*(const uint32_t *)at, &x[r]);
        else if (STORE)
            *(typename E::bits *)at = E::put(x[r]);
        else
            x[r] = E::get(*(const typename E::bits *)at);
#pragma unroll
        for (int bit = AT_ONCE / 2; bit < C::R_LOG; bit++)
            if ((i + 1) * AT_ONCE % (2 << bit) == 1 << bit)
                place ^= masks[bit];
    }
}

/* Two of 16 bits at once where runs have as many. */
template <int TYPE, int R, bool STORE>
static __device__ __forceinline__ void move_registers(const transform &t, float (&x)[R], uint32_t first,
                                                      void *staged)
{
    if (element<TYPE>::per_word == 1 || t.tiles.block_log > t.tiles.stride_log)
        move_places<TYPE, R, STORE, element<TYPE>::per_word>(t, x, first, staged);
    else
        move_places<TYPE, R, STORE, 1>(t, x, first, staged);
}

/* ---- the kernel ---------------------------------------------------------------------------------------- */

/* Where a warp's chunk is. */
struct share {
    uint64_t blocks; /* its first element, from the region's first */
    uint64_t left;   /* elements, in the order of blocks */
    uint32_t first;  /* staged: number in the group */
};

/* Reads a chunk once more, element by element: counts those that are not finite, or reports the first of
 * them; or, if there is none, that a result is too large. False: it need not be transformed again. Rare: no
 * registers are kept for it. */
template <int TYPE, int R, bool FROM_PACKETS>
static __device__ __noinline__ bool examine(const transform &t, const group &here, const share &mine,
                                            const void *staged)
{
    typedef element<TYPE> E;
    typedef typename E::bits bits;
    uint64_t minimum = CUDA_NOWHERE, found = 0;
#pragma unroll 1
    for (uint32_t e = threadIdx.x % 32; e < 32 * R && e < mine.left; e += 32) {
        const uint32_t place = FROM_PACKETS ? packet_order(t, mine.first + e) : 0;
        const uint64_t index =
            t.tiles.first + (FROM_PACKETS ? here.packets + row_offset(t, here, place) : mine.blocks + e);
        const bits one = FROM_PACKETS ? *(const bits *)((const char *)staged + byte_of<TYPE>(place))
                                      : ((const bits *)t.tiles.in)[index];
        if (!is_finite(E::get(one))) {
            minimum = index < minimum ? index : minimum;
            found++;
        }
    }
    const bool any = __any_sync(WHOLE_WARP, found > 0);
    if (found && t.call.zero)
        count_zeroed(t.call, found);
    else if (found)
        take_min(&t.call.report->non_finite, minimum);
    else if (!any && threadIdx.x % 32 == 0)
        take_min(&t.call.report->too_large, t.tiles.first + mine.blocks);
    return any && t.call.zero;
}

/* Transforms a chunk, from memory or from the group, in registers. False: a result is not finite or exceeds
 * the type. */
template <int TYPE, int R, bool DECODE, bool STAGED>
static __device__ __forceinline__ bool transform_chunk(const transform &t, const share &mine, float (&x)[R],
                                                       void *staged, bool zero)
{
    typedef chunk<TYPE, R> C;
    /* A chunk of 64 a thread is one block; others have blocks of up to a chunk. */
    const uint32_t block_log = R == 64 ? CUDA_BLOCK_LOG_MAX : t.tiles.block_log;
    const uint64_t element = t.tiles.first + mine.blocks;
    if (STAGED && DECODE)
        move_registers<TYPE, R, false>(t, x, mine.first, staged);
    else
        C::load(x, t.tiles.in, element, mine.left, t.aligned);
    if (zero)
#pragma unroll
        for (int r = 0; r < R; r++)
            x[r] = is_finite(x[r]) ? x[r] : 0;
    if (DECODE) {
#pragma unroll
        for (int r = 0; r < R; r++)
            x[r] *= t.tiles.scale;
        C::butterflies(x, block_log);
        C::apply_signs(x, t.call.seed, element, 1);
    } else {
        C::apply_signs(x, t.call.seed, element, t.tiles.scale);
        C::butterflies(x, block_log);
    }
    return !C::exceeds(x);
}

/* A chunk that has such a result, with elements that are not finite as 0. Its results come back through
 * memory: a loop around the transform would keep registers for what both rounds compute. */
template <int TYPE, int R, bool DECODE, bool STAGED>
static __device__ __noinline__ void transform_again(const transform &t, const group &here,
                                                    const share &mine, float *results, void *staged)
{
    float x[R];
    bool fits = true;
    if (t.call.look && examine < TYPE, R, STAGED && DECODE > (t, here, mine, staged))
        fits = transform_chunk<TYPE, R, DECODE, STAGED>(t, mine, x, staged, true);
    else
#pragma unroll
        for (int r = 0; r < R; r++)
            x[r] = 0;
    if ((!fits || !t.call.look) && threadIdx.x % 32 == 0)
        take_min(&t.call.report->too_large, t.tiles.first + mine.blocks);
#pragma unroll
    for (int r = 0; r < R; r++)
        results[r] = x[r];
}

/* All of it. */
template <int TYPE, int R, bool DECODE, bool STAGED>
static __device__ __forceinline__ void transform_share(const transform &t, const group &here,
                                                       const share &mine, float (&x)[R], void *staged)
{
    if (transform_chunk<TYPE, R, DECODE, STAGED>(t, mine, x, staged, false))
        return;
    float results[R];
    transform_again<TYPE, R, DECODE, STAGED>(t, here, mine, results, staged);
#pragma unroll
    for (int r = 0; r < R; r++)
        x[r] = results[r];
}

template <int TYPE, int R, bool DECODE>
static __global__ void __launch_bounds__(DIRECT_THREADS, R == 32 ? 6 : 4)
    transform_direct(const __grid_constant__ transform t)
{
    typedef chunk<TYPE, R> C;
    const uint64_t warp = (uint64_t)blockIdx.x * (DIRECT_THREADS / 32) + threadIdx.x / 32;
    const uint64_t blocks = warp * C::ELEMENTS;
    if (blocks >= t.tiles.elements || canceled(t.call))
        return;
    const share mine = {blocks, t.tiles.elements - blocks, 0};
    float x[R];
    transform_share<TYPE, R, DECODE, false>(t, group{}, mine, x, nullptr);
    C::store(x, t.tiles.out, t.tiles.first + blocks, mine.left, t.aligned);
}

template <int TYPE, int R, bool DECODE>
static __global__ void __launch_bounds__(STAGED_THREADS, R == 32 ? 2 : 1)
    transform_staged(const __grid_constant__ transform t)
{
    extern __shared__ uint32_t staged[];
    typedef chunk<TYPE, R> C;
    if (canceled(t.call))
        return;
    const group here = group_of(t);
    const uint32_t first = threadIdx.x / 32 * C::ELEMENTS;
    const share mine = {here.blocks + first, here.left > first ? here.left - first : 0, first};
    if (DECODE) {
        move_rows<TYPE, R, false>(t, here, staged);
        __syncthreads();
    }
    float x[R];
    transform_share<TYPE, R, DECODE, true>(t, here, mine, x, staged);
    if (DECODE) {
        C::store(x, t.tiles.out, t.tiles.first + mine.blocks, mine.left, t.aligned);
        return;
    }
    move_registers<TYPE, R, true>(t, x, first, staged);
    __syncthreads();
    move_rows<TYPE, R, true>(t, here, staged);
}

/* ---- launches ------------------------------------------------------------------------------------------ */

extern "C" uint32_t cuda_group_log(enum lh_hadamard_type type, const struct cuda_tiles *tiles)
{
    const uint32_t bytes_log = type == LH_HADAMARD_F32 ? 2 : 1;
    const uint32_t tile_log = tiles->block_log + tiles->stride_log;
    const uint32_t rows_log = tiles->stride_log + ROW_LOG_MIN - bytes_log;
    const uint32_t minimum = GROUP_LOG_MIN + (tiles->block_log == CUDA_BLOCK_LOG_MAX);
    uint32_t log = group_log_in_use;
    if (log == 0)
        log = rows_log > minimum ? rows_log : minimum;
    /* In place only a group of whole tiles does without another pass. */
    return tiles->in == tiles->out && tile_log <= GROUP_LOG_MAX && tile_log > log ? tile_log : log;
}

extern "C" void cuda_group_log_use(uint32_t group_log)
{
    group_log_in_use = group_log;
}

template <int TYPE, int R, bool DECODE> static cudaError_t launch(transform t)
{
    typedef chunk<TYPE, R> C;
    const cudaStream_t stream = (cudaStream_t)t.call.stream;
    const uintptr_t places = (uintptr_t)t.tiles.in | (uintptr_t)t.tiles.out;
    const uint32_t bytes = sizeof(typename element<TYPE>::bits);
    t.aligned = (places + t.tiles.first * bytes) % 16 == 0 && places % 16 == 0;
    if (t.tiles.stride_log == 0) {
        const uint64_t chunks = (t.tiles.elements + C::ELEMENTS - 1) / C::ELEMENTS;
        const uint64_t per_block = DIRECT_THREADS / 32;
        transform_direct<TYPE, R, DECODE>
            <<<(unsigned)((chunks + per_block - 1) / per_block), DIRECT_THREADS, 0, stream>>>(t);
        return cudaGetLastError();
    }
    t.group_log = cuda_group_log(t.call.type, &t.tiles);
    t.whole = t.tiles.block_log + t.tiles.stride_log <= t.group_log;
    t.blocks_log = t.whole ? t.tiles.stride_log : t.group_log - t.tiles.block_log;
    const uint64_t group = 1ull << t.group_log;
    t.aligned &= t.whole || t.group_log - t.tiles.stride_log >= C::V_LOG;
    cudaError_t failed =
        cudaFuncSetAttribute((const void *)transform_staged<TYPE, R, DECODE>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(group * bytes));
    if (failed != cudaSuccess)
        return failed;
    transform_staged<TYPE, R, DECODE><<<(unsigned)((t.tiles.elements + group - 1) / group),
                                        (unsigned)(group / R), group * bytes, stream>>>(t);
    return cudaGetLastError();
}

template <int TYPE> static cudaError_t launch_type(const transform &t)
{
    if (t.tiles.block_log == CUDA_BLOCK_LOG_MAX)
        return t.tiles.decode ? launch<TYPE, 64, true>(t) : launch<TYPE, 64, false>(t);
    return t.tiles.decode ? launch<TYPE, 32, true>(t) : launch<TYPE, 32, false>(t);
}

extern "C" int cuda_transform(const struct cuda_call *call, const struct cuda_tiles *tiles)
{
    transform t = {*call, *tiles, 0, 0, false, false};
    switch (call->type) {
    case LH_HADAMARD_F32:
        return launch_type<LH_HADAMARD_F32>(t);
    case LH_HADAMARD_BF16:
        return launch_type<LH_HADAMARD_BF16>(t);
    default:
        return launch_type<LH_HADAMARD_F16>(t);
    }
}
