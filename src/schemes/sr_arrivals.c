/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr_arrivals.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bitmap.h"
#include "schemes/sr_timers.h"
#include "wire/scheme_messages.h"

/* ---- arrivals -------------------------------------------------------------------------------------- */

size_t sr_arrivals_bytes(uint32_t capacity)
{
    return LH_BITMAP_WORDS((size_t)capacity) * sizeof(uint64_t);
}

void sr_arrivals_init(struct sr_arrivals *arrivals, uint32_t capacity, void *memory)
{
    assert((uintptr_t)memory % sizeof(uint64_t) == 0);
    memset(memory, 0, sr_arrivals_bytes(capacity));
    *arrivals = (struct sr_arrivals){.capacity = capacity, .limit = capacity, .bits = memory};
}

/* One past the highest bit before `limit` that is set. */
static uint32_t highest_below(const struct sr_arrivals *arrivals, uint32_t limit)
{
    for (uint32_t words = (limit + 63) / 64; words > 0; words--) {
        uint64_t bits = arrivals->bits[words - 1] & sr_word_below(words - 1, limit);
        if (bits != 0)
            return (words - 1) * 64 + 64 - (uint32_t)__builtin_clzll(bits);
    }
    return 0;
}

void sr_arrivals_limit(struct sr_arrivals *arrivals, uint32_t limit)
{
    assert(limit <= arrivals->capacity);
    if (limit == arrivals->limit)
        return;
    if (arrivals->highest > limit) { /* a peer that sends more than it says */
        lh_bitmap_clear_range(arrivals->bits, limit, arrivals->highest - limit);
        arrivals->highest = highest_below(arrivals, limit);
        arrivals->seen = (uint32_t)lh_bitmap_count(arrivals->bits, arrivals->highest);
        if (arrivals->cumulative > limit)
            arrivals->cumulative = limit;
    }
    arrivals->limit = limit;
}

/* Eight bytes of the bitmap as eight bits, the first byte lowest. Workers write the bytes meanwhile, hence
 * atomic. */
static uint64_t load_eight(const uint8_t *bytes)
{
    typedef uint64_t __attribute__((may_alias)) word_of_bytes;
    uint64_t eight = __atomic_load_n((const word_of_bytes *)(const void *)bytes, __ATOMIC_RELAXED);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    eight = __builtin_bswap64(eight);
#endif
    uint64_t low_seven = UINT64_C(0x7f7f7f7f7f7f7f7f);
    uint64_t nonzero = ((((eight & low_seven) + low_seven) | eight) & ~low_seven) >> 7;
    return (nonzero * UINT64_C(0x0102040810204080)) >> 56;
}

/* Bytes 0 … count - 1 as bits; count <= 64. */
static uint64_t load_word(const uint8_t *bytes, uint32_t count)
{
    uint64_t word = 0;
    uint32_t i = 0;
    if ((uintptr_t)bytes % sizeof(uint64_t) == 0)
        for (; i + 8 <= count; i += 8)
            word |= load_eight(bytes + i) << i;
    for (; i < count; i++)
        word |= (uint64_t)(__atomic_load_n(&bytes[i], __ATOMIC_RELAXED) != 0) << i;
    return word;
}

/* Brings one word up to date; returns how many of its chunks are new. */
static uint32_t update_word(struct sr_arrivals *arrivals, const uint8_t *chunk_bitmap, uint32_t word)
{
    uint64_t wanted = sr_word_below(word, arrivals->limit) & ~arrivals->bits[word];
    if (wanted == 0)
        return 0;
    uint32_t left = arrivals->limit - word * 64;
    uint64_t fresh = load_word(chunk_bitmap + (size_t)word * 64, left < 64 ? left : 64) & wanted;
    if (fresh == 0)
        return 0;
    arrivals->bits[word] |= fresh;
    uint32_t end = word * 64 + 64 - (uint32_t)__builtin_clzll(fresh);
    if (end > arrivals->highest)
        arrivals->highest = end;
    uint32_t count = (uint32_t)__builtin_popcountll(fresh);
    arrivals->seen += count;
    return count;
}

/* Words first … end - 1, until `arrived` chunks are known. With `contiguous` it also ends at the first word
 * that brings nothing. Returns where it ended. */
static uint32_t update_words(struct sr_arrivals *arrivals, const uint8_t *chunk_bitmap, uint32_t first,
                             uint32_t end, uint32_t arrived, bool contiguous)
{
    uint32_t word = first;
    while (word < end && arrivals->seen < arrived) {
        uint32_t fresh = update_word(arrivals, chunk_bitmap, word++);
        if (contiguous && fresh == 0)
            break;
    }
    return word;
}

