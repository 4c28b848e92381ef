/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/repairs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct ec_ready all_ready = {.extra_open = true, .encoded = UINT32_MAX};

/* 4 groups of 4; extra chunks from 16 on, row r of group g is 16 + 4 * r + g. Rows 0 and 1 were sent, rows 2
 * and 3 are fresh. */
static struct ec_layout four_by_four(void)
{
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(ec_mds_parse("k=4,m=2", params), 0);
    return ec_layout_of(params, 16);
}

static struct ec_request request_of(uint32_t round, const struct ec_run *runs, uint8_t count)
{
    struct ec_request request = {.round = round, .parts = 1, .count = count};
    memcpy(request.runs, runs, count * sizeof(*runs));
    return request;
}

static void assert_takes(struct ec_repairs *repairs, const struct ec_layout *layout,
                         const struct ec_ready *ready, uint32_t chunk)
{
    struct ec_sending sending;
    assert_true(ec_repairs_take(repairs, layout, ready, 9, &sending));
    assert_int_equal(sending.first, chunk);
    assert_int_equal(sending.count, 1);
    assert_int_equal(sending.parity, chunk >= layout->chunks);
    assert_int_equal(sending.again, chunk < layout->chunks);
}

static void test_data_goes_before_parity(void **state)
{
    (void)state;
    struct ec_layout layout = four_by_four();
    struct ec_repairs repairs;
    struct ec_encoding encoding;
    struct ec_sending sending;
    static const struct ec_run runs[] = {{0, 1, 2}, {0, 6, 2}, {2, 7, 1}, {3, 0, 1}};
    struct ec_request request = request_of(1, runs, 4);
    ec_repairs_init(&repairs);
    assert_true(ec_repairs_done(&repairs));
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &request, 4), EC_HEARD_WHOLE);
    assert_int_equal(repairs.round, 1);
    assert_true(ec_repairs_encode(&repairs, &layout, &encoding));
    assert_true(encoding.group == 0 && encoding.first_row == 2 && encoding.rows == 2);
    assert_true(ec_repairs_encode(&repairs, &layout, &encoding));
    assert_true(encoding.group == 2 && encoding.first_row == 3 && encoding.rows == 1);
    assert_false(ec_repairs_encode(&repairs, &layout, &encoding));
    assert_false(ec_repairs_take(&repairs, &layout, &all_ready, 0, &sending));
    struct ec_ready ready = {.extra_open = true, .encoded = 4};
    assert_takes(&repairs, &layout, &ready, 4); /* position 1 of group 0 */
    assert_takes(&repairs, &layout, &ready, 8);
    assert_takes(&repairs, &layout, &ready, 3);
    assert_false(ec_repairs_take(&repairs, &layout, &ready, 9, &sending)); /* not encoded yet */
    ready.encoded = 5;
    assert_takes(&repairs, &layout, &ready, 16 + 8);
    assert_takes(&repairs, &layout, &ready, 16 + 12);
    assert_false(ec_repairs_take(&repairs, &layout, &ready, 9, &sending));
    ready.encoded = 6;
    ready.extra_open = false;
    assert_false(ec_repairs_take(&repairs, &layout, &ready, 9, &sending));
    ready.extra_open = true;
    assert_false(ec_repairs_done(&repairs));
    assert_takes(&repairs, &layout, &ready, 16 + 14);
    assert_true(ec_repairs_done(&repairs));
    assert_false(ec_repairs_take(&repairs, &layout, &ready, 9, &sending));
}

static void test_neighbours_go_together(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(ec_mds_parse("k=4,m=2,spread=1", params), 0);
    struct ec_layout layout = ec_layout_of(params, 16);
    struct ec_repairs repairs;
    struct ec_sending sending;
    static const struct ec_run runs[] = {{2, 0, 4}, {2, 6, 2}};
    struct ec_request request = request_of(1, runs, 2);
    ec_repairs_init(&repairs);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &request, 0), EC_HEARD_WHOLE);
    assert_true(ec_repairs_take(&repairs, &layout, &all_ready, 3, &sending));
    assert_true(sending.first == 8 && sending.count == 3);
    assert_true(ec_repairs_take(&repairs, &layout, &all_ready, 3, &sending));
    assert_true(sending.first == 11 && sending.count == 1);
    assert_true(ec_repairs_take(&repairs, &layout, &all_ready, 3, &sending));
    assert_true(sending.first == 16 + 2 * 4 + 2 && sending.count == 2);
    assert_true(ec_repairs_done(&repairs));
}

