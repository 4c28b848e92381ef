/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/choose/choose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "collective/schedule/schedule_table.h"
#include "support/near.h"
#include "support/schedule_bounds.h"

#define MIB (1u << 20)

/* 10 Gbit/s and 20 us in a site, 2 Gbit/s and a round trip of 25 ms across. */
static const struct flow_network LONG = {
    .inside = {.latency_s = 1e-5, .byte_s = 8e-10, .message_s = 5e-6},
    .across = {.latency_s = 12.5e-3, .byte_s = 4e-9, .message_s = 5e-6}};

static struct choice best_of(const struct choose_question *question, uint32_t *count)
{
    struct choice choices[CHOOSE_MAX];
    assert_int_equal(choose_check(question), 0);
    void *memory = malloc(choose_memory(question));
    assert_non_null(memory);
    *count = choose(question, memory, choices);
    free(memory);
    for (uint32_t i = 1; i < *count; i++)
        assert_true(choices[0].seconds <= choices[i].seconds * 1.0101 &&
                    choices[i - (i > 1)].seconds <= choices[i].seconds);
    for (uint32_t i = 0; i < *count; i++) {
        struct schedule_shape shape = choose_shape(question, &choices[i]);
        assert_int_equal(schedule_shape_check(choices[i].schedule, &shape), 0);
    }
    print_message("%-12s %4u ranks, %9llu bytes: %-17s blocks of %8.0f, %.3f ms (%u candidates)\n",
                  collective_name(question->collective), question->ranks,
                  (unsigned long long)question->bytes, choices[0].schedule->name, choices[0].block_bytes,
                  choices[0].seconds * 1e3, *count);
    return choices[0];
}

static struct choose_question question(enum collective collective, uint32_t ranks, uint64_t bytes,
                                       const struct site_map *map)
{
    return (struct choose_question){.collective = collective,
                                    .ranks = ranks,
                                    .map = map,
                                    .bytes = bytes,
                                    .unit_bytes = 4,
                                    .block_bytes_max = MIB,
                                    .network = &LONG};
}

/* One rank at each of two sites: half a round trip and the data once. */
static void test_two_sites(void **state)
{
    (void)state;
    struct schedule_map map;
    uint32_t count;
    schedule_map_of(&map, 2, 1, false);
    for (uint32_t mib = 1; mib <= 64; mib *= 4) {
        struct choose_question asked = question(COLLECTIVE_ALLREDUCE, 2, mib * MIB, &map.map);
        struct choice best = best_of(&asked, &count);
        if (mib == 1)
            assert_string_equal(best.schedule->name, "direct");
        assert_near(best.seconds, 12.5e-3 + mib * MIB * 4e-9, 0.02);
    }
}

/* Sites of eight: across a long link each byte once, and half a round trip as seldom as possible. */
static void test_sites_of_eight(void **state)
{
    (void)state;
    struct schedule_map map;
    uint32_t count;
    schedule_map_of(&map, 24, 8, true);
    struct choose_question asked = question(COLLECTIVE_ALLREDUCE, 24, 16 * MIB, &map.map);
    assert_string_equal(best_of(&asked, &count).schedule->name, "hierarchical");
    asked = question(COLLECTIVE_BROADCAST, 24, 16 * MIB, &map.map);
    struct choice best = best_of(&asked, &count);
    assert_string_equal(best.schedule->name, "hybrid");
    assert_near(best.seconds, 2 * 0.0125 + 8 * MIB * 4e-9, 0.05); /* two links carry half each */
    asked = question(COLLECTIVE_ALLTOALL, 24, 1024, &map.map);
    best_of(&asked, &count);
}

/* In one site: few steps for little data, few bytes for much. */
static void test_one_site(void **state)
{
    (void)state;
    uint32_t count;
    for (enum collective each = 0; each < COLLECTIVES; each++)
        for (uint64_t bytes = 8; bytes <= 64 * MIB; bytes *= 4096) {
            struct choose_question asked = question(each, 16, bytes, NULL);
            struct choice best = best_of(&asked, &count);
            asked.only = schedule_find(each, NULL);
            assert_true(best.seconds <= best_of(&asked, &count).seconds * 1.0101);
        }
    struct choose_question asked = question(COLLECTIVE_ALLREDUCE, 16, 64 * MIB, NULL);
    assert_near(best_of(&asked, &count).seconds, 64 * MIB * 2 * 15 / 16.0 * 8e-10, 0.15);
}

static void test_invalid(void **state)
{
    (void)state;
    struct choose_question asked = question(COLLECTIVES, 2, 8, NULL);
    assert_int_equal(choose_check(&asked), -LH_EINVAL);
    asked = question(COLLECTIVE_ALLREDUCE, 0, 8, NULL);
    assert_int_equal(choose_check(&asked), -LH_EINVAL);
    asked = question(COLLECTIVE_ALLREDUCE, 2, 0, NULL);
    assert_int_equal(choose_check(&asked), -LH_EINVAL);
    asked = question(COLLECTIVE_ALLREDUCE, 2, 8, NULL);
    asked.block_bytes_max = 3;
    assert_int_equal(choose_check(&asked), -LH_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_sites),
        cmocka_unit_test(test_sites_of_eight),
        cmocka_unit_test(test_one_site),
        cmocka_unit_test(test_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