uint32_t sr_arrivals_update(struct sr_arrivals *arrivals, const uint8_t *chunk_bitmap, uint32_t arrived)
{
    uint32_t before = arrivals->seen;
    if (arrived <= before)
        return 0;
    uint32_t words = (arrivals->limit + 63) / 64;
    uint32_t front = arrivals->highest / 64;
    /* New chunks come at the front as a rule, repairs between cumulative and there; the rest is rare. */
    uint32_t rest = update_words(arrivals, chunk_bitmap, front, words, arrived, true);
    update_words(arrivals, chunk_bitmap, arrivals->cumulative / 64, front, arrived, false);
    update_words(arrivals, chunk_bitmap, rest, words, arrived, false);
    arrivals->cumulative =
        (uint32_t)lh_bitmap_next_clear(arrivals->bits, arrivals->limit, arrivals->cumulative);
    assert(arrivals->seen <= arrivals->limit && arrivals->highest <= arrivals->limit);
    assert(arrivals->cumulative <= arrivals->highest);
    return arrivals->seen - before;
}

bool sr_arrivals_gap(const struct sr_arrivals *arrivals, uint32_t first, uint32_t end)
{
    assert(end <= arrivals->capacity);
    return first < end && lh_bitmap_next_clear(arrivals->bits, end, first) < end;
}

/* ---- settle ---------------------------------------------------------------------------------------- */

void sr_settle_init(struct sr_settle *settle)
{
    settle->settled = (struct sr_sample){0};
    settle->newest = (struct sr_sample){0};
    settle->opened_ns = 0;
    settle->first = 0;
    settle->count = 0;
}

static struct sr_sample *last_entry(struct sr_settle *settle)
{
    assert(settle->count > 0 && settle->count <= SR_SAMPLES);
    return &settle->ring[(settle->first + settle->count - 1) % SR_SAMPLES];
}

void sr_settle_add(struct sr_settle *settle, uint32_t through, uint32_t mark,
                   const struct sr_timing *timing, lh_time now)
{
    struct sr_sample *newest = &settle->newest;
    if (through <= newest->through && mark <= newest->mark)
        return;
    newest->at_ns = now;
    if (through > newest->through)
        newest->through = through;
    if (mark > newest->mark)
        newest->mark = mark;
    bool shares = settle->count > 0 && now - settle->opened_ns < timing->window_ns / 16;
    if (!shares && settle->count < SR_SAMPLES) {
        settle->count++;
        settle->opened_ns = now;
    }
    *last_entry(settle) = *newest; /* its time is that of the newest it holds, so nothing settles early */
}

lh_time sr_settle_expiry(const struct sr_settle *settle, const struct sr_timing *timing)
{
    return settle->count == 0 ? LH_TIME_NEVER
                              : sr_after(settle->ring[settle->first].at_ns, timing->window_ns);
}

/* The oldest sample that waits; there must be one. */
static const struct sr_sample *sr_settle_oldest(const struct sr_settle *settle)
{
    assert(settle->count > 0);
    return &settle->ring[settle->first];
}

void sr_settle_on_expired(struct sr_settle *settle)
{
    settle->settled = *sr_settle_oldest(settle);
    settle->first = (settle->first + 1) % SR_SAMPLES;
    settle->count--;
    assert(settle->settled.through <= settle->newest.through &&
           settle->settled.mark <= settle->newest.mark);
}

/* ---- nack ------------------------------------------------------------------------------------------ */

#define SR_NACK_REPEATS 3u

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

void sr_nack_init(struct sr_nack *nack)
{
    sr_settle_init(&nack->chunks);
    sr_settle_init(&nack->marks);
    nack->horizon = 0;
    nack->mark = 0;
    nack->repeats_left = 0;
    nack->repeat_ns = LH_TIME_NEVER;
    nack->repeat_span_ns = 0;
}

void sr_nack_on_mark(struct sr_nack *nack, uint32_t mark, uint32_t sent_through,
                     const struct sr_timing *timing, lh_time now)
{
    sr_settle_add(&nack->marks, sent_through, mark, timing, now);
}

void sr_nack_on_arrivals(struct sr_nack *nack, const struct sr_arrivals *arrivals,
                         const struct sr_timing *timing, lh_time now)
{
    sr_settle_add(&nack->chunks, arrivals->highest, 0, timing, now);
}

/* When the oldest MARK settles. One that speaks of chunks past the highest waits until no more come in:
 * they may be on this host already, behind others that are still to be looked at. */
static lh_time marks_expiry(const struct sr_nack *nack, const struct sr_arrivals *arrivals,
                            const struct sr_timing *timing)
{
    lh_time expiry = sr_settle_expiry(&nack->marks, timing);
    if (expiry == LH_TIME_NEVER || sr_settle_oldest(&nack->marks)->through <= arrivals->highest)
        return expiry;
    lh_time pause = sr_after(nack->chunks.newest.at_ns, timing->window_ns);
    return expiry > pause ? expiry : pause;
}

