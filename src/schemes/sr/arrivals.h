/*
 * arrivals.h - the receiver's own copy of the chunk bitmap, as bits, brought up to date at the cost of
 * what changed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_ARRIVALS_H
#define LH_SCHEMES_SR_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sr_arrivals {
    uint32_t capacity;   /* chunks in the buffer */
    uint32_t limit;      /* chunks of the message; capacity as long as the length is not known */
    uint32_t seen;       /* how many bits are set */
    uint32_t highest;    /* one past the highest that is set */
    uint32_t cumulative; /* the first that is not set */
    uint64_t *bits;
};

size_t sr_arrivals_bytes(uint32_t capacity);
/* memory: sr_arrivals_bytes(capacity), aligned to 8; stays the caller's. */
void sr_arrivals_init(struct sr_arrivals *arrivals, uint32_t capacity, void *memory);
/* The message turned out to have this many chunks; what lies past them is forgotten. */
void sr_arrivals_limit(struct sr_arrivals *arrivals, uint32_t limit);
/* Looks for arrivals in the bitmap (one byte a chunk, non-zero: arrived) until as many as `arrived` are
 * known; it may be written meanwhile. Returns how many were new. Costs nothing when as many are known
 * already. */
uint32_t sr_arrivals_update(struct sr_arrivals *arrivals, const uint8_t *chunk_bitmap, uint32_t arrived);
/* Whether any chunk of first … end - 1 is missing. */
bool sr_arrivals_gap(const struct sr_arrivals *arrivals, uint32_t first, uint32_t end);

#endif
