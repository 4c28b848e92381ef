/*
 * kernel_tables.h - a factor in GF(2^8) as x86 instructions want it, for each of the 256.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_KERNEL_TABLES_H
#define LH_CODING_KERNEL_TABLES_H

#include <stdint.h>

#if defined(__x86_64__)

/* The bit matrix of a multiplication, for gf2p8affineqb. (gf2p8mulb knows another polynomial only.) */
extern const uint64_t kernel_affine[256];
/* Products with 0 … 15, and with 16 times these, a byte each, for pshufb. */
extern const uint64_t kernel_nibbles[256][4];

#endif
#endif
