/*
 * code.h - erasure codes: encode k data chunks into m parity chunks, and recover lost chunks.
 *
 *   LH_CODE_MDS  Reed-Solomon over GF(2^8), k + m <= 255: any k of the k + m chunks give back the data.
 *                Polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d). Parity i is the sum over j of c(i, j) * data
 *                j, a Cauchy matrix with its columns scaled so that row 0 is all ones (parity 0 is the plain
 *                XOR): c(i, j) = (x_0 + y_j) / (x_i + y_j), x_i = 255 - i, y_j = j. A coefficient depends on
 *                neither k nor m: a shortened code and further rows of a longer one are compatible.
 *   LH_CODE_XOR  parity i is the XOR of the data chunks j with j mod m = i, m <= k. One lost chunk of each
 *                such class can be recovered (SDR-RDMA paper, sections 4.1.2 and 5.1.1, appendix B).
 *
 * All chunks of a call have the same length, in bytes; any length and any alignment work. Only the calls of
 * lh_encoder allocate or lock. A call that fails changes nothing. Any thread may call at any time, unless a
 * call says otherwise. A call uses up to 96 KiB of stack, whatever the length.
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

/* Validates a code; all other calls require a valid one. -LH_EINVAL: kind, k or m is invalid, or k + m
 * exceeds LH_CODE_CHUNKS_MAX. */
LH_API int lh_code_check(const struct lh_code *code);

/* Encodes parity[0 … m - 1] from data[0 … k - 1], each `bytes` long. Parity must not overlap data. */
LH_API void lh_encode(const struct lh_code *code, const void *const *data, void *const *parity,
                      size_t bytes);
/* Encodes rows first_row … first_row + rows - 1 only, into parity[0 … rows - 1]. */
LH_API void lh_encode_rows(const struct lh_code *code, uint32_t first_row, uint32_t rows,
                           const void *const *data, void *const *parity, size_t bytes);

/* Returns whether the data can be recovered. present: k + m bytes, data first; non-zero: the chunk is
 * present. */
LH_API bool lh_recoverable(const struct lh_code *code, const uint8_t *present);
/* Recovers the missing data chunks in place, and only reads the others (missing parity may be NULL).
 * -LH_EUNRECOVERABLE: too many chunks are missing; no chunk changes. */
LH_API int lh_decode(const struct lh_code *code, void *const *chunks, const uint8_t *present, size_t bytes);

/* ---- kernels ----------------------------------------------------------------------------------------- */

/* Returns the kernels that this CPU supports, best first, ended by NULL: "avx512-gfni", "avx2", "isa-l",
 * "base". */
LH_API const char *const *lh_code_kernels(void);
/* Returns the kernel in use: the best one, unless lh_code_kernel_use() selected another. */
LH_API const char *lh_code_kernel(void);
/* Selects a kernel, for tests and benchmarks. No other thread may encode or decode meanwhile. -LH_EINVAL:
 * this CPU has no kernel of this name. */
LH_API int lh_code_kernel_use(const char *name);

/* ---- several threads --------------------------------------------------------------------------------- */

struct lh_encoder;

/* Creates an encoder with `threads` (0 … 255) threads, beside the caller's. cpus: one CPU per thread, -1 for
 * any; NULL: any. -LH_EINVAL, -LH_ENOMEM; -LH_ESYSTEM: a thread cannot start (on its CPU). */
LH_API int lh_encoder_create(uint32_t threads, const int *cpus, struct lh_encoder **encoder);
/* Encodes `groups` groups, data[g * k + j] into parity[g * m + i], with the threads and the caller, and
 * returns when all are done. Only one thread may call at a time. */
LH_API void lh_encoder_encode(struct lh_encoder *encoder, const struct lh_code *code, uint32_t groups,
                              const void *const *data, void *const *parity, size_t bytes);
LH_API void lh_encoder_destroy(struct lh_encoder *encoder);

#ifdef __cplusplus
}
#endif
#endif
