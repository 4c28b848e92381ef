/*
 * test_group_messages.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/scheme.h>

#include "group/group_messages.h"

/* ---- test bounded lane ----------------------------------------------------------------------------- */

#define TIMEOUT_NS (10 * LH_NS_PER_S)

/* A scheme of this build, as a user's own. */
static struct lh_scheme own_like(const char *name)
{
    const struct lh_scheme *const *at = lh_schemes();
    while (*at && strcmp((*at)->name, name) != 0)
        at++;
    assert_non_null(*at);
    struct lh_scheme own = **at;
    own.id = LH_SCHEME_ID_USER;
    own.name = "own";
    return own;
}

static void check(const struct lh_scheme *own, const char *reliability, lh_time deadline_ns,
                  const char *expected)
{
    struct lh_attr attr;
    struct bounded_lane lane;
    lh_attr_init(&attr);
    attr.scheme = own;
    attr.reliability = reliability;
    assert_int_equal(bounded_lane_of(&attr, TIMEOUT_NS, &lane), 0);
    assert_int_equal(lane.exists, expected != NULL);
    if (!expected)
        return;
    assert_string_equal(lane.reliability, expected);
    assert_int_equal(lane.deadline_ns, deadline_ns);
}

static void test_lanes(void **state)
{
    (void)state;
    const struct lh_scheme own = own_like("sr-nack");
    check(NULL, NULL, 0, NULL);
    check(NULL, "auto", 0, NULL);
    check(NULL, "sr-nack", 0, NULL);
    check(NULL, "bounded", LH_DEADLINE_AUTO, "bounded:deadline=none");
    check(NULL, "bounded:deadline=none", LH_DEADLINE_NONE, "bounded:deadline=none");
    check(NULL, "bounded:code=mds,deadline=20ms,k=32,m=2", 20 * LH_NS_PER_MS,
          "bounded:deadline=none,code=mds,k=32,m=2");
    check(&own, NULL, 0, NULL);
    check(&own, "bounded:deadline=20ms", 20 * LH_NS_PER_MS, "bounded:deadline=none");
}

/* What delivers parts of messages must not be taken for one that delivers all. */
static void test_refused(void **state)
{
    (void)state;
    const struct lh_scheme own = own_like("bounded");
    struct lh_attr attr;
    struct bounded_lane lane;
    lh_attr_init(&attr);
    attr.scheme = &own;
    assert_int_equal(bounded_lane_of(&attr, TIMEOUT_NS, &lane), -LH_EINVAL);
    attr.reliability = "own:deadline=20ms";
    assert_int_equal(bounded_lane_of(&attr, TIMEOUT_NS, &lane), -LH_EINVAL);
    attr.scheme = NULL;
    assert_int_equal(bounded_lane_of(&attr, TIMEOUT_NS, &lane), -LH_EINVAL);
    attr.reliability = "bounded:deadline=10s";
    assert_int_equal(bounded_lane_of(&attr, TIMEOUT_NS, &lane), -LH_EINVAL);
}

static int run_bounded_lane(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lanes), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test sent ------------------------------------------------------------------------------------- */

#define BLOCK 65536u

/* Memory of a block is used again, at most two are kept; less is not. */
static void test_memory(void **state)
{
    struct sent_store store = {.block_bytes = BLOCK, .maximum = 2};
    struct sent *taken[3];
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        taken[i] = sent_take(&store, i == 0 ? BLOCK : BLOCK / 2);
        assert_non_null(taken[i]);
        assert_int_equal(taken[i]->capacity, BLOCK);
        memset(taken[i]->data, (int)i, BLOCK);
        taken[i]->copied_bytes = BLOCK;
    }
    for (uint32_t i = 0; i < 3; i++)
        sent_give(&store, taken[i]);
    assert_int_equal(store.count, 2);
    struct sent *again = sent_take(&store, BLOCK);
    assert_ptr_equal(again, taken[1]); /* the last that was kept */
    assert_int_equal(again->copied_bytes, 0);
    assert_null(again->next);
    sent_give(&store, again);
    struct sent *little = sent_take(&store, 100);
    assert_int_equal(little->capacity, 100);
    sent_give(&store, little);
    assert_int_equal(store.count, 2);
    sent_store_end(&store);
    assert_int_equal(store.count, 0);
}

static void test_lists(void **state)
{
    struct sent_store store = {.block_bytes = BLOCK, .maximum = 2};
    struct sent_list list = {0};
    struct sent *all[3];
    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        sent_add(&list, all[i] = sent_take(&store, 0));
    assert_int_equal(list.count, 3);
    sent_remove(all[1]);
    assert_null(all[1]->owner);
    assert_ptr_equal(list.first, all[2]);
    assert_ptr_equal(all[2]->next, all[0]);
    sent_remove(all[2]);
    assert_ptr_equal(list.first, all[0]);
    sent_remove(all[0]);
    assert_int_equal(list.count, 0);
    assert_null(list.first);
    for (uint32_t i = 0; i < 3; i++)
        sent_give(&store, all[i]);
}

static int run_sent(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test loss ------------------------------------------------------------------------------------- */

static void test_loss(void **state)
{
    struct {
        uint64_t count;
        struct lh_range ranges[2];
    } two = {2, {{10, 5}, {30, 1}}};
    const struct loss *loss = (const struct loss *)(const void *)&two;
    uint64_t from = 0;
    (void)state;
    assert_false(loss_hits(loss, &from, 0, 10));
    assert_true(loss_hits(loss, &from, 0, 11));
    assert_true(loss_hits(loss, &from, 12, 1));
    assert_true(loss_hits(loss, &from, 14, 1));
    assert_int_equal(from, 0);
    assert_false(loss_hits(loss, &from, 15, 15));
    assert_int_equal(from, 1);
    assert_true(loss_hits(loss, &from, 30, 1));
    assert_false(loss_hits(loss, &from, 31, 100));
    assert_int_equal(from, 2);
    from = 0;
    assert_false(loss_hits(NULL, &from, 0, 100));
    assert_true(loss_hits(loss_of_all(), &from, UINT64_MAX - 10, 1));
    loss_free(loss_of_all()); /* is not freed */
    loss_free(NULL);
    assert_true(loss_hits(loss_of_all(), &from, 0, 1));
}

/* No kind is none of those that there are. */
static void test_tags(void **state)
{
    const struct tag tag = {.group = 16383, .kind = TAG_TIMEOUT, .operation = 262143, .piece = 268435455};
    struct tag out;
    (void)state;
    assert_true(tag_decode(tag_encode(&tag), &out));
    assert_memory_equal(&out, &tag, sizeof tag);
    assert_false(tag_decode(0, &out));
    const struct tag none = {.kind = TAG_KINDS};
    assert_false(tag_decode(tag_encode(&none), &out));
    assert_int_equal(tag_operation_ahead(5, 3), 2);
    assert_int_equal(tag_operation_ahead(3, 5), -2);
    assert_int_equal(tag_operation_ahead(1, 262143), 2); /* around the end */
}

static int run_loss(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_loss), cmocka_unit_test(test_tags)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_bounded_lane() + run_sent() + run_loss();
}
