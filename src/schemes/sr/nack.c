/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/nack.h"

#include <assert.h>

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
