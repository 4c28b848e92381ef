/*
 * test_link_timeline.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "link/link_timeline.h"

/* ---- test ring store ------------------------------------------------------------------------------- */

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

static int run_ring_store(void)
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

/* ---- test timeline --------------------------------------------------------------------------------- */

static int items[4];

static void an_empty_one_has_nothing(void **state)
{
    (void)state;
    struct timeline timeline = {0};
    assert_int_equal(timeline_next_ns(&timeline), LH_TIME_NEVER);
    assert_null(timeline_first(&timeline));
    assert_null(timeline_pop_due(&timeline, LH_TIME_NEVER));
    timeline_clear(&timeline);
}

static void nothing_is_taken_before_it_is_due(void **state)
{
    (void)state;
    struct timeline timeline = {0};
    assert_true(timeline_push(&timeline, 100, 0, &items[0]));
    assert_int_equal(timeline_next_ns(&timeline), 100);
    assert_null(timeline_pop_due(&timeline, 99));
    assert_ptr_equal(timeline_pop_due(&timeline, 100), &items[0]);
    assert_int_equal(timeline_count(&timeline), 0);
    timeline_clear(&timeline);
}

static void ties_go_in_the_order_of_creation(void **state)
{
    (void)state;
    struct timeline timeline = {0};
    timeline_push(&timeline, 5, 0, &items[0]);
    timeline_push(&timeline, 9, 1, &items[1]);
    timeline_push(&timeline, 5, 2, &items[2]); /* overtakes 1, not 0 */
    timeline_push(&timeline, 9, 3, &items[3]);
    assert_ptr_equal(timeline_pop_due(&timeline, 9), &items[0]);
    assert_ptr_equal(timeline_pop_due(&timeline, 9), &items[2]);
    assert_ptr_equal(timeline_pop_due(&timeline, 9), &items[1]);
    assert_ptr_equal(timeline_pop_due(&timeline, 9), &items[3]);
    timeline_clear(&timeline);
}

static void in_order_pushes_never_touch_the_heap(void **state)
{
    (void)state;
    struct timeline timeline = {0};
    uint64_t order = 0;
    for (lh_time now = 0; now < 10000; now++) {
        assert_true(timeline_push(&timeline, now + 100, order++, &items[0]));
        while (timeline_pop_due(&timeline, now) != NULL)
            continue;
    }
    assert_int_equal(timeline.heap_capacity, 0);
    assert_true(timeline.ring_capacity <= 256);
    timeline_clear(&timeline);
}

/* Against the plainest of models: every pop gives the least (due, order) that is in. */
#define MODEL_MAX 2000

struct model {
    struct timeline_entry entries[MODEL_MAX];
    size_t count;
};

static size_t minimum(const struct model *model)
{
    size_t best = 0;
    for (size_t i = 1; i < model->count; i++) {
        const struct timeline_entry *a = &model->entries[i];
        const struct timeline_entry *b = &model->entries[best];
        if (a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->order < b->order))
            best = i;
    }
    return best;
}

static void any_order_comes_out_sorted(void **state)
{
    (void)state;
    static struct model model;
    static char tags[100000];
    struct timeline timeline = {0};
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    uint64_t order = 0;
    for (uint32_t step = 0; step < 40000; step++) {
        bool push = model.count == 0 || (model.count < MODEL_MAX && lh_prng_chance(&prng, 0.51));
        if (push) {
            struct timeline_entry entry = {
                .due_ns = order / 4 + lh_prng_below(&prng, 50), .order = order, .item = &tags[order]};
            assert_true(timeline_push(&timeline, entry.due_ns, entry.order, entry.item));
            model.entries[model.count++] = entry;
            order++;
            continue;
        }
        size_t best = minimum(&model);
        assert_int_equal(timeline_next_ns(&timeline), model.entries[best].due_ns);
        assert_ptr_equal(timeline_pop_due(&timeline, LH_TIME_NEVER), model.entries[best].item);
        model.entries[best] = model.entries[--model.count];
        assert_int_equal(timeline_count(&timeline), model.count);
    }
    timeline_clear(&timeline);
}

static int run_timeline(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_has_nothing),
        cmocka_unit_test(nothing_is_taken_before_it_is_due),
        cmocka_unit_test(ties_go_in_the_order_of_creation),
        cmocka_unit_test(in_order_pushes_never_touch_the_heap),
        cmocka_unit_test(any_order_comes_out_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_ring_store() + run_timeline();
}
