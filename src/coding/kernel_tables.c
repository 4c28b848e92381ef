/*
 * kernel_tables.c - both tables are linear in the factor: the entries of its bits determine all others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/kernel_tables.h"

#if defined(__x86_64__)

#define BIT(factor, bit, value) (((factor) >> (bit)&1) * UINT64_C(value))
#define SUM(factor, v0, v1, v2, v3, v4, v5, v6, v7)                                                        \
    (BIT(factor, 0, v0) ^ BIT(factor, 1, v1) ^ BIT(factor, 2, v2) ^ BIT(factor, 3, v3) ^                   \
     BIT(factor, 4, v4) ^ BIT(factor, 5, v5) ^ BIT(factor, 6, v6) ^ BIT(factor, 7, v7))

#define FOUR(X, f)       X(f), X((f) + 1), X((f) + 2), X((f) + 3)
#define SIXTEEN(X, f)    FOUR(X, f), FOUR(X, (f) + 4), FOUR(X, (f) + 8), FOUR(X, (f) + 12)
#define SIXTY_FOUR(X, f) SIXTEEN(X, f), SIXTEEN(X, (f) + 16), SIXTEEN(X, (f) + 32), SIXTEEN(X, (f) + 48)
#define ALL(X)           SIXTY_FOUR(X, 0), SIXTY_FOUR(X, 64), SIXTY_FOUR(X, 128), SIXTY_FOUR(X, 192)

/* Row i of the bit matrix of 2^b: bit j is bit i of 2^b * 2^j. The row of bit 0 is the uppermost byte. */
#define AFFINE(f)                                                                                          \
    SUM(f, 0x0102040810204080, 0x8001828488102040, 0x408041c2c4881020, 0x2040a061e2c48810,                 \
        0x102050b071e2c488, 0x8810a8d83871e2c4, 0xc488d46c1c3871e2, 0xe2c46a368e1c3871)

const uint64_t kernel_affine[256] = {ALL(AFFINE)};

/* 2^b times 0 … 7, 8 … 15, 16 times 0 … 7, and 16 times 8 … 15. */
#define LOW_0(f)                                                                                           \
    SUM(f, 0x0706050403020100, 0x0e0c0a0806040200, 0x1c1814100c080400, 0x3830282018100800,                 \
        0x7060504030201000, 0xe0c0a08060402000, 0xdd9d5d1dc0804000, 0xa727ba3a9d1d8000)
#define LOW_8(f)                                                                                           \
    SUM(f, 0x0f0e0d0c0b0a0908, 0x1e1c1a1816141210, 0x3c3834302c282420, 0x7870686058504840,                 \
        0xf0e0d0c0b0a09080, 0xfdddbd9d7d5d3d1d, 0xe7a76727faba7a3a, 0xd353ce4ee969f474)
#define HIGH_0(f)                                                                                          \
    SUM(f, 0x7060504030201000, 0xe0c0a08060402000, 0xdd9d5d1dc0804000, 0xa727ba3a9d1d8000,                 \
        0x534e6974273a1d00, 0xa69cd2e84e743a00, 0x5125b9cd9ce87400, 0xa24a6f8725cde800)
#define HIGH_8(f)                                                                                          \
    SUM(f, 0xf0e0d0c0b0a09080, 0xfdddbd9d7d5d3d1d, 0xe7a76727faba7a3a, 0xd353ce4ee969f474,                 \
        0xbba6819ccfd2f5e8, 0x6b511f2583b9f7cd, 0xd6a23e4a1b6ff387, 0xb1597c9436defb13)
#define NIBBLES(f)                                                                                         \
    {                                                                                                      \
        LOW_0(f), LOW_8(f), HIGH_0(f), HIGH_8(f)                                                           \
    }

const uint64_t kernel_nibbles[256][4] = {ALL(NIBBLES)};

#endif
