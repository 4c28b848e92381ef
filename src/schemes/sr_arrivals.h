/*
 * nack.h - when the receiver of sr-nack reports that chunks are lost.
 *
 * A chunk is lost when something that was sent after it has been here for a reordering window and it has
 * not come: a later chunk, or a MARK (RFC 8985 judges by time in the same way). Every report is the whole
 * state, and the sender knows what it has repaired since, so a report may be repeated freely.
 *
 * That a later message of the connection has shown (later_seen_ns) is not used: it says the same as the
 * MARK at the end of this one, but only where a connection injects strictly in order.
 *
 * Timers:
 *   settle   one reordering window after a sample (settle.h): what it covers and is missing is now known
 *            to be lost. A MARK comes another way than the chunks and may overtake them on this host, so it
 *            waits until arrivals have been looked at (caught_up_ns), and, when it speaks of chunks past
 *            the highest, until the highest has not grown for a window.
 *   repeat   after a report: one, then two, then four more windows. From there on the sender's probe asks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_NACK_H
#define LH_SCHEMES_SR_NACK_H

#include "schemes/sr/arrivals.h"
#include "schemes/sr/settle.h"

#define SR_NACK_REPEATS 3u

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

#endif
