/*
 * gf256.h - arithmetic in GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1 (addition is XOR), and the tables of
 * kernels.
 *
 * For matrices. What runs over data is in the kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_GF256_H
#define LH_CODING_GF256_H

#include <assert.h>
#include <stdint.h>

#define GF256_ORDER 255u /* elements that are not 0; 2 generates them all */

extern const uint8_t gf256_power[2 * GF256_ORDER];
extern const uint8_t gf256_log[256];

static inline uint8_t gf256_multiply(uint8_t a, uint8_t b)
{
    return a && b ? gf256_power[gf256_log[a] + gf256_log[b]] : 0;
}

static inline uint8_t gf256_divide(uint8_t a, uint8_t b)
{
    assert(b != 0);
    return a ? gf256_power[GF256_ORDER + gf256_log[a] - gf256_log[b]] : 0;
}

/* ---- kernel tables --------------------------------------------------------------------------------- */

/* A factor in GF(2^8) as x86 instructions want it, for each of the 256. */

#if defined(__x86_64__)

/* The bit matrix of a multiplication, for gf2p8affineqb. (gf2p8mulb knows another polynomial only.) */
extern const uint64_t kernel_affine[256];
/* Products with 0 … 15, and with 16 times these, a byte each, for pshufb. */
extern const uint64_t kernel_nibbles[256][4];

#endif

#endif
