/*
 * test_plan_deadline.c - bounded completion for messages that may be incomplete: kept, cheap, refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/plan.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/near.h"

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

static struct lh_plan_deadline plan(const struct lh_plan_question *question, double missing)
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
    double coded_s = plan(&question, 1e-3).seconds;
    question.max_cores = 0;
    struct lh_plan_deadline deadline = plan(&question, 1e-3);
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
            struct lh_plan_deadline deadline = plan(&question, missing);
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
    assert_true(plan(&question, 1e-4).overhead > 0.03);
    question.max_overhead = 0.01;
    assert_int_equal(lh_plan_deadline(&question, 1e-4, &deadline), -LH_ERANGE);
    question.max_overhead = INFINITY;
    question.max_cores = 0;
    assert_int_equal(lh_plan_deadline(&question, 1e-4, &deadline), -LH_ERANGE);
    assert_int_equal(plan(&question, 2e-2).scheme.k, 0);
}

/* A mix of one size twice is that size. */
static void test_a_mix(void **state)
{
    (void)state;
    struct lh_plan_question one = ask(1e-3, 1u << 20), two = one;
    two.sizes[0].weight = 3;
    two.sizes[1] = two.sizes[0];
    two.sizes_count = 2;
    struct lh_plan_deadline single = plan(&one, 1e-5), mixed = plan(&two, 1e-5);
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
    assert_true(isnan(plan(&question, 1e-2).missing_p999));
    question.by = LH_PLAN_BY_P99;
    struct lh_plan_deadline deadline = plan(&question, 1e-2);
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

int main(void)
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
