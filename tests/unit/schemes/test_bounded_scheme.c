/*
 * test_bounded_scheme.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "schemes/bounded_scheme.h"
#include "support/near.h"

/* ---- test missing ---------------------------------------------------------------------------------- */

#define CHUNK_S 8e-6 /* 1000 bytes at 1 Gbit/s */
#define RTT_S   10e-3
#define WINDOW  1e-3

static struct bounded_missing segment_of(const char *text, double loss, unsigned chunks, unsigned packets)
{
    const struct lh_model_path path = {.message_bytes = (uint64_t)chunks * packets * 1000,
                                       .chunk_bytes = packets * 1000,
                                       .mtu_bytes = 1000,
                                       .bandwidth_bps = 1e9 * packets,
                                       .rtt_s = RTT_S,
                                       .loss = loss};
    struct lh_model_scheme scheme;
    struct model_message message;
    struct bounded_missing segment;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    assert_int_equal(model_message_of(&path, 0, &message), 0);
    message.window_s = WINDOW;
    bounded_missing_start(&segment, &scheme, &message);
    return segment;
}

static void without_a_code(void **state)
{
    (void)state;
    struct bounded_missing segment = segment_of("bounded", 0.01, 1000, 1);
    double all_s = RTT_S + 1000 * CHUNK_S;
    assert_near(bounded_missing_settled(&segment), all_s + WINDOW, 1e-12);
    assert_true(isinf(bounded_missing_log_whole(&segment, all_s - CHUNK_S)));
    assert_near(bounded_missing_log_whole(&segment, all_s), 1000 * log1p(-0.01), 1e-9);
    assert_near(bounded_missing_share(&segment, INFINITY), 0.01, 1e-12);
    assert_near(bounded_missing_share(&segment, all_s - 500 * CHUNK_S), 1 - 0.99 / 2, 1e-9);
    assert_near(bounded_missing_share(&segment, RTT_S / 2), 1, 1e-12);
}

/* Of a chunk of 8 packets that is lost the others are there. */
static void packets_of_a_chunk(void **state)
{
    (void)state;
    struct bounded_missing segment = segment_of("bounded", 0.01, 125, 8);
    assert_near(bounded_missing_share(&segment, INFINITY), 0.01, 1e-12);
    struct bounded_missing coded = segment_of("bounded,code=mds,k=25,m=3", 0.01, 125, 8);
    struct bounded_missing single = segment_of("bounded,code=mds,k=25,m=3", 1 - pow(0.99, 8), 125, 1);
    double lost = 1 - pow(0.99, 8);
    assert_near(bounded_missing_share(&coded, INFINITY) / 0.01,
                bounded_missing_share(&single, INFINITY) / lost, 1e-9);
}

/* ---- codes, beside losses that are drawn --------------------------------------------------------------- */

#define K      16u
#define M      4u
#define LOSS   0.08
#define GROUPS 200000u

static unsigned count_lost(const bool *lost, unsigned from, unsigned step, unsigned end)
{
    unsigned count = 0;
    for (unsigned i = from; i < end; i += step)
        count += lost[i];
    return count;
}

/* Whether a group of K chunks with `rows` rows of parity behind them can be decoded. */
static bool is_met(const bool *lost, unsigned rows, bool xor_code)
{
    if (!xor_code)
        return count_lost(lost, 0, 1, K + rows) <= rows;
    for (unsigned class = 0; class < M; class ++) {
        unsigned spared = class < rows;
        unsigned data = count_lost(lost, class, M, K);
        if (data + (spared ? lost[K + class] : 0) > spared && data > 0)
            return false;
    }
    return true;
}

static double sampled_share(unsigned rows, bool xor_code)
{
    struct lh_prng prng;
    bool lost[K + M];
    uint64_t missing = 0;
    lh_prng_seed(&prng, 19);
    for (unsigned group = 0; group < GROUPS; group++) {
        for (unsigned i = 0; i < K + M; i++)
            lost[i] = lh_prng_double(&prng) < LOSS;
        missing += is_met(lost, rows, xor_code) ? 0 : count_lost(lost, 0, 1, K);
    }
    return (double)missing / K / GROUPS;
}

