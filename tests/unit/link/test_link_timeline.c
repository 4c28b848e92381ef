/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/ring_store.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <string.h>

#include "base/prng.h"

static void it_takes_no_more_than_it_holds(void **state)
{
    (void)state;
    struct ring_store store;
    assert_true(ring_store_init(&store, 256));
    void *first = ring_store_take(&store, 112); /* 128 with its header */
    void *second = ring_store_take(&store, 97); /* rounded up to as much */
    assert_non_null(first);
    assert_non_null(second);
    assert_false(ring_store_fits(&store, 0));
    assert_null(ring_store_take(&store, 0));
    assert_ptr_equal(ring_store_oldest(&store), first);
    ring_store_give_back(&store, second); /* not the oldest: nothing is free yet */
    assert_false(ring_store_fits(&store, 0));
    ring_store_give_back(&store, first);
    assert_null(ring_store_oldest(&store));
    assert_true(ring_store_fits(&store, 240));
    assert_false(ring_store_fits(&store, 241));
    ring_store_free(&store);
}

static void a_block_lies_in_one_piece(void **state)
{
    (void)state;
    struct ring_store store;
    assert_true(ring_store_init(&store, 256));
    void *first = ring_store_take(&store, 112);
    void *second = ring_store_take(&store, 48);
    ring_store_give_back(&store, first);
    /* 64 bytes are left at the end and 128 at the start: 96 in all fit only at the start. */
    uint8_t *third = ring_store_take(&store, 80);
    assert_ptr_equal(third, first);
    assert_false(ring_store_fits(&store, 17));
    assert_ptr_equal(ring_store_oldest(&store), second);
    ring_store_give_back(&store, second);
    assert_ptr_equal(ring_store_oldest(&store), third);
    ring_store_give_back(&store, third);
    assert_null(ring_store_oldest(&store));
    ring_store_free(&store);
}

static void an_empty_ring_takes_its_largest_block_wherever_it_stood(void **state)
{
    (void)state;
    struct ring_store store;
    assert_true(ring_store_init(&store, 256));
    ring_store_give_back(&store, ring_store_take(&store, 112));
    void *all = ring_store_take(&store, 240);
    assert_non_null(all);
    ring_store_give_back(&store, all);
    ring_store_free(&store);
}

static void a_shared_block_stays_until_its_last_user(void **state)
{
    (void)state;
    struct ring_store store;
    assert_true(ring_store_init(&store, 64));
    void *block = ring_store_take(&store, 48);
    ring_store_share(block);
    ring_store_give_back(&store, block);
    assert_ptr_equal(ring_store_oldest(&store), block);
    ring_store_give_back(&store, block);
    assert_null(ring_store_oldest(&store));
    ring_store_free(&store);
}

/* Random sizes and lives: no block ever overlaps another. */
#define LIVE_MAX 64

static void random_lives_never_overlap(void **state)
{
    (void)state;
    struct ring_store store;
    struct lh_prng prng;
    lh_prng_seed(&prng, 2);
    assert_true(ring_store_init(&store, 8192));
    struct {
        uint8_t *block;
        uint32_t bytes;
        uint8_t mark;
    } live[LIVE_MAX];
    uint32_t count = 0;
    uint32_t refused = 0;
    for (uint32_t step = 0; step < 100000; step++) {
        uint32_t bytes = (uint32_t)lh_prng_below(&prng, 600);
        bool fits = ring_store_fits(&store, bytes);
        uint8_t *block = count < LIVE_MAX ? ring_store_take(&store, bytes) : NULL;
        if (count < LIVE_MAX)
            assert_true(fits == (block != NULL));
        if (block != NULL) {
            live[count].block = block;
            live[count].bytes = bytes;
            live[count].mark = (uint8_t)step;
            memset(block, live[count++].mark, bytes);
        } else {
            refused++;
        }
        if (block == NULL || lh_prng_chance(&prng, 0.4)) {
            uint32_t which = (uint32_t)lh_prng_below(&prng, count);
            for (uint32_t i = 0; i < live[which].bytes; i++)
                assert_int_equal(live[which].block[i], live[which].mark);
            ring_store_give_back(&store, live[which].block);
            live[which] = live[--count];
        }
    }
    assert_true(refused > 1000);
    while (count > 0)
        ring_store_give_back(&store, live[--count].block);
    assert_int_equal(store.used, 0);
    ring_store_free(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_takes_no_more_than_it_holds),
        cmocka_unit_test(a_block_lies_in_one_piece),
        cmocka_unit_test(an_empty_ring_takes_its_largest_block_wherever_it_stood),
        cmocka_unit_test(a_shared_block_stays_until_its_last_user),
        cmocka_unit_test(random_lives_never_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
