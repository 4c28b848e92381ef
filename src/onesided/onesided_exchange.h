/*
 * onesided_exchange.h - one-sided operations: exchange of the sub-connections' blobs, and regions by key.
 * Pure.
 *
 * A side opens its inner connection when its user exposes memory or starts an operation, and sends the
 * blob until the peer has it. A peer that has not opened its own keeps the blob for later, and answers
 * without one: then nothing is exposed there, and operations end.
 *
 * Timer:
 *   refresh_at   sent again after an overdue round trip, doubling, until the peer answers
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_ONESIDED_ONESIDED_EXCHANGE_H
#define LH_ONESIDED_ONESIDED_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include <longhaul/types.h>

#include "wire/eager_packets.h"

struct exchange {
    bool open;      /* this side has a blob */
    bool announced; /* the peer has it */
    bool has_peer;  /* this side has the peer's */
    bool asking;    /* operations wait for it */
    bool answer_due;
    uint32_t answer_to; /* the number that it repeats */
    uint32_t sent;      /* times, without an answer */
    lh_time refresh_at;
};

enum exchange_news {
    EXCHANGE_NOTHING,
    EXCHANGE_BLOB,  /* the peer's: exchange_accept(), unless it is malformed */
    EXCHANGE_EMPTY, /* the peer has exposed nothing, and knew of all operations */
};

/* This side has its blob now. */
void exchange_open(struct exchange *exchange, lh_time now);
/* An operation waits for the peer's blob. */
void exchange_ask(struct exchange *exchange, lh_time now);
/* operations: that this side has started, ever. */
enum exchange_news exchange_on_message(struct exchange *exchange, const struct onesided_exchange *message,
                                       uint32_t operations);
void exchange_accept(struct exchange *exchange);
/* Whether something waits for the peer: an answer. */
bool exchange_waits(const struct exchange *exchange);
/* Whether there is a message to be sent now: writes all but the blob itself, and whether it belongs to it. */
bool exchange_next(const struct exchange *exchange, uint32_t operations, lh_time now,
                   struct onesided_exchange *message, bool *with_blob);
/* That one was sent; it is sent again after the interval. */
void exchange_on_sent(struct exchange *exchange, const struct onesided_exchange *message,
                      lh_time interval_ns, lh_time now);

/* ---- regions --------------------------------------------------------------------------------------- */

/*
 * The memory of one connection that its peer may write to or read from, by key. Pure.
 *
 * A key has the place of its region in its lowest bits, and the caller's random number in the others. It is
 * never used again.
 */

#define REGIONS_MAX 1024u /* a power of two: LH_REGIONS_MAX */

struct region {
    uint64_t key;
    uint64_t bytes;
    uint32_t access; /* bits of enum lh_access */
};

/* All zero: none. */
struct regions {
    struct region *places[REGIONS_MAX];
    uint32_t count;
};

/* Gives the region a key. False: REGIONS_MAX are there. */
bool regions_add(struct regions *regions, struct region *region, uint64_t random);
void regions_remove(struct regions *regions, const struct region *region);
/* The region of a key that the peer names; else NULL. */
struct region *regions_find(const struct regions *regions, uint64_t key);
/* Whether the peer may do this: 0, or a positive lh_error: LH_EKEY (no such region; not this access) or
 * LH_ERANGE. region: may be NULL. */
int region_check(const struct region *region, uint32_t access, uint64_t offset, uint64_t bytes);

#endif
