/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/ledger.h"

#include <assert.h>
#include <string.h>

#include "base/bitmap.h"
#include "schemes/sr/timing.h"

size_t sr_ledger_bytes(uint32_t chunks)
{
    size_t words = LH_BITMAP_WORDS((size_t)chunks);
    return 3 * words * sizeof(uint64_t) + words * 64 * sizeof(uint32_t);
}

void sr_ledger_init(struct sr_ledger *ledger, uint32_t chunks, void *memory)
{
    assert((uintptr_t)memory % sizeof(uint64_t) == 0);
    size_t words = LH_BITMAP_WORDS((size_t)chunks);
    memset(memory, 0, sr_ledger_bytes(chunks));
    uint64_t *bits = memory;
    *ledger = (struct sr_ledger){
        .chunks = chunks,
        .lost_from = chunks,
        .acked_bits = bits,
        .lost_bits = bits + words,
        .again_bits = bits + 2 * words,
        .stamps = (uint32_t *)(void *)(bits + 3 * words),
    };
}

static void stamp_run(struct sr_ledger *ledger, struct sr_run run, uint32_t stamp)
{
    for (uint32_t chunk = run.first; chunk < run.first + run.count; chunk++)
        ledger->stamps[chunk] = stamp;
}

bool sr_ledger_take_lost(struct sr_ledger *ledger, uint32_t limit, uint32_t stamp, struct sr_run *run)
{
    if (ledger->lost == 0 || limit == 0)
        return false;
    size_t first = lh_bitmap_next_set(ledger->lost_bits, ledger->sent_through, ledger->lost_from);
    assert(first < ledger->sent_through);
    size_t farthest = limit < ledger->sent_through - first ? first + limit : ledger->sent_through;
    size_t end = lh_bitmap_next_clear(ledger->lost_bits, farthest, first);
    *run = (struct sr_run){(uint32_t)first, (uint32_t)(end - first)};
    lh_bitmap_clear_range(ledger->lost_bits, first, run->count);
    lh_bitmap_set_range(ledger->again_bits, first, run->count);
    stamp_run(ledger, *run, stamp);
    assert(run->count >= 1 && run->count <= ledger->lost);
    ledger->lost -= run->count;
    ledger->lost_from = ledger->lost == 0 ? ledger->chunks : (uint32_t)end;
    return true;
}

void sr_ledger_take_one(struct sr_ledger *ledger, uint32_t chunk, uint32_t stamp)
{
    uint64_t bit = (uint64_t)1 << (chunk % 64);
    assert(chunk < ledger->sent_through && (ledger->lost_bits[chunk / 64] & bit) != 0);
    ledger->lost_bits[chunk / 64] &= ~bit;
    ledger->again_bits[chunk / 64] |= bit;
    ledger->stamps[chunk] = stamp;
    ledger->lost--;
    if (ledger->lost == 0)
        ledger->lost_from = ledger->chunks;
}

bool sr_ledger_take_new(struct sr_ledger *ledger, uint32_t limit, uint32_t stamp, struct sr_run *run)
{
    uint32_t left = ledger->chunks - ledger->sent_through;
    uint32_t count = left < limit ? left : limit;
    if (count == 0)
        return false;
    *run = (struct sr_run){ledger->sent_through, count};
    stamp_run(ledger, *run, stamp);
    ledger->sent_through += count;
    assert(ledger->sent_through <= ledger->chunks);
    return true;
}

void sr_ledger_ack_word(struct sr_ledger *ledger, uint32_t word, uint64_t bits)
{
    bits &= sr_word_below(word, ledger->sent_through);
    if (bits == 0)
        return;
    uint64_t fresh = bits & ~ledger->acked_bits[word];
    ledger->acked_bits[word] |= fresh;
    ledger->acked += (uint32_t)__builtin_popcountll(fresh);
    ledger->lost -= (uint32_t)__builtin_popcountll(fresh & ledger->lost_bits[word]);
    ledger->lost_bits[word] &= ~fresh;
    assert(ledger->acked + ledger->lost <= ledger->sent_through);
}

void sr_ledger_ack_below(struct sr_ledger *ledger, uint32_t cumulative)
{
    assert(cumulative <= ledger->sent_through);
    if (cumulative <= ledger->cumulative)
        return;
    for (uint32_t word = ledger->cumulative / 64; word <= (cumulative - 1) / 64; word++)
        sr_ledger_ack_word(ledger, word, sr_word_below(word, cumulative));
    ledger->cumulative = cumulative;
}

uint64_t sr_ledger_under_way(const struct sr_ledger *ledger, uint32_t word)
{
    uint64_t sent = sr_word_below(word, ledger->sent_through);
    return sent == 0 ? 0 : sent & ~(ledger->acked_bits[word] | ledger->lost_bits[word]);
}

void sr_ledger_lose_word(struct sr_ledger *ledger, uint32_t word, uint64_t bits)
{
    assert((bits & ~sr_ledger_under_way(ledger, word)) == 0);
    if (bits == 0)
        return;
    ledger->lost_bits[word] |= bits;
    ledger->lost += (uint32_t)__builtin_popcountll(bits);
    uint32_t first = word * 64 + (uint32_t)__builtin_ctzll(bits);
    if (first < ledger->lost_from)
        ledger->lost_from = first;
}

uint32_t sr_ledger_in_flight(const struct sr_ledger *ledger)
{
    uint32_t there = ledger->acked > ledger->arrived ? ledger->acked : ledger->arrived;
    uint32_t gone = there + ledger->lost;
    assert(there <= ledger->sent_through);
    /* What counts as lost may have arrived after all, and is then subtracted twice. */
    return gone < ledger->sent_through ? ledger->sent_through - gone : 0;
}
