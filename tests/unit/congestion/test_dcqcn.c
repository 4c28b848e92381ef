/*
 * test_dcqcn.c - the rate of a flow under DCQCN: each boundary, and a run beside a model that does every
 * update at its moment.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/prng.h"
#include "congestion/dcqcn.h"
#include "support/controller_trial.h"

/* ---- test dcqcn ------------------------------------------------------------------------------------ */

#define GBIT UINT64_C(1000000000)
#define MBIT UINT64_C(1000000)
#define LINE (100 * GBIT)
#define US   LH_NS_PER_US

static const struct dcqcn_config standard = {
    .alpha_ns = DCQCN_ALPHA_NS,
    .decrease_ns = DCQCN_DECREASE_NS,
    .increase_ns = DCQCN_INCREASE_NS,
    .additive_bps = DCQCN_ADDITIVE_BPS,
    .hyper_bps = DCQCN_HYPER_BPS,
    .min_bps = DCQCN_MIN_BPS,
    .recovery_stages = DCQCN_RECOVERY_STAGES,
    .gain = DCQCN_GAIN,
};

static void near_rate(uint64_t rate_bps, double expected)
{
    if (fabs((double)rate_bps - expected) > 2 + 1e-9 * expected)
        fail_msg("the rate is %llu, and should be %.1f", (unsigned long long)rate_bps, expected);
}

static void test_without_notifications_nothing_is_due(void **state)
{
    (void)state;
    struct dcqcn dcqcn;
    dcqcn_init(&dcqcn, LINE);
    assert_true(dcqcn_next_expiry(&dcqcn) == LH_TIME_NEVER);
    dcqcn_on_time(&dcqcn, &standard, 1000 * LH_NS_PER_S);
    dcqcn_on_bytes(&dcqcn, &standard, 1000 * LH_NS_PER_S, UINT64_MAX);
    dcqcn_on_time(&dcqcn, &standard, LH_TIME_NEVER);
    assert_true(dcqcn.rate_bps == LINE && dcqcn.target_bps == LINE);
}

/* The first cut comes a decrease interval after the first notification; alpha begins at 1 and has shrunk a
 * few times since. */
static void test_first_cut(void **state)
{
    (void)state;
    struct dcqcn dcqcn;
    dcqcn_init(&dcqcn, LINE);
    dcqcn_on_cnp(&dcqcn, &standard, 50 * US);
    assert_true(dcqcn.rate_bps == LINE);
    assert_true(dcqcn_next_expiry(&dcqcn) == 54 * US);
    dcqcn_on_time(&dcqcn, &standard, 54 * US - 1);
    assert_true(dcqcn.rate_bps == LINE);
    dcqcn_on_time(&dcqcn, &standard, 54 * US);
    near_rate(dcqcn.rate_bps, (double)LINE * (1 - pow(255.0 / 256, 4) / 2));
    assert_true(dcqcn.target_bps == LINE);
    assert_true(dcqcn_next_expiry(&dcqcn) == 54 * US + DCQCN_INCREASE_NS);
}

/* However many come, a cut is at most every 4 us; alpha stays at 1, so each halves the rate. */
static void test_one_cut_an_interval(void **state)
{
    (void)state;
    struct dcqcn dcqcn;
    dcqcn_init(&dcqcn, LINE);
    for (lh_time now = 0; now < 12 * US; now += 100)
        dcqcn_on_cnp(&dcqcn, &standard, now);
    near_rate(dcqcn.rate_bps, (double)LINE / 4);
    dcqcn_on_time(&dcqcn, &standard, 12 * US);
    near_rate(dcqcn.rate_bps, (double)LINE / 8);
    /* None since: the next moment for a cut passes. */
    uint64_t rate_bps = dcqcn.rate_bps;
    dcqcn_on_time(&dcqcn, &standard, 17 * US);
    assert_true(dcqcn.rate_bps == rate_bps);
}

/* Moments for cuts stand on a grid that began with the first notification. */
static void test_cuts_keep_their_grid(void **state)
{
    (void)state;
    struct dcqcn dcqcn;
    dcqcn_init(&dcqcn, LINE);
    dcqcn_on_cnp(&dcqcn, &standard, 0);
    dcqcn_on_time(&dcqcn, &standard, 100 * US);
    dcqcn_on_cnp(&dcqcn, &standard, 101 * US);
    assert_true(dcqcn_next_expiry(&dcqcn) == 104 * US);
    dcqcn_on_time(&dcqcn, &standard, 104 * US);
    dcqcn_on_cnp(&dcqcn, &standard, 108 * US);
    assert_true(dcqcn_next_expiry(&dcqcn) == 112 * US);
}

