/*
 * marker.h - when the sender of sr-nack says what it has injected (MARK), so that losses at the end
 * show.
 *
 * What later chunks cannot show - a lost repair, a lost end of the message - a MARK shows. Each injection
 * is covered by the MARK that follows it; its number is the stamp of the chunks (ledger.h).
 *
 * Timers:
 *   cover    a MARK is due as soon as the sender has repaired all that is lost, or has injected its last
 *            chunk; at the latest a quarter of a reordering window after the first uncovered repair, or a
 *            quarter of a round trip after the first uncovered new chunk.
 *   repeat   the last MARK goes out again one, then two, then four … windows later, as long as these spans
 *            are less than overdue_ns, until the receiver has heard it: one lost MARK then costs one window,
 *            not a probe. From there on the probe (probe.h) asks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_MARKER_H
#define LH_SCHEMES_SR_MARKER_H

#include "schemes/sr/ledger.h"
#include "schemes/sr/timing.h"

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

#endif
