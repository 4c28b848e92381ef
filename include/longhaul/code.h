/*
 * code.h - the erasure codes, for use alone: encode k data chunks into m parity chunks, and recover what was
 * lost.
 *
 *   LH_CODE_MDS  Reed-Solomon over GF(2^8), k + m <= 255: any k of the k + m chunks give back the data.
 *                Polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d). Parity i is the sum over j of c(i, j) * data
 *                j, a Cauchy matrix with its columns scaled so that row 0 is all ones (parity 0 is the plain
 *                XOR): c(i, j) = (x_0 + y_j) / (x_i + y_j), x_i = 255 - i, y_j = j. A coefficient depends on
 *                neither k nor m: a shortened code and further rows of a longer one fit together.
 *   LH_CODE_XOR  parity i is the XOR of the data chunks j with j mod m = i, m <= k. One lost chunk of each
 *                such class can be recovered (SDR-RDMA paper, sections 4.1.2 and 5.1.1, appendix B).
 *
 * All chunks of a call have the same length, any number of bytes, at any alignment. No call (but those of
 * lh_encoder) allocates, locks or fails half way; any thread may call at any time. Up to 96 KiB of stack are
 * used, however many bytes there are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_CODE_H
#define LONGHAUL_CODE_H

#include <longhaul/error.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LH_CODE_CHUNKS_MAX 255 /* k + m */

enum lh_code_kind {
    LH_CODE_XOR = 1,
    LH_CODE_MDS = 2,
};

struct lh_code {
    enum lh_code_kind kind;
    uint32_t k; /* data chunks, at least 1 */
    uint32_t m; /* parity chunks, at least 1 */
};

/* 0, or -LH_EINVAL with words: the kind, k or m cannot be, or k + m is over LH_CODE_CHUNKS_MAX. The other
 * calls take a checked code only. */
LH_API int lh_code_check(const struct lh_code *code);

/* parity[0 … m - 1] from data[0 … k - 1], each `bytes` long. Parity must not overlap data. */
LH_API void lh_encode(const struct lh_code *code, const void *const *data, void *const *parity,
                      size_t bytes);
/* Only rows first_row … first_row + rows - 1, into parity[0 … rows - 1]. */
LH_API void lh_encode_rows(const struct lh_code *code, uint32_t first_row, uint32_t rows,
                           const void *const *data, void *const *parity, size_t bytes);

/* present: k + m bytes, data first, non-zero: this chunk is there. Whether the data can be recovered. */
LH_API bool lh_recoverable(const struct lh_code *code, const uint8_t *present);
/* Recovers the data chunks that are not present into their own places; the others are only read (parity
 * that is not present may be NULL). Nothing is changed on error: -LH_EUNRECOVERABLE. */
LH_API int lh_decode(const struct lh_code *code, void *const *chunks, const uint8_t *present, size_t bytes);

/* ---- kernels ----------------------------------------------------------------------------------------- */

/* The kernels that this CPU can run, best first, ended by NULL: "avx512-gfni", "avx2", "isa-l", "base". */
LH_API const char *const *lh_code_kernels(void);
/* The one in use; chosen once, the first of the list. */
LH_API const char *lh_code_kernel(void);
/* For tests and benchmarks: takes another. -LH_EINVAL when this CPU has none of this name. Not while other
 * threads encode or decode. */
LH_API int lh_code_kernel_use(const char *name);

/* ---- several threads --------------------------------------------------------------------------------- */

struct lh_encoder;

/* `threads` beside the caller's own, 0 … 255; cpus: one a thread, -1 for any, or NULL. -LH_EINVAL,
 * -LH_ENOMEM, -LH_ESYSTEM: a thread cannot start (there). */
LH_API int lh_encoder_create(uint32_t threads, const int *cpus, struct lh_encoder **encoder);
/* lh_encode of `groups` groups, data[g * k + j] and parity[g * m + i], shared out among the threads and the
 * caller; returns when all is done. One call at a time. */
LH_API void lh_encoder_encode(struct lh_encoder *encoder, const struct lh_code *code, uint32_t groups,
                              const void *const *data, void *const *parity, size_t bytes);
LH_API void lh_encoder_destroy(struct lh_encoder *encoder);

#ifdef __cplusplus
}
#endif
#endif
