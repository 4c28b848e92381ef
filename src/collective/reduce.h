/*
 * reduce.h - reductions of arrays by type and operation, with the kernel in use.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_REDUCE_H
#define LH_COLLECTIVE_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- kernel ---------------------------------------------------------------------------------------- */

/*
 * Element by element, the reductions of collectives: one set of functions for each kind of CPU,
 * chosen when the program starts.
 */

/* X(constant, name, bytes) */
#define ELEMENT_TYPES(X)                                                                                   \
    X(F32, f32, 4)                                                                                         \
    X(F64, f64, 8)                                                                                         \
    X(F16, f16, 2)                                                                                         \
    X(BF16, bf16, 2)                                                                                       \
    X(I32, i32, 4)                                                                                         \
    X(I64, i64, 8)                                                                                         \
    X(U8, u8, 1)                                                                                           \
    X(I8, i8, 1)                                                                                           \
    X(I16, i16, 2)

enum element_type {
#define ELEMENT_CONSTANT(constant, name, bytes) ELEMENT_##constant,
    ELEMENT_TYPES(ELEMENT_CONSTANT)
#undef ELEMENT_CONSTANT
        ELEMENT_COUNT
};

/* Integers wrap around. Of NaN and a number, the least and the greatest are NaN. 16-bit floats are computed
 * as F32 and rounded to the nearest, of two the even one. */
enum reduce_operation {
    REDUCE_SUM,
    REDUCE_PROD,
    REDUCE_MIN,
    REDUCE_MAX,
    REDUCE_BAND, /* from here on of bits: the type does not matter */
    REDUCE_BOR,
    REDUCE_BXOR,
    REDUCE_COUNT
};

/* to[i] = left[i] op right[i]. `to` may be left or right; apart from that they do not overlap. Aligned for
 * no type. */
typedef void reduce_function(void *to, const void *left, const void *right, size_t count);
/* at[i] /= by */
typedef void divide_function(void *at, size_t count, uint32_t by);

struct reduce_kernel {
    const char *name;
    bool (*runs_here)(void);
    reduce_function *reduce[ELEMENT_COUNT][REDUCE_BAND];
    reduce_function *bits[REDUCE_COUNT - REDUCE_BAND]; /* count: of bytes */
    divide_function *divide[ELEMENT_COUNT];            /* NULL: integers */
};

extern const struct reduce_kernel reduce_kernel_base;
#if defined(__x86_64__)
extern const struct reduce_kernel reduce_kernel_avx512, reduce_kernel_avx2;
#endif

/* Those that this CPU runs, best first, ended by NULL. */
const struct reduce_kernel *const *reduce_kernels(void);
/* The one in use: the first, unless another of these was chosen, for tests and benchmarks. */
const struct reduce_kernel *reduce_kernel_now(void);
void reduce_kernel_use(const struct reduce_kernel *kernel);

/* ---- reduce ---------------------------------------------------------------------------------------- */

size_t element_bytes_of(enum element_type type);
/* "bf16" */
const char *element_name(enum element_type type);

/* to[i] = left[i] op right[i], as reduce_function. */
void reduce_elements(enum element_type type, enum reduce_operation operation, void *to, const void *left,
                     const void *right, size_t count);
/* at[i] /= by; of integers towards 0. by: not 0. */
void reduce_divide(enum element_type type, void *at, size_t count, uint32_t by);

#endif
