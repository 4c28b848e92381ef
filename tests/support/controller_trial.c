/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/controller_trial.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/prng.h"
#include "support/bottleneck.h"

#define FLOWS 8

/* ---- through a bottleneck -------------------------------------------------------------------------- */

static struct bottleneck *build(const struct trial *trial, double bdp)
{
    struct bottleneck_path path = {
        .rate_bps = trial->rate_bps,
        .queue_bytes = (uint64_t)(trial->queue * bdp),
        .mark_bytes = (uint64_t)(trial->marks * bdp),
        .loss = trial->loss,
        .seed = 1,
    };
    struct bottleneck *bottleneck = bottleneck_create(&path);
    for (uint32_t i = 0; i < trial->flows; i++) {
        struct bottleneck_flow_config flow = {
            .controller = trial->controller,
            .params = trial->params,
            .rtt_ns = trial->rtt_ns,
            .start_ns = 1 + (lh_time)i * trial->stagger * trial->rtt_ns,
            .rate_bps = trial->given ? trial->rate_bps : 0,
            .mtu_bytes = TRIAL_MTU,
        };
        bottleneck_add(bottleneck, &flow);
    }
    return bottleneck;
}

/* Counters of all flows, less those of the first half. */
struct counts {
    double arrived[FLOWS];
    double delay_bytes, queued_bytes, sent_bytes, dropped_bytes;
};

static void add_counts(const struct bottleneck *bottleneck, struct counts *counts, double sign)
{
    for (uint32_t i = 0; i < bottleneck->flow_count; i++) {
        const struct bottleneck_flow *flow = &bottleneck->flows[i];
        counts->arrived[i] += sign * (double)flow->arrived_bytes;
        counts->delay_bytes += sign * flow->queue_ns_bytes;
        counts->queued_bytes += sign * (double)flow->queued_bytes;
        counts->sent_bytes += sign * (double)flow->sent_bytes;
        counts->dropped_bytes += sign * (double)flow->queue_dropped_bytes;
    }
}

struct trial_result trial_run(const struct trial *trial)
{
    assert(trial->flows <= FLOWS);
    double bdp = (double)trial->rate_bps * (double)trial->rtt_ns / 8e9;
    struct bottleneck *bottleneck = build(trial, bdp);
    struct counts counts = {0};
    lh_time half_ns = trial->rounds / 2 * trial->rtt_ns;
    bottleneck_run(bottleneck, half_ns);
    add_counts(bottleneck, &counts, -1);
    bottleneck_run(bottleneck, 2 * half_ns);
    add_counts(bottleneck, &counts, 1);
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < trial->flows; i++) {
        sum += counts.arrived[i];
        squares += counts.arrived[i] * counts.arrived[i];
    }
    struct trial_result result = {
        .goodput = sum * 8e9 / ((double)trial->rate_bps * (double)half_ns),
        .jain = sum * sum / (trial->flows * squares),
        .delay = counts.delay_bytes / counts.queued_bytes / (double)trial->rtt_ns,
        .peak = (double)bottleneck->peak_bytes / bdp,
        .dropped = counts.dropped_bytes / counts.sent_bytes,
    };
    bottleneck_free(bottleneck);
    print_message("%-7s %3u Gbit/s %8.0f us, %u flows, loss %.2f: goodput %.3f, Jain %.3f, delay %.2f RTT, "
                  "longest queue %.2f BDP, dropped %.4f\n",
                  trial->controller->name, (unsigned)(trial->rate_bps / TRIAL_GBIT),
                  (double)trial->rtt_ns / 1e3, trial->flows, trial->loss, result.goodput, result.jain,
                  result.delay, result.peak, result.dropped);
    return result;
}

void trial_paths(void **state)
{
    const struct trial_subject *subject = *state;
    const double losses[] = {0, 0.01};
    for (int i = 0; i < 4; i++) {
        bool is_long = i < 2;
        struct trial trial = {.controller = subject->controller,
                              .rate_bps = is_long ? 2 * TRIAL_GBIT : 100 * TRIAL_GBIT,
                              .rtt_ns = is_long ? 25 * LH_NS_PER_MS : 20 * LH_NS_PER_US,
                              .queue = 1,
                              .marks = subject->marks,
                              .loss = losses[i % 2],
                              .flows = 1,
                              .rounds = 300};
        struct trial_result result = trial_run(&trial);
        assert_true(result.goodput >= 0.7);
        assert_true(result.delay < 0.75);
        assert_true(result.dropped < 0.01);
        trial.given = true;
        trial.rounds = 40; /* there from the start */
        assert_true(trial_run(&trial).goodput >= 0.7);
    }
}

