/*
 * kernel.h - the transform of a group of blocks: one set of functions for each kind of CPU, chosen when the
 * program starts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_HADAMARD_KERNEL_H
#define LH_CODING_HADAMARD_KERNEL_H

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

#endif
