/* SPDX-License-Identifier: BSD-3-Clause */
#include <longhaul/plan.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_sites), cmocka_unit_test(test_loss),    cmocka_unit_test(test_many),
        cmocka_unit_test(test_barrier),   cmocka_unit_test(test_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
