/*
 * test_collectives.c - every collective with every schedule, type and reduction on 1 to 9 ranks, over a
 * simulated network that loses packets; several at once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "collective/operation_progress.h"
#include "collective/schedules.h"
#include "support/collective_case.h"

#define LIMIT_NS (60 * LH_NS_PER_S)

static void open_world(struct group_world *world, uint32_t size, const char *link, const char *const *sites)
{
    struct lh_group_attr attr;
    lh_group_attr_init(&attr);
    attr.block_bytes = 8192;
    attr.buffer_bytes = 65536;
    group_world_open(world, "collectives", size, link, size, &attr, sites);
}

static void run_schedule(struct group_world *world, const struct schedule *schedule, size_t count)
{
    struct collective_case cases[LH_TYPES];
    bool sums = schedule->collective == COLLECTIVE_ALLREDUCE || schedule->collective == COLLECTIVE_REDUCE ||
                schedule->collective == COLLECTIVE_REDUCE_SCATTER;
    uint32_t types = sums ? LH_TYPES : 2; /* what is not added is bytes */
    for (enum lh_type type = 0; type < types; type++) {
        cases[type] = (struct collective_case){
            .collective = schedule->collective,
            .type = type,
            .reduction =
                (enum lh_reduction)((type + world->size) % (type > LH_BF16 ? LH_REDUCTIONS : LH_BAND)),
            .count = count + type,
            .root = (world->size - 1 + type) % world->size,
            .in_place = type % 2 == 1,
        };
        lh_collective_options_init(&cases[type].options);
        cases[type].options.schedule = schedule->name;
    }
    collective_cases_run(world, cases, types, LIMIT_NS);
}

/* The v-variants: several at once, each with another root. */
static void run_uneven(struct group_world *world, size_t count)
{
    struct collective_case cases[COLLECTIVES];
    uint32_t n = 0;
    for (enum collective each = 0; each < COLLECTIVES; each++) {
        if (!parts_collective_name(each))
            continue;
        cases[n] = (struct collective_case){.collective = each,
                                            .type = (enum lh_type)(n % LH_TYPES),
                                            .count = count,
                                            .root = (world->size - 1 + n) % world->size,
                                            .uneven = true};
        lh_collective_options_init(&cases[n++].options);
    }
    collective_cases_run(world, cases, n, LIMIT_NS);
}

static void run_all(uint32_t size, const char *const *sites)
{
    static const size_t counts[] = {0, 1, 7000};
    struct group_world world;
    open_world(&world, size, "delay=100us,loss=1e-2", sites);
    for (const struct schedule *const *s = schedule_table(); *s; s++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            run_schedule(&world, *s, counts[i]);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        run_uneven(&world, counts[i]);
    group_world_close(&world);
}

static void test_all(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= SIM_ENGINES_MAX; size++)
        run_all(size, NULL);
}

/* Ranks of a site need not follow one another. */
static void test_sites(void **state)
{
    static const char *const sites[] = {"one", "two", "one", "three", "two", "one", "one", "two", "three"};
    (void)state;
    run_all(5, sites);
    run_all(9, sites);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_sites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
