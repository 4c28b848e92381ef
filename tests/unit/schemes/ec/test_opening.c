/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/opening.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct ec_layout layout_of(bool mds, const char *text, uint32_t chunks)
{
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(mds ? ec_mds_parse(text, params) : ec_xor_parse(text, params), 0);
    return ec_layout_of(params, chunks);
}

static const struct ec_ready all_ready = {.extra_open = true, .encoded = UINT32_MAX};

static void assert_takes(struct ec_opening *opening, const struct ec_layout *layout,
                         const struct ec_ready *ready, uint32_t limit, uint32_t first, uint32_t count)
{
    struct ec_sending sending;
    assert_true(ec_opening_take(opening, layout, ready, limit, &sending));
    assert_int_equal(sending.first, first);
    assert_int_equal(sending.count, count);
    assert_int_equal(sending.parity, first >= layout->chunks);
    assert_false(sending.again);
}

static void assert_waits(struct ec_opening *opening, const struct ec_layout *layout,
                         const struct ec_ready *ready, uint32_t limit)
{
    struct ec_sending sending;
    assert_false(ec_opening_take(opening, layout, ready, limit, &sending));
}

/* 2 blocks of 2 groups: 16 chunks and rows of 2 places, R = 4; then 5 chunks in 2 groups. */
static void test_data_then_parity_block_by_block(void **state)
{
    (void)state;
    struct ec_layout layout = layout_of(true, "k=4,m=2,spread=2", 8 + 5);
    struct ec_opening opening;
    ec_opening_init(&opening, &layout);
    assert_takes(&opening, &layout, &all_ready, 10, 0, 10);
    assert_waits(&opening, &layout, &all_ready, 0);
    assert_takes(&opening, &layout, &all_ready, 10, 10, 3);
    assert_takes(&opening, &layout, &all_ready, 3, 13, 3);
    assert_takes(&opening, &layout, &all_ready, 3, 16, 1);
    assert_false(ec_opening_done(&opening, &layout));
    assert_takes(&opening, &layout, &all_ready, 99, 13 + 8, 4); /* behind the places for fresh rows */
    assert_true(ec_opening_done(&opening, &layout));
    assert_waits(&opening, &layout, &all_ready, 99);
}

static void test_parity_waits_for_the_encoder_and_for_room(void **state)
{
    (void)state;
    struct ec_layout layout = layout_of(true, "k=4,m=2,spread=2", 16);
    struct ec_opening opening;
    ec_opening_init(&opening, &layout);
    struct ec_ready ready = {.extra_open = true};
    assert_takes(&opening, &layout, &ready, 99, 0, 16);
    assert_waits(&opening, &layout, &ready, 99);
    ready.encoded = 1;
    ready.extra_open = false;
    assert_waits(&opening, &layout, &ready, 99);
    ready.extra_open = true;
    assert_takes(&opening, &layout, &ready, 99, 16, 1); /* row 0 of the first group */
    assert_waits(&opening, &layout, &ready, 99);        /* row 0 of the second */
    ready.encoded = 2;
    assert_takes(&opening, &layout, &ready, 99, 17, 3);
    assert_waits(&opening, &layout, &ready, 99);
    ready.encoded = 3;
    assert_takes(&opening, &layout, &ready, 99, 16 + 8, 1);
    ready.encoded = 4;
    assert_takes(&opening, &layout, &ready, 99, 16 + 9, 3);
    assert_true(ec_opening_done(&opening, &layout));
}

static void test_groups_are_encoded_in_order(void **state)
{
    (void)state;
    struct ec_layout layout = layout_of(false, "k=4,m=3,spread=2", 8 + 5);
    struct ec_opening opening;
    struct ec_encoding encoding;
    static const uint32_t rows[] = {3, 3, 3, 2}; /* the last group has 2 chunks */
    ec_opening_init(&opening, &layout);
    for (uint32_t group = 0; group < 4; group++) {
        assert_true(ec_opening_encode(&opening, &layout, &encoding));
        assert_int_equal(encoding.group, group);
        assert_int_equal(encoding.first_row, 0);
        assert_int_equal(encoding.rows, rows[group]);
    }
    assert_false(ec_opening_encode(&opening, &layout, &encoding));
    /* And 5 rows of the last block go out, not 6. */
    assert_takes(&opening, &layout, &all_ready, 99, 0, 13);
    assert_takes(&opening, &layout, &all_ready, 99, 13, 6);
    assert_takes(&opening, &layout, &all_ready, 99, 19, 5);
    assert_true(ec_opening_done(&opening, &layout));
}

static void test_one_chunk_goes_out_again(void **state)
{
    (void)state;
    static const char *const params[] = {"k=4,m=1", "k=4,m=2", "k=4,m=3"};
    static const uint32_t copies[] = {1, 2, 2};
    for (size_t i = 0; i < 3; i++) {
        struct ec_layout layout = layout_of(true, params[i], 1);
        struct ec_opening opening;
        struct ec_encoding encoding;
        struct ec_sending sending;
        ec_opening_init(&opening, &layout);
        assert_false(ec_opening_encode(&opening, &layout, &encoding));
        assert_takes(&opening, &layout, &all_ready, 99, 0, 1);
        for (uint32_t copy = 0; copy < copies[i]; copy++) {
            assert_false(ec_opening_done(&opening, &layout));
            assert_true(ec_opening_take(&opening, &layout, &all_ready, 99, &sending));
            assert_true(sending.first == 0 && sending.count == 1 && sending.parity && !sending.again);
        }
        assert_true(ec_opening_done(&opening, &layout));
    }
}

static void test_nothing_to_send(void **state)
{
    (void)state;
    struct ec_layout layout = layout_of(true, "", 0);
    struct ec_opening opening;
    ec_opening_init(&opening, &layout);
    assert_true(ec_opening_done(&opening, &layout));
    assert_waits(&opening, &layout, &all_ready, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_then_parity_block_by_block),
        cmocka_unit_test(test_parity_waits_for_the_encoder_and_for_room),
        cmocka_unit_test(test_groups_are_encoded_in_order),
        cmocka_unit_test(test_one_chunk_goes_out_again),
        cmocka_unit_test(test_nothing_to_send),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
