/*
 * code_reference.h - the codes by their definition in longhaul/code.h, slowly; and chunks to run them on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_CODE_REFERENCE_H
#define LH_TESTS_CODE_REFERENCE_H

#include <longhaul/code.h>

#include "base/prng.h"

uint8_t reference_multiply(uint8_t a, uint8_t b);
uint8_t reference_inverse(uint8_t a);
/* Of data j in parity i of an MDS code. */
uint8_t reference_coefficient(uint32_t i, uint32_t j);
void reference_encode(const struct lh_code *code, const void *const *data, void *const *parity,
                      size_t bytes);
bool reference_recoverable(const struct lh_code *code, const uint8_t *present);

/*
 * Chunks in one piece of memory, each at an alignment of its own, with other bytes between them. Comparing
 * all of two such pieces shows every byte that was changed and should not have been.
 */
struct chunk_set {
    uint8_t *memory;
    size_t memory_bytes;
    void *chunks[LH_CODE_CHUNKS_MAX];
};

/* Memory for count chunks of at most bytes_max. */
void chunk_set_create(struct chunk_set *set, uint32_t count, size_t bytes_max);
void chunk_set_destroy(struct chunk_set *set);
/* Places count chunks of this length at random alignments, 0 … 63, or now and then all at 64 bytes, in
 * used_bytes from the start. The contents are left alone. Returns used_bytes. */
size_t chunk_set_place(struct chunk_set *set, uint32_t count, size_t bytes, struct lh_prng *prng);

void fill_random(void *at, size_t bytes, struct lh_prng *prng);

#endif
