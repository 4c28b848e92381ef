/*
 * test_swarm.c - many random lives of two connections; see support/swarm.h.
 *
 * Usage: test_swarm [SEEDS [FIRST SEED]]. A failing seed is printed with everything that was drawn from it;
 * "test_swarm 1 SEED" runs it again, the same way.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/swarm.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t seeds = 300;
static uint64_t first_seed = 1;
static struct swarm_options life; /* the newest of every_seed */

/* Said whatever brings a life down: an assertion of the library too. */
static void on_abort(int number)
{
    char words[SWARM_TEXT_MAX];
    fprintf(stderr, "in %s\n", swarm_describe(&life, words));
    signal(number, SIG_DFL);
    raise(number);
}

static void every_seed(void **state)
{
    (void)state;
    uint64_t delivered = 0;
    uint64_t canceled = 0;
    uint64_t truncated = 0;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct swarm_report report;
        char words[SWARM_TEXT_MAX];
        swarm_draw(seed, &life);
        if (seeds == 1)
            printf("%s\n", swarm_describe(&life, words));
        swarm_run(&life, SWARM_HONEST, &report);
        if (report.failure[0] != '\0')
            fail_msg("%s", report.failure);
        delivered += report.delivered;
        canceled += report.canceled;
        truncated += report.truncated;
    }
    printf("%llu seeds from %llu: %llu messages delivered, %llu canceled, %llu refused\n",
           (unsigned long long)seeds, (unsigned long long)first_seed, (unsigned long long)delivered,
           (unsigned long long)canceled, (unsigned long long)truncated);
    if (seeds >= 100)
        assert_true(delivered > 0 && canceled > 0 && truncated > 0);
}

static void same_seed_same_run(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + 5; seed++) {
        struct swarm_options options;
        struct swarm_report first;
        struct swarm_report second;
        swarm_draw(seed, &options);
        swarm_run(&options, SWARM_HONEST, &first);
        swarm_run(&options, SWARM_HONEST, &second);
        assert_true(first.trace != 0);
        assert_true(first.trace == second.trace);
        assert_true(first.took_ns == second.took_ns);
    }
}

/* A life may have nothing to sabotage (all was delivered before the last blackout, say); not twenty in a
 * row. */
static bool found(enum swarm_sabotage sabotage)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct swarm_options options;
        struct swarm_report report;
        swarm_draw(seed, &options);
        swarm_run(&options, sabotage, &report);
        if (report.failure[0] != '\0')
            return true;
    }
    return false;
}

/* The checker itself: each of these must be found. */
static void sabotage_is_found(void **state)
{
    (void)state;
    assert_true(found(SWARM_LATE_WRITE));
    assert_true(found(SWARM_WRONG_BYTE));
    assert_true(found(SWARM_NEVER_HEALED));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        seeds = strtoull(argv[1], NULL, 0);
    if (argc > 2)
        first_seed = strtoull(argv[2], NULL, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_seed),
        cmocka_unit_test(same_seed_same_run),
        cmocka_unit_test(sabotage_is_found),
    };
    signal(SIGABRT, on_abort);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char words[SWARM_TEXT_MAX];
    if (failed)
        fprintf(stderr, "last was %s\n", swarm_describe(&life, words));
    return failed;
}
