/*
 * test_plan_collective.c -
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

#include <longhaul/plan.h>

#include "support/near.h"

/* ---- test plan collective -------------------------------------------------------------------------- */

#define MIB (UINT64_C(1) << 20)

static struct lh_plan_collective_question question_of(const char *collective, uint32_t ranks,
                                                      uint32_t sites, uint64_t bytes)
{
    struct lh_plan_collective_question question;
    lh_plan_collective_init(&question);
    question.collective = collective;
    question.ranks = ranks;
    question.sites = sites;
    question.bytes = bytes;
    question.across.bandwidth_bps = 2e9;
    question.across.rtt_s = 25e-3;
    question.across.loss = 1e-3;
    return question;
}

static uint32_t plan(const struct lh_plan_collective_question *question,
                     struct lh_plan_collective_choice *choices)
{
    uint32_t count = 0;
    size_t bytes = lh_plan_collective_memory(question);
    assert_true(bytes > 0);
    void *memory = malloc(bytes);
    assert_non_null(memory);
    assert_int_equal(lh_plan_collective(question, memory, choices, &count), 0);
    free(memory);
    assert_in_range(count, 1, LH_PLAN_SCHEDULES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        char across[LH_MODEL_SCHEME_TEXT_MAX];
        print_message("%-17s blocks of %7u, %-20s without loss %8.3f ms, mean %8.3f, p99 %8.3f\n",
                      choices[i].schedule, (unsigned)choices[i].block_bytes,
                      lh_model_scheme_format(&choices[i].across, across, sizeof across),
                      choices[i].ideal_s * 1e3, choices[i].mean_s * 1e3, choices[i].p99_s * 1e3);
        assert_true(choices[i].ideal_s <= choices[i].mean_s * (1 + 1e-9));
        assert_true(choices[i].p50_s <= choices[i].p99_s);
        for (uint32_t j = 0; j < i; j++)
            assert_string_not_equal(choices[i].schedule, choices[j].schedule);
        if (i > 0)
            assert_true(choices[i - 1].mean_s <= choices[i].mean_s);
    }
    return count;
}

/* One rank at each of two sites: nothing is faster than the data once, and half a round trip. */
static void test_two_sites(void **state)
{
    (void)state;
    struct lh_plan_collective_choice choices[LH_PLAN_SCHEDULES_MAX];
    static const uint64_t SIZES[] = {MIB, 16 * MIB, 64 * MIB};
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        struct lh_plan_collective_question question = question_of("allreduce", 2, 2, SIZES[i]);
        plan(&question, choices);
        double bound = 12.5e-3 + (double)SIZES[i] * 8 / 2e9;
        if (i == 0)
            assert_string_equal(choices[0].schedule, "direct");
        assert_true(choices[0].ideal_s > bound);
        assert_true(choices[0].mean_s < 1.3 * bound);
        assert_true(choices[0].p99_s < 1.6 * bound);
    }
}

/* Without loss, mean and percentiles are the time without loss; and a loss makes a chain of steps slower. */
static void test_loss(void **state)
{
    (void)state;
    struct lh_plan_collective_choice choices[LH_PLAN_SCHEDULES_MAX];
    struct lh_plan_collective_question question = question_of("allreduce", 4, 4, 4 * MIB);
    question.schedule = "ring";
    question.across.loss = 0;
    assert_int_equal(plan(&question, choices), 1);
    double ideal = choices[0].ideal_s;
    assert_near(choices[0].mean_s, ideal, 0.01);
    assert_near(choices[0].p99_s, ideal, 0.01);
    question.across.loss = 1e-2;
    plan(&question, choices);
    assert_true(choices[0].ideal_s > ideal); /* it has overhead */
    assert_true(choices[0].mean_s > ideal * 1.01);
}

static void test_many(void **state)
{
    (void)state;
    struct lh_plan_collective_choice choices[LH_PLAN_SCHEDULES_MAX];
    static const char *const NAMES[] = {"allreduce", "reduce",  "broadcast", "allgather", "reduce-scatter",
                                        "gather",    "scatter", "alltoall",  "barrier"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        print_message("%s\n", NAMES[i]);
        struct lh_plan_collective_question question = question_of(NAMES[i], 16, 2, MIB);
        plan(&question, choices);
    }
    struct lh_plan_collective_question question = question_of("allreduce", 16, 1, MIB);
    plan(&question, choices);
    question.by = LH_PLAN_BY_P99;
    uint32_t count = 0;
    void *memory = malloc(lh_plan_collective_memory(&question));
    assert_int_equal(lh_plan_collective(&question, memory, choices, &count), 0);
    free(memory);
    for (uint32_t j = 1; j < count; j++)
        assert_true(choices[j - 1].p99_s <= choices[j].p99_s);
}

