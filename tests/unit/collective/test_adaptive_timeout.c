/*
 * test_adaptive_timeout.c - what a group learns: groups of simulated members, whose times are drawn.
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

#include <longhaul/timeout.h>

#include "base/prng.h"
#include "collective/adaptive_timeout.h"

/* ---- test group timeout ---------------------------------------------------------------------------- */

#define BYTES       (25u << 20)
#define IDEAL_NS    (10 * LH_NS_PER_MS)
#define MEMBERS_MAX 64u
#define SEEDS       8u

struct group {
    uint32_t members;
    uint32_t liars; /* the first ones */
    enum lh_timeout_rule rule;
    double spread;       /* of a member's time, relative */
    double pace;         /* a member's mean time, in IDEAL_NS */
    bool silent_liars;   /* they propose nothing at all */
    double lie;          /* their cost, in honest ones */
    uint32_t partial_of; /* share of bytes that never come: 1 of so many; 0: none */
    struct lh_timeout *timeouts[MEMBERS_MAX];
    struct lh_prng prng;
};

/* Of one operation. */
struct outcome {
    double timeout; /* the mean, in IDEAL_NS */
    double time;    /* of the last member */
    double lost;
};

static double normal(struct group *group)
{
    double u = 1 - lh_prng_double(&group->prng), v = lh_prng_double(&group->prng);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static void start(struct group *group, uint64_t seed)
{
    lh_prng_seed(&group->prng, seed);
    for (uint32_t i = 0; i < group->members; i++) {
        struct lh_timeout_attr attr;
        lh_timeout_attr_init(&attr);
        attr.rule = group->rule;
        attr.members = group->members;
        attr.member = i;
        assert_int_equal(lh_timeout_create(&attr, &group->timeouts[i]), 0);
        assert_int_equal(lh_timeout_warm_up(group->timeouts[i], (lh_time)(group->pace * IDEAL_NS), BYTES),
                         0);
    }
}

static void stop(struct group *group)
{
    for (uint32_t i = 0; i < group->members; i++)
        lh_timeout_destroy(group->timeouts[i]);
}

static void tell(struct group *group, uint32_t from, const struct lh_timeout_proposal *proposal)
{
    struct lh_timeout_proposal told = *proposal;
    if (from < group->liars) {
        if (group->silent_liars)
            return;
        told.cost = (uint64_t)(group->lie * 1e6 * (double)IDEAL_NS / BYTES);
        told.delivered = group->lie > 1 ? 0 : 1000000;
    }
    for (uint32_t to = 0; to < group->members; to++) {
        if (to != from)
            assert_int_equal(lh_timeout_propose(group->timeouts[to], from, &told), 0);
    }
}

/* A member receives at an even rate, and is cut off at the timeout. */
static void receive(struct group *group, uint32_t member, lh_time timeout_ns, struct outcome *outcome,
                    struct lh_timeout_proposal *proposal)
{
    double needs = fmax(group->pace * (1 + group->spread * normal(group)), 0.1) * IDEAL_NS;
    double takes = fmin(needs, (double)timeout_ns);
    uint64_t received = (uint64_t)(BYTES * (takes / needs));
    if (group->partial_of)
        received -= received / group->partial_of;
    assert_int_equal(lh_timeout_end(group->timeouts[member], (lh_time)takes, received, proposal), 0);
    outcome->time = fmax(outcome->time, takes / IDEAL_NS);
    outcome->lost += 1 - takes / needs;
}

static struct outcome operate(struct group *group)
{
    struct lh_timeout_proposal proposals[MEMBERS_MAX];
    struct outcome outcome = {0, 0, 0};
    for (uint32_t i = 0; i < group->members; i++) {
        lh_time timeout_ns;
        assert_int_equal(lh_timeout_begin(group->timeouts[i], BYTES, &timeout_ns), 0);
        outcome.timeout += (double)timeout_ns / IDEAL_NS / group->members;
        receive(group, i, timeout_ns, &outcome, &proposals[i]);
    }
    for (uint32_t i = 0; i < group->members; i++)
        tell(group, i, &proposals[i]);
    outcome.lost /= group->members;
    return outcome;
}

static struct outcome operate_often(struct group *group, unsigned operations)
{
    struct outcome mean = {0, 0, 0};
    for (unsigned i = 0; i < operations; i++) {
        struct outcome one = operate(group);
        mean.timeout += one.timeout / operations;
        mean.time += one.time / operations;
        mean.lost += one.lost / operations;
    }
    return mean;
}

/* Operations `from` to `to` of a fresh group: means over SEEDS seeds. */
static struct outcome settled(struct group group, unsigned from, unsigned to)
{
    struct outcome mean = {0, 0, 0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        start(&group, seed);
        operate_often(&group, from);
        struct outcome one = operate_often(&group, to - from);
        mean.timeout += one.timeout / SEEDS;
        mean.time += one.time / SEEDS;
        mean.lost += one.lost / SEEDS;
        stop(&group);
    }
    return mean;
}

static const uint32_t sizes[] = {2, 3, 8, 16, 64};

/* A tenth of spread: within 20 operations below 1 % is lost, in less than 1.25 times the ideal. */
static void test_margin_settles(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct group group = {.members = sizes[i], .rule = LH_TIMEOUT_MARGIN, .spread = 0.1, .pace = 1};
        struct outcome early = settled(group, 0, 20), later = settled(group, 20, 100);
        print_message("%u members: first 20 operations lose %.2f %% in %.3f; later ones %.2f %% in %.3f, "
                      "timeout %.3f\n",
                      sizes[i], 100 * early.lost, early.time, 100 * later.lost, later.time, later.timeout);
        assert_true(early.lost < 0.01 && later.lost < 0.01);
        assert_true(early.time < 1.25 && later.time < 1.25 && later.timeout < 1.25);
    }
}

