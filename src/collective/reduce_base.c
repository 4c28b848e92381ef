/*
 * reduce_base.c - 16 bytes at once, in portable C: a vector of every CPU, or a few instructions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/reduce.h"

#define VECTOR_BYTES 16
#define TARGET
#define TEMPLATE __attribute__((always_inline)) static inline

/* Of words below 2^16. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOWER_HALF 0
#else
#define LOWER_HALF 1
#endif
typedef uint16_t eight_halves __attribute__((vector_size(16)));
#define words_widen(halves) __builtin_convertvector(halves, u32_vector)
#define words_narrow(words)                                                                                \
    __builtin_shufflevector((eight_halves)(words), (eight_halves)(words), LOWER_HALF, LOWER_HALF + 2,      \
                            LOWER_HALF + 4, LOWER_HALF + 6)

static bool runs_here(void)
{
    return true;
}

#include "collective/reduce_template.h"

const struct reduce_kernel reduce_kernel_base = {.name = "base", .runs_here = runs_here, KERNEL_FUNCTIONS};
