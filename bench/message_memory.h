/*
 * message_memory.h - what simulated messages are read from and written to.
 *
 * Up to SOLID_BYTES both buffers are memory of their own, and a message is compared byte by byte. Longer
 * ones, up to 8 GiB, are a few MiB that are mapped again and again over the whole range, so that they fit a
 * small machine and its caches.
 *
 * What that hides: a chunk that never came, when one a period away brought the bytes of its place. What it
 * does not hide: a wrong byte, carried or decoded, unless the right one came after it. Nor does it touch
 * time: completion is decided by bitmaps, which look at no byte. So the short messages show that all is
 * right, and the long ones how long it takes. The period is a prime number of pages: no two neighbouring
 * submessages, nor two chunks of one, hold the same bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BENCH_MESSAGE_MEMORY_H
#define LH_BENCH_MESSAGE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOLID_BYTES ((size_t)16 << 20)

struct message_memory {
    uint8_t *from;
    uint8_t *to;
    size_t bytes;
    size_t distinct_bytes; /* of each: all of it, or the period */
};

/* Ends the program when there is no memory. `from` is filled with what a generator makes. */
struct message_memory message_memory_open(size_t bytes);
void message_memory_close(struct message_memory *memory);
/* Before a message: what it will be compared with must be gone. */
void message_memory_clear(struct message_memory *memory, size_t bytes);
/* After it. */
bool message_memory_same(const struct message_memory *memory, size_t bytes);

#endif