static void test_never_below_the_least(void **state)
{
    (void)state;
    struct dcqcn dcqcn;
    dcqcn_init(&dcqcn, LINE);
    for (lh_time now = 0; now < 200 * US; now += US)
        dcqcn_on_cnp(&dcqcn, &standard, now);
    assert_true(dcqcn.rate_bps == DCQCN_MIN_BPS);
    /* A line that is slower than the least rate has its own. */
    dcqcn_init(&dcqcn, DCQCN_MIN_BPS / 2);
    for (lh_time now = 0; now < 200 * US; now += US)
        dcqcn_on_cnp(&dcqcn, &standard, now);
    assert_true(dcqcn.rate_bps == DCQCN_MIN_BPS / 2);
}

/* One cut, then silence: half way back, then the target grows by the small step once, then by the large. */
static void test_back_to_the_line(void **state)
{
    (void)state;
    struct dcqcn dcqcn;
    dcqcn_init(&dcqcn, LINE);
    for (lh_time now = 0; now < 8 * US; now += US)
        dcqcn_on_cnp(&dcqcn, &standard, now);
    dcqcn_on_time(&dcqcn, &standard, 8 * US);
    assert_false(dcqcn.cnp_for_decrease);
    uint64_t rate_bps = dcqcn.rate_bps;
    uint64_t target_bps = dcqcn.target_bps;
    assert_true(target_bps == LINE); /* no increase between the two cuts */
    dcqcn.target_bps = target_bps = 60 * GBIT;
    lh_time at = 8 * US + DCQCN_INCREASE_NS;
    dcqcn_on_time(&dcqcn, &standard, at - 1);
    assert_true(dcqcn.rate_bps == rate_bps);
    dcqcn_on_time(&dcqcn, &standard, at);
    rate_bps += (target_bps - rate_bps + 1) / 2;
    assert_true(dcqcn.rate_bps == rate_bps && dcqcn.target_bps == target_bps);
    at += DCQCN_INCREASE_NS;
    dcqcn_on_time(&dcqcn, &standard, at);
    target_bps += 50 * MBIT;
    rate_bps += (target_bps - rate_bps + 1) / 2;
    assert_true(dcqcn.rate_bps == rate_bps && dcqcn.target_bps == target_bps);
    at += DCQCN_INCREASE_NS;
    dcqcn_on_time(&dcqcn, &standard, at);
    assert_true(dcqcn.target_bps == target_bps + 100 * MBIT);
    dcqcn_on_time(&dcqcn, &standard, LH_NS_PER_S);
    assert_true(dcqcn.rate_bps == LINE && dcqcn_next_expiry(&dcqcn) == LH_TIME_NEVER);
}

/* A second cut without an increase between keeps the target, unless it is clamped. */
static void test_clamp(void **state)
{
    (void)state;
    for (int clamp = 0; clamp < 2; clamp++) {
        struct dcqcn_config config = standard;
        struct dcqcn dcqcn;
        config.clamp = clamp != 0;
        dcqcn_init(&dcqcn, LINE);
        dcqcn_on_cnp(&dcqcn, &config, 0);
        dcqcn_on_cnp(&dcqcn, &config, 5 * US);
        uint64_t first_bps = dcqcn.rate_bps;
        assert_true(first_bps < LINE);
        dcqcn_on_time(&dcqcn, &config, 8 * US);
        assert_true(dcqcn.rate_bps < first_bps);
        assert_true(dcqcn.target_bps == (clamp != 0 ? first_bps : LINE));
        /* After an increase both clamp. */
        dcqcn_on_time(&dcqcn, &config, 8 * US + DCQCN_INCREASE_NS);
        uint64_t raised_bps = dcqcn.rate_bps;
        dcqcn_on_cnp(&dcqcn, &config, 1000 * US + 1);
        dcqcn_on_time(&dcqcn, &config, 1004 * US);
        assert_true(dcqcn.rate_bps < raised_bps && dcqcn.target_bps == raised_bps);
    }
}

