/*
 * exposed.h - memory that a peer may write to, and what its bytes may be: what was there when it was exposed,
 * or what a write put there that is not over, or was over last.
 *
 * Events have an order of their own (`clock`), for many happen at one moment. A write whose end nobody learns
 * (it was canceled, say) may change its bytes until the memory is withdrawn. Where chunks are decoded from
 * what is there (`coded`), operations at one time on the same bytes may spoil all bytes of both.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_EXPOSED_H
#define LH_TESTS_WORLD_EXPOSED_H

#include "world/world.h"

#define EXPOSED_WRITES_MAX 16u
#define EXPOSED_NEVER      UINT32_MAX

struct exposed_write {
    uint64_t first; /* byte */
    uint64_t end;
    const uint8_t *data; /* what it puts there */
    uint32_t begun;
    uint32_t over; /* EXPOSED_NEVER: it may still place bytes */
    bool coded;
};

struct exposed {
    uint8_t *memory; /* GUARD_BYTES before and behind it */
    uint8_t *base;   /* what was there when it was exposed */
    uint64_t bytes;
    uint32_t clock;
    struct exposed_write writes[EXPOSED_WRITES_MAX];
    uint32_t count;
};

/* Blank: nothing may be written. */
void exposed_make(struct world *world, struct exposed *exposed, uint64_t bytes);
/* Fills it, and lets a peer write from now on. */
void exposed_open(struct exposed *exposed, uint64_t seed);
/* Blanks it: no packet changes it any more. */
void exposed_withdraw(struct exposed *exposed);
/* A write begins; data stays as it is. Returns its number. */
uint32_t exposed_begin(struct exposed *exposed, uint64_t first, uint64_t bytes, const uint8_t *data,
                       bool coded);
/* It is done: all of its bytes are there. */
void exposed_finish(struct exposed *exposed, uint32_t write);
/* Whether any write of some of these bytes was in progress since that time of the clock. */
bool exposed_is_busy(const struct exposed *exposed, uint64_t first, uint64_t bytes, uint32_t since);
/* Compares what was seen of the memory, from `first` on since that time of the clock until now. Returns the
 * first byte that was not there, or `bytes`. */
uint64_t exposed_compare(const struct exposed *exposed, uint64_t first, uint64_t bytes, const uint8_t *seen,
                         uint32_t since);
/* The same of the memory itself, now. */
uint64_t exposed_compare_now(const struct exposed *exposed);

#endif
