/*
 * sr_arrivals.h - what a receiver of selective repeat knows: arrived chunks, settled MARKs, gaps to report,
 * answers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_ARRIVALS_H
#define LH_SCHEMES_SR_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schemes/sr_timers.h"

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

/* ---- settle ---------------------------------------------------------------------------------------- */

/*
 * What was known a reordering window ago: a ring of samples, of which the old ones settle.
 *
 * A sample says that at this moment chunks before `through` had been sent, and MARK `mark` as well: seen
 * from the arrival of a later chunk, or said by a MARK. What was sent before is either here one window
 * later, or lost.
 *
 * One timer:
 *   settle   of the oldest sample: one reordering window after it was taken.
 */

/* Samples closer than a sixteenth of a window share an entry, so 17 suffice while the window stays the
 * same. When all are taken the newest entry grows, which delays it. */
#define SR_SAMPLES 32u

struct sr_sample {
    lh_time at_ns;
    uint32_t through;
    uint32_t mark;
};

struct sr_settle {
    struct sr_sample settled; /* the newest that has settled */
    struct sr_sample newest;  /* the newest at all */
    lh_time opened_ns;        /* when the newest entry of the ring was begun */
    uint32_t first;
    uint32_t count;
    struct sr_sample ring[SR_SAMPLES];
};

void sr_settle_init(struct sr_settle *settle);
/* Both numbers only grow; a sample that says nothing new is passed over. */
void sr_settle_add(struct sr_settle *settle, uint32_t through, uint32_t mark,
                   const struct sr_timing *timing, lh_time now);
/* LH_TIME_NEVER: no sample waits. */
lh_time sr_settle_expiry(const struct sr_settle *settle, const struct sr_timing *timing);
/* The oldest sample has settled. */
void sr_settle_on_expired(struct sr_settle *settle);

/* ---- nack ------------------------------------------------------------------------------------------ */

/*
 * When the receiver of sr-nack reports that chunks are lost.
 *
 * A chunk is lost when something that was sent after it has been here for a reordering window and it has
 * not come: a later chunk, or a MARK (RFC 8985 judges by time in the same way). Every report is the whole
 * state, and the sender knows what it has repaired since, so a report may be repeated freely.
 *
 * That a later message of the connection has shown (later_seen_ns) is not used: it says the same as the
 * MARK at the end of this one, but only where a connection injects strictly in order.
 *
 * Timers:
 *   settle   one reordering window after a sample: what it covers and is missing is now known
 *            to be lost. A MARK comes another way than the chunks and may overtake them on this host, so it
 *            waits until arrivals have been looked at (caught_up_ns), and, when it speaks of chunks past
 *            the highest, until the highest has not grown for a window.
 *   repeat   after a report: one, then two, then four more windows. From there on the sender's probe asks.
 */

struct sr_nack {
    struct sr_settle chunks; /* samples of the highest chunk */
    struct sr_settle marks;  /* samples of the newest MARK */
    uint32_t horizon;        /* what is missing before this is lost, when it was sent once only */
    uint32_t mark;           /* what was repaired before this MARK and is missing is lost */
    uint32_t repeats_left;
    lh_time repeat_ns; /* meaningful while repeats_left > 0 */
    lh_time repeat_span_ns;
};

void sr_nack_init(struct sr_nack *nack);
/* sent_through is at most the chunks of the buffer. */
void sr_nack_on_mark(struct sr_nack *nack, uint32_t mark, uint32_t sent_through,
                     const struct sr_timing *timing, lh_time now);
/* The highest chunk may have grown. */
void sr_nack_on_arrivals(struct sr_nack *nack, const struct sr_arrivals *arrivals,
                         const struct sr_timing *timing, lh_time now);
/* Whether a report is due now; the caller then sends it. Costs nothing while nothing has expired. */
bool sr_nack_on_step(struct sr_nack *nack, const struct sr_arrivals *arrivals,
                     const struct lh_receiver_view *view, const struct sr_timing *timing);
/* When to look again. */
lh_time sr_nack_expiry(const struct sr_nack *nack, const struct sr_arrivals *arrivals,
                       const struct lh_receiver_view *view, const struct sr_timing *timing);

/* ---- answer ---------------------------------------------------------------------------------------- */

/*
 * The answer of a receiver: an ACK of all chunks from the first missing one to the highest
 * that has arrived or is known to be lost, in as many messages as that takes.
 */

enum sr_answer_kind {
    SR_ANSWER_NONE,
    SR_ANSWER_ACK,
    SR_ANSWER_NACK,
};

struct sr_answer {
    enum sr_answer_kind writing; /* words next_word … end_word - 1 are still to be reported */
    uint32_t next_word;
    uint32_t end_word;
};

void sr_answer_init(struct sr_answer *answer);
/* kind: not SR_ANSWER_NONE. nack: of a scheme without reports one that was only initialised. */
void sr_answer_begin(struct sr_answer *answer, enum sr_answer_kind kind, const struct sr_arrivals *arrivals,
                     const struct sr_nack *nack);
/* Appends its messages as far as the list has capacity: at most LH_ACTIONS_MAX. answer->writing is
 * SR_ANSWER_NONE afterwards when all are there. */
void sr_answer_write(struct sr_answer *answer, const struct sr_arrivals *arrivals,
                     const struct sr_nack *nack, struct lh_stats *stats, struct lh_actions *actions);

#endif