/* Settles what is due. Each loop ends after SR_SAMPLES rounds. */
static uint32_t horizon_now(struct sr_nack *nack, const struct sr_arrivals *arrivals,
                            const struct lh_receiver_view *view, const struct sr_timing *timing)
{
    while (sr_settle_expiry(&nack->chunks, timing) <= view->now)
        sr_settle_on_expired(&nack->chunks);
    while (marks_expiry(nack, arrivals, timing) <= sr_caught_up(view))
        sr_settle_on_expired(&nack->marks);
    uint32_t horizon = larger(nack->chunks.settled.through, nack->marks.settled.through);
    horizon = larger(horizon, nack->horizon);
    return horizon < arrivals->limit ? horizon : arrivals->limit;
}

bool sr_nack_on_step(struct sr_nack *nack, const struct sr_arrivals *arrivals,
                     const struct lh_receiver_view *view, const struct sr_timing *timing)
{
    uint32_t horizon = horizon_now(nack, arrivals, view, timing);
    uint32_t mark = nack->marks.settled.mark;
    bool missing = arrivals->cumulative < horizon;
    bool news = missing && (mark > nack->mark || sr_arrivals_gap(arrivals, nack->horizon, horizon));
    nack->horizon = horizon;
    nack->mark = mark;
    if (news) {
        nack->repeats_left = SR_NACK_REPEATS;
        nack->repeat_span_ns = timing->window_ns;
    } else if (missing && nack->repeats_left > 0 && nack->repeat_ns <= view->now) {
        nack->repeats_left--;
        nack->repeat_span_ns *= 2;
    } else {
        return false;
    }
    nack->repeat_ns = sr_after(view->now, nack->repeat_span_ns);
    return true;
}

lh_time sr_nack_expiry(const struct sr_nack *nack, const struct sr_arrivals *arrivals,
                       const struct lh_receiver_view *view, const struct sr_timing *timing)
{
    lh_time next = LH_TIME_NEVER;
    uint32_t shown = nack->chunks.newest.through;
    if (arrivals->cumulative < shown)
        next = lh_earlier(next, sr_settle_expiry(&nack->chunks, timing));
    if (arrivals->cumulative < larger(shown, nack->marks.newest.through))
        next = lh_earlier(next, marks_expiry(nack, arrivals, timing));
    if (nack->repeats_left > 0 && arrivals->cumulative < nack->horizon)
        next = lh_earlier(next, nack->repeat_ns);
    if (next > view->now)
        return next;
    /* Due, but arrivals still wait to be looked at. */
    return sr_after(view->now, timing->window_ns / 16 + 1);
}

/* ---- answer ---------------------------------------------------------------------------------------- */

void sr_answer_init(struct sr_answer *answer)
{
    *answer = (struct sr_answer){.writing = SR_ANSWER_NONE};
}

void sr_answer_begin(struct sr_answer *answer, enum sr_answer_kind kind, const struct sr_arrivals *arrivals,
                     const struct sr_nack *nack)
{
    uint32_t end = arrivals->highest > nack->horizon ? arrivals->highest : nack->horizon;
    assert(kind != SR_ANSWER_NONE);
    answer->writing = kind;
    answer->next_word = arrivals->cumulative / 64;
    answer->end_word = (end + 63) / 64;
}

static void write_ack(struct sr_answer *answer, const struct sr_arrivals *arrivals,
                      const struct sr_nack *nack, struct lh_stats *stats, struct lh_action *action)
{
    /* The first missing chunk may have come since the answer was begun. */
    if (answer->next_word < arrivals->cumulative / 64)
        answer->next_word = arrivals->cumulative / 64;
    uint32_t left = answer->end_word > answer->next_word ? answer->end_word - answer->next_word : 0;
    struct sr_ack ack = {
        .flags = answer->writing == SR_ANSWER_NACK ? SR_FLAG_NACK : 0,
        .mark = nack->mark,
        .cumulative = arrivals->cumulative,
        .base = answer->next_word * 64,
        .horizon = nack->horizon,
        .arrived = arrivals->seen,
        .words = (uint16_t)(left < SR_ACK_WORDS_MAX ? left : SR_ACK_WORDS_MAX),
    };
    memcpy(ack.bitmap, arrivals->bits + answer->next_word, ack.words * sizeof(uint64_t));
    action->what.message.bytes = (uint32_t)sr_ack_encode(&ack, action->what.message.data);
    answer->next_word += ack.words;
    sr_count(ack.flags & SR_FLAG_NACK ? &stats->nacks_sent : &stats->acks_sent);
}

void sr_answer_write(struct sr_answer *answer, const struct sr_arrivals *arrivals,
                     const struct sr_nack *nack, struct lh_stats *stats, struct lh_actions *actions)
{
    while (answer->writing != SR_ANSWER_NONE) {
        struct lh_action *action = lh_action_add(actions, LH_ACTION_SEND_MESSAGE);
        if (action == NULL)
            return;
        write_ack(answer, arrivals, nack, stats, action);
        if (answer->next_word >= answer->end_word)
            answer->writing = SR_ANSWER_NONE;
    }
}