static void check_code(const char *text, bool xor_code)
{
    unsigned chunks = 40 * K, parity = 40 * M;
    struct bounded_missing segment = segment_of(text, LOSS, chunks, 1);
    double data_s = RTT_S + chunks * CHUNK_S;
    for (unsigned rows = 0; rows <= M; rows++) {
        double seen = sampled_share(rows, xor_code);
        double share = bounded_missing_share(&segment, data_s + rows * 40 * CHUNK_S);
        assert_near(share, seen, 0.03);
        assert_near(bounded_missing_share(&segment, data_s + (rows * 40 + 0.5) * CHUNK_S), share, 1e-12);
    }
    assert_near(bounded_missing_settled(&segment), data_s + parity * CHUNK_S + WINDOW, 1e-12);
    assert_true(bounded_missing_log_whole(&segment, INFINITY) >
                bounded_missing_log_whole(&segment, data_s));
}

static void mds(void **state)
{
    (void)state;
    check_code("bounded,code=mds,k=16,m=4", false);
}

static void xor_code(void **state)
{
    (void)state;
    check_code("bounded,code=xor,k=16,m=4", true);
}

static int run_missing(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_code),
        cmocka_unit_test(packets_of_a_chunk),
        cmocka_unit_test(mds),
        cmocka_unit_test(xor_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test model params ----------------------------------------------------------------------------- */

static void check_text(const char *text, const char *wanted)
{
    struct lh_model_scheme scheme, again;
    char out[LH_MODEL_SCHEME_TEXT_MAX];
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    assert_int_equal(scheme.kind, LH_MODEL_BOUNDED);
    assert_string_equal(lh_model_scheme_format(&scheme, out, sizeof out), wanted);
    assert_int_equal(lh_model_scheme_parse(out, &again), 0);
    assert_near(again.deadline_s, scheme.deadline_s, 1e-12);
    assert_true(again.k == scheme.k && again.m == scheme.m && again.xor_code == scheme.xor_code);
}

static void test_texts(void **state)
{
    (void)state;
    check_text("bounded", "bounded");
    check_text("bounded:deadline=auto", "bounded");
    check_text("bounded:deadline=20ms", "bounded:deadline=20000us");
    check_text("bounded,code=mds,k=16,m=2", "bounded:code=mds,k=16,m=2");
    check_text("bounded,deadline=1s,code=xor", "bounded:deadline=1000000us,code=xor,k=32,m=8");
}

static void test_bad_texts(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "bounded:deadline=0",       "bounded:deadline=2h",         "bounded,code=rs", "bounded,k=3",
        "bounded,code=xor,k=2,m=3", "bounded,code=mds,k=250,m=10", "bounded,beta=3"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct lh_model_scheme scheme;
        assert_true(lh_model_scheme_parse(bad[i], &scheme) < 0);
    }
}