static void test_bytes_raise_it_too(void **state)
{
    (void)state;
    struct dcqcn_config config = standard;
    struct dcqcn dcqcn;
    config.increase_bytes = 1000000;
    config.recovery_stages = 2;
    dcqcn_init(&dcqcn, LINE);
    dcqcn_on_cnp(&dcqcn, &config, 0);
    dcqcn_on_time(&dcqcn, &config, 4 * US);
    dcqcn.target_bps = 60 * GBIT;
    uint64_t rate_bps = dcqcn.rate_bps;
    dcqcn_on_bytes(&dcqcn, &config, 5 * US, 999999);
    assert_true(dcqcn.rate_bps == rate_bps);
    dcqcn_on_bytes(&dcqcn, &config, 5 * US, 1);
    rate_bps += (60 * GBIT - rate_bps + 1) / 2;
    assert_true(dcqcn.rate_bps == rate_bps && dcqcn.target_bps == 60 * GBIT);
    /* Two at once: the second is past the stages of recovery by bytes, not by time: the small step. */
    dcqcn_on_bytes(&dcqcn, &config, 5 * US, 2000000);
    assert_true(dcqcn.bytes_stage == 3 && dcqcn.target_bps == 60 * GBIT + config.additive_bps);
    /* By time, up to its own third stage the small one, then the large: both counters are past. */
    dcqcn_on_bytes(&dcqcn, &config, 5 * US, 1000000);
    uint64_t target_bps = dcqcn.target_bps;
    lh_time at = 4 * US;
    for (unsigned stage = 0; stage < 3; stage++)
        dcqcn_on_time(&dcqcn, &config, at += config.increase_ns);
    assert_true(dcqcn.target_bps == target_bps + 3 * config.additive_bps);
    dcqcn_on_time(&dcqcn, &config, at + config.increase_ns);
    assert_true(dcqcn.target_bps == target_bps + 3 * config.additive_bps + config.hyper_bps);
    /* A cut begins anew. */
    dcqcn_on_cnp(&dcqcn, &config, 5000 * US);
    dcqcn_on_time(&dcqcn, &config, 5004 * US);
    assert_true(dcqcn.bytes_stage == 0 && dcqcn.time_stage == 0 && dcqcn.bytes_left == 1000000);
}

/* Marks at every chance keep alpha at its most; without any it dies away. */
static void test_alpha_follows_the_marks(void **state)
{
    (void)state;
    struct dcqcn_config config = standard;
    struct dcqcn dcqcn;
    config.gain = 0.25;
    dcqcn_init(&dcqcn, LINE);
    dcqcn_on_cnp(&dcqcn, &config, 0);
    for (lh_time now = US / 2; now < 100 * US; now += US)
        dcqcn_on_cnp(&dcqcn, &config, now);
    assert_true(dcqcn.alpha > 0.999);
    dcqcn_on_cnp(&dcqcn, &config, 199 * US + US / 2);
    assert_true(dcqcn.alpha < 1e-10);
    /* One mark in two updates: between 1/2 (1 - g) and 1/2 + g. */
    for (lh_time now = 300 * US; now < 400 * US; now += 2 * US)
        dcqcn_on_cnp(&dcqcn, &config, now);
    assert_true(dcqcn.alpha > 0.37 && dcqcn.alpha < 0.75);
}

/* ---- beside a model that meets every moment ---------------------------------------------------------- */

/* All timers really run, in steps of one nanosecond. */
struct stepwise {
    double rate;
    double target;
    double alpha;
    lh_time begun;
    lh_time increase_at;
    unsigned stage;
    bool for_alpha;
    bool for_decrease;
    bool on;
};

static void stepwise_tick(struct stepwise *model, const struct dcqcn_config *config, lh_time now)
{
    if (!model->on)
        return;
    lh_time since = now - model->begun;
    if (since > 0 && since % config->alpha_ns == 0) {
        model->alpha = (1 - config->gain) * model->alpha + (model->for_alpha ? config->gain : 0);
        model->for_alpha = false;
    }
    if (since > 0 && since % config->decrease_ns == 0 && model->for_decrease) {
        if (config->clamp || model->stage > 0)
            model->target = model->rate;
        model->rate = fmax((double)config->min_bps, floor(model->rate * (1 - model->alpha / 2)));
        model->stage = 0;
        model->for_decrease = false;
        model->increase_at = now + config->increase_ns;
    }
    if (now == model->increase_at) {
        if (model->stage > config->recovery_stages)
            model->target += (double)config->hyper_bps;
        else if (model->stage == config->recovery_stages)
            model->target += (double)config->additive_bps;
        model->target = fmin(model->target, (double)LINE);
        model->rate += floor((model->target - model->rate + 1) / 2);
        model->stage++;
        model->increase_at = now + config->increase_ns;
    }
}

