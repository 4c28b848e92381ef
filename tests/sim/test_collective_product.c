/*
 * test_collective_product.c - on 2 to 9 ranks, over a simulated network that loses packets: every schedule of
 * every collective with every type over every scheme, with messages that a scheme delivers; and with every
 * reduction, with small messages, which go the same way under every scheme.
 * A scheme has two or three of the numbers of ranks, a number two of the schemes; with the argument "all"
 * each scheme has each number: slow (test_collectives has each schedule, type and number of ranks).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collective/operation_digest.h"
#include "collective/operation_progress.h"
#include "collective/schedules.h"
#include "support/collective_call.h"
#include "support/collective_case.h"
#include "support/sanitized.h"

#define LIMIT_NS   (60 * LH_NS_PER_S)
#define LINK       "delay=100us,loss=1e-2"
#define BULK_BYTES 4500u /* of a part of a rank: above a small message */
#define SMALL      5u    /* elements */

static const char *const schemes[] = {"sr-nack", "sr-rto", "ec:mds", "ec:xor", "hybrid", "auto"};

static void open_world(struct group_world *world, uint32_t size, const char *scheme)
{
    static const char *const sites[] = {"one", "two", "one", "two", "two", "three", "one", "two", "three"};
    struct lh_attr connection;
    struct lh_group_attr attr;
    lh_attr_init(&connection);
    connection.reliability = scheme;
    lh_group_attr_init(&attr);
    attr.attr = &connection;
    attr.block_bytes = 8192;
    attr.buffer_bytes = 65536;
    group_world_open(world, "product", size, LINK, size, &attr, sites);
}

static bool has_parts(enum collective collective)
{
    return collective == COLLECTIVE_REDUCE_SCATTER || collective == COLLECTIVE_ALLGATHER ||
           collective == COLLECTIVE_GATHER || collective == COLLECTIVE_SCATTER ||
           collective == COLLECTIVE_ALLTOALL;
}

static enum lh_reduction some_reduction(enum lh_type type, uint32_t number)
{
    enum lh_reduction reduction = (enum lh_reduction)(number % LH_REDUCTIONS);
    return reduction_takes(reduction, type) ? reduction : (enum lh_reduction)(number % LH_BAND);
}

static struct collective_case case_of(const struct schedule *schedule, enum lh_type type, uint32_t number,
                                      uint32_t size)
{
    struct collective_case c = {.collective = schedule->collective,
                                .type = type,
                                .reduction = some_reduction(type, number),
                                .root = number % size,
                                .in_place = number % 3 == 1};
    lh_collective_options_init(&c.options);
    c.options.schedule = schedule->name;
    return c;
}

/* Of several with a schedule every other one is the v-variant, where there is one. */
static bool is_uneven(const struct schedule *schedule, uint32_t number)
{
    return number % 2 == 1 && parts_collective_name(schedule->collective) &&
           parts_schedule(schedule->collective) == schedule;
}

/* Several at once: a type each. */
static void run_bulk(struct group_world *world, const struct schedule *schedule, uint32_t scheme)
{
    struct collective_case cases[LH_TYPES];
    for (enum lh_type type = 0; type < LH_TYPES; type++) {
        uint32_t parts = has_parts(schedule->collective) ? 1 : world->size;
        cases[type] = case_of(schedule, type, type + scheme + world->size, world->size);
        cases[type].uneven = is_uneven(schedule, type + scheme);
        cases[type].count = (parts * BULK_BYTES + type) / lh_type_bytes(type);
    }
    collective_cases_run(world, cases, LH_TYPES, LIMIT_NS);
}

static bool run_all_sizes;

static bool is_run(uint32_t size, uint32_t scheme)
{
    return run_all_sizes || (size + scheme) % (SANITIZED ? 6 : 3) == 0;
}

static void test_schemes(void **state)
{
    (void)state;
    for (uint32_t size = 2; size <= SIM_ENGINES_MAX; size++)
        for (uint32_t scheme = 0; scheme < sizeof schemes / sizeof *schemes; scheme++) {
            if (!is_run(size, scheme))
                continue;
            struct group_world world;
            open_world(&world, size, schemes[scheme]);
            for (const struct schedule *const *s = schedule_table(); *s; s++)
                run_bulk(&world, *s, scheme);
            group_world_close(&world);
        }
}

static void run_small(struct group_world *world, const struct schedule *schedule)
{
    struct collective_case cases[LH_TYPES * LH_REDUCTIONS];
    uint32_t reductions = collective_call_reduces(schedule->collective) ? LH_REDUCTIONS : 1, count = 0;
    for (enum lh_type type = 0; type < LH_TYPES; type++)
        for (uint32_t r = 0; r < reductions; r++) {
            if (r >= LH_BAND && type != LH_U8 + r - LH_BAND) /* bits: of one type each */
                continue;
            cases[count] = case_of(schedule, type, type * reductions + r, world->size);
            cases[count].reduction = (enum lh_reduction)r;
            cases[count].uneven = is_uneven(schedule, type);
            cases[count++].count = SMALL + type * r;
        }
    collective_cases_run(world, cases, count, LIMIT_NS);
}

static void test_reductions(void **state)
{
    (void)state;
    for (uint32_t size = 2; size <= SIM_ENGINES_MAX; size++) {
        struct group_world world;
        open_world(&world, size, NULL);
        for (const struct schedule *const *s = schedule_table(); *s; s++)
            run_small(&world, *s);
        group_world_close(&world);
    }
}

int main(int argc, char **argv)
{
    run_all_sizes = argc > 1 && strcmp(argv[1], "all") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schemes),
        cmocka_unit_test(test_reductions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
