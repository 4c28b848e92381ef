/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/sent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define BLOCK 65536u

/* Memory of a block is used again, at most two are kept; less is not. */
static void test_memory(void **state)
{
    struct sent_store store = {.block_bytes = BLOCK, .most = 2};
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
    struct sent_store store = {.block_bytes = BLOCK, .most = 2};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