static void stepwise_cnp(struct stepwise *model, lh_time now)
{
    model->for_alpha = model->on;
    model->for_decrease = true;
    if (!model->on)
        model->begun = now;
    model->on = true;
}

static void test_as_if_every_moment_were_met(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 11);
    for (unsigned run = 0; run < 40; run++) {
        struct dcqcn_config config = standard;
        config.alpha_ns = 100 + lh_prng_below(&prng, 300);
        config.decrease_ns = 100 + lh_prng_below(&prng, 800);
        config.increase_ns = 500 + lh_prng_below(&prng, 5000);
        config.additive_bps = 1 * GBIT;
        config.hyper_bps = 4 * GBIT;
        config.recovery_stages = (uint32_t)lh_prng_below(&prng, 4);
        config.gain = 1.0 / (double)(1 + lh_prng_below(&prng, 64));
        config.clamp = run % 2 != 0;
        assert_int_equal(dcqcn_check(&config), 0);
        struct stepwise model = {.rate = (double)LINE, .target = (double)LINE, .alpha = 1};
        struct dcqcn dcqcn;
        unsigned cuts = 0;
        dcqcn_init(&dcqcn, LINE);
        for (lh_time now = 0; now < 60000; now++) {
            bool quiet = now / 10000 % 2 != 0;
            stepwise_tick(&model, &config, now);
            if (!quiet && lh_prng_chance(&prng, 0.005)) {
                dcqcn_on_cnp(&dcqcn, &config, now);
                stepwise_cnp(&model, now);
                cuts++;
            }
            if (lh_prng_chance(&prng, 0.01)) {
                dcqcn_on_time(&dcqcn, &config, now);
                assert_true(dcqcn_next_expiry(&dcqcn) > now);
                if (fabs((double)dcqcn.rate_bps - model.rate) > 1e-6 * model.rate)
                    fail_msg("run %u at %llu ns: %llu beside %.0f", run, (unsigned long long)now,
                             (unsigned long long)dcqcn.rate_bps, model.rate);
            }
        }
        assert_true(cuts > 20);
    }
}

/* ---- configuration ----------------------------------------------------------------------------------- */