static int run_model_params(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_bad_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test predictor -------------------------------------------------------------------------------- */

static const struct lh_model_path predictor_path = {.message_bytes = 1000000,
                                                    .chunk_bytes = 1000,
                                                    .mtu_bytes = 1000,
                                                    .bandwidth_bps = 1e9,
                                                    .rtt_s = 10e-3,
                                                    .loss = 0.01};

static struct lh_model_times predict(const char *text, double loss)
{
    struct lh_model_path lossy = predictor_path;
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    lossy.loss = loss;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    scheme.timing = LH_MODEL_TIMING_LONGHAUL;
    assert_int_equal(lh_model_predict(&lossy, &scheme, &times), 0);
    return times;
}

static void test_without_loss(void **state)
{
    (void)state;
    struct lh_model_times times = predict("bounded", 0);
    assert_near(times.mean_s, 18e-3, 1e-9);
    assert_near(times.p999_s, 18e-3, 1e-9);
    assert_near(times.delivered, 1, 0);
    assert_near(times.overhead_bytes, 0, 0);
}

/* A window later, and no more. */
static void test_losses_cost_a_window(void **state)
{
    (void)state;
    struct lh_model_times times = predict("bounded", 0.01);
    assert_near(times.p99_s, 18e-3 + 10e-3 / 8, 1e-9);
    assert_near(times.delivered, 0.99, 1e-9);
    assert_near(times.p_fallback, 1 - pow(0.99, 1000), 1e-9);
}

static void test_the_deadline_cuts_off(void **state)
{
    (void)state;
    struct lh_model_times times = predict("bounded:deadline=14ms", 0.01);
    assert_near(times.p999_s, 14e-3, 1e-9);
    assert_near(times.mean_s, 14e-3, 1e-9);
    assert_near(times.delivered, 0.99 / 2, 1e-9); /* 4 of 8 ms */
    assert_near(times.p_fallback, 1, 0);
}

static void test_parity_recovers(void **state)
{
    (void)state;
    struct lh_model_times times = predict("bounded,code=mds,k=32,m=2", 0.01);
    assert_true(times.delivered > 0.9995 && times.delivered < 1);
    assert_near(times.overhead_bytes, 64e3, 64e3 / 32.0);
    struct lh_model_times weaker = predict("bounded,code=xor,k=32,m=2", 0.01);
    assert_true(weaker.delivered > 0.99 && weaker.delivered < times.delivered);
}

/* Segments follow each other: the time is that of one whose parity lies between, and the last one's wait. */
static void test_segments(void **state)
{
    (void)state;
    struct lh_model_path cut = predictor_path;
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    double settled_s, open;
    cut.segment_bytes = 250000;
    assert_int_equal(lh_model_scheme_parse("bounded,code=mds,k=25,m=5", &scheme), 0);
    scheme.timing = LH_MODEL_TIMING_LONGHAUL;
    assert_int_equal(lh_model_predict(&cut, &scheme, &times), 0);
    assert_int_equal(lh_model_quantile(&cut, &scheme, 0.999999, &settled_s), 0);
    assert_near(settled_s, 10e-3 + 8e-3 * 1.2 + 10e-3 / 8, 1e-9);
    assert_near(times.overhead_bytes, 200e3, 1e-9);
    assert_int_equal(lh_model_cdf(&cut, &scheme, 10e-3 + 8e-3 * 1.15 - 1e-6, &open), 0);
    assert_near(open, 0, 0);                /* the last data is not there */
    scheme.deadline_s = 10e-3 + 8e-3 * 0.6; /* two segments */
    assert_int_equal(lh_model_predict(&cut, &scheme, &times), 0);
    assert_near(times.delivered, 0.5, 1e-4);
    assert_near(times.p999_s, scheme.deadline_s, 1e-12);
}

/* Without loss it is complete when all has arrived, however the sums of a segment's times are rounded. */
static void test_many_segments(void **state)
{
    (void)state;
    struct lh_model_path cut = predictor_path;
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    assert_int_equal(lh_model_scheme_parse("bounded", &scheme), 0);
    scheme.timing = LH_MODEL_TIMING_LONGHAUL;
    cut.loss = 0;
    cut.mtu_bytes = 4096;
    cut.chunk_bytes = 4096;
    cut.bandwidth_bps = 100e9;
    cut.rtt_s = 25e-3;
    cut.segment_bytes = 4u << 20;
    for (uint64_t segments = 1; segments <= 512; segments++) {
        cut.message_bytes = segments * cut.segment_bytes;
        assert_int_equal(lh_model_predict(&cut, &scheme, &times), 0);
        assert_near(times.p999_s, cut.rtt_s + 8 * (double)cut.message_bytes / cut.bandwidth_bps, 1e-12);
        assert_near(times.mean_s, times.p999_s, 1e-12);
    }
}

static int run_predictor(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_loss),
        cmocka_unit_test(test_losses_cost_a_window),
        cmocka_unit_test(test_the_deadline_cuts_off),
        cmocka_unit_test(test_parity_recovers),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_many_segments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test scheme ----------------------------------------------------------------------------------- */

/*
 * Bounded completion keeps its id; machines and entry are one scheme, which nobody
 * chooses unasked.
 */

static void test_entry(void **state)
{
    (void)state;
    assert_int_equal(bounded_scheme.id, 5); /* on the wire: for ever */
    assert_ptr_equal(bounded_entry.shown.machines, &bounded_scheme);
    assert_string_equal(bounded_entry.shown.name, bounded_scheme.name);
    assert_int_equal(bounded_entry.shown.codes, bounded_scheme.coding != NULL);
    assert_null(bounded_entry.candidates);
    assert_non_null(bounded_scheme.deadline);
    assert_non_null(bounded_scheme.coding->recoverable);
}

static int run_scheme(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_missing() + run_model_params() + run_predictor() + run_scheme();
}
