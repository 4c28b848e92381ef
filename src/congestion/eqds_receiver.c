/*
 * eqds_receiver.c - see eqds_receiver.h.
 *
 * One timer, of the caller: when the pace has more credits to grant.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/eqds_receiver.h"

#include <assert.h>
#include <math.h>

#include "congestion/share.h"

/* The target of a large flow, above the shortest loop. */
#define TARGET_OF_RTT  (1.0 / 16)
#define TARGET_BASE_NS 1000.0
#define PACE_GAIN      1.25
/* Of a change of the window, each round trip. */
#define SMOOTHING    0.5
#define STEP_PART    0.25
#define QUIET_ROUNDS 16
/* Silence of as many loops: the sender had nothing to send. */
#define PAUSE_LOOPS   2
#define LEAST_PACKETS 2

static double target_ns(const struct eqds_receiver *receiver)
{
    double base_ns = TARGET_BASE_NS + TARGET_OF_RTT * (double)receiver->rounds.minimum_ns;
    return share_target_ns(base_ns, receiver->window_bytes, receiver->path.mtu_bytes);
}

static void set_window(struct eqds_receiver *receiver, double bytes)
{
    double most = (double)receiver->path.window_max_bytes;
    double least = LEAST_PACKETS * (double)receiver->path.mtu_bytes;
    receiver->window_bytes = fmin(fmax(bytes, least), most);
}

void eqds_receiver_start(struct eqds_receiver *receiver, const struct lh_congestion_path *path,
                         double first_bytes, double pace_most_bps, lh_time now)
{
    *receiver = (struct eqds_receiver){
        .path = *path,
        .pace_most_bps = pace_most_bps,
        .paced_ns = now,
        .arrived_ns = now,
        .doubling = path->rate_bps == 0,
    };
    round_trips_init(&receiver->rounds, path);
    set_window(receiver, first_bytes);
}

/* ---- the window ------------------------------------------------------------------------------------ */

/* Towards what arrives in the shortest loop and the target: the same for all flows of a queue when their
 * windows are. The step lets a small one catch up. */
static void follow_delay(struct eqds_receiver *receiver)
{
    double loop_ns = (double)receiver->rounds.minimum_ns + (double)receiver->rounds.queue_ns;
    double ratio = ((double)receiver->rounds.minimum_ns + target_ns(receiver)) / loop_ns;
    double bytes = receiver->window_bytes * (1 + SMOOTHING * (fmin(fmax(ratio, 0.5), 2) - 1));
    set_window(receiver, bytes + STEP_PART * share_step_bytes(bytes, receiver->path.mtu_bytes));
}

static void on_round(struct eqds_receiver *receiver)
{
    bool quiet = (double)receiver->rounds.queue_ns < target_ns(receiver) / 2;
    double marked = receiver->round_arrived > 0 ? receiver->round_marked / receiver->round_arrived : 0;
    receiver->round_arrived = receiver->round_marked = 0;
    receiver->quiet_rounds = quiet && marked == 0 ? receiver->quiet_rounds + 1 : 0;
    if (receiver->quiet_rounds >= QUIET_ROUNDS) {
        receiver->doubling = true;
        receiver->quiet_rounds = 0;
    }
    if (marked > 0) {
        receiver->doubling = false;
        set_window(receiver, receiver->window_bytes * (1 - fmin(marked, 1) / 2));
    } else if (!receiver->doubling) {
        follow_delay(receiver);
    }
}

/* By what arrived with little delay. Half the target may be that of the sender's pace. */
static void double_window(struct eqds_receiver *receiver, const struct lh_congestion_feedback *loop)
{
    double bytes = receiver->window_bytes;
    double target = target_ns(receiver);
    double queue_ns = (double)round_trips_queue_ns(&receiver->rounds, loop);
    receiver->doubling = queue_ns <= target;
    if (!receiver->doubling)
        bytes *= ((double)receiver->rounds.minimum_ns + target) / (double)loop->rtt_ns;
    else if (queue_ns <= target / 2)
        bytes += fmin(receiver->unproven_bytes, bytes);
    set_window(receiver, bytes);
}

static void on_loop(struct eqds_receiver *receiver, const struct eqds_mark *mark, lh_time now)
{
    struct lh_congestion_feedback feedback = {
        .rtt_ns = now > mark->granted_ns ? now - mark->granted_ns : 1,
        .arrived_total_bytes = receiver->arrived_bytes,
        .arrived_at_send_bytes = mark->arrived_bytes,
    };
    bool ended = round_trips_on_feedback(&receiver->rounds, &feedback, (lh_time)target_ns(receiver));
    if (receiver->doubling)
        double_window(receiver, &feedback);
    receiver->unproven_bytes = 0;
    if (ended)
        on_round(receiver);
}