static void test_only_the_next_round_is_taken(void **state)
{
    (void)state;
    struct ec_layout layout = four_by_four();
    struct ec_repairs repairs;
    static const struct ec_run runs[] = {{0, 0, 1}};
    struct ec_request first = request_of(1, runs, 1);
    struct ec_request second = request_of(2, runs, 1);
    struct ec_request third = request_of(3, runs, 1);
    ec_repairs_init(&repairs);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &second, 0), EC_HEARD_BAD);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &first, 0), EC_HEARD_WHOLE);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &first, 0), EC_HEARD_AGAIN);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &second, 0), EC_HEARD_BAD); /* too early */
    assert_takes(&repairs, &layout, &all_ready, 0);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &first, 0), EC_HEARD_AGAIN);
    assert_true(ec_repairs_done(&repairs)); /* nothing is sent twice for it */
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &third, 0), EC_HEARD_BAD);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &second, 0), EC_HEARD_WHOLE);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &first, 0), EC_HEARD_OLD);
}

static void test_what_does_not_fit_the_layout_is_refused(void **state)
{
    (void)state;
    static const struct {
        struct ec_run run;
        enum ec_heard expected;
    } cases[] = {
        {{4, 0, 1}, EC_HEARD_BAD}, /* no such group */
        {{UINT32_MAX, 0, 1}, EC_HEARD_BAD}, {{3, 0, 4}, EC_HEARD_WHOLE},
        {{3, 0, 5}, EC_HEARD_BAD}, /* data and parity in one */
        {{3, 4, 1}, EC_HEARD_BAD}, /* a row that was sent */
        {{3, 5, 2}, EC_HEARD_BAD},          {{3, 6, 2}, EC_HEARD_WHOLE},
        {{3, 6, 3}, EC_HEARD_BAD}, /* past the rows */
        {{3, 254, 1}, EC_HEARD_BAD},
    };
    struct ec_layout layout = four_by_four();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct ec_repairs repairs;
        struct ec_request request = request_of(1, &cases[i].run, 1);
        ec_repairs_init(&repairs);
        assert_int_equal(ec_repairs_on_request(&repairs, &layout, &request, 0), cases[i].expected);
        assert_int_equal(ec_repairs_done(&repairs), cases[i].expected == EC_HEARD_BAD);
    }
}

static void test_xor_has_no_fresh_rows(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(ec_xor_parse("k=4,m=2", params), 0);
    struct ec_layout layout = ec_layout_of(params, 16);
    static const struct ec_run runs[] = {{0, 6, 1}};
    struct ec_request request = request_of(1, runs, 1);
    struct ec_repairs repairs;
    ec_repairs_init(&repairs);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &request, 0), EC_HEARD_BAD);
}

/* Parts in any order, doubled; and those of another request do not mix in. */
static void test_parts(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(ec_mds_parse("k=4,m=2", params), 0);
    struct ec_layout layout = ec_layout_of(params, 4 * 400);
    static struct ec_request full, last;
    full = (struct ec_request){.round = 1, .part = 0, .parts = 2, .count = EC_RUNS_MAX};
    for (uint32_t i = 0; i < EC_RUNS_MAX; i++)
        full.runs[i] = (struct ec_run){i, 0, 1};
    last = (struct ec_request){.round = 1, .part = 1, .parts = 2, .count = 1, .runs = {{300, 2, 1}}};
    struct ec_request alone = request_of(1, last.runs, 1);
    static struct ec_repairs repairs;
    ec_repairs_init(&repairs);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &last, 0), EC_HEARD_PART);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &last, 0), EC_HEARD_PART);
    assert_true(ec_repairs_done(&repairs));
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &full, 0), EC_HEARD_WHOLE);
    assert_int_equal(repairs.chunks_left, EC_RUNS_MAX + 1);

    ec_repairs_init(&repairs);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &full, 0), EC_HEARD_PART);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &alone, 0), EC_HEARD_WHOLE);
    assert_int_equal(repairs.chunks_left, 1);

    static struct ec_request middle;
    middle = full;
    middle.part = 1;
    middle.parts = 3;
    for (uint32_t i = 0; i < EC_RUNS_MAX; i++)
        middle.runs[i].group += 150;
    struct ec_request third = last;
    third.part = 2;
    third.parts = 3;
    ec_repairs_init(&repairs);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &full, 0), EC_HEARD_PART);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &middle, 0), EC_HEARD_PART);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &third, 0), EC_HEARD_PART);
    full.parts = 3;
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &full, 0), EC_HEARD_WHOLE);
    assert_int_equal(repairs.chunks_left, 2 * EC_RUNS_MAX + 1);
    full.parts = 2;

    last.runs[0].group = 5; /* before the end of the first part */
    ec_repairs_init(&repairs);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &full, 0), EC_HEARD_PART);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &last, 0), EC_HEARD_BAD);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &alone, 0), EC_HEARD_WHOLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_goes_before_parity),
        cmocka_unit_test(test_neighbours_go_together),
        cmocka_unit_test(test_only_the_next_round_is_taken),
        cmocka_unit_test(test_what_does_not_fit_the_layout_is_refused),
        cmocka_unit_test(test_xor_has_no_fresh_rows),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
