/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/needs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define CHUNKS 400u
#define ROOM   1000u

/* What a receiver has, as a test sets it up. */
struct has {
    uint8_t params[LH_SCHEME_PARAMS];
    struct ec_layout layout;
    struct ec_needs needs;
    uint8_t asked[CHUNKS];
    uint8_t chunks[CHUNKS];
    uint8_t extra[4 * CHUNKS];
    struct ec_bitmaps bitmaps;
    struct ec_run runs[ROOM];
    uint32_t failed;
};

static void start(struct has *has, bool mds, const char *text, uint32_t chunks)
{
    memset(has, 0, sizeof(*has));
    assert_int_equal(mds ? ec_mds_parse(text, has->params) : ec_xor_parse(text, has->params), 0);
    has->layout = ec_layout_of(has->params, chunks);
    assert_true(chunks <= CHUNKS && ec_layout_extra(&has->layout) <= sizeof(has->extra));
    memset(has->asked, 0xA5, sizeof(has->asked));
    ec_needs_init(&has->needs, chunks, has->asked);
    has->bitmaps = (struct ec_bitmaps){has->chunks, has->extra};
    memset(has->chunks, 1, chunks);
    for (uint32_t group = 0; group < has->layout.groups; group++) {
        struct ec_group of = ec_layout_group(&has->layout, group);
        for (uint32_t r = 0; r < of.rows; r++)
            has->extra[of.first_place + r * of.stride] = 1;
    }
}

static void set(struct has *has, uint32_t group, uint32_t place, uint8_t there)
{
    struct ec_group of = ec_layout_group(&has->layout, group);
    if (place < of.size)
        has->chunks[of.first_chunk + place * of.stride] = there;
    else
        has->extra[of.first_place + (place - of.size) * of.stride] = there;
}

/* The first `count` places from `place` on are missing. */
static void lose(struct has *has, uint32_t group, uint32_t place, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        set(has, group, place + i, 0);
}

static bool met(struct has *has)
{
    return ec_needs_met(&has->needs, &has->layout, &has->bitmaps);
}

/* At the smallest loss: where one is lacking the margin is 1, where two or three are it is 2. */
static uint32_t ask(struct has *has, uint32_t room)
{
    struct ec_path_seen seen = {1000, 1000};
    return ec_needs_ask(&has->needs, &has->layout, &has->bitmaps, &seen, has->runs, room, &has->failed);
}

static void assert_run(const struct has *has, uint32_t index, uint32_t group, uint32_t first,
                       uint32_t count)
{
    assert_int_equal(has->runs[index].group, group);
    assert_int_equal(has->runs[index].first, first);
    assert_int_equal(has->runs[index].count, count);
}

static void test_any_k_of_mds_are_enough(void **state)
{
    (void)state;
    struct has has;
    start(&has, true, "k=8,m=3", 64);
    assert_true(met(&has));
    for (uint32_t data = 0; data <= 4; data++) {
        start(&has, true, "k=8,m=3", 64);
        lose(&has, 5, 2, data);
        lose(&has, 5, 8, 3 - (data < 3 ? data : 3));
        assert_int_equal(met(&has), data <= 3);
        assert_int_equal(has.needs.first_unmet, data <= 3 ? 8 : 5);
        if (data == 4) { /* a row that was asked for counts as well */
            set(&has, 5, 8 + 3, 1);
            assert_true(met(&has));
        }
    }
    start(&has, true, "k=8,m=3", 64);
    has.bitmaps.extra = NULL;
    assert_true(met(&has));
    start(&has, true, "k=8,m=3", 64);
    has.bitmaps.extra = NULL;
    lose(&has, 0, 0, 1);
    assert_false(met(&has));
}

static void test_one_of_each_class_of_xor(void **state)
{
    (void)state;
    struct has has;
    start(&has, false, "k=8,m=4", 64);
    lose(&has, 3, 0, 4);
    assert_true(met(&has));
    start(&has, false, "k=8,m=4", 64);
    set(&has, 3, 1, 0);
    set(&has, 3, 5, 0); /* the same class */
    assert_false(met(&has));
    start(&has, false, "k=8,m=4", 64);
    set(&has, 3, 1, 0);
    set(&has, 3, 8 + 1, 0); /* and its parity */
    assert_false(met(&has));
    set(&has, 3, 8 + 1, 1);
    set(&has, 3, 8 + 2, 0); /* that of another */
    assert_true(met(&has));
    assert_int_equal(has.needs.first_unmet, has.layout.groups);
}

static void test_nothing_and_one_chunk(void **state)
{
    (void)state;
    struct has has;
    start(&has, true, "", 0);
    assert_true(met(&has));
    for (int mds = 0; mds < 2; mds++) {
        start(&has, mds, "", 1);
        assert_true(met(&has));
        start(&has, mds, "", 1);
        lose(&has, 0, 0, 1);
        assert_false(met(&has));
        assert_int_equal(ask(&has, ROOM), 1);
        assert_run(&has, 0, 0, 0, 1);
        set(&has, 0, 0, 1);
        assert_true(met(&has));
    }
}

