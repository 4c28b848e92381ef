/*
 * test_hybrid_groups.c -
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

#include <longhaul/error.h>

#include "base/prng.h"
#include "schemes/ec_layout.h"
#include "schemes/hybrid_groups.h"

/* ---- test coding ----------------------------------------------------------------------------------- */

#define CHUNK  64u
#define CHUNKS 300u

/* Any of the rows stand for any of the data, as many as are missing. */
static void test_what_is_lost_is_recovered(void **state)
{
    (void)state;
    static uint8_t message[CHUNKS * CHUNK], received[CHUNKS * CHUNK], extra[CHUNKS * CHUNK];
    static uint8_t chunks[CHUNKS], rows[CHUNKS];
    struct lh_coding coding = {.chunks = CHUNKS, .chunk_bytes = CHUNK, .bytes = CHUNKS * CHUNK - 5};
    assert_int_equal(hybrid_parse("", coding.params), 0);
    uint32_t groups = hybrid_coding.groups(coding.params, CHUNKS);
    struct ec_layout layout = hybrid_layout_of(coding.params, CHUNKS);
    assert_int_equal(groups, layout.groups);
    assert_int_equal(hybrid_coding.extra_chunks(coding.params, CHUNKS), groups * layout.places);
    assert_int_equal(hybrid_coding.transfer_chunks_max(coding.params, 1024), 1024);
    for (size_t i = 0; i < coding.bytes; i++)
        message[i] = (uint8_t)(i * 37 >> 3);
    coding.message = message;
    coding.extra = extra;
    for (uint32_t g = 0; g < groups; g++)
        hybrid_coding.encode(&coding, g, 2, 3);
    memcpy(received, message, sizeof message);
    memset(chunks, 1, sizeof chunks);
    for (uint32_t lost = 0; lost < 3 * groups; lost++) {
        chunks[lost * 51] = 0;
        memset(received + (size_t)lost * 51 * CHUNK, 0, CHUNK);
    }
    for (uint32_t g = 0; g < groups; g++) {
        struct ec_group group = ec_layout_group(&layout, g);
        for (uint32_t r = 2; r < 5; r++)
            rows[group.first_place + r * group.stride] = 1;
    }
    coding.room = received;
    coding.message = received;
    uint32_t recovered = 0;
    for (uint32_t g = 0; g < groups; g++)
        recovered += hybrid_coding.decode(&coding, g, chunks, rows);
    assert_int_equal(recovered, 3 * groups);
    assert_memory_equal(received, message, coding.bytes);
}

static void test_a_single_chunk_has_no_parity(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(hybrid_parse("", params), 0);
    assert_int_equal(hybrid_coding.extra_chunks(params, 1), 0);
    assert_int_equal(hybrid_layout_of(params, 1).places, 0);
}

