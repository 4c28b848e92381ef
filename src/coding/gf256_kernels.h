/*
 * gf256_kernels.h - products of data in GF(2^8): one set of functions for each kind of CPU, chosen when the
 * program starts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_GF256_KERNELS_H
#define LH_CODING_GF256_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/code.h>

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
#if defined(__x86_64__)
extern const struct kernel kernel_avx512_gfni;
extern const struct kernel kernel_avx2;
#endif

/* The one in use. */
const struct kernel *kernel_now(void);

/* ---- product --------------------------------------------------------------------------------------- */

/* A matrix over GF(2^8) times chunks, through the kernel in use. Encoding and decoding are this. */

#define PRODUCT_SIDE_MAX   254u          /* rows, and columns: k and m of k + m <= 255 */
#define PRODUCT_MATRIX_MAX (127u * 128u) /* rows * columns of the same */

struct product {
    uint32_t rows;
    uint32_t columns;
    const uint8_t *matrix; /* rows * columns, row by row */
    const void *const *in; /* columns */
    void *const *out;      /* rows; overlap neither each other nor in */
};

/* out[r] = sum over j of matrix[r * columns + j] * in[j], for the bytes from … from + bytes - 1 of each. */
void product_run(const struct product *product, size_t from, size_t bytes);

/* out = sum of in[0 … count - 1], for the same bytes; count >= 1. group_bytes: that all sums read which are
 * made one after the other. */
void product_sum(uint32_t count, const void *const *in, void *out, size_t from, size_t bytes,
                 size_t group_bytes);

#endif
