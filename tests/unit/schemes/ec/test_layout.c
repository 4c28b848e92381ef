/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t *params_of(const char *scheme, const char *text)
{
    static uint8_t params[LH_SCHEME_PARAMS];
    int failed = strcmp(scheme, "mds") == 0 ? ec_mds_parse(text, params) : ec_xor_parse(text, params);
    assert_int_equal(failed, 0);
    return params;
}

/* Each data chunk lies in one group, each extra place belongs to one row of one group at most, and the rows
 * that are always sent are exactly the first places of each block. */
static void check_layout(const uint8_t *params, uint32_t chunks)
{
    struct ec_layout layout = ec_layout_of(params, chunks);
    uint32_t extra = ec_layout_extra(&layout);
    assert_int_equal(extra, ec_extra_chunks(params, chunks));
    assert_int_equal(layout.groups, ec_groups(params, chunks));
    uint8_t *data_of = calloc(chunks + 1, 1);
    uint8_t *sent = calloc(extra + 1, 1);
    uint8_t *taken = calloc(extra + 1, 1);
    uint32_t next = 0;
    while (next < layout.groups) {
        struct ec_block block = ec_layout_block(&layout, next);
        assert_int_equal(block.first_group, next);
        for (uint32_t i = 0; i < block.parity; i++)
            sent[block.first_place + i] = 1;
        next += block.groups;
    }
    assert_int_equal(next, layout.groups);
    for (uint32_t g = 0; g < layout.groups; g++) {
        struct ec_group group = ec_layout_group(&layout, g);
        assert_in_range(group.size, 1, layout.params.k);
        for (uint32_t p = 0; p < group.size; p++) {
            assert_true(group.first_chunk + p * group.stride < chunks);
            assert_int_equal(data_of[group.first_chunk + p * group.stride]++, 0);
        }
        assert_in_range(group.rows, chunks > 1, layout.params.m);
        for (uint32_t r = 0; r < ec_group_rows_max(&layout, &group); r++) {
            assert_true(group.first_place + r * group.stride < extra);
            assert_int_equal(taken[group.first_place + r * group.stride]++, 0);
            assert_int_equal(sent[group.first_place + r * group.stride], r < group.rows);
            sent[group.first_place + r * group.stride] = 0;
        }
    }
    for (uint32_t i = 0; i < chunks; i++)
        assert_int_equal(data_of[i], 1);
    for (uint32_t i = 0; i < extra; i++)
        assert_int_equal(sent[i], 0); /* all that is sent belongs to a group */
    free(data_of);
    free(sent);
    free(taken);
}

static const struct {
    const char *scheme, *text;
} codes[] = {
    {"mds", ""},
    {"mds", "k=4,m=2"},
    {"mds", "k=4,m=2,spread=1"},
    {"mds", "k=4,m=2,spread=3"},
    {"mds", "k=1,m=3"},
    {"mds", "k=2,m=5,spread=2"},
    {"mds", "k=240,m=10"},
    {"xor", ""},
    {"xor", "k=4,m=4"},
    {"xor", "k=5,m=2,spread=3"},
    {"xor", "k=6,m=3,spread=1"},
};

static void test_every_size_is_shared_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        for (uint32_t chunks = 0; chunks <= 300; chunks++)
            check_layout(params_of(codes[i].scheme, codes[i].text), chunks);
}

static void test_neighbours_lie_in_different_groups(void **state)
{
    (void)state;
    struct ec_layout layout = ec_layout_of(params_of("mds", ""), 1024);
    struct ec_group second = ec_layout_group(&layout, 1);
    assert_int_equal(layout.groups, 32);
    assert_int_equal(second.first_chunk, 1);
    assert_int_equal(second.stride, 32);
    assert_int_equal(second.size, 32);
    assert_int_equal(second.rows, 8);
    assert_int_equal(second.first_place, 1);
    struct ec_layout narrow = ec_layout_of(params_of("mds", "spread=1"), 1024);
    struct ec_group of = ec_layout_group(&narrow, 1);
    assert_int_equal(of.first_chunk, 32);
    assert_int_equal(of.stride, 1);
    assert_int_equal(of.first_place, 16);
}