/* As printed it settles at the median, and 4 % is late. */
static void test_paper_settles_at_the_median(void **state)
{
    (void)state;
    struct group group = {.members = 64, .rule = LH_TIMEOUT_PAPER, .spread = 0.1, .pace = 1};
    struct outcome later = settled(group, 40, 100);
    assert_true(fabs(later.timeout - 1) < 0.02);
    assert_true(later.lost > 0.03 && later.lost < 0.05);
}

/* T' = 0.2 * median + 0.8 * T, from 1.25 * warm-up + 50 us. */
static void test_paper_is_exact(void **state)
{
    (void)state;
    struct lh_timeout_attr attr;
    lh_timeout_attr_init(&attr);
    attr.rule = LH_TIMEOUT_PAPER;
    attr.members = 3;
    struct lh_timeout *timeout;
    assert_int_equal(lh_timeout_create(&attr, &timeout), 0);
    assert_int_equal(lh_timeout_warm_up(timeout, 1000000, 1000), 0);
    lh_time ns;
    assert_int_equal(lh_timeout_begin(timeout, 1000, &ns), 0);
    assert_in_range(ns, 1299999, 1300000);
    struct lh_timeout_proposal mine, other = {.round = 1, .cost = 2000000000, .delivered = 1000000};
    assert_int_equal(lh_timeout_end(timeout, 500000, 250, &mine), 0); /* 2 ms for the whole */
    assert_int_equal(mine.cost, 2000000000);
    assert_int_equal(mine.delivered, 250000);
    assert_int_equal(lh_timeout_propose(timeout, 1, &other), 0);
    other.cost = 9000000000; /* one vote */
    assert_int_equal(lh_timeout_propose(timeout, 2, &other), 0);
    assert_int_equal(lh_timeout_begin(timeout, 1000, &ns), 0);
    assert_in_range(ns, 1439999, 1440000);
    assert_int_equal(lh_timeout_begin(timeout, 2000, &ns), 0); /* nothing new; twice the size */
    assert_in_range(ns, 2879998, 2880000);
    struct lh_timeout_state now;
    lh_timeout_state(timeout, &now);
    assert_int_equal(now.voters, 3);
    assert_int_equal(now.round, 3);
    lh_timeout_destroy(timeout);
}

