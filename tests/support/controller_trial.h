/*
 * controller_trial.h - what is asked of each congestion controller, through a bottleneck and with inputs
 * that no path gives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TESTS_SUPPORT_CONTROLLER_TRIAL_H
#define TESTS_SUPPORT_CONTROLLER_TRIAL_H

#include <longhaul/congestion.h>

struct trial {
    const struct lh_congestion *controller;
    const char *params;
    uint64_t rate_bps; /* of the bottleneck */
    lh_time rtt_ns;
    double queue; /* in bandwidth-delay products, as all of these */
    double marks; /* longer queues are marked; 0: none */
    double loss;  /* at random */
    uint32_t flows;
    uint32_t stagger; /* round trips between their starts */
    uint32_t rounds;  /* round trips; the second half of them is measured */
    bool given;       /* the flows know the rate */
};

struct trial_result {
    double goodput; /* of the bottleneck's rate, all flows together */
    double jain;    /* index of fairness */
    double delay;   /* mean in the queue, round trips */
    double peak;    /* longest queue, from the start, in bandwidth-delay products */
    double dropped; /* by the queue, of what was sent */
};

struct trial_result trial_run(const struct trial *trial);

/* ---- tests of every controller; their cmocka state is a struct trial_subject ---- */

struct trial_subject {
    const struct lh_congestion *controller;
    double marks;
};

/* In a list of struct CMUnitTest. */
#define TRIAL_TESTS(subject)                                                                               \
    cmocka_unit_test_prestate(trial_paths, subject), cmocka_unit_test_prestate(trial_fairness, subject),   \
        cmocka_unit_test_prestate(trial_hostile, subject),                                                 \
        cmocka_unit_test_prestate(trial_state_is_small, subject)

/* One path of 2 Gbit/s and 25 ms, one of 100 Gbit/s and 20 us: without loss and with 1 %, goodput of 0.7 and
 * more. */
void trial_paths(void **subject);
/* Two and four flows that start one after the other: Jain's index of 0.9 and more. */
void trial_fairness(void **subject);
/* Feedback without sense, random and at the ends of its ranges: every decision stays within the path's
 * bounds, a packet may always be sent, and a timer that is due does not stay so. */
void trial_hostile(void **subject);
void trial_state_is_small(void **subject);

/* ---- for tests of a controller by hand ---- */

#define TRIAL_MTU  4096
#define TRIAL_GBIT UINT64_C(1000000000)

/* 10 ms, no rate given, windows up to 1 GiB. */
extern const struct lh_congestion_path trial_path;
extern const uint8_t trial_no_params[LH_CONGESTION_PARAMS];

struct lh_congestion_decision trial_decide(const struct lh_congestion *controller, const void *state);
/* A window of packets arrives with that delay above the minimum, reported in 16 parts. */
void trial_round(const struct lh_congestion *controller, void *state, uint64_t *arrived, lh_time queue_ns);
/* A byte that was all there was to send is no measure of the path: the end of the doubling halves. */
void trial_little_to_send(const struct lh_congestion *controller);
/* Texts of parameters: those that are valid, and those that are refused with a reason. NULL
 * ends the lists. */
void trial_texts(const struct lh_congestion *controller, const char *const *valid,
                 const char *const *invalid);

#endif
