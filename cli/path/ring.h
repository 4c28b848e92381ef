/*
 * ring.h - packets in flight, of any size, in the order in which they leave.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PATH_RING_H
#define LH_CLI_PATH_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct path_packet {
    int64_t leave_ns;
    uint32_t bytes;
    uint8_t flow;
    uint32_t stride; /* to the next one; 0: that is at the start of the ring */
    uint8_t data[];
};

struct path_ring {
    uint8_t *memory;
    size_t size, packet_max;
    size_t head, tail; /* equal: empty */
};

/* For packets of at most packet_max bytes, capacity bytes of them together with struct path_packet,
 * each rounded up to 16. False: out of memory. */
bool path_ring_open(struct path_ring *ring, size_t capacity, size_t packet_max);
void path_ring_close(struct path_ring *ring);

/* Where the next packet may be written, packet_max bytes at its data; NULL: full. path_ring_push()
 * puts it in. */
struct path_packet *path_ring_space(struct path_ring *ring);
void path_ring_push(struct path_ring *ring, struct path_packet *packet);
/* The oldest packet; NULL: empty. */
struct path_packet *path_ring_first(const struct path_ring *ring);
void path_ring_pop(struct path_ring *ring);
/* The one after it; NULL: it was the last. */
struct path_packet *path_ring_next(const struct path_ring *ring, const struct path_packet *packet);

#endif