static void test_mds_asks_for_fresh_rows_then_data(void **state)
{
    (void)state;
    struct has has;
    start(&has, true, "k=8,m=3", 64); /* fresh rows: 3, places 11 to 13 */
    lose(&has, 1, 0, 4);
    lose(&has, 6, 1, 6);
    assert_false(met(&has));
    assert_int_equal(ask(&has, ROOM), 3);
    assert_int_equal(has.failed, 2);
    assert_run(&has, 0, 1, 11, 2); /* lacks 1, and a margin of 1 */
    assert_run(&has, 1, 6, 1, 2);  /* lacks 3, and a margin of 2: 3 rows, and the first data */
    assert_run(&has, 2, 6, 11, 3);
    /* Nothing of it comes. Rows are not asked for again; of the first group one is left. */
    assert_int_equal(ask(&has, ROOM), 3);
    assert_int_equal(has.failed, 2);
    assert_run(&has, 0, 1, 0, 1);
    assert_run(&has, 1, 1, 13, 1);
    assert_run(&has, 2, 6, 1, 5);
    assert_int_equal(ask(&has, ROOM), 2);
    assert_run(&has, 0, 1, 0, 2);
    assert_run(&has, 1, 6, 1, 5);
    /* Some comes: what is there is not asked for. */
    set(&has, 1, 13, 1);
    set(&has, 6, 3, 1);
    assert_int_equal(ask(&has, ROOM), 2);
    assert_run(&has, 0, 6, 1, 2);
    assert_run(&has, 1, 6, 4, 2);
    assert_int_equal(has.failed, 2);
    /* Not more data than is missing, however much is lost. */
    struct ec_path_seen bad = {1000, 500};
    assert_int_equal(ec_needs_ask(&has.needs, &has.layout, &has.bitmaps, &bad, has.runs, ROOM, &has.failed),
                     2);
    assert_run(&has, 0, 6, 1, 2);
    assert_run(&has, 1, 6, 4, 3);
}

static void test_xor_asks_for_the_data_of_failed_classes(void **state)
{
    (void)state;
    struct has has;
    start(&has, false, "k=8,m=4", 64);
    set(&has, 2, 0, 0); /* alone in its class */
    set(&has, 2, 1, 0);
    set(&has, 2, 5, 0);
    set(&has, 2, 3, 0);
    set(&has, 2, 8 + 3, 0);
    assert_int_equal(ask(&has, ROOM), 3);
    assert_run(&has, 0, 2, 1, 1);
    assert_run(&has, 1, 2, 3, 1);
    assert_run(&has, 2, 2, 5, 1);
    assert_int_equal(has.failed, 1);
}

static void test_selective_repeat_asks_for_all_then_for_the_rest(void **state)
{
    (void)state;
    struct has has;
    for (int mds = 0; mds < 2; mds++) {
        start(&has, mds, "k=8,m=2,fallback=sr", 64);
        lose(&has, 4, 0, 3);
        assert_false(met(&has));
        assert_int_equal(ask(&has, ROOM), 1);
        assert_run(&has, 0, 4, 0, 8);
        set(&has, 4, 0, 1); /* enough to decode, but it fell back */
        assert_false(met(&has));
        assert_int_equal(ask(&has, ROOM), 1);
        assert_run(&has, 0, 4, 1, 2);
        set(&has, 4, 1, 1);
        set(&has, 4, 2, 1);
        assert_true(met(&has));
        assert_int_equal(has.failed, 1);
    }
}

/* A group that does not fit waits whole, and counts as failed only when it is asked for. */
static void test_a_full_request(void **state)
{
    (void)state;
    struct has has;
    start(&has, false, "k=3,m=1", 300);
    for (uint32_t group = 0; group < 100; group++) { /* two runs each */
        set(&has, group, 0, 0);
        set(&has, group, 2, 0);
    }
    assert_int_equal(ask(&has, 129), 128);
    assert_int_equal(has.failed, 64);
    assert_run(&has, 127, 63, 2, 1);
    memset(has.chunks, 1, 64); /* these have come, of groups 0 to 63 */
    for (uint32_t group = 0; group < 64; group++)
        set(&has, group, 2, 1);
    assert_false(met(&has));
    assert_int_equal(has.needs.first_unmet, 64);
    assert_int_equal(ask(&has, 129), 72);
    assert_int_equal(has.failed, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_k_of_mds_are_enough),
        cmocka_unit_test(test_one_of_each_class_of_xor),
        cmocka_unit_test(test_nothing_and_one_chunk),
        cmocka_unit_test(test_mds_asks_for_fresh_rows_then_data),
        cmocka_unit_test(test_xor_asks_for_the_data_of_failed_classes),
        cmocka_unit_test(test_selective_repeat_asks_for_all_then_for_the_rest),
        cmocka_unit_test(test_a_full_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