/* The path's rate falls to a half and comes back: followed within 20 operations. */
static void test_step_of_the_rate(void **state)
{
    (void)state;
    for (int rule = LH_TIMEOUT_MARGIN; rule <= LH_TIMEOUT_PAPER; rule++) {
        struct group group = {.members = 16, .rule = (enum lh_timeout_rule)rule, .spread = 0.03, .pace = 1};
        start(&group, 7);
        double before = operate_often(&group, 40).timeout;
        group.pace = 2;
        operate_often(&group, 20);
        struct outcome slow = operate_often(&group, 10);
        assert_true(slow.timeout > 1.9 && slow.timeout < 2.5);
        assert_true(rule == LH_TIMEOUT_PAPER || slow.lost < 0.01);
        group.pace = 1;
        operate_often(&group, 20);
        struct outcome fast = operate_often(&group, 10);
        print_message("rule %d: %.3f, half the rate %.3f, again %.3f\n", rule, before, slow.timeout,
                      fast.timeout);
        assert_true(fast.timeout > 0.95 && fast.timeout < 1.25);
        stop(&group);
    }
}

/* A tenth of the group says that nothing came and all is slow, or fast: less than a tenth of a difference. */
static void test_liars(void **state)
{
    (void)state;
    struct group group = {.members = 60, .rule = LH_TIMEOUT_MARGIN, .spread = 0.1, .pace = 1};
    double honest = settled(group, 20, 100).timeout;
    group.liars = 6;
    for (int i = 0; i < 2; i++) {
        group.lie = i ? 1e-3 : 1e3;
        double lied_to = settled(group, 20, 100).timeout;
        print_message("a tenth lies (x %g): %.3f, else %.3f\n", group.lie, lied_to, honest);
        assert_true(fabs(lied_to / honest - 1) < 0.1);
    }
}

/* Members that are gone do not vote any more, and their last votes do not stay. */
static void test_lost_members(void **state)
{
    (void)state;
    struct group group = {.members = 8, .rule = LH_TIMEOUT_MARGIN, .spread = 0.1, .pace = 1};
    start(&group, 3);
    operate_often(&group, 10);
    group.liars = 5;
    group.silent_liars = true;
    group.pace = 2;
    operate_often(&group, 40);
    struct lh_timeout_state now;
    lh_timeout_state(group.timeouts[7], &now);
    assert_int_equal(now.voters, 3);
    assert_true(now.cost * BYTES > 1.9 * IDEAL_NS);
    stop(&group);
}

/* Every member is cut off each time: the timeout must grow. So it must if nothing comes at all. */
static void test_all_partial(void **state)
{
    (void)state;
    for (int rule = LH_TIMEOUT_MARGIN; rule <= LH_TIMEOUT_PAPER; rule++) {
        struct group group = {.members = 8, .rule = (enum lh_timeout_rule)rule, .pace = 1};
        start(&group, 1);
        group.pace = 100; /* what was measured first says nothing */
        double last = 0;
        for (int i = 0; i < 20; i++) {
            double timeout = operate(&group).timeout;
            assert_true(timeout > last || timeout >= group.pace);
            last = timeout;
        }
        assert_true(last > 0.9 * group.pace);
        stop(&group);
    }
    struct group alone = {.members = 1, .pace = 1};
    start(&alone, 1);
    lh_time first, next;
    struct lh_timeout_proposal proposal;
    assert_int_equal(lh_timeout_begin(alone.timeouts[0], BYTES, &first), 0);
    assert_int_equal(lh_timeout_end(alone.timeouts[0], first, 0, &proposal), 0);
    assert_int_equal(proposal.delivered, 0);
    assert_int_equal(lh_timeout_begin(alone.timeouts[0], BYTES, &next), 0);
    assert_true(next > first);
    stop(&alone);
}