/* A barrier needs no size; its steps cost a way each, but for those inside a site. */
static void test_barrier(void **state)
{
    (void)state;
    struct lh_plan_collective_choice choices[LH_PLAN_SCHEDULES_MAX];
    for (uint32_t ranks = 2; ranks <= 8; ranks += 2) {
        struct lh_plan_collective_question question = question_of("barrier", ranks, 2, 0);
        plan(&question, choices);
        assert_near(choices[0].ideal_s, ranks == 2 ? 12.5e-3 : 25e-3, 0.02);
    }
}

static void test_invalid(void **state)
{
    (void)state;
    struct lh_plan_collective_question right = question_of("allreduce", 4, 2, MIB), wrong = right;
    assert_true(lh_plan_collective_memory(&right) > 0);
    wrong.collective = "allreduced";
    assert_int_equal(lh_plan_collective_memory(&wrong), 0);
    assert_string_equal(lh_last_error(),
                        "collective \"allreduced\": not known (broadcast, reduce, allreduce, "
                        "reduce-scatter, allgather, gather, scatter, alltoall, barrier)");
    wrong = right;
    wrong.schedule = "chain";
    assert_int_equal(lh_plan_collective_memory(&wrong), 0);
    wrong = right;
    wrong.ranks = 1;
    assert_int_equal(lh_plan_collective_memory(&wrong), 0);
    wrong = right;
    wrong.sites = 5;
    assert_int_equal(lh_plan_collective_memory(&wrong), 0);
    wrong = right;
    wrong.bytes = 0;
    assert_int_equal(lh_plan_collective_memory(&wrong), 0);
    wrong = right;
    wrong.block_bytes = 1;
    assert_int_equal(lh_plan_collective_memory(&wrong), 0);
    wrong = right;
    wrong.by = LH_PLAN_BY_P999;
    assert_int_equal(lh_plan_collective_memory(&wrong), 0);
    struct lh_plan_collective_choice choices[LH_PLAN_SCHEDULES_MAX];
    uint32_t count;
    wrong = right;
    wrong.across.loss = 1;
    void *memory = malloc(lh_plan_collective_memory(&wrong));
    assert_true(lh_plan_collective(&wrong, memory, choices, &count) < 0);
    free(memory);
}

