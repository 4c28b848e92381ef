/*
 * hadamard.h - a transform that spreads what gets lost of a tensor over all of it (OptiNIC paper,
 * section 3.2).
 *
 * A tensor of `count` elements is cut into blocks of p elements (`block`). Each block is multiplied by
 * random signs, then by the Hadamard matrix H of order p, H[i][j] = (-1)^popcount(i & j), divided by
 * sqrt(p): an orthonormal transform. S blocks (`stride`) are a tile of p * S elements, which is stored as S
 * packets of p elements: packet j has coefficients j * p/S … (j + 1) * p/S - 1 of each of the S blocks,
 * block after block. So a lost packet takes p/S coefficients from each of S blocks, and the decoder spreads
 * that error over them.
 *
 *   Shape  The encoded tensor has `count` elements, too; packets are consecutive. p is a power of two from
 *          1 to 2^30, for BF16 and F16 to 2048; S is one from 1 to p.
 *   Tail   Blocks that do not fill a tile are cut into tiles of the largest power of two of blocks that
 *          fits, again and again; their number of blocks is S there. Elements that do not fill a block are
 *          cut into blocks of the largest power of two that fits, again and again, with S = 1.
 *   Signs  The sign of element i is bit i mod 64 of number i / 64 of the SplitMix64 sequence of `seed`; 1
 *          is minus. Different seeds for different messages keep errors independent.
 *   Sums   The transform is linear: a sum of encoded tensors (same count, p, S and seed) is the encoded sum.
 *   Types  F32, BF16 and F16 (IEEE 754), of this machine's byte order, computed in F32. Kernels of different
 *          CPUs differ by rounding, at most log2(p) * 2^-23 of a block's norm, and one unit of BF16 or F16;
 *          norms of F32 or BF16 below 2^-100 lose more.
 *
 * Memory is the caller's, at any alignment; 64 bytes is the fastest. Nothing is allocated; up to 300 KiB of
 * stack are used. Any thread may call at any time, but one call at a time for an lh_encoder.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_HADAMARD_H
#define LONGHAUL_HADAMARD_H

#include <longhaul/code.h>
#include <longhaul/error.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LH_HADAMARD_BLOCK_MAX      (1u << 30) /* of F32 */
#define LH_HADAMARD_HALF_BLOCK_MAX 2048u      /* of BF16 and F16 */
#define LH_HADAMARD_PAYLOAD_BYTES  4096u      /* of a packet, for the default block */

enum lh_hadamard_type {
    LH_HADAMARD_F32 = 1,
    LH_HADAMARD_BF16 = 2,
    LH_HADAMARD_F16 = 3,
};

/* Elements that are NaN or infinite would spread over their block. */
enum lh_hadamard_non_finite {
    LH_HADAMARD_REFUSE = 0, /* -LH_ERANGE, and the index */
    LH_HADAMARD_ZERO = 1,   /* they become 0, and are counted */
};

struct lh_hadamard {
    enum lh_hadamard_type type;
    enum lh_hadamard_non_finite non_finite;
    uint32_t block;  /* p, elements */
    uint32_t stride; /* S */
    uint64_t seed;   /* of the signs */
    struct lh_encoder
        *encoder; /* shares the work out among its threads (lh_encoder_create(3)); NULL: none */
};

/* What came of an encoded tensor. All zero, or NULL in its place: everything. */
struct lh_hadamard_arrival {
    /* Missing bytes, as lh_missing(3) reports them, in any order. An element of which a byte is missing is.
     */
    const struct lh_range *missing;
    uint64_t missing_count;
    /* Of a sum: how many contributions each packet (p elements, the last one fewer) has; ceil(count / p)
     * numbers, or NULL: all. Packets with fewer than `contributors` are scaled up; those with 0 are
     * missing. */
    const uint32_t *contributions;
    uint32_t contributors;
};

/* What a call found; also set when it fails. */
struct lh_hadamard_result {
    uint64_t zeroed; /* elements that were not finite (LH_HADAMARD_ZERO) */
    uint64_t index;  /* of -LH_ERANGE: the element; UINT64_MAX: none */
};

/* Sets the type, and the default: p fills a payload of LH_HADAMARD_PAYLOAD_BYTES, S = p, seed 0, REFUSE, no
 * threads. */
LH_API void lh_hadamard_init(struct lh_hadamard *hadamard, enum lh_hadamard_type type);

/* Validates a description. -LH_EINVAL: unknown type or mode; p is no power of two or above the maximum; S
 * is no power of two, or above p. */
LH_API int lh_hadamard_check(const struct lh_hadamard *hadamard);

/*
 * Encodes `count` elements of `in` into `out`: separate memory, or the same address (in place; with S > 1
 * this takes a second pass over each tile). result: NULL, or what was found.
 *
 * -LH_EINVAL: an invalid description; `in` and `out` overlap. -LH_ERANGE: an element is NaN or infinite and
 * the mode is LH_HADAMARD_REFUSE: result->index is the first such one, in place nothing was changed,
 * otherwise `out` is unspecified; or a coefficient exceeds the type: result->index is the first element of
 * a group of blocks with one, `out` is unspecified.
 */
LH_API int lh_hadamard_encode(const struct lh_hadamard *hadamard, const void *in, void *out, size_t count,
                              struct lh_hadamard_result *result);

/*
 * Decodes `in`, which is used up: missing elements are zeroed there, packets that lack contributions scaled
 * in the tensor's type, and it may be work space. arrival: NULL, or what is missing.
 *
 * Errors as of lh_hadamard_encode(), `in` and `out` being unspecified after -LH_ERANGE. -LH_EINVAL also: a
 * missing range exceeds the tensor; a packet has more contributions than there are contributors: nothing
 * was changed. A packet that is not finite once it is scaled is refused without an index; LH_HADAMARD_ZERO
 * zeroes its elements uncounted.
 */
LH_API int lh_hadamard_decode(const struct lh_hadamard *hadamard, const struct lh_hadamard_arrival *arrival,
                              void *in, void *out, size_t count, struct lh_hadamard_result *result);

#ifdef __cplusplus
}
#endif
#endif