/* Random loss below a timeout that all meet shrinks nothing to nothing. */
static void test_random_loss(void **state)
{
    (void)state;
    for (int rule = LH_TIMEOUT_MARGIN; rule <= LH_TIMEOUT_PAPER; rule++) {
        struct group group = {
            .members = 8, .rule = (enum lh_timeout_rule)rule, .spread = 0.02, .pace = 1, .partial_of = 50};
        start(&group, 9);
        struct outcome outcome = operate_often(&group, 200);
        assert_true(outcome.timeout > 0.98 && outcome.timeout < 1.25);
        stop(&group);
    }
}

static void test_bounds(void **state)
{
    (void)state;
    struct group group = {.members = 2, .rule = LH_TIMEOUT_PAPER, .pace = 1};
    start(&group, 1);
    group.timeouts[0]->attr.maximum_ns = 11 * LH_NS_PER_MS;
    lh_time ns;
    assert_int_equal(lh_timeout_begin(group.timeouts[0], BYTES, &ns), 0);
    assert_int_equal(ns, 11 * LH_NS_PER_MS);
    assert_int_equal(lh_timeout_begin(group.timeouts[0], UINT64_MAX, &ns), 0);
    assert_int_equal(ns, 11 * LH_NS_PER_MS);
    group.timeouts[0]->attr.minimum_ns = LH_NS_PER_MS;
    assert_int_equal(lh_timeout_begin(group.timeouts[0], 1, &ns), 0);
    assert_int_equal(ns, LH_NS_PER_MS);
    struct lh_timeout_proposal proposal;
    assert_int_equal(lh_timeout_end(group.timeouts[0], LH_TIME_NEVER, 1, &proposal), 0); /* clock step */
    assert_int_equal(proposal.cost, 11 * LH_NS_PER_MS * 1000000);
    stop(&group);
}

static void test_refused(void **state)
{
    (void)state;
    struct lh_timeout_attr attr;
    lh_timeout_attr_init(&attr);
    attr.members = 4;
    struct lh_timeout *timeout;
    assert_int_equal(lh_timeout_create(&attr, &timeout), 0);
    lh_time ns = 5;
    struct lh_timeout_proposal mine = {0}, other = {.round = 1, .cost = 1000, .delivered = 1000000};
    assert_int_equal(lh_timeout_begin(timeout, 1, &ns), -LH_ESTATE);
    assert_int_equal(lh_timeout_warm_up(timeout, 0, 1), -LH_EINVAL);
    assert_int_equal(lh_timeout_warm_up(timeout, 1, 0), -LH_EINVAL);
    assert_int_equal(lh_timeout_warm_up(timeout, 1000, 1000), 0);
    assert_int_equal(lh_timeout_warm_up(timeout, 1000, 1000), -LH_ESTATE);
    assert_int_equal(lh_timeout_end(timeout, 1, 1, &mine), -LH_ESTATE);
    assert_int_equal(lh_timeout_begin(timeout, 0, &ns), -LH_EINVAL);
    assert_int_equal(ns, 5);
    assert_int_equal(lh_timeout_begin(timeout, 1000, &ns), 0);
    assert_int_equal(lh_timeout_end(timeout, 0, 1000, &mine), -LH_EINVAL);  /* the clock was set back */
    assert_int_equal(lh_timeout_end(timeout, 10, 1001, &mine), -LH_EINVAL); /* duplicates were counted */
    assert_int_equal(mine.round, 0);
    assert_int_equal(lh_timeout_end(timeout, 10, 1000, &mine), 0);
    assert_int_equal(lh_timeout_end(timeout, 10, 1000, &mine), -LH_ESTATE);

    assert_int_equal(lh_timeout_propose(timeout, 0, &other), -LH_EINVAL); /* that is this member */
    assert_int_equal(lh_timeout_propose(timeout, 4, &other), -LH_EINVAL);
    assert_int_equal(lh_timeout_propose(timeout, 1, &other), 0);
    assert_int_equal(lh_timeout_propose(timeout, 1, &other), -LH_EINVAL); /* replayed */
    other.round = 1 + LH_TIMEOUT_AHEAD;
    assert_int_equal(lh_timeout_propose(timeout, 1, &other), 0);
    other.round++;
    assert_int_equal(lh_timeout_propose(timeout, 1, &other), -LH_EINVAL);
    other = (struct lh_timeout_proposal){.round = 0, .cost = 1, .delivered = 1};
    assert_int_equal(lh_timeout_propose(timeout, 2, &other), -LH_EINVAL);
    other = (struct lh_timeout_proposal){.round = 1, .cost = 0, .delivered = 1};
    assert_int_equal(lh_timeout_propose(timeout, 2, &other), -LH_EINVAL);
    other = (struct lh_timeout_proposal){.round = 1, .cost = 1, .delivered = 1000001};
    assert_int_equal(lh_timeout_propose(timeout, 2, &other), -LH_EINVAL);
    struct lh_timeout_state now;
    lh_timeout_state(timeout, &now);
    assert_int_equal(now.refused, 7);
    lh_timeout_destroy(timeout);
}