static int run_coding(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_lost_is_recovered),
        cmocka_unit_test(test_a_single_chunk_has_no_parity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test encoding --------------------------------------------------------------------------------- */

#define ENCODING_CHUNKS (240u * 70) /* 70 submessages: blocks of 32, 32 and 6 */

struct bench {
    struct ec_layout layout;
    struct hybrid_groups groups;
    struct hybrid_encoding encoding;
    struct hybrid_group memory[200];
    struct hybrid_encode encode;
};

static struct bench *setup(uint32_t chunks)
{
    static struct bench bench;
    uint8_t params[LH_SCHEME_PARAMS];
    bench = (struct bench){0};
    assert_int_equal(hybrid_parse("", params), 0);
    bench.layout = hybrid_layout_of(params, chunks);
    hybrid_groups_init(&bench.groups, &bench.layout, bench.memory);
    hybrid_encoding_init(&bench.encoding, &bench.layout);
    return &bench;
}

static bool next(struct bench *bench, uint32_t sent_through)
{
    return hybrid_encoding_next(&bench->encoding, &bench->groups, sent_through, 4, &bench->encode);
}

static void test_nothing_far_from_the_end(void **state)
{
    struct bench *bench = setup(ENCODING_CHUNKS);
    (void)state;
    assert_false(next(bench, ENCODING_CHUNKS));
}

/* What is injected from then on, block by block, and no more than are allowed at once. */
static void test_ahead_near_the_end(void **state)
{
    struct bench *bench = setup(ENCODING_CHUNKS);
    (void)state;
    hybrid_encoding_on_near(&bench->encoding, &bench->layout, 240 * 32 + 5);
    hybrid_encoding_on_near(&bench->encoding, &bench->layout, 0); /* the first call counts */
    assert_false(next(bench, 240 * 64 - 1));
    for (uint32_t i = 0; i < HYBRID_ENCODINGS_AHEAD; i++) {
        assert_true(next(bench, 240 * 64));
        assert_int_equal(bench->encode.group, 32 + i);
        assert_true(bench->encode.first_row == 0 && bench->encode.rows == 4);
    }
    assert_false(next(bench, 240 * 64));
    hybrid_encoding_on_encoded(&bench->encoding, &bench->groups, 1);
    assert_int_equal(bench->groups.all[32].ready, 4);
    assert_int_equal(bench->groups.all[33].ready, 0);
    assert_true(next(bench, 240 * 64));
    assert_int_equal(bench->encode.group, 32 + HYBRID_ENCODINGS_AHEAD);
}

static void test_what_is_wanted_comes_first(void **state)
{
    struct bench *bench = setup(ENCODING_CHUNKS);
    (void)state;
    hybrid_encoding_on_near(&bench->encoding, &bench->layout, 240 * 64);
    bench->groups.all[3].want = 2;
    bench->groups.work_from = 0;
    assert_true(next(bench, ENCODING_CHUNKS));
    assert_true(bench->encode.group == 3 && bench->encode.rows == 2);
    bench->groups.all[3].want = 5;
    assert_true(next(bench, ENCODING_CHUNKS));
    assert_true(bench->encode.group == 3 && bench->encode.first_row == 2 && bench->encode.rows == 3);
    assert_true(next(bench, ENCODING_CHUNKS));
    assert_int_equal(bench->encode.group, 64);
    bench->groups.work_from = 50;
    hybrid_encoding_on_encoded(&bench->encoding, &bench->groups, 2);
    assert_int_equal(bench->groups.all[3].ready, 5);
    assert_int_equal(bench->groups.work_from, 3); /* it can be injected now */
}

static void test_a_single_chunk_is_not_encoded(void **state)
{
    struct bench *bench = setup(1);
    (void)state;
    hybrid_encoding_on_near(&bench->encoding, &bench->layout, 0);
    bench->groups.all[0].want = 3;
    assert_false(next(bench, 1));
}

static int run_encoding(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_far_from_the_end),
        cmocka_unit_test(test_ahead_near_the_end),
        cmocka_unit_test(test_what_is_wanted_comes_first),
        cmocka_unit_test(test_a_single_chunk_is_not_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test groups ----------------------------------------------------------------------------------- */

#define GROUPS_CHUNKS 480u /* two submessages of 240, with 15 rows each */

struct groups_bench {
    struct ec_layout layout;
    struct sr_ledger ledger;
    struct hybrid_groups groups;
    struct hybrid_rule rule;
    uint64_t ledger_memory[2048];
    struct hybrid_group group_memory[16];
};

static struct groups_bench *groups_setup(uint32_t chunks)
{
    static struct groups_bench groups_bench;
    uint8_t params[LH_SCHEME_PARAMS];
    struct sr_run run;
    groups_bench = (struct groups_bench){.rule = {.loss = {1e-3, 1}, .failure = 1e-6}};
    assert_int_equal(hybrid_parse("", params), 0);
    groups_bench.layout = hybrid_layout_of(params, chunks);
    assert_true(sr_ledger_bytes(chunks) <= sizeof groups_bench.ledger_memory);
    assert_true(hybrid_groups_bytes(chunks) <= sizeof groups_bench.group_memory);
    sr_ledger_init(&groups_bench.ledger, chunks, groups_bench.ledger_memory);
    hybrid_groups_init(&groups_bench.groups, &groups_bench.layout, groups_bench.group_memory);
    assert_true(sr_ledger_take_new(&groups_bench.ledger, chunks, 1, &run));
    return &groups_bench;
}

static void evaluate(struct groups_bench *groups_bench)
{
    hybrid_groups_evaluate(&groups_bench->groups, &groups_bench->ledger, 0, groups_bench->layout.groups,
                           &groups_bench->rule);
}

static void acknowledge(struct groups_bench *groups_bench, uint32_t first, uint32_t end)
{
    for (uint32_t chunk = first; chunk < end; chunk++)
        sr_ledger_ack_word(&groups_bench->ledger, chunk / 64, (uint64_t)1 << chunk % 64);
}

static void lose(struct groups_bench *groups_bench, uint32_t chunk)
{
    sr_ledger_lose_word(&groups_bench->ledger, chunk / 64, (uint64_t)1 << chunk % 64);
}

static void inject_all(struct groups_bench *groups_bench, uint32_t index, uint32_t stamp)
{
    groups_bench->groups.all[index].ready = groups_bench->groups.all[index].want;
    while (hybrid_group_rows_due(&groups_bench->groups.all[index]) > 0)
        hybrid_groups_take_row(&groups_bench->groups, index, stamp);
}

/* `rows` of submessage 0. */
static bool report(struct groups_bench *groups_bench, uint8_t rows, uint32_t mark)
{
    const struct hybrid_rows message = {.mark = mark, .count = 1, .rows = {rows}};
    return hybrid_groups_on_rows(&groups_bench->groups, &message);
}

static void test_parity_is_for_what_is_not_acknowledged(void **state)
{
    struct groups_bench *groups_bench = groups_setup(GROUPS_CHUNKS);
    (void)state;
    evaluate(groups_bench);
    uint32_t all = groups_bench->groups.all[0].want;
    assert_int_equal(all, hybrid_strength(&groups_bench->rule.loss, 240, 240, 1e-6, 15));
    assert_int_equal(groups_bench->groups.all[1].want, all);
    acknowledge(groups_bench, 0, 470); /* five of each are left */
    evaluate(groups_bench);
    assert_int_equal(groups_bench->groups.all[0].want,
                     hybrid_strength(&groups_bench->rule.loss, 5, 5, 1e-6, 15));
    assert_true(groups_bench->groups.all[0].want < all);
    acknowledge(groups_bench, 470, 480);
    evaluate(groups_bench);
    assert_int_equal(groups_bench->groups.all[0].want, 0);
    assert_int_equal(hybrid_groups_work(&groups_bench->groups, true), groups_bench->layout.groups);
}

static void test_a_known_loss_needs_a_row_more(void **state)
{
    struct groups_bench *groups_bench = groups_setup(GROUPS_CHUNKS);
    (void)state;
    acknowledge(groups_bench, 0, 470);
    evaluate(groups_bench);
    uint32_t none = groups_bench->groups.all[0].want;
    lose(groups_bench, 470);
    groups_bench->groups.all[0].ready = 15;
    evaluate(groups_bench);
    assert_int_equal(groups_bench->groups.all[0].want, none + 1);
    assert_int_equal(groups_bench->groups.all[0].repeats, 0);
}

/* Where no row is there, or data waits, a lost chunk is retransmitted, and the margin comes as rows. */
static void test_what_is_certain_does_not_wait(void **state)
{
    struct groups_bench *groups_bench = groups_setup(GROUPS_CHUNKS);
    (void)state;
    acknowledge(groups_bench, 0, 470);
    lose(groups_bench, 470);
    evaluate(groups_bench);
    assert_int_equal(groups_bench->groups.all[0].repeats, 1);
    assert_int_equal(hybrid_groups_lost_chunk(&groups_bench->groups, &groups_bench->ledger, 0), 470);
    assert_int_equal(hybrid_groups_work(&groups_bench->groups, true), 0);
    groups_bench->rule.waits = true;
    groups_bench->groups.all[0].ready = 15;
    evaluate(groups_bench);
    assert_int_equal(groups_bench->groups.all[0].repeats, 1);
    assert_true(groups_bench->groups.all[0].want > 0);
    assert_int_equal(groups_bench->groups.all[1].repeats, 0); /* nothing of it is certain to fail */
}

static void test_rows_in_flight_count(void **state)
{
    struct groups_bench *groups_bench = groups_setup(GROUPS_CHUNKS);
    struct hybrid_group *group = &groups_bench->groups.all[0];
    (void)state;
    evaluate(groups_bench);
    uint32_t sent = group->want;
    inject_all(groups_bench, 0, 5);
    assert_int_equal(groups_bench->groups.rows_in_flight, sent);
    lose(groups_bench, 0);
    acknowledge(groups_bench, 2, 480);
    evaluate(groups_bench);
    assert_int_equal(group->want, sent);     /* they may all arrive */
    assert_true(report(groups_bench, 0, 4)); /* before their MARK has settled */
    evaluate(groups_bench);
    assert_int_equal(group->want, sent);
    assert_true(report(groups_bench, 0, 5)); /* all of them are lost */
    assert_int_equal(groups_bench->groups.rows_in_flight, 0);
    group->ready = 15;
    evaluate(groups_bench);
    assert_true(group->want > sent);
    assert_int_equal(groups_bench->groups.newly_failed, 1);
    inject_all(groups_bench, 0, 6);
    assert_true(report(groups_bench, 1, 5));
    evaluate(groups_bench);
    assert_int_equal(group->want, group->sent); /* one has arrived, one was missing */
}

static void test_reports_must_be_possible(void **state)
{
    struct groups_bench *groups_bench = groups_setup(GROUPS_CHUNKS);
    (void)state;
    assert_false(report(groups_bench, 1, 0)); /* none was sent */
    assert_true(report(groups_bench, 0, 0));
    assert_true(report(groups_bench, HYBRID_DECODABLE, 0));
    assert_true(groups_bench->groups.all[0].met);
    struct hybrid_rows beyond = {.first = 2, .count = 1};
    assert_false(hybrid_groups_on_rows(&groups_bench->groups, &beyond));
    beyond = (struct hybrid_rows){.first = 1, .count = 2};
    assert_false(hybrid_groups_on_rows(&groups_bench->groups, &beyond));
    evaluate(groups_bench);
    assert_int_equal(groups_bench->groups.all[0].want, 0); /* it can be decoded */
}

/* Parity that was interrupted is finished by the same bound, not by the one for further parity; and it is not
 * forgotten while other data passes it. */
static void test_an_interrupted_batch_is_finished(void **state)
{
    struct groups_bench *groups_bench = groups_setup(GROUPS_CHUNKS);
    struct hybrid_group *group = &groups_bench->groups.all[0];
    (void)state;
    evaluate(groups_bench);
    uint32_t planned = group->want;
    assert_true(planned > 1);
    group->ready = (uint8_t)(planned - 1);
    while (hybrid_group_rows_due(group) > 0)
        hybrid_groups_take_row(&groups_bench->groups, 0, 5);
    groups_bench->rule.waits = true;
    evaluate(groups_bench);
    groups_bench->rule.waits = false;
    evaluate(groups_bench);
    assert_int_equal(group->want, planned);
}

/* Of a burst of 8 every fifth chunk is of one submessage: it goes on for five more with (7/8)^5. */
static void test_interleaving(void **state)
{
    (void)state;
    const struct hybrid_loss loss = {0.01, 8}, alone = {0.01, 1};
    struct hybrid_loss of = hybrid_groups_loss(&loss, 5);
    assert_true(of.chunk == 0.01 && fabs(of.burst - 1 / (1 - pow(0.875, 5))) < 1e-12);
    assert_true(hybrid_groups_loss(&loss, 1).burst == 8);
    assert_true(hybrid_groups_loss(&alone, 5).burst == 1);
}

/* No chunk that was injected before a stamp is covered. */
static void test_reach(void **state)
{
    struct groups_bench *groups_bench = groups_setup(GROUPS_CHUNKS);
    (void)state;
    groups_bench->rule.from_stamp = 2;
    evaluate(groups_bench);
    assert_int_equal(groups_bench->groups.all[0].want, 0);
    lose(groups_bench, 7);
    evaluate(groups_bench);
    assert_int_equal(groups_bench->groups.all[1].repeats, 1);
}

static void test_copies_of_an_only_chunk(void **state)
{
    struct groups_bench *groups_bench = groups_setup(1);
    (void)state;
    evaluate(groups_bench);
    assert_int_equal(groups_bench->groups.all[0].want, 1); /* 1e-3 squared */
    assert_int_equal(hybrid_groups_take_row(&groups_bench->groups, 0, 9), 0);
    hybrid_groups_settle_copies(&groups_bench->groups, 8);
    assert_int_equal(groups_bench->groups.rows_in_flight, 1);
    hybrid_groups_settle_copies(&groups_bench->groups, 9);
    assert_int_equal(groups_bench->groups.rows_in_flight, 0);
}

static int run_groups(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parity_is_for_what_is_not_acknowledged),
        cmocka_unit_test(test_a_known_loss_needs_a_row_more),
        cmocka_unit_test(test_what_is_certain_does_not_wait),
        cmocka_unit_test(test_rows_in_flight_count),
        cmocka_unit_test(test_reports_must_be_possible),
        cmocka_unit_test(test_an_interrupted_batch_is_finished),
        cmocka_unit_test(test_interleaving),
        cmocka_unit_test(test_reach),
        cmocka_unit_test(test_copies_of_an_only_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test params ----------------------------------------------------------------------------------- */

static void test_texts(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(hybrid_parse("", params), 0);
    assert_true(hybrid_params_valid(params));
    struct hybrid_params read = hybrid_params_of(params);
    assert_int_equal(read.tail_eighths, HYBRID_TAIL_ALL);
    assert_true(fabs(read.target / HYBRID_TARGET_DEFAULT - 1) < 1e-9);
    assert_true(fabs(read.loss / HYBRID_PRIOR_LOSS - 1) < 1e-9 && read.burst == 1);
    assert_int_equal(hybrid_parse("tail=1.1,target=1e-6", params), 0);
    read = hybrid_params_of(params);
    assert_int_equal(read.tail_eighths, 9);
    assert_true(fabs(read.target / 1e-6 - 1) < 1e-9);
    assert_int_equal(hybrid_parse("tail=0", params), 0);
    assert_int_equal(hybrid_params_of(params).tail_eighths, 0);
}

static void test_bad_texts(void **state)
{
    (void)state;
    static const char *const bad[] = {"target",
                                      "target=",
                                      "target=0",
                                      "target=0.6",
                                      "target=1e-13",
                                      "target=x",
                                      "target=1e-4x",
                                      "tail=2.1",
                                      "tail=-1",
                                      "tail=",
                                      "tail=1,",
                                      ",tail=1",
                                      "k=3",
                                      "tail=1,tail=1",
                                      "target=1e-4,target=1e-4",
                                      "tail=1,,target=1e-4"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t params[LH_SCHEME_PARAMS];
        int error = hybrid_parse(bad[i], params);
        assert_true(error == -LH_EINVAL || error == -LH_ERANGE);
    }
}

/* What was measured comes out again, never as less; and the rest stays. */
static void test_measured_values(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(hybrid_parse("target=1e-5,tail=1", params), 0);
    for (double loss = 1e-8; loss < 0.5; loss *= 1.7)
        for (double burst = 1; burst < 3000; burst *= 2.3) {
            hybrid_params_measured(loss, burst, UINT32_MAX, params);
            assert_true(hybrid_params_valid(params));
            struct hybrid_params read = hybrid_params_of(params);
            assert_true(read.loss >= loss * (1 - 1e-9) && read.loss < loss * 1.003);
            assert_true(read.burst >= burst && read.burst < burst + 0.07);
            assert_true(read.tail_eighths == 8 && fabs(read.target / 1e-5 - 1) < 1e-9);
        }
    hybrid_params_measured(0, 0, UINT32_MAX, params);
    assert_true(hybrid_params_valid(params));
    hybrid_params_measured(1, 1e9, UINT32_MAX, params);
    assert_true(hybrid_params_valid(params));
}

static void test_each_byte_is_checked(void **state)
{
    (void)state;
    uint8_t good[LH_SCHEME_PARAMS];
    static const struct {
        size_t at;
        uint8_t value;
    } bad[] = {{0, 4}, {0, 255}, {1, 17}, {1, 254}, {2, 255}, {4, 255}, {6, 255}};
    assert_int_equal(hybrid_parse("", good), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t params[LH_SCHEME_PARAMS];
        memcpy(params, good, sizeof params);
        params[bad[i].at] = bad[i].value;
        assert_false(hybrid_params_valid(params));
    }
    memset(good + 2, 0, 2); /* a target of 1 */
    assert_false(hybrid_params_valid(good));
}

/* Each code is one of schemes/ec, and suffices where it is chosen. */
static void test_codes(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 4; code++) {
        uint8_t params[LH_SCHEME_PARAMS];
        hybrid_code_params(code, params);
        assert_true(ec_mds_params_valid(params));
        assert_true(hybrid_code_size(code) >= HYBRID_SIZE_MIN);
        assert_true(hybrid_code_size(code) + hybrid_code_rows(code) <= EC_ROWS_MAX);
        assert_true(hybrid_code_rows(code) <= hybrid_code_size(code)); /* a slot holds all parity */
    }
    for (double loss = 1e-6; loss < 0.12; loss *= 1.5) {
        uint32_t code = hybrid_code_for(loss, 1, UINT32_MAX), size = hybrid_code_size(code);
        const struct hybrid_loss of = {loss, 1};
        assert_true(hybrid_strength(&of, size, size, 1e-8, 255) <= hybrid_code_rows(code));
    }
    assert_int_equal(hybrid_code_for(1e-3, 1, UINT32_MAX), 0);
    assert_int_equal(hybrid_code_for(1e-2, 1, UINT32_MAX), 1);
    assert_int_equal(hybrid_code_for(0.4, 1, UINT32_MAX), 3);
    assert_int_equal(hybrid_code_for(0.4, 1, 64), 1); /* a slot of 64 chunks */
    assert_int_equal(hybrid_code_for(0.4, 1, 1), 0);
}

static int run_params(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),           cmocka_unit_test(test_bad_texts),
        cmocka_unit_test(test_measured_values), cmocka_unit_test(test_each_byte_is_checked),
        cmocka_unit_test(test_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test reach ------------------------------------------------------------------------------------ */

static void test_the_last_eighths(void **state)
{
    (void)state;
    struct hybrid_reach reach;
    hybrid_reach_init(&reach);
    assert_int_equal(hybrid_reach_from(&reach, 8), 0); /* nothing was injected */
    for (uint32_t i = 0; i < 400; i++)                 /* 10 a round trip, a stamp each */
        hybrid_reach_on_injection(&reach, i + 1, 8000, 1000 + i * 800);
    assert_int_equal(hybrid_reach_from(&reach, HYBRID_TAIL_ALL), 0);
    assert_int_equal(hybrid_reach_from(&reach, 0), UINT32_MAX);
    uint32_t trip = hybrid_reach_from(&reach, 8), two = hybrid_reach_from(&reach, 16);
    assert_in_range(trip, 383, 393); /* about ten injections, to an eighth; samples are every second one */
    assert_in_range(two, 366, 383);
    assert_true(hybrid_reach_from(&reach, 1) > trip);
}

static int run_reach(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_last_eighths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test strength --------------------------------------------------------------------------------- */

static double exact(uint32_t n, double p, uint32_t spared)
{
    double sum = 0;
    for (uint32_t x = spared + 1; x <= n; x++)
        sum +=
            exp(lgamma(n + 1.0) - lgamma(x + 1.0) - lgamma(n - x + 1.0) + x * log(p) + (n - x) * log1p(-p));
    return sum;
}

static void test_independent_losses_are_binomial(void **state)
{
    (void)state;
    static const double losses[] = {1e-6, 1e-3, 1e-2, 0.1, 0.4};
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++)
        for (uint32_t sent = 1; sent <= 255; sent += 23)
            for (uint32_t needed = 1; needed <= sent; needed += 1 + sent / 9) {
                const struct hybrid_loss loss = {losses[i], 1};
                double expected = exact(sent, losses[i], sent - needed);
                double got = hybrid_failure(&loss, sent, needed);
                assert_true(fabs(got - expected) <= 1e-9 * expected + 1e-300);
            }
}

/* Poisson bursts of geometric lengths, counted. */
static double counted(double mean, double burst, uint32_t spared, uint32_t runs)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, 7);
    uint32_t more = 0;
    for (uint32_t i = 0; i < runs; i++) {
        uint32_t losses = 0;
        double left = exp(-mean / burst);
        for (double product = lh_prng_double(&prng); product > left; product *= lh_prng_double(&prng))
            do
                losses++;
            while (!lh_prng_chance(&prng, 1 / burst));
        more += losses > spared;
    }
    return (double)more / runs;
}

static void test_bursts_are_counted_whole(void **state)
{
    (void)state;
    const struct hybrid_loss loss = {0.02, 4};
    for (uint32_t spared = 0; spared <= 20; spared += 5) {
        double expected = counted(100 * 0.02, 4, spared, 200000);
        assert_true(fabs(hybrid_failure(&loss, 100, 100 - spared) - expected) < 0.004);
    }
    const struct hybrid_loss alone = {0.02, 1};
    assert_true(hybrid_failure(&loss, 100, 90) > 10 * hybrid_failure(&alone, 100, 90));
}

static void test_nothing_and_too_little(void **state)
{
    (void)state;
    const struct hybrid_loss loss = {0.01, 1}, none = {0, 1};
    assert_true(hybrid_failure(&loss, 5, 0) == 0);
    assert_true(hybrid_failure(&loss, 4, 5) == 1);
    assert_true(hybrid_failure(&none, 5, 5) == 0);
    assert_int_equal(hybrid_strength(&loss, 0, 0, 1e-6, 10), 0);
    assert_int_equal(hybrid_strength(&loss, 3, 5, 1, 10), 2);
    assert_int_equal(hybrid_strength(&loss, 3, 9, 1, 4), 4);
    assert_int_equal(hybrid_strength(&loss, 200, 200, 1e-300, 3), 3);
}

/* The least number: one less is not enough. All are tried, as a slower search would. */
static void test_strength_is_the_least(void **state)
{
    (void)state;
    static const double losses[] = {1e-6, 1e-3, 1e-2, 0.1, 0.3}, bursts[] = {1, 1.05, 3, 20};
    for (size_t i = 0; i < 20; i++)
        for (uint32_t size = 1; size <= 240; size += 17)
            for (double failure = 1e-2; failure > 1e-10; failure /= 30)
                for (uint32_t missing = 0; missing < 4; missing++) {
                    const struct hybrid_loss loss = {losses[i / 4], bursts[i % 4]};
                    uint32_t rows = missing, maximum = 95;
                    while (rows < maximum &&
                           hybrid_failure(&loss, size - 1 + rows, size - 1 + missing) > failure)
                        rows++;
                    assert_int_equal(hybrid_strength(&loss, size - 1, size - 1 + missing, failure, maximum),
                                     rows);
                }
}

static int run_strength(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_independent_losses_are_binomial),
        cmocka_unit_test(test_bursts_are_counted_whole),
        cmocka_unit_test(test_nothing_and_too_little),
        cmocka_unit_test(test_strength_is_the_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_coding() + run_encoding() + run_groups() + run_params() + run_reach() + run_strength();
}
