/*
 * hadamard_kernel.h - the transform of a group of blocks: one set of functions for each kind of CPU, chosen
 * when the program starts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_HADAMARD_HADAMARD_KERNEL_H
#define LH_CODING_HADAMARD_HADAMARD_KERNEL_H

#include <string.h>

#include <longhaul/hadamard.h>

/* Of a group. A longer block is cut, see block.h. */
#define GROUP_BLOCK_LOG_MAX 11u
/* The blocks of a group have at least 2^GROUP_LINE_LOG elements in each packet of their tile: one or two
 * cache lines, which are written whole, and of which CPUs fetch both. */
#define GROUP_LINE_LOG 5u
/* Of the cache: what is stored past it at once, at least. */
#define LINE_BYTES         64u
#define GROUP_ELEMENTS_MAX ((size_t)1 << (GROUP_BLOCK_LOG_MAX + GROUP_LINE_LOG))

/* `blocks` consecutive blocks of a tile. Packets have p elements; of each packet of the tile, blocks * p/S
 * consecutive elements are this group's. */
struct group_task {
    enum lh_hadamard_type type;
    uint32_t block_log;    /* log2 of p */
    uint32_t run_log;      /* of p/S */
    uint32_t blocks;       /* at most 2^GROUP_LINE_LOG */
    const void *in;        /* of the first block; to decode: in the first packet */
    void *out;             /* to encode: in the first packet; of the first block */
    const uint64_t *signs; /* a bit an element, block after block */
    float scale;           /* of the input: then a sum exceeds the type only where a result of it does */
    bool stream;           /* results may go past the caches, when they begin at a cache line */
    uint64_t
        *zeroed; /* not NULL: elements that are not finite count as 0, and are counted here; simple only */
};

struct hadamard_kernel {
    const char *name;
    bool (*runs_here)(void);
    /* The least block_log that it takes. */
    uint32_t block_log_min;
    /* in and out are the same, or do not overlap; the same with S = 1 only. scratch: GROUP_ELEMENTS_MAX
     * floats at a multiple of 64 bytes. False: a result is NaN or exceeds the type. */
    bool (*encode)(const struct group_task *task, float *scratch);
    bool (*decode)(const struct group_task *task, float *scratch);
    /* Scales and transforms vectors of `distance` floats, a power of two from 16 on, 2^bits of them, 1 … 4,
     * one after the other. False as above. */
    bool (*combine)(float *data, size_t distance, uint32_t bits, float scale);
};

extern const struct hadamard_kernel hadamard_kernel_simple; /* takes everything */
extern const struct hadamard_kernel hadamard_kernel_base;
#if defined(__x86_64__)
extern const struct hadamard_kernel hadamard_kernel_avx512;
extern const struct hadamard_kernel hadamard_kernel_avx2;
#endif

/* Bits of the F32 from which on a magnitude exceeds the type, or is not finite. */
static inline uint32_t hadamard_limit_bits(enum lh_hadamard_type type)
{
    return type == LH_HADAMARD_F32 ? 0x7f800000u : type == LH_HADAMARD_BF16 ? 0x7f7f8000u : 0x477ff000u;
}

/* Those that this CPU runs, best first, ended by NULL. */
const struct hadamard_kernel *const *hadamard_kernels(void);
/* The one in use: the first, unless another of these was chosen, for tests and benchmarks. */
const struct hadamard_kernel *hadamard_kernel_now(void);
void hadamard_kernel_use(const struct hadamard_kernel *kernel);

/* ---- elements -------------------------------------------------------------------------------------- */

/*
 * Elements of any type: as F32 four at a time, and what is done to those of a tensor by
 * itself.
 */

/* A vector of every CPU, or four instructions. */
typedef float four_floats __attribute__((vector_size(16)));
typedef uint32_t four_words __attribute__((vector_size(16)));
typedef int32_t four_ints __attribute__((vector_size(16)));
typedef uint16_t four_halves __attribute__((vector_size(8)));

static inline size_t element_bytes(enum lh_hadamard_type type)
{
    return type == LH_HADAMARD_F32 ? 4 : 2;
}

static inline four_words f16_to_f32(four_words half)
{
    const four_words magnitude = half & 0x7fff;
    /* The exponent's bias differs by 112; the product is right for subnormal numbers, too. */
    four_words bits = (four_words)((four_floats)(magnitude << 13) * 0x1p112f);
    bits |= (four_words)((four_ints)magnitude >= 0x7c00) & 0x7f800000;
    return bits | (half & 0x8000) << 16;
}

/* To the nearest, of two the even one; of less than hadamard_limit_bits(). */
static inline four_words f32_to_f16(four_words bits)
{
    const four_words magnitude = bits & 0x7fffffff;
    const four_words normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
    /* The last bit of 0.5 + x is that of a subnormal F16. */
    const four_words subnormal = (four_words)((four_floats)magnitude + 0.5f) - 0x3f000000;
    const four_words small = (four_words)((four_ints)magnitude < 0x38800000);
    return (subnormal & small) | (normal & ~small) | (bits >> 16 & 0x8000);
}

static inline four_words f32_to_bf16(four_words bits)
{
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/* Elements at … at + 3. */
static inline four_words load_four(const void *from, size_t at, enum lh_hadamard_type type)
{
    four_words bits;
    four_halves halves;
    if (type == LH_HADAMARD_F32) {
        memcpy(&bits, (const uint8_t *)from + 4 * at, sizeof bits);
        return bits;
    }
    memcpy(&halves, (const uint8_t *)from + 2 * at, sizeof halves);
    bits = __builtin_convertvector(halves, four_words);
    return type == LH_HADAMARD_BF16 ? bits << 16 : f16_to_f32(bits);
}

static inline void store_four(void *to, size_t at, four_words bits, enum lh_hadamard_type type)
{
    if (type == LH_HADAMARD_F32) {
        memcpy((uint8_t *)to + 4 * at, &bits, sizeof bits);
        return;
    }
    bits = type == LH_HADAMARD_BF16 ? f32_to_bf16(bits) : f32_to_f16(bits);
    four_halves halves = __builtin_convertvector(bits, four_halves);
    memcpy((uint8_t *)to + 2 * at, &halves, sizeof halves);
}

/* The number of the first element of from … from + count - 1 that is NaN or infinite; from + count: none.
 */
size_t elements_first_non_finite(const void *at, size_t from, size_t count, enum lh_hadamard_type type);
/* Makes them 0; returns their number. */
size_t elements_zero_non_finite(void *at, size_t from, size_t count, enum lh_hadamard_type type);
/* Multiplies elements. False: one has become infinite, or was; it is zero in that place. */
bool elements_scale(void *at, size_t from, size_t count, enum lh_hadamard_type type, float factor);

#endif