/* Whatever others propose: the timeout stays within its bounds, and is a number. */
static void test_hostile_proposals(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 5);
    for (int rule = LH_TIMEOUT_MARGIN; rule <= LH_TIMEOUT_PAPER; rule++) {
        struct group group = {.members = 3, .rule = (enum lh_timeout_rule)rule, .pace = 1};
        start(&group, 1);
        struct lh_timeout *timeout = group.timeouts[0];
        for (int i = 0; i < 5000; i++) {
            lh_time ns;
            assert_int_equal(lh_timeout_begin(timeout, lh_prng_next(&prng) >> (i % 64) | 1, &ns), 0);
            assert_in_range(ns, timeout->attr.minimum_ns, timeout->attr.maximum_ns);
            struct lh_timeout_proposal mine, other = {.round = timeout->state.round,
                                                      .cost = lh_prng_next(&prng) >> (i % 64),
                                                      .delivered = (uint32_t)lh_prng_next(&prng) % 1000001};
            assert_int_equal(lh_timeout_end(timeout, lh_prng_next(&prng) >> (i % 60) | 1,
                                            lh_prng_below(&prng, 2) * timeout->operation.bytes, &mine),
                             0);
            for (uint32_t member = 1; member < 3; member++) {
                int result = lh_timeout_propose(timeout, member, &other);
                assert_int_equal(result, other.cost ? 0 : -LH_EINVAL);
            }
            assert_true(isfinite(timeout->state.cost) && timeout->state.cost > 0);
        }
        stop(&group);
    }
}

static int run_group_timeout(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_margin_settles),
        cmocka_unit_test(test_paper_settles_at_the_median),
        cmocka_unit_test(test_paper_is_exact),
        cmocka_unit_test(test_step_of_the_rate),
        cmocka_unit_test(test_liars),
        cmocka_unit_test(test_lost_members),
        cmocka_unit_test(test_all_partial),
        cmocka_unit_test(test_random_loss),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hostile_proposals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test normal margin ---------------------------------------------------------------------------- */

/* Against values of the normal distribution, and median_of() against sorted numbers. */

/* E[(X - z)+] = phi(z) - z * Q(z): 0.39894 at 0, 0.08332 at 1, 0.00849 at 2. */
static void test_margin(void **state)
{
    (void)state;
    assert_true(fabs(normal_margin(0.0833155) - 1) < 1e-4);
    assert_true(fabs(normal_margin(0.0084907) - 2) < 1e-4);
    assert_true(normal_margin(0.398) < 0.01);
    assert_true(normal_margin(0.4) == 0);
    assert_true(normal_margin(HUGE_VAL) == 0);
    assert_true(normal_margin(0) <= 6);
}

static void test_median(void **state)
{
    (void)state;
    double odd[] = {3, 1e300, 1}, even[] = {4, 1, 3, 2}, one[] = {7};
    assert_true(median_of(odd, 3) == 3);
    assert_true(median_of(even, 4) == 2.5);
    assert_true(median_of(one, 1) == 7);
    double many[101];
    for (unsigned i = 0; i < 101; i++)
        many[i] = (i * 37) % 101;
    assert_true(median_of(many, 101) == 50);
    for (unsigned i = 0; i < 101; i++)
        assert_true(many[i] == i);
}