static int run_plan_collective(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_sites), cmocka_unit_test(test_loss),    cmocka_unit_test(test_many),
        cmocka_unit_test(test_barrier),   cmocka_unit_test(test_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test plan deadline ---------------------------------------------------------------------------- */

/* Bounded completion for messages that may be incomplete: kept, cheap, refused. */

static struct lh_plan_question ask(double loss, uint64_t message_bytes)
{
    struct lh_plan_question question;
    lh_plan_init(&question);
    question.link.bandwidth_bps = 400e9;
    question.link.rtt_s = 0.025;
    question.link.loss = loss;
    question.sizes[0] = (struct lh_plan_size){message_bytes, 1};
    question.sizes_count = 1;
    return question;
}

static struct lh_plan_deadline plan_deadline_plan(const struct lh_plan_question *question, double missing)
{
    struct lh_plan_deadline deadline;
    assert_int_equal(lh_plan_deadline(question, missing, &deadline), 0);
    return deadline;
}

/* Where as much is allowed as is lost, no code is needed, though parity spares the wait for what does
 * not come; chunks may be large, for their packets count. */
static void test_more_than_is_lost(void **state)
{
    (void)state;
    struct lh_plan_question question = ask(1e-4, 128u << 20);
    double coded_s = plan_deadline_plan(&question, 1e-3).seconds;
    question.max_cores = 0;
    struct lh_plan_deadline deadline = plan_deadline_plan(&question, 1e-3);
    assert_true(coded_s < deadline.seconds);
    assert_int_equal(deadline.scheme.kind, LH_MODEL_BOUNDED);
    assert_int_equal(deadline.scheme.k, 0);
    assert_int_equal(deadline.chunk_bytes, 64 * 4096);
    assert_near(deadline.overhead, 0, 0);
    assert_near(deadline.missing, 1e-4, 1e-9);
    assert_true(deadline.missing_p999 > deadline.missing && deadline.missing_p999 < 4e-4);
    assert_true(deadline.whole < 0.05);
    assert_near(deadline.wait_s, 0.025 / 8, 1e-6);
    assert_near(deadline.scheme.deadline_s, 0.025 * 1.125 + 128 * 8.388608e6 / 400e9, 1e-4);
    assert_true(deadline.seconds < deadline.scheme.deadline_s * (1 + 1e-9));
}

/* The less may be missing, the more parity; and what is promised is kept. */
static void test_less_allowed_takes_a_code(void **state)
{
    (void)state;
    for (unsigned by = LH_PLAN_BY_MEAN; by <= LH_PLAN_BY_P999; by++) {
        double before = 0;
        for (double missing = 1e-2; missing > 1e-7; missing /= 3) {
            struct lh_plan_question question = ask(1e-3, 128u << 20);
            question.by = (enum lh_plan_by)by;
            struct lh_plan_deadline deadline = plan_deadline_plan(&question, missing);
            assert_true(by != LH_PLAN_BY_MEAN || deadline.missing <= missing);
            assert_true(by != LH_PLAN_BY_P999 || deadline.missing_p999 <= missing);
            assert_true(by != LH_PLAN_BY_MEAN || deadline.overhead >= before * (1 - 1e-9));
            assert_true(deadline.times_ideal < 1.2);
            before = deadline.overhead;
        }
        assert_true(before > 0);
    }
}

/* Within the limits, or not at all. */
static void test_limits(void **state)
{
    (void)state;
    struct lh_plan_question question = ask(1e-2, 128u << 20);
    struct lh_plan_deadline deadline;
    assert_true(plan_deadline_plan(&question, 1e-4).overhead > 0.03);
    question.max_overhead = 0.01;
    assert_int_equal(lh_plan_deadline(&question, 1e-4, &deadline), -LH_ERANGE);
    question.max_overhead = INFINITY;
    question.max_cores = 0;
    assert_int_equal(lh_plan_deadline(&question, 1e-4, &deadline), -LH_ERANGE);
    assert_int_equal(plan_deadline_plan(&question, 2e-2).scheme.k, 0);
}

/* A mix of one size twice is that size. */
static void test_a_mix(void **state)
{
    (void)state;
    struct lh_plan_question one = ask(1e-3, 1u << 20), two = one;
    two.sizes[0].weight = 3;
    two.sizes[1] = two.sizes[0];
    two.sizes_count = 2;
    struct lh_plan_deadline single = plan_deadline_plan(&one, 1e-5), mixed = plan_deadline_plan(&two, 1e-5);
    assert_near(mixed.seconds, single.seconds, 1e-12);
    assert_near(mixed.missing, single.missing, 1e-12);
    assert_near(mixed.whole, single.whole, 1e-12);
    assert_near(mixed.wait_s, single.wait_s, 1e-12);
}

/* How much is missing in the worst of many is unknown; a code may leave it nothing. */
static void test_bursts(void **state)
{
    (void)state;
    struct lh_plan_question question = ask(1e-3, 1u << 20);
    question.link.burst_packets = 8;
    assert_true(isnan(plan_deadline_plan(&question, 1e-2).missing_p999));
    question.by = LH_PLAN_BY_P99;
    struct lh_plan_deadline deadline = plan_deadline_plan(&question, 1e-2);
    assert_true(deadline.scheme.k > 0 && deadline.whole >= 0.99);
}

static void test_what_cannot_be(void **state)
{
    (void)state;
    struct lh_plan_question question = ask(1e-3, 1u << 20);
    struct lh_plan_deadline deadline;
    assert_int_equal(lh_plan_deadline(&question, 0, &deadline), -LH_ERANGE);
    assert_int_equal(lh_plan_deadline(&question, NAN, &deadline), -LH_ERANGE);
    question.link.loss_of_chunk = true;
    assert_int_equal(lh_plan_deadline(&question, 1e-3, &deadline), -LH_EINVAL);
    question = ask(1e-3, 0);
    assert_true(lh_plan_deadline(&question, 1e-3, &deadline) < 0);
    question = ask(1e-3, 1u << 20);
    question.sizes_count = 0;
    assert_int_equal(lh_plan_deadline(&question, 1e-3, &deadline), -LH_EINVAL);
}

static int run_plan_deadline(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_than_is_lost),
        cmocka_unit_test(test_less_allowed_takes_a_code),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_a_mix),
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_plan_collective() + run_plan_deadline();
}
