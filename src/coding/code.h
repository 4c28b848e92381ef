/*
 * code.h - encoding a part of the bytes, for threads that share one group of chunks; and the two codes behind
 * the public calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_CODE_H
#define LH_CODING_CODE_H

#include <longhaul/code.h>

/* lh_encode() of the bytes from … from + bytes - 1 of each chunk. */
void code_encode_range(const struct lh_code *code, const void *const *data, void *const *parity,
                       size_t from, size_t bytes);

void mds_encode(const struct lh_code *code, uint32_t first_row, uint32_t rows, const void *const *data,
                void *const *parity, size_t from, size_t bytes);
bool mds_recoverable(const struct lh_code *code, const uint8_t *present);
/* Of what is recoverable. */
void mds_decode(const struct lh_code *code, void *const *chunks, const uint8_t *present, size_t bytes);

void xor_encode(const struct lh_code *code, uint32_t first_row, uint32_t rows, const void *const *data,
                void *const *parity, size_t from, size_t bytes);
bool xor_recoverable(const struct lh_code *code, const uint8_t *present);
/* Of what is recoverable. */
void xor_decode(const struct lh_code *code, void *const *chunks, const uint8_t *present, size_t bytes);

#endif
