/*
 * sr_ledger.h - what a sender of selective repeat knows of each chunk (not injected, in flight, lost,
 * acknowledged), and its timeouts.
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

#include "schemes/sr_timers.h"
#include "wire/scheme_messages.h"

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
uint64_t sr_ledger_outstanding(const struct sr_ledger *ledger, uint32_t word);
/* These are on their way, and lost. */
void sr_ledger_lose_word(struct sr_ledger *ledger, uint32_t word, uint64_t bits);

uint32_t sr_ledger_in_flight(const struct sr_ledger *ledger);

static inline bool sr_ledger_all_sent(const struct sr_ledger *ledger)
{
    return ledger->sent_through == ledger->chunks;
}

/* ---- marker ---------------------------------------------------------------------------------------- */

/*
 * When the sender of sr-nack says what it has injected (MARK), so that losses at the end
 * show.
 *
 * What later chunks cannot show - a lost repair, a lost end of the message - a MARK shows. Each injection
 * is covered by the MARK that follows it; its number is the stamp of the chunks.
 *
 * Timers:
 *   cover    a MARK is due as soon as the sender has repaired all that is lost, or has injected its last
 *            chunk; at the latest a quarter of a reordering window after the first uncovered repair, or a
 *            quarter of a round trip after the first uncovered new chunk.
 *   repeat   the last MARK goes out again one, then two, then four … windows later, as long as these spans
 *            are less than overdue_ns, until the receiver has heard it: one lost MARK then costs one window,
 *            not a probe. From there on the probe (sr_timers.h) asks.
 */

enum sr_cover {
    SR_COVERED,           /* all that was injected lies behind a MARK */
    SR_NEW_UNCOVERED,     /* chunks were injected for the first time since the last MARK */
    SR_REPAIRS_UNCOVERED, /* some of them were repairs */
};

struct sr_marker {
    enum sr_cover cover;
    uint32_t mark;              /* number of the last MARK; 0: none yet */
    uint32_t settled;           /* newest that the receiver reported */
    lh_time uncovered_since_ns; /* first injection of the strongest kind since the last MARK */
    lh_time repeat_ns;          /* LH_TIME_NEVER: not running */
    lh_time repeat_span_ns;
};

void sr_marker_init(struct sr_marker *marker);
/* Name of a state, for traces and tests. */
const char *sr_cover_name(enum sr_cover cover);

/* Stamp of what is injected now: the number of the MARK that will cover it. */
uint32_t sr_marker_stamp(const struct sr_marker *marker);
void sr_marker_on_injection(struct sr_marker *marker, bool repair, lh_time now);
/* An ACK said that this MARK was heard. */
void sr_marker_on_settled(struct sr_marker *marker, uint32_t mark);

/* When the next MARK must cover what is uncovered, whatever else goes on. */
lh_time sr_marker_cover_expiry(const struct sr_marker *marker, const struct sr_timing *timing);
/* Whether there is reason to cover at once: all that is lost is repaired, or all is sent. */
bool sr_marker_wants_cover(const struct sr_marker *marker, bool anything_lost, bool all_sent);
/* A MARK went out: numbers it, and starts or continues the repetition; `ends`: no later chunk will follow
 * by itself. */
void sr_marker_on_cover(struct sr_marker *marker, bool ends, const struct sr_timing *timing, lh_time now);
/* Adds a MARK of this number to the list, with what was injected so far. False when the list is full. */
bool sr_mark_send(const struct sr_ledger *ledger, uint32_t number, uint8_t flags,
                  struct lh_actions *actions);
lh_time sr_marker_repeat_expiry(const struct sr_marker *marker);
void sr_marker_on_repeat_expired(struct sr_marker *marker, const struct sr_timing *timing, lh_time now);

/* ---- report ---------------------------------------------------------------------------------------- */

/*
 * What an ACK of sr-nack's receiver means for the sender's ledger.
 *
 * Of the chunks that it shows as missing those are lost that lie before the horizon and were injected
 * once, and repairs that lie behind a MARK which the receiver got long enough ago. All others are merely
 * late.
 */

/* False for what no receiver of ours can have written. */
bool sr_report_possible(const struct sr_ledger *ledger, const struct sr_marker *marker,
                        const struct sr_ack *ack);
/* Enters what has arrived. ack must be possible. */
void sr_report_arrivals(struct sr_ledger *ledger, const struct sr_ack *ack);
/* Marks as lost what the ACK shows to be, after its arrivals were entered. */
void sr_report_losses(struct sr_ledger *ledger, const struct sr_ack *ack);

/* ---- rto ------------------------------------------------------------------------------------------- */

/*
 * The timeouts of sr-rto: each chunk has one, RTO after its injection (SDR-RDMA paper, 4.1.1).
 *
 * Chunks injected within RTO / 64 of each other share a group, which expires RTO after its last injection:
 * no chunk expires early, and none more than RTO / 64 late. Groups are numbered; the number is the stamp of
 * their chunks.
 *
 * One timer:
 *   RTO   of the oldest group: (1 + alpha) round trips, at least overdue_ns, in which what waits for the pace
 *         is counted, and the time between two ACKs. What of it is still under way is lost.
 */

#define SR_RTO_GROUPS                                                                                      \
    128u /* 65 can be alive while the round trip stays the same; when full, the newest grows */

struct sr_rto_group {
    lh_time first_ns;
    lh_time last_ns;
    uint32_t low; /* lowest and highest chunk */
    uint32_t high;
};

struct sr_rto {
    uint32_t oldest; /* number of the oldest group alive; groups are numbered from 1 */
    uint32_t next;   /* number of the next group */
    uint32_t alpha_hundredths;
    struct sr_rto_group groups[SR_RTO_GROUPS];
};

void sr_rto_init(struct sr_rto *rto, uint32_t alpha_hundredths);
lh_time sr_rto_span(const struct sr_rto *rto, const struct sr_timing *timing);
/* The group of what is injected now. */
uint32_t sr_rto_stamp(struct sr_rto *rto, const struct sr_timing *timing, lh_time now);
void sr_rto_on_injection(struct sr_rto *rto, struct sr_run run, lh_time now);
lh_time sr_rto_expiry(const struct sr_rto *rto, const struct sr_timing *timing);
/* Moves what has expired at `now` to the lost; returns how many chunks. */
uint32_t sr_rto_on_expired(struct sr_rto *rto, struct sr_ledger *ledger, const struct sr_timing *timing,
                           lh_time now);

#endif