static void test_a_tail_is_shortened_and_balanced(void **state)
{
    (void)state;
    struct ec_layout layout = ec_layout_of(params_of("mds", ""), 33);
    assert_int_equal(layout.groups, 2);
    assert_int_equal(ec_layout_group(&layout, 0).size, 17);
    assert_int_equal(ec_layout_group(&layout, 1).size, 16);
    assert_int_equal(ec_layout_group(&layout, 1).rows, 8);
    layout = ec_layout_of(params_of("mds", "spread=2"), 64 + 3);
    assert_int_equal(layout.groups, 3);
    assert_int_equal(ec_layout_group(&layout, 2).size, 3);
    assert_int_equal(ec_layout_group(&layout, 2).rows, 4); /* one more than it has data */
    layout = ec_layout_of(params_of("xor", "spread=2"), 64 + 3);
    assert_int_equal(ec_layout_group(&layout, 2).rows, 3);
    layout = ec_layout_of(params_of("mds", "k=2,m=5"), 2);
    assert_int_equal(ec_layout_group(&layout, 0).rows, 5); /* full: what was asked for */
}

static void test_one_chunk_has_no_parity(void **state)
{
    (void)state;
    assert_int_equal(ec_groups(params_of("mds", ""), 1), 1);
    struct ec_layout layout = ec_layout_of(params_of("mds", ""), 1);
    assert_int_equal(ec_layout_group(&layout, 0).rows, 0);
    assert_int_equal(ec_layout_block(&layout, 0).parity, 0);
    assert_int_equal(ec_extra_chunks(params_of("mds", ""), 1), 0);
    assert_int_equal(ec_groups(params_of("mds", ""), 0), 0);
    assert_int_equal(ec_groups(params_of("mds", ""), 2), 1);
}

static void test_extra_chunks_fit_a_slot(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        for (uint32_t slot = 0; slot <= 1100; slot++) {
            const uint8_t *params = params_of(codes[i].scheme, codes[i].text);
            uint32_t chunks = ec_transfer_chunks_max(params, slot);
            assert_true(chunks <= slot && ec_extra_chunks(params, chunks) <= slot);
            assert_true(chunks == slot || chunks == 0 || ec_extra_chunks(params, chunks + 1) > slot);
        }
    assert_int_equal(ec_transfer_chunks_max(params_of("mds", ""), 1024), 1024);
    assert_int_equal(ec_transfer_chunks_max(params_of("mds", ""), 1), 0);
    assert_int_equal(ec_transfer_chunks_max(params_of("mds", ""), 15), 0); /* not one group */
    assert_int_equal(ec_transfer_chunks_max(params_of("mds", ""), 16), 16);
    assert_int_equal(ec_transfer_chunks_max(params_of("mds", "k=32,m=16"), 1024), 1024);
    assert_int_equal(ec_transfer_chunks_max(params_of("mds", "k=1,m=3"), 1024), 341);
    assert_int_equal(ec_extra_chunks(params_of("mds", "k=1,m=254"), UINT32_MAX), UINT32_MAX);
}

static void test_extra_chunks_never_fall(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
        const uint8_t *params = params_of(codes[i].scheme, codes[i].text);
        for (uint32_t chunks = 1; chunks <= 1100; chunks++)
            assert_true(ec_extra_chunks(params, chunks) >= ec_extra_chunks(params, chunks - 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_size_is_shared_out),
        cmocka_unit_test(test_neighbours_lie_in_different_groups),
        cmocka_unit_test(test_a_tail_is_shortened_and_balanced),
        cmocka_unit_test(test_one_chunk_has_no_parity),
        cmocka_unit_test(test_extra_chunks_fit_a_slot),
        cmocka_unit_test(test_extra_chunks_never_fall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
