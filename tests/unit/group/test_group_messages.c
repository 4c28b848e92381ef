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

int main(void)
{
    return run_bounded_lane() + run_sent();
}