/* A loop in which the sender had nothing to send is no measure. */
static void drop_marks_after_pause(struct eqds_receiver *receiver, lh_time now)
{
    lh_time pause_ns = now > receiver->arrived_ns ? now - receiver->arrived_ns : 0;
    lh_time loop_ns = receiver->rounds.minimum_ns + receiver->rounds.queue_ns;
    if (loop_ns != 0 && pause_ns / PAUSE_LOOPS > loop_ns)
        receiver->mark_count = 0;
    receiver->arrived_ns = now;
}

void eqds_receiver_on_arrived(struct eqds_receiver *receiver, uint64_t arrived_bytes, uint64_t marked_bytes,
                              lh_time now)
{
    drop_marks_after_pause(receiver, now);
    bool wraps = arrived_bytes > UINT64_MAX - receiver->arrived_bytes;
    receiver->arrived_bytes = wraps ? UINT64_MAX : receiver->arrived_bytes + arrived_bytes;
    receiver->round_arrived += (double)arrived_bytes;
    receiver->round_marked += (double)marked_bytes;
    receiver->unproven_bytes += (double)arrived_bytes;
    while (receiver->mark_count > 0) { /* each turn takes a mark */
        const struct eqds_mark mark = receiver->marks[receiver->first_mark];
        if (mark.credit_bytes > receiver->arrived_bytes)
            break;
        receiver->first_mark = (receiver->first_mark + 1) % EQDS_MARKS;
        receiver->mark_count--;
        on_loop(receiver, &mark, now);
    }
}

/* ---- credits --------------------------------------------------------------------------------------- */

static double pace_bps(const struct eqds_receiver *receiver)
{
    if (receiver->rounds.minimum_ns == 0)
        return receiver->pace_most_bps;
    double bps = PACE_GAIN * share_rate_of(receiver->window_bytes, (double)receiver->rounds.minimum_ns);
    return fmin(bps, receiver->pace_most_bps);
}

/* An eighth of the window apart. */
static void mark(struct eqds_receiver *receiver, lh_time now)
{
    if (receiver->mark_count == EQDS_MARKS)
        return;
    uint32_t at = (receiver->first_mark + receiver->mark_count) % EQDS_MARKS;
    const struct eqds_mark *last = &receiver->marks[(at + EQDS_MARKS - 1) % EQDS_MARKS];
    double apart = receiver->window_bytes / EQDS_MARKS;
    if (receiver->mark_count > 0 && (double)(receiver->credit_bytes - last->credit_bytes) < apart)
        return;
    receiver->marks[at] = (struct eqds_mark){receiver->credit_bytes, receiver->arrived_bytes, now};
    receiver->mark_count++;
}

uint64_t eqds_receiver_credit(struct eqds_receiver *receiver, lh_time now, lh_time *next_ns)
{
    uint64_t window = (uint64_t)fmin(receiver->window_bytes, 9e18);
    bool wraps = window > UINT64_MAX - receiver->arrived_bytes;
    uint64_t allowed = wraps ? UINT64_MAX - 1 : receiver->arrived_bytes + window;
    double pace = pace_bps(receiver);
    *next_ns = LH_TIME_NEVER;
    if (allowed <= receiver->credit_bytes) {
        receiver->paced_ns = now;
        return receiver->credit_bytes;
    }
    double wanted = (double)(allowed - receiver->credit_bytes);
    double paced = share_bytes_of(pace, (double)(now > receiver->paced_ns ? now - receiver->paced_ns : 0));
    if (receiver->credit_bytes == 0)
        paced = wanted; /* the first window: without waiting for anything */
    if (paced < wanted) {
        double later_bytes = fmax(receiver->window_bytes / EQDS_MARKS, receiver->path.mtu_bytes);
        double later_ns = later_bytes / share_bytes_of(pace, 1);
        *next_ns = later_ns < 1e18 && now < LH_TIME_NEVER / 2 ? now + (lh_time)later_ns + 1 : LH_TIME_NEVER;
        allowed = receiver->credit_bytes + (uint64_t)paced;
    }
    if (allowed > receiver->credit_bytes) {
        receiver->paced_ns = now;
        receiver->credit_bytes = allowed;
        mark(receiver, now);
    }
    return receiver->credit_bytes;
}
