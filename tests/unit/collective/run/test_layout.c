/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static uint8_t input[4096], output[4096], work[4096];

static struct layout layout_of(enum collective collective, uint32_t rank, uint64_t count,
                               size_t block_bytes)
{
    struct layout layout = {.collective = collective,
                            .rank = rank,
                            .ranks = 4,
                            .root = 2,
                            .elements = layout_elements(collective, 4, count),
                            .element_bytes = 4,
                            .in = input,
                            .out = output,
                            .work = work};
    layout.blocks = layout_blocks(&layout, block_bytes);
    return layout;
}

/* Blocks are adjacent, none is longer than asked for, and together they are the row. */
static void test_blocks(void **state)
{
    (void)state;
    for (enum collective each = 0; each < COLLECTIVE_BARRIER; each++)
        for (uint64_t count = 0; count < 40; count++)
            for (size_t bytes = 4; bytes < 30; bytes++) {
                struct layout layout = layout_of(each, 1, count, bytes);
                uint64_t sum = 0;
                assert_true(layout.blocks > 0);
                for (uint32_t b = 0; b < layout.blocks; b++) {
                    assert_true(layout_bytes(&layout, b) <= bytes);
                    assert_int_equal(layout_bytes(&layout, b) % 4, 0);
                    sum += layout_bytes(&layout, b);
                }
                assert_int_equal(sum, layout.elements * 4);
            }
}

/* Parts are exact: each begins with a block. */
static void test_parts(void **state)
{
    struct layout layout = layout_of(COLLECTIVE_REDUCE_SCATTER, 1, 10, 12);
    const struct schedule_shape shape = {.ranks = 4, .blocks = layout.blocks};
    (void)state;
    assert_int_equal(layout.blocks, 16); /* four of at most three elements for each of ten */
    for (uint32_t rank = 0; rank < 4; rank++) {
        struct schedule_extent part = schedule_part(&shape, rank);
        size_t bytes = 0;
        for (uint32_t b = 0; b < part.count; b++)
            bytes += layout_bytes(&layout, part.first + b);
        assert_int_equal(bytes, 40);
        assert_ptr_equal(layout_from(&layout, part.first), input + rank * 40);
        assert_ptr_equal(layout_to(&layout, part.first), rank == 1 ? output : work + rank * 40);
    }
}

static void check_own(enum collective collective, uint32_t rank, uint64_t bytes, size_t from_at,
                      size_t to_at)
{
    struct layout layout = layout_of(collective, rank, 10, 12);
    const uint8_t *from;
    uint8_t *to;
    assert_int_equal(layout_own(&layout, &from, &to), bytes);
    if (bytes > 0) {
        assert_ptr_equal(from, input + from_at);
        assert_ptr_equal(to, output + to_at);
    }
}

static void test_own(void **state)
{
    (void)state;
    check_own(COLLECTIVE_ALLREDUCE, 1, 0, 0, 0);
    check_own(COLLECTIVE_BROADCAST, 2, 0, 0, 0);
    check_own(COLLECTIVE_ALLGATHER, 1, 40, 0, 40);
    check_own(COLLECTIVE_GATHER, 1, 0, 0, 0);
    check_own(COLLECTIVE_GATHER, 2, 40, 0, 80);
    check_own(COLLECTIVE_SCATTER, 1, 0, 0, 0);
    check_own(COLLECTIVE_SCATTER, 2, 40, 80, 0);
    check_own(COLLECTIVE_ALLTOALL, 3, 40, 120, 120);
    struct layout in_place = layout_of(COLLECTIVE_ALLGATHER, 1, 10, 12);
    const uint8_t *from;
    uint8_t *to;
    in_place.in = output + 40;
    assert_int_equal(layout_own(&in_place, &from, &to), 0);
}

static void test_pairs(void **state)
{
    struct layout layout = layout_of(COLLECTIVE_ALLTOALL, 1, 10, 40);
    (void)state;
    assert_int_equal(layout.blocks, 4);
    assert_int_equal(layout_blocks_of_all(&layout), 16);
    assert_ptr_equal(layout_from(&layout, 1 * 4 + 3), input + 120);
    assert_ptr_equal(layout_to(&layout, 2 * 4 + 1), output + 80);      /* for this rank */
    assert_ptr_equal(layout_to(&layout, 2 * 4 + 3), work + 320 + 120); /* passes through */
    assert_int_equal(layout_work_bytes(&layout, true), 4 * 160);
    assert_int_equal(layout_work_bytes(&layout, false), 0);
}

static void test_bounds(void **state)
{
    struct layout layout = layout_of(COLLECTIVE_BROADCAST, 1, LAYOUT_ELEMENTS_MAX, 4);
    (void)state;
    assert_int_equal(layout.blocks, 0); /* more than a schedule takes */
    assert_int_equal(layout_elements(COLLECTIVE_BROADCAST, 4, LAYOUT_ELEMENTS_MAX + 1), 0);
    assert_int_equal(layout_elements(COLLECTIVE_ALLGATHER, 4, LAYOUT_ELEMENTS_MAX / 4 + 1), 0);
    assert_int_equal(layout_elements(COLLECTIVE_ALLTOALL, 4, LAYOUT_ELEMENTS_MAX / 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks), cmocka_unit_test(test_parts),  cmocka_unit_test(test_own),
        cmocka_unit_test(test_pairs),  cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
