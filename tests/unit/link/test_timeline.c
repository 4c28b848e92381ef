/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"

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

static size_t least(const struct model *model)
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
        size_t best = least(&model);
        assert_int_equal(timeline_next_ns(&timeline), model.entries[best].due_ns);
        assert_ptr_equal(timeline_pop_due(&timeline, LH_TIME_NEVER), model.entries[best].item);
        model.entries[best] = model.entries[--model.count];
        assert_int_equal(timeline_count(&timeline), model.count);
    }
    timeline_clear(&timeline);
}

int main(void)
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
