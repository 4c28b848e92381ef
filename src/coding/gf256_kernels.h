/*
 * kernel.h - what runs over data: one set of functions for each kind of CPU, chosen when the program starts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_KERNEL_H
#define LH_CODING_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows and bytes that a kernel is asked for at once. */
#define KERNEL_ROWS_MAX  8u
#define KERNEL_BYTES_MAX ((size_t)1 << 20)

struct kernel_task {
    uint32_t rows;         /* 1 … KERNEL_ROWS_MAX */
    uint32_t columns;      /* 1 … 254 */
    bool first_is_sum;     /* the first row is all ones */
    const uint8_t *matrix; /* rows * columns, row by row */
    const void *const *in;
    void *const *out;
    bool stream;  /* results may go past the caches */
    size_t from;  /* in each chunk */
    size_t bytes; /* 1 … KERNEL_BYTES_MAX */
};

struct kernel {
    const char *name;
    bool (*runs_here)(void);
    /* out[r] = sum over j of matrix[r * columns + j] * in[j] */
    void (*product)(const struct kernel_task *task);
    /* out[0] = sum over j of in[j]; rows is 1, there is no matrix. */
    void (*sum)(const struct kernel_task *task);
};

extern const struct kernel kernel_base;
extern const struct kernel kernel_isal;
#if defined(__x86_64__)
extern const struct kernel kernel_avx512_gfni;
extern const struct kernel kernel_avx2;
#endif

/* The one in use. */
const struct kernel *kernel_now(void);

#endif