void trial_fairness(void **state)
{
    const struct trial_subject *subject = *state;
    for (uint32_t flows = 2; flows <= 4; flows += 2)
        for (int is_long = 0; is_long < 2; is_long++) {
            struct trial trial = {.controller = subject->controller,
                                  .rate_bps = is_long ? 2 * TRIAL_GBIT : 100 * TRIAL_GBIT,
                                  .rtt_ns = is_long ? 25 * LH_NS_PER_MS : 20 * LH_NS_PER_US,
                                  .queue = 1,
                                  .marks = subject->marks,
                                  .flows = flows,
                                  .stagger = 20,
                                  .rounds = 500};
            struct trial_result result = trial_run(&trial);
            assert_true(result.jain >= 0.9);
            assert_true(result.goodput >= 0.7);
        }
}

/* ---- without sense --------------------------------------------------------------------------------- */

static uint64_t any(struct lh_prng *prng)
{
    const uint64_t ends[] = {0, 1, UINT32_MAX, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX};
    uint64_t pick = lh_prng_below(prng, 10);
    return pick < 6 ? ends[pick] : lh_prng_next(prng) >> lh_prng_below(prng, 64);
}

static void check_decision(const struct lh_congestion *controller, void *state,
                           const struct lh_congestion_path *path, lh_time now)
{
    struct lh_congestion_decision decision;
    controller->decide(state, now, &decision);
    assert_true(decision.rate_bps > 0 && decision.rate_bps <= path->rate_max_bps);
    assert_true(decision.window_bytes >= path->mtu_bytes);
    assert_true(decision.window_bytes <= path->window_max_bytes);
    struct lh_congestion_view view;
    controller->view(state, &view);
    assert_non_null(view.state);
    for (int i = 0; i < 4 && decision.next_ns <= now; i++) { /* a timer that is due does not stay so */
        controller->on_timer(state, now);
        controller->decide(state, now, &decision);
    }
    assert_true(decision.next_ns > now);
}

static void feed(struct lh_prng *prng, struct lh_congestion_feedback *feedback, lh_time now)
{
    uint64_t *const fields[] = {
        &feedback->arrived_bytes,
        &feedback->lost_bytes,
        &feedback->marked_bytes,
        &feedback->dropped_bytes,
        &feedback->in_flight_bytes,
        &feedback->arrived_total_bytes,
        &feedback->lost_total_bytes,
        &feedback->rtt_ns,
        &feedback->sent_ns,
        &feedback->arrived_at_send_bytes,
        &feedback->lost_at_send_bytes,
        &feedback->in_flight_at_send_bytes,
        &feedback->rate_bps,
        &feedback->train_bps,
        &feedback->train_bytes,
        &feedback->credit_bytes,
    };
    *feedback = (struct lh_congestion_feedback){.now = now};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        *fields[i] = any(prng);
    feedback->notifications = (uint32_t)lh_prng_below(prng, 2);
    feedback->rate_is_limited = lh_prng_below(prng, 2) != 0;
}

static void feed_receiver(const struct lh_congestion *controller, void *state, struct lh_prng *prng,
                          uint64_t *credit, lh_time now)
{
    lh_time next_ns = 0;
    controller->receiver_on_arrived(state, any(prng), any(prng), now);
    uint64_t granted = controller->receiver_credit(state, now, &next_ns);
    assert_true(granted >= *credit && granted < UINT64_MAX);
    assert_true(next_ns > now);
    *credit = granted;
}

