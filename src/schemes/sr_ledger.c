/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr_ledger.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bitmap.h"
#include "base/min_max.h"
#include "schemes/sr_timers.h"
#include "wire/scheme_messages.h"

/* ---- ledger ---------------------------------------------------------------------------------------- */

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

uint64_t sr_ledger_outstanding(const struct sr_ledger *ledger, uint32_t word)
{
    uint64_t sent = sr_word_below(word, ledger->sent_through);
    return sent == 0 ? 0 : sent & ~(ledger->acked_bits[word] | ledger->lost_bits[word]);
}

void sr_ledger_lose_word(struct sr_ledger *ledger, uint32_t word, uint64_t bits)
{
    assert((bits & ~sr_ledger_outstanding(ledger, word)) == 0);
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

/* ---- marker ---------------------------------------------------------------------------------------- */

void sr_marker_init(struct sr_marker *marker)
{
    *marker = (struct sr_marker){.cover = SR_COVERED, .repeat_ns = LH_TIME_NEVER};
}

const char *sr_cover_name(enum sr_cover cover)
{
    static const char *const names[] = {
        [SR_COVERED] = "covered",
        [SR_NEW_UNCOVERED] = "new uncovered",
        [SR_REPAIRS_UNCOVERED] = "repairs uncovered",
    };
    return names[cover];
}

uint32_t sr_marker_stamp(const struct sr_marker *marker)
{
    /* Nobody sends four thousand million MARKs for one transfer; should it happen, the number stays. */
    return marker->mark == UINT32_MAX ? UINT32_MAX : marker->mark + 1;
}

void sr_marker_on_injection(struct sr_marker *marker, bool repair, lh_time now)
{
    enum sr_cover cover = repair ? SR_REPAIRS_UNCOVERED : SR_NEW_UNCOVERED;
    if (cover <= marker->cover)
        return;
    marker->cover = cover;
    marker->uncovered_since_ns = now;
}

void sr_marker_on_settled(struct sr_marker *marker, uint32_t mark)
{
    assert(mark <= marker->mark);
    if (mark > marker->settled)
        marker->settled = mark;
    if (marker->settled == marker->mark)
        marker->repeat_ns = LH_TIME_NEVER;
}

lh_time sr_marker_cover_expiry(const struct sr_marker *marker, const struct sr_timing *timing)
{
    switch (marker->cover) {
    case SR_COVERED:
        return LH_TIME_NEVER;
    case SR_NEW_UNCOVERED:
        return sr_after(marker->uncovered_since_ns, timing->rtt_ns / 4);
    case SR_REPAIRS_UNCOVERED:
        return sr_after(marker->uncovered_since_ns, timing->window_ns / 4);
    }
    assert(false); /* a state of enum sr_cover */
    return LH_TIME_NEVER;
}

bool sr_marker_wants_cover(const struct sr_marker *marker, bool anything_lost, bool all_sent)
{
    if (marker->cover == SR_COVERED || anything_lost)
        return false;
    return all_sent || marker->cover == SR_REPAIRS_UNCOVERED;
}

void sr_marker_on_cover(struct sr_marker *marker, bool ends, const struct sr_timing *timing, lh_time now)
{
    bool worth_repeating = ends || marker->cover == SR_REPAIRS_UNCOVERED;
    assert(marker->cover != SR_COVERED);
    marker->mark = sr_marker_stamp(marker);
    marker->cover = SR_COVERED;
    marker->repeat_span_ns = timing->window_ns;
    marker->repeat_ns = worth_repeating ? sr_after(now, timing->window_ns) : LH_TIME_NEVER;
}

lh_time sr_marker_repeat_expiry(const struct sr_marker *marker)
{
    return marker->repeat_ns;
}

void sr_marker_on_repeat_expired(struct sr_marker *marker, const struct sr_timing *timing, lh_time now)
{
    assert(marker->repeat_ns <= now);
    marker->repeat_span_ns *= 2;
    bool once_more = marker->repeat_span_ns < timing->overdue_ns;
    marker->repeat_ns = once_more ? sr_after(now, marker->repeat_span_ns) : LH_TIME_NEVER;
}

bool sr_mark_send(const struct sr_ledger *ledger, uint32_t number, uint8_t flags,
                  struct lh_actions *actions)
{
    struct lh_action *action = lh_action_add(actions, LH_ACTION_SEND_MESSAGE);
    if (action == NULL)
        return false;
    struct sr_mark mark = {.flags = flags, .mark = number, .sent_through = ledger->sent_through};
    action->what.message.bytes = (uint32_t)sr_mark_encode(&mark, action->what.message.data);
    return true;
}

/* ---- report ---------------------------------------------------------------------------------------- */

static uint64_t lost_of_word(const struct sr_ledger *ledger, uint32_t word, uint64_t missing, uint32_t mark)
{
    uint64_t repaired = missing & ledger->again_bits[word];
    uint64_t lost = missing & ~repaired;
    for (; repaired != 0; repaired &= repaired - 1) { /* at most 64 */
        uint32_t bit = (uint32_t)__builtin_ctzll(repaired);
        if (ledger->stamps[word * 64 + bit] <= mark)
            lost |= (uint64_t)1 << bit;
    }
    return lost;
}

bool sr_report_possible(const struct sr_ledger *ledger, const struct sr_marker *marker,
                        const struct sr_ack *ack)
{
    uint32_t sent = ledger->sent_through;
    return ack->cumulative <= sent && ack->arrived <= sent && ack->mark <= marker->mark;
}

void sr_report_arrivals(struct sr_ledger *ledger, const struct sr_ack *ack)
{
    sr_ledger_ack_below(ledger, ack->cumulative);
    for (uint32_t i = 0; i < ack->words; i++)
        sr_ledger_ack_word(ledger, ack->base / 64 + i, ack->bitmap[i]);
    if (ack->arrived > ledger->arrived)
        ledger->arrived = ack->arrived;
}

void sr_report_losses(struct sr_ledger *ledger, const struct sr_ack *ack)
{
    uint32_t first = ack->base / 64;
    for (uint32_t word = first; word < first + ack->words; word++) { /* at most SR_ACK_WORDS_MAX */
        uint64_t missing = sr_ledger_outstanding(ledger, word) & sr_word_below(word, ack->horizon);
        if (missing != 0)
            sr_ledger_lose_word(ledger, word, lost_of_word(ledger, word, missing, ack->mark));
    }
}

/* ---- rto ------------------------------------------------------------------------------------------- */

static struct sr_rto_group *group_at(struct sr_rto *rto, uint32_t number)
{
    return &rto->groups[number % SR_RTO_GROUPS];
}

void sr_rto_init(struct sr_rto *rto, uint32_t alpha_hundredths)
{
    rto->oldest = 1;
    rto->next = 1;
    rto->alpha_hundredths = alpha_hundredths;
}

lh_time sr_rto_span(const struct sr_rto *rto, const struct sr_timing *timing)
{
    lh_time span = timing->rtt_ns + timing->rtt_ns / 100 * rto->alpha_hundredths;
    return lh_max(span, sr_after(timing->overdue_ns, sr_ack_spacing(timing)));
}

uint32_t sr_rto_stamp(struct sr_rto *rto, const struct sr_timing *timing, lh_time now)
{
    uint32_t alive = rto->next - rto->oldest; /* numbers may wrap */
    assert(alive <= SR_RTO_GROUPS);
    if (alive == SR_RTO_GROUPS)
        return rto->next - 1;
    lh_time share = sr_rto_span(rto, timing) / 64;
    if (alive > 0 && now - group_at(rto, rto->next - 1)->first_ns < share)
        return rto->next - 1;
    *group_at(rto, rto->next) = (struct sr_rto_group){.first_ns = now, .last_ns = now, .low = UINT32_MAX};
    return rto->next++;
}

void sr_rto_on_injection(struct sr_rto *rto, struct sr_run run, lh_time now)
{
    assert(rto->next != rto->oldest && run.count > 0);
    struct sr_rto_group *group = group_at(rto, rto->next - 1);
    uint32_t last = run.first + run.count - 1;
    group->last_ns = now;
    if (run.first < group->low)
        group->low = run.first;
    if (last > group->high)
        group->high = last;
}

lh_time sr_rto_expiry(const struct sr_rto *rto, const struct sr_timing *timing)
{
    if (rto->oldest == rto->next)
        return LH_TIME_NEVER;
    return sr_after(rto->groups[rto->oldest % SR_RTO_GROUPS].last_ns, sr_rto_span(rto, timing));
}

/* What of one word was last injected with this group and is still under way. */
static uint64_t expired_of_word(const struct sr_ledger *ledger, uint32_t word, uint32_t number)
{
    uint64_t expired = 0;
    for (uint64_t left = sr_ledger_outstanding(ledger, word); left != 0;
         left &= left - 1) { /* at most 64 */
        uint32_t bit = (uint32_t)__builtin_ctzll(left);
        if (ledger->stamps[word * 64 + bit] == number)
            expired |= (uint64_t)1 << bit;
    }
    return expired;
}

static uint32_t expire_group(struct sr_ledger *ledger, const struct sr_rto_group *group, uint32_t number)
{
    uint32_t count = 0;
    if (group->low == UINT32_MAX) /* opened, and nothing was injected after all */
        return 0;
    assert(group->low <= group->high && group->high < ledger->chunks);
    for (uint32_t word = group->low / 64; word <= group->high / 64; word++) {
        uint64_t expired = expired_of_word(ledger, word, number);
        sr_ledger_lose_word(ledger, word, expired);
        count += (uint32_t)__builtin_popcountll(expired);
    }
    return count;
}

uint32_t sr_rto_on_expired(struct sr_rto *rto, struct sr_ledger *ledger, const struct sr_timing *timing,
                           lh_time now)
{
    uint32_t count = 0;
    while (sr_rto_expiry(rto, timing) <= now) { /* at most SR_RTO_GROUPS */
        count += expire_group(ledger, group_at(rto, rto->oldest), rto->oldest);
        rto->oldest++;
    }
    return count;
}
