/*
 * hadamard.h - a transform that spreads lost data over the whole tensor (OptiNIC paper, section 3.2).
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
 *   Tail   Remaining blocks that do not fill a tile are cut repeatedly into tiles of the largest power of two
 *          of blocks that fits; S is that number. Remaining elements are cut repeatedly into blocks of the
 *          largest power of two that fits, with S = 1.
 *   Signs  The sign of element i is bit i mod 64 of number i / 64 of the SplitMix64 sequence of `seed`; 1
 *          is minus. Different seeds for different messages keep errors independent.
 *   Sums   The transform is linear: a sum of encoded tensors (same count, p, S and seed) is the encoded sum.
 *   Types  F32, BF16 and F16 (IEEE 754), of this machine's byte order, computed in F32. Kernels of different
 *          CPUs differ by rounding, at most log2(p) * 2^-23 of a block's norm, and one unit of BF16 or F16;
 *          norms of F32 or BF16 below 2^-100 lose more.
 *
 * The caller owns all memory; any alignment works, 64 bytes is fastest. Calls allocate nothing, and use up to
 * 300 KiB of stack. Any thread may call at any time, but only one at a time with the same lh_encoder.
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

/* Treatment of elements that are NaN or infinite, which would spread over their block. */
enum lh_hadamard_non_finite {
    LH_HADAMARD_REFUSE = 0, /* -LH_ERANGE, and the index */
    LH_HADAMARD_ZERO = 1,   /* they become 0, and are counted */
};

struct lh_hadamard {
    enum lh_hadamard_type type;
    enum lh_hadamard_non_finite non_finite;
    uint32_t block;             /* p, elements */
    uint32_t stride;            /* S */
    uint64_t seed;              /* of the signs */
    struct lh_encoder *encoder; /* its threads share the work (lh_encoder_create(3)); NULL: none */
};

/* The arrived part of an encoded tensor. All zero, or a NULL pointer: everything arrived. */
struct lh_hadamard_arrival {
    /* Missing bytes, as lh_missing(3) reports them, in any order. An element with a missing byte is missing.
     */
    const struct lh_range *missing;
    uint64_t missing_count;
    /* For a sum: the number of contributions of each packet (p elements, the last one fewer), ceil(count / p)
     * numbers; NULL: complete. Packets with fewer than `contributors` are scaled up; those with 0 are
     * missing. */
    const uint32_t *contributions;
    uint32_t contributors;
};

/* Findings of a call; set even when it fails. */
struct lh_hadamard_result {
    uint64_t zeroed; /* elements that were not finite (LH_HADAMARD_ZERO) */
    uint64_t index;  /* of -LH_ERANGE: the element; UINT64_MAX: none */
};

/* Sets the type and the defaults: p fills a payload of LH_HADAMARD_PAYLOAD_BYTES, S = p, seed 0, REFUSE, no
 * threads. */
LH_API void lh_hadamard_init(struct lh_hadamard *hadamard, enum lh_hadamard_type type);

/* Validates a description. -LH_EINVAL: the type or mode is unknown; p is not a power of two, or exceeds the
 * maximum; S is not a power of two, or exceeds p. */
LH_API int lh_hadamard_check(const struct lh_hadamard *hadamard);

/*
 * Encodes `count` elements of `in` into `out`: separate memory, or the same address (in place; with S > 1
 * this takes a second pass over each tile). result: findings; may be NULL.
 *
 * -LH_EINVAL: an invalid description; `in` and `out` overlap. -LH_ERANGE: an element is NaN or infinite and
 * the mode is LH_HADAMARD_REFUSE: result->index is the first such element; in place nothing changed,
 * otherwise `out` is unspecified. Or a coefficient exceeds the type: result->index is the first element of a
 * group of blocks that contains it; `out` is unspecified.
 */
LH_API int lh_hadamard_encode(const struct lh_hadamard *hadamard, const void *in, void *out, size_t count,
                              struct lh_hadamard_result *result);

/*
 * Decodes `in` into `out`, and overwrites `in`: it zeroes missing elements, scales packets that lack
 * contributions in the tensor's type, and may use `in` as work space. arrival: missing data; NULL: none.
 *
 * Errors: as lh_hadamard_encode(); after -LH_ERANGE `in` and `out` are unspecified. Also -LH_EINVAL, without
 * effect: a missing range exceeds the tensor, or a packet has more contributions than contributors. A packet
 * that is not finite after scaling is refused without an index; LH_HADAMARD_ZERO zeroes its elements, and
 * does not count them.
 */
LH_API int lh_hadamard_decode(const struct lh_hadamard *hadamard, const struct lh_hadamard_arrival *arrival,
                              void *in, void *out, size_t count, struct lh_hadamard_result *result);

#ifdef __cplusplus
}
#endif
#endif
