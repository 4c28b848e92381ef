/*
 * ledger.h - what a sender knows of each chunk: never injected, on its way, lost, or acknowledged.
 *
 * Chunks are injected for the first time in order, so `sent_through` tells the first group. A lost chunk
 * becomes one on its way when it is taken for injection again. Each injection leaves a stamp on its chunks;
 * what it means is the caller's (the MARK that will cover it, or its group of timeouts).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_LEDGER_H
#define LH_SCHEMES_SR_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sr_run {
    uint32_t first;
    uint32_t count;
};

struct sr_ledger {
    uint32_t chunks;
    uint32_t sent_through; /* the first that was never injected */
    uint32_t cumulative;   /* all before are acknowledged */
    uint32_t acked;
    uint32_t lost;
    uint32_t lost_from; /* no lost chunk lies before */
    uint32_t
        arrived; /* at the receiver, as far as we heard; more than acked when an ACK could not name them */
    uint64_t *acked_bits;
    uint64_t *lost_bits;
    uint64_t *again_bits; /* injected more than once */
    uint32_t *stamps;     /* of the newest injection */
};

/* Bytes of the arrays behind a ledger, a multiple of 8. */
size_t sr_ledger_bytes(uint32_t chunks);
/* memory: sr_ledger_bytes(chunks), aligned to 8; stays the caller's. */
void sr_ledger_init(struct sr_ledger *ledger, uint32_t chunks, void *memory);

/* The lowest lost chunks, as far as they follow each other, at most `limit`. False when there are none. */
bool sr_ledger_take_lost(struct sr_ledger *ledger, uint32_t limit, uint32_t stamp, struct sr_run *run);
/* This lost chunk. */
void sr_ledger_take_one(struct sr_ledger *ledger, uint32_t chunk, uint32_t stamp);
/* The next chunks that were never injected, at most `limit`. */
bool sr_ledger_take_new(struct sr_ledger *ledger, uint32_t limit, uint32_t stamp, struct sr_run *run);

/* All chunks before `cumulative` (at most sent_through) have arrived. */
void sr_ledger_ack_below(struct sr_ledger *ledger, uint32_t cumulative);
/* These of the 64 chunks of a word have arrived. Any word, any bits: what was never sent is passed over. */
void sr_ledger_ack_word(struct sr_ledger *ledger, uint32_t word, uint64_t bits);
/* Those of a word that are on their way: injected, neither acknowledged nor lost. 0 past the end. */
uint64_t sr_ledger_under_way(const struct sr_ledger *ledger, uint32_t word);
/* These are on their way, and lost. */
void sr_ledger_lose_word(struct sr_ledger *ledger, uint32_t word, uint64_t bits);

uint32_t sr_ledger_in_flight(const struct sr_ledger *ledger);

static inline bool sr_ledger_all_sent(const struct sr_ledger *ledger)
{
    return ledger->sent_through == ledger->chunks;
}

#endif