static int run_normal_margin(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_margin),
        cmocka_unit_test(test_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test timeout phases --------------------------------------------------------------------------- */

/* Slices of a timeout: in proportion, and the last ends with the whole. */

static void test_in_proportion(void **state)
{
    (void)state;
    uint64_t bytes[] = {100, 300, 0, 600};
    assert_int_equal(lh_timeout_phase_end(1000, bytes, 4, 0), 100);
    assert_int_equal(lh_timeout_phase_end(1000, bytes, 4, 1), 400);
    assert_int_equal(lh_timeout_phase_end(1000, bytes, 4, 2), 400);
    assert_int_equal(lh_timeout_phase_end(1000, bytes, 4, 3), 1000);
}

static void test_nothing_to_send(void **state)
{
    (void)state;
    uint64_t bytes[] = {0, 0, 0};
    assert_int_equal(lh_timeout_phase_end(1000, bytes, 3, 0), 333);
    assert_int_equal(lh_timeout_phase_end(1000, bytes, 3, 2), 1000);
}

static void test_huge(void **state)
{
    (void)state;
    uint64_t bytes[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    assert_int_equal(lh_timeout_phase_end(LH_TIME_NEVER, bytes, 3, 2), LH_TIME_NEVER);
    assert_in_range(lh_timeout_phase_end(3000, bytes, 3, 0), 999, 1000);
}

static int run_timeout_phases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_proportion),
        cmocka_unit_test(test_nothing_to_send),
        cmocka_unit_test(test_huge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test timeout proposal ------------------------------------------------------------------------- */

/* Proposals on the wire: there and back, and nothing else is one. */

static void test_bytes(void **state)
{
    (void)state;
    const struct lh_timeout_proposal sent = {
        .round = 0x01020304, .cost = 0x1112131415161718, .delivered = 0x000e0f10};
    const uint8_t expected[] = {1,    0,    0,    0,    1,    2,    3, 4,    0x11, 0x12,
                                0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 0x0e, 0x0f, 0x10};
    uint8_t wire[LH_TIMEOUT_PROPOSAL_BYTES];
    lh_timeout_proposal_encode(&sent, wire);
    assert_memory_equal(wire, expected, sizeof wire);
    struct lh_timeout_proposal got;
    assert_int_equal(lh_timeout_proposal_decode(wire, sizeof wire, &got), 0);
    assert_int_equal(got.round, sent.round);
    assert_int_equal(got.cost, sent.cost);
    assert_int_equal(got.delivered, sent.delivered);
}

static void assert_refused(unsigned byte, uint8_t value)
{
    const struct lh_timeout_proposal sent = {.round = 1, .cost = 1, .delivered = 1};
    struct lh_timeout_proposal got = {.round = 77};
    uint8_t wire[LH_TIMEOUT_PROPOSAL_BYTES];
    lh_timeout_proposal_encode(&sent, wire);
    assert_int_equal(lh_timeout_proposal_decode(wire, sizeof wire, &got), 0);
    wire[byte] = value;
    got.round = 77;
    assert_int_equal(lh_timeout_proposal_decode(wire, sizeof wire, &got), -LH_EINVAL);
    assert_int_equal(got.round, 77);
}

static void timeout_proposal_test_refused(void **state)
{
    (void)state;
    assert_refused(0, 2);  /* version */
    assert_refused(3, 1);  /* what must be zero */
    assert_refused(7, 0);  /* operation 0 */
    assert_refused(15, 0); /* no cost */
    assert_refused(16, 1); /* more than all was delivered */
    uint8_t wire[LH_TIMEOUT_PROPOSAL_BYTES + 1] = {1};
    struct lh_timeout_proposal got;
    assert_int_equal(lh_timeout_proposal_decode(wire, 0, &got), -LH_EINVAL);
    assert_int_equal(lh_timeout_proposal_decode(wire, sizeof wire, &got), -LH_EINVAL);
}

static int run_timeout_proposal(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(timeout_proposal_test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_group_timeout() + run_normal_margin() + run_timeout_phases() + run_timeout_proposal();
}
