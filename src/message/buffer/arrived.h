/*
 * arrived.h - which packets of a message have come: a bit each, and the ranges of those that have not.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_BUFFER_ARRIVED_H
#define LH_MESSAGE_BUFFER_ARRIVED_H

#include <longhaul/connection.h>

struct arrived {
    const uint64_t *bits; /* NULL: none has come */
    uint64_t packet_bytes;
    uint64_t bytes; /* of the message */
};

/* Words of memory for the bits of a message of so many bytes. */
size_t arrived_words(uint64_t bytes, uint64_t packet_bytes);
/* The first range at or after `from` that is missing; false: there is none. Neither end is within a
 * packet but for the message's end. */
bool arrived_next_missing(const struct arrived *arrived, uint64_t from, struct lh_range *range);
/* Its number of ranges; *bytes: of all of them. */
uint64_t arrived_missing(const struct arrived *arrived, uint64_t *bytes);

#endif