static void refuses(const struct dcqcn_config *config, const char *words)
{
    assert_int_equal(dcqcn_check(config), -LH_ERANGE);
    if (strstr(lh_last_error(), words) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", lh_last_error(), words);
}

static void test_configuration(void **state)
{
    (void)state;
    assert_int_equal(dcqcn_check(&standard), 0);
#define REFUSES(field, good, bad, words)                                                                   \
    do {                                                                                                   \
        struct dcqcn_config config = standard;                                                             \
        config.field = good;                                                                               \
        assert_int_equal(dcqcn_check(&config), 0);                                                         \
        config.field = bad;                                                                                \
        refuses(&config, words);                                                                           \
    } while (0)
    REFUSES(alpha_ns, 100, 99, "alpha interval of 99");
    REFUSES(decrease_ns, 100, 0, "decrease interval of 0");
    REFUSES(increase_ns, DCQCN_SPAN_MAX_NS, DCQCN_SPAN_MAX_NS + 1, "60min");
    REFUSES(additive_bps, 100000, 99999, "additive step of 99999");
    REFUSES(hyper_bps, DCQCN_RATE_MAX_BPS, DCQCN_RATE_MAX_BPS + 1, "hyper step");
    REFUSES(min_bps, 100000, 0, "least rate of 0");
    REFUSES(gain, 1, 1.0001, "gain");
    REFUSES(gain, 1e-9, 0, "gain");
    REFUSES(gain, 0.5, NAN, "gain");
    REFUSES(increase_bytes, 1000, 999, "byte counter of 999");
    REFUSES(recovery_stages, 1000, 1001, "1001 recovery stages");
#undef REFUSES
}

static int run_dcqcn(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_notifications_nothing_is_due),
        cmocka_unit_test(test_first_cut),
        cmocka_unit_test(test_one_cut_an_interval),
        cmocka_unit_test(test_cuts_keep_their_grid),
        cmocka_unit_test(test_never_below_the_least),
        cmocka_unit_test(test_back_to_the_line),
        cmocka_unit_test(test_clamp),
        cmocka_unit_test(test_bytes_raise_it_too),
        cmocka_unit_test(test_alpha_follows_the_marks),
        cmocka_unit_test(test_as_if_every_moment_were_met),
        cmocka_unit_test(test_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test dcqcn control ---------------------------------------------------------------------------- */

/* DCQCN as a controller. */

static struct trial_subject subject = {&dcqcn_congestion, 0.25};

static uint64_t rate(const void *control)
{
    return trial_decide(&dcqcn_congestion, control).rate_bps;
}

static void report(void *control, lh_time now, uint64_t marked_bytes, uint32_t notifications)
{
    struct lh_congestion_feedback feedback = {.now = now,
                                              .arrived_bytes = 10 * TRIAL_MTU,
                                              .marked_bytes = marked_bytes,
                                              .notifications = notifications,
                                              .arrived_total_bytes = now,
                                              .arrived_at_send_bytes = now - LH_NS_PER_MS,
                                              .rtt_ns = trial_path.rtt_ns,
                                              .rate_bps = TRIAL_GBIT};
    dcqcn_congestion.on_feedback(control, &feedback);
}

/* The told rate until the first notification, which halves it a round trip later; then up again. A mark is a
 * notification. */
static void test_rate(void **state)
{
    (void)state;
    for (int marks = 0; marks < 2; marks++) {
        _Alignas(64) uint8_t control[512];
        struct lh_congestion_path given = trial_path;
        lh_time now = LH_NS_PER_S;
        given.rate_bps = TRIAL_GBIT;
        dcqcn_congestion.start(control, &given, trial_no_params, now);
        report(control, now += trial_path.rtt_ns, 0, 0);
        assert_int_equal(rate(control), TRIAL_GBIT);
        report(control, now += trial_path.rtt_ns, marks ? TRIAL_MTU : 0, marks ? 0 : 1);
        lh_time cut_ns = trial_decide(&dcqcn_congestion, control).next_ns;
        assert_int_equal(cut_ns, now + trial_path.rtt_ns);
        dcqcn_congestion.on_timer(control, cut_ns);
        assert_true(rate(control) > TRIAL_GBIT / 2 &&
                    rate(control) < TRIAL_GBIT * 54 / 100); /* alpha: 15 / 16 */
        uint64_t before = rate(control);
        for (int i = 0; i < 4; i++)
            report(control, now += trial_path.rtt_ns, 0, 0);
        assert_true(rate(control) > before + before / 2 && rate(control) <= TRIAL_GBIT);
    }
}

/* Hours without a report raise the rate to no more than twice what was delivered. */
static void test_pause(void **state)
{
    (void)state;
    _Alignas(64) uint8_t control[512];
    lh_time now = LH_NS_PER_S;
    dcqcn_congestion.start(control, &trial_path, trial_no_params, now);
    report(control, now += trial_path.rtt_ns, TRIAL_MTU, 0);
    report(control, now += trial_path.rtt_ns, 0, 0);
    dcqcn_congestion.on_timer(control, now + 5 * 3600 * LH_NS_PER_S);
    assert_true(rate(control) <= 2 * TRIAL_GBIT);
}

/* Where nothing marks, a full queue is found by its delay and its losses. */
static void test_no_marks(void **state)
{
    (void)state;
    struct trial trial = {.controller = &dcqcn_congestion,
                          .rate_bps = 2 * TRIAL_GBIT,
                          .rtt_ns = 25 * LH_NS_PER_MS,
                          .queue = 4,
                          .loss = 0.01,
                          .flows = 1,
                          .rounds = 300};
    struct trial_result result = trial_run(&trial);
    assert_true(result.goodput > 0.7 && result.peak < 3 && result.dropped == 0);
}

static void test_end_of_doubling_with_little_to_send(void **state)
{
    (void)state;
    trial_little_to_send(&dcqcn_congestion);
}

static void test_texts(void **state)
{
    (void)state;
    trial_texts(
        &dcqcn_congestion,
        (const char *const[]){"", "step=40Mbit", "increase=55us", "step=40Mbit,increase=1ms", NULL},
        (const char *const[]){"step=1kbit", "step=40", "increase=0", "gain=1", "step=1Mbit,", NULL});
}

static int run_dcqcn_control(void)
{
    const struct CMUnitTest tests[] = {
        TRIAL_TESTS(&subject),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_no_marks),
        cmocka_unit_test(test_end_of_doubling_with_little_to_send),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_dcqcn() + run_dcqcn_control();
}
