/*
 * sr_timers.h - timers of selective repeat, all of them multiples of the measured round trip.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_TIMERS_H
#define LH_SCHEMES_SR_TIMERS_H

#include <longhaul/scheme.h>

#include "base/min_max.h"

/* Stands for the round trip until one was measured; the only absolute time here. Too short, it costs a few
 * early probes (they back off by doubling); the connection measures before its first transfer as a rule. */
#define SR_INITIAL_RTT_NS LH_NS_PER_MS

struct sr_timing {
    lh_time rtt_ns;
    lh_time overdue_ns; /* at least rtt_ns */
    lh_time window_ns;  /* of reordering: at least 1, at most overdue_ns */
    bool measured;
};

struct sr_timing sr_timing_of(const struct lh_path_view *path);

/* What arrives steadily is acknowledged that often, at least. */
static inline lh_time sr_ack_spacing(const struct sr_timing *timing)
{
    return timing->rtt_ns / 4;
}

/* moment + span, where LH_TIME_NEVER stays what it is and nothing wraps. */
static inline lh_time sr_after(lh_time moment, lh_time span)
{
    return moment > LH_TIME_NEVER - span ? LH_TIME_NEVER : moment + span;
}

/* Until when arrivals have been looked at, for what does not come the way of the chunks. */
static inline lh_time sr_caught_up(const struct lh_receiver_view *view)
{
    return view->caught_up_ns == 0 ? view->now : lh_earlier(view->caught_up_ns, view->now);
}

/* Chunks of one word that lie before `limit`, as a mask. */
static inline uint64_t sr_word_below(uint32_t word, uint32_t limit)
{
    uint64_t first = (uint64_t)word * 64;
    if (limit >= first + 64)
        return UINT64_MAX;
    return limit <= first ? 0 : ((uint64_t)1 << (limit - first)) - 1;
}

/* Atomic because other threads read the counters meanwhile, and other transfers may count too. */
static inline void sr_count_many(uint64_t *counter, uint64_t many)
{
    if (many > 0)
        (void)__atomic_fetch_add(counter, many, __ATOMIC_RELAXED);
}

static inline void sr_count(uint64_t *counter)
{
    sr_count_many(counter, 1);
}

/* ---- backoff --------------------------------------------------------------------------------------- */

/*
 * Repairs that bring nothing become rarer.
 *
 * A receiver that speaks, and round after round has no chunk more than before, sits behind a queue that
 * drops what the repairs put into it: chunks that take longer to cross a slow link than its control
 * messages are taken for lost, and sent again, each time in the same step with the same queue.
 *
 * This is no congestion control, and more than eight round trips would cost too much where losses come in
 * long rows: it only ends such a step.
 *
 * One timer:
 *   ready   runs from a round of repairs; a round is all repairs within a round trip. Its span is 0 for the
 *           first three rounds after which nothing more has arrived, then two round trips, doubled with each
 *           round, up to 8. A round without a word from the receiver does not count: then it is the path
 *           that is gone, and the probe asks. The round trip is the one known when asked: one sample that a
 *           stall or a clock's jump made long must not hold repairs back after better ones have come.
 */

struct sr_backoff {
    uint32_t arrived; /* chunks, as the receiver last said */
    uint32_t barren;  /* rounds since that number grew */
    bool received;    /* the receiver, since the last round began */
    bool begun;       /* a round has, at round_ns */
    lh_time round_ns;
};

void sr_backoff_init(struct sr_backoff *backoff);
/* The receiver says how many chunks have arrived. */
void sr_backoff_on_feedback(struct sr_backoff *backoff, uint32_t arrived);
void sr_backoff_on_repair(struct sr_backoff *backoff, const struct sr_timing *timing, lh_time now);
/* When repairs may leave; 0: at once. */
lh_time sr_backoff_expiry(const struct sr_backoff *backoff, const struct sr_timing *timing);

/* ---- ack pace -------------------------------------------------------------------------------------- */

/*
 * When a receiver acknowledges although nobody asks and nothing is missing.
 *
 * Timers:
 *   periodic   sr-rto: a quarter round trip after the last ACK; sr-nack: a whole one, for there an ACK only
 *              opens the sender's window and restates what an earlier one said. Runs while there are
 *              unacknowledged arrivals.
 *   pause      sr-nack: a quarter round trip after the newest arrival: the flow has stopped, for want of
 *              window perhaps.
 *
 * And by count: every 64 (sr-rto) or 16 (sr-nack) arrivals, or an eighth of the message when that is more.
 */

struct sr_ack_pace {
    bool nack;
    uint32_t unacknowledged; /* arrivals since the last ACK */
    lh_time last_ack_ns;     /* or the start */
    lh_time last_arrival_ns;
};

void sr_ack_pace_init(struct sr_ack_pace *pace, bool nack, lh_time now);
void sr_ack_pace_on_arrivals(struct sr_ack_pace *pace, uint32_t count, lh_time now);
void sr_ack_pace_on_ack(struct sr_ack_pace *pace, lh_time now);
/* When an ACK is due: 0 when the count says so, LH_TIME_NEVER when all is acknowledged. */
lh_time sr_ack_pace_expiry(const struct sr_ack_pace *pace, uint32_t chunks, const struct sr_timing *timing);

/* ---- probe ----------------------------------------------------------------------------------------- */

/*
 * Asks the receiver to speak when it has been silent for too long.
 *
 * One timer:
 *   probe   runs from the newest of: an injection of new chunks, something heard, a probe. (Not of repairs:
 *           a sender whose chunks all arrived, but who never heard so, would repair for ever and never
 *           ask.) Its span is overdue_ns; from the fourth probe without an answer on it grows by half each
 *           time, up to 8 times overdue_ns. Before a round trip was measured it doubles each time, up to
 *           1024 times. It is never less than 1/8 of the silence: a path that comes back is noticed within
 *           1/8 of the time for which it was down, and a peer that is gone for long gets few probes.
 *
 * There is no end to it: the connection ends a transfer whose peer is gone.
 */

struct sr_probe {
    lh_time since_ns;    /* LH_TIME_NEVER: nothing was injected yet, so nothing can be asked */
    lh_time silent_ns;   /* the newest injection, or something heard */
    uint32_t unanswered; /* probes since something was heard */
};

void sr_probe_init(struct sr_probe *probe);
/* New chunks were injected. */
void sr_probe_on_injection(struct sr_probe *probe, lh_time now);
void sr_probe_on_feedback(struct sr_probe *probe, lh_time now);
void sr_probe_on_sent(struct sr_probe *probe, lh_time now);
/* When the next probe is due; LH_TIME_NEVER before the first injection. */
lh_time sr_probe_expiry(const struct sr_probe *probe, const struct sr_timing *timing);

#endif