static void run_hostile(const struct lh_congestion *controller, uint64_t seed)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, seed);
    struct lh_congestion_path path = {
        .mtu_bytes = 1024,
        .rate_bps = seed % 3 == 0 ? any(&prng) : 0,
        .rate_max_bps = seed % 2 == 0 ? LH_RATE_NONE : 1 + lh_prng_below(&prng, 10 * TRIAL_GBIT),
        .window_max_bytes = 1024 + lh_prng_below(&prng, UINT64_C(1) << 40),
        .rtt_ns = seed % 5 == 0 ? any(&prng) : 0,
        .remembered_rate_bps = seed % 7 == 0 ? any(&prng) : 0,
    };
    void *state = aligned_alloc(64, (controller->state_bytes + 63) / 64 * 64);
    void *receiver = aligned_alloc(64, (controller->receiver_bytes + 64) / 64 * 64);
    assert(state && receiver);
    uint8_t params[LH_CONGESTION_PARAMS];
    assert_int_equal(controller->parse("", params), 0);
    lh_time now = 1;
    uint64_t credit = 0;
    controller->start(state, &path, params, now);
    if (controller->receiver_bytes != 0)
        controller->receiver_start(receiver, &path, params, now);
    for (int i = 0; i < 200; i++) {
        struct lh_congestion_feedback feedback;
        now += lh_prng_next(&prng) >> (8 + lh_prng_below(&prng, 56)); /* up to two years at once */
        feed(&prng, &feedback, now);
        controller->on_feedback(state, &feedback);
        check_decision(controller, state, &path, now);
        if (controller->receiver_bytes != 0)
            feed_receiver(controller, receiver, &prng, &credit, now);
    }
    free(state);
    free(receiver);
}

void trial_hostile(void **state)
{
    const struct trial_subject *subject = *state;
    for (uint64_t seed = 0; seed < 500; seed++)
        run_hostile(subject->controller, seed);
}

void trial_state_is_small(void **state)
{
    const struct trial_subject *subject = *state;
    assert_true(subject->controller->state_bytes <= 384);
}

/* ---- by hand ----------------------------------------------------------------------------------------- */

const struct lh_congestion_path trial_path = {.mtu_bytes = TRIAL_MTU,
                                              .rate_max_bps = LH_RATE_NONE,
                                              .window_max_bytes = UINT64_C(1) << 30,
                                              .rtt_ns = 10 * LH_NS_PER_MS};
const uint8_t trial_no_params[LH_CONGESTION_PARAMS];

struct lh_congestion_decision trial_decide(const struct lh_congestion *controller, const void *state)
{
    struct lh_congestion_decision decision;
    controller->decide(state, 1, &decision);
    return decision;
}

void trial_round(const struct lh_congestion *controller, void *state, uint64_t *arrived, lh_time queue_ns)
{
    uint64_t window = trial_decide(controller, state).window_bytes, before = *arrived;
    for (int i = 1; i <= 16; i++) {
        *arrived += window / 16;
        struct lh_congestion_feedback feedback = {
            .now = *arrived,
            .arrived_bytes = window / 16,
            .arrived_total_bytes = *arrived,
            .arrived_at_send_bytes = i < 16 ? 0 : before,
            .in_flight_at_send_bytes = window,
            .rtt_ns = trial_path.rtt_ns + queue_ns,
            .rate_bps = window * 8 * LH_NS_PER_S / (trial_path.rtt_ns + queue_ns),
            .credit_bytes = UINT64_MAX,
        };
        controller->on_feedback(state, &feedback);
    }
}

void trial_little_to_send(const struct lh_congestion *controller)
{
    _Alignas(64) uint8_t state[512];
    assert_true(controller->state_bytes <= sizeof state);
    controller->start(state, &trial_path, trial_no_params, 1);
    const struct lh_congestion_feedback little = {.now = LH_NS_PER_S,
                                                  .arrived_bytes = 1,
                                                  .arrived_total_bytes = 1,
                                                  .rtt_ns = 3 * trial_path.rtt_ns,
                                                  .rate_bps = 1000,
                                                  .rate_is_limited = true};
    controller->on_feedback(state, &little);
    assert_true(trial_decide(controller, state).rate_bps > TRIAL_GBIT / 1000);
}

/* ---- texts ----------------------------------------------------------------------------------------- */

void trial_texts(const struct lh_congestion *controller, const char *const *valid,
                 const char *const *invalid)
{
    uint8_t params[LH_CONGESTION_PARAMS];
    for (; *valid; valid++)
        assert_int_equal(controller->parse(*valid, params), 0);
    for (; *invalid; invalid++) {
        assert_int_equal(controller->parse(*invalid, params), -LH_EINVAL);
        assert_true(strlen(lh_last_error()) > 0);
    }
}
