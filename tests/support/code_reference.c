/*
 * code_reference.c - shift and add.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/code_reference.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

uint8_t reference_multiply(uint8_t a, uint8_t b)
{
    unsigned product = 0;
    for (unsigned bit = 0; bit < 8; bit++)
        if (b >> bit & 1)
            product ^= (unsigned)a << bit;
    for (unsigned bit = 14; bit >= 8; bit--)
        if (product >> bit & 1)
            product ^= 0x11du << (bit - 8);
    return (uint8_t)product;
}

uint8_t reference_inverse(uint8_t a)
{
    for (unsigned b = 1; b < 256; b++)
        if (reference_multiply(a, (uint8_t)b) == 1)
            return (uint8_t)b;
    abort();
}

uint8_t reference_coefficient(uint32_t i, uint32_t j)
{
    uint8_t x_i = (uint8_t)(255 - i);
    return reference_multiply((uint8_t)(255 ^ j), reference_inverse((uint8_t)(x_i ^ j)));
}

static const uint8_t *products_of(uint8_t factor)
{
    static uint8_t products[256][256];
    static bool known[256];
    for (unsigned value = 0; !known[factor] && value < 256; value++)
        products[factor][value] = reference_multiply(factor, (uint8_t)value);
    known[factor] = true;
    return products[factor];
}

void reference_encode(const struct lh_code *code, const void *const *data, void *const *parity,
                      size_t bytes)
{
    for (uint32_t i = 0; i < code->m; i++) {
        uint8_t *out = parity[i];
        memset(out, 0, bytes);
        for (uint32_t j = 0; j < code->k; j++) {
            const uint8_t *in = data[j];
            uint8_t factor = (uint8_t)(j % code->m == i);
            if (code->kind == LH_CODE_MDS)
                factor = reference_coefficient(i, j);
            const uint8_t *product = products_of(factor);
            for (size_t at = 0; at < bytes; at++)
                out[at] ^= product[in[at]];
        }
    }
}

bool reference_recoverable(const struct lh_code *code, const uint8_t *present)
{
    uint32_t lost = 0;
    uint32_t lost_of_class[LH_CODE_CHUNKS_MAX] = {0};
    bool data_lost_of_class[LH_CODE_CHUNKS_MAX] = {false};
    for (uint32_t i = 0; i < code->k + code->m; i++) {
        if (present[i])
            continue;
        uint32_t class = i < code->k ? i % code->m : i - code->k;
        lost++;
        lost_of_class[class]++;
        data_lost_of_class[class] |= i < code->k;
    }
    if (code->kind == LH_CODE_MDS)
        return lost <= code->m;
    for (uint32_t class = 0; class < code->m; class ++)
        if (data_lost_of_class[class] && lost_of_class[class] > 1)
            return false;
    return true;
}

#define CHUNK_ALIGNMENT 64u
#define CHUNK_GAP_BYTES 128u /* alignment, and some that nobody may write */

void chunk_set_create(struct chunk_set *set, uint32_t count, size_t bytes_max)
{
    assert(count <= LH_CODE_CHUNKS_MAX);
    set->memory_bytes = count * (bytes_max + CHUNK_GAP_BYTES) + CHUNK_GAP_BYTES;
    set->memory_bytes += (0 - set->memory_bytes) % CHUNK_ALIGNMENT;
    set->memory = aligned_alloc(CHUNK_ALIGNMENT, set->memory_bytes);
    assert(set->memory);
    memset(set->memory, 0x5a, set->memory_bytes);
}

void chunk_set_destroy(struct chunk_set *set)
{
    free(set->memory);
}

size_t chunk_set_place(struct chunk_set *set, uint32_t count, size_t bytes, struct lh_prng *prng)
{
    size_t at = CHUNK_GAP_BYTES / 2;
    const bool aligned = lh_prng_chance(prng, 0.25);
    for (uint32_t i = 0; i < count; i++) {
        size_t to = aligned ? (0 - at) % CHUNK_ALIGNMENT : lh_prng_below(prng, CHUNK_ALIGNMENT);
        set->chunks[i] = set->memory + at + to;
        at += bytes + CHUNK_GAP_BYTES;
    }
    assert(at <= set->memory_bytes);
    return at;
}

void fill_random(void *at, size_t bytes, struct lh_prng *prng)
{
    uint8_t *out = at;
    for (size_t done = 0; done < bytes; done += sizeof(uint64_t)) {
        uint64_t word = lh_prng_next(prng);
        memcpy(out + done, &word, bytes - done < sizeof word ? bytes - done : sizeof word);
    }
}
