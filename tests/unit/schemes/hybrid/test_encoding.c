/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/encoding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemes/hybrid/coding.h"
#include "schemes/hybrid/params.h"

#define CHUNKS (240u * 70) /* 70 submessages: blocks of 32, 32 and 6 */

struct bench {
    struct ec_layout layout;
    struct hybrid_groups groups;
    struct hybrid_encoding encoding;
    struct hybrid_group memory[200];
    struct hybrid_encode encode;
};

static struct bench *setup(uint32_t chunks)
{
    static struct bench bench;
    uint8_t params[LH_SCHEME_PARAMS];
    bench = (struct bench){0};
    assert_int_equal(hybrid_parse("", params), 0);
    bench.layout = hybrid_layout_of(params, chunks);
    hybrid_groups_init(&bench.groups, &bench.layout, bench.memory);
    hybrid_encoding_init(&bench.encoding, &bench.layout);
    return &bench;
}

static bool next(struct bench *bench, uint32_t sent_through)
{
    return hybrid_encoding_next(&bench->encoding, &bench->groups, sent_through, 4, &bench->encode);
}

static void test_nothing_far_from_the_end(void **state)
{
    struct bench *bench = setup(CHUNKS);
    (void)state;
    assert_false(next(bench, CHUNKS));
}

/* What is injected from then on, block by block, and no more than are allowed at once. */
static void test_ahead_near_the_end(void **state)
{
    struct bench *bench = setup(CHUNKS);
    (void)state;
    hybrid_encoding_on_near(&bench->encoding, &bench->layout, 240 * 32 + 5);
    hybrid_encoding_on_near(&bench->encoding, &bench->layout, 0); /* the first call counts */
    assert_false(next(bench, 240 * 64 - 1));
    for (uint32_t i = 0; i < HYBRID_ENCODINGS_AHEAD; i++) {
        assert_true(next(bench, 240 * 64));
        assert_int_equal(bench->encode.group, 32 + i);
        assert_true(bench->encode.first_row == 0 && bench->encode.rows == 4);
    }
    assert_false(next(bench, 240 * 64));
    hybrid_encoding_on_encoded(&bench->encoding, &bench->groups, 1);
    assert_int_equal(bench->groups.all[32].ready, 4);
    assert_int_equal(bench->groups.all[33].ready, 0);
    assert_true(next(bench, 240 * 64));
    assert_int_equal(bench->encode.group, 32 + HYBRID_ENCODINGS_AHEAD);
}

static void test_what_is_wanted_comes_first(void **state)
{
    struct bench *bench = setup(CHUNKS);
    (void)state;
    hybrid_encoding_on_near(&bench->encoding, &bench->layout, 240 * 64);
    bench->groups.all[3].want = 2;
    bench->groups.work_from = 0;
    assert_true(next(bench, CHUNKS));
    assert_true(bench->encode.group == 3 && bench->encode.rows == 2);
    bench->groups.all[3].want = 5;
    assert_true(next(bench, CHUNKS));
    assert_true(bench->encode.group == 3 && bench->encode.first_row == 2 && bench->encode.rows == 3);
    assert_true(next(bench, CHUNKS));
    assert_int_equal(bench->encode.group, 64);
    bench->groups.work_from = 50;
    hybrid_encoding_on_encoded(&bench->encoding, &bench->groups, 2);
    assert_int_equal(bench->groups.all[3].ready, 5);
    assert_int_equal(bench->groups.work_from, 3); /* it can be injected now */
}

static void test_a_single_chunk_is_not_encoded(void **state)
{
    struct bench *bench = setup(1);
    (void)state;
    hybrid_encoding_on_near(&bench->encoding, &bench->layout, 0);
    bench->groups.all[0].want = 3;
    assert_false(next(bench, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_far_from_the_end),
        cmocka_unit_test(test_ahead_near_the_end),
        cmocka_unit_test(test_what_is_wanted_comes_first),
        cmocka_unit_test(test_a_single_chunk_is_not_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
