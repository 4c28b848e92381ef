/*
 * test_due_heap.c - the heap of due times against a table that is searched from end to end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/due_heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

#define THINGS 97u

struct model {
    struct due things[THINGS];
    struct due *places[THINGS];
    lh_time at_ns[THINGS]; /* LH_TIME_NEVER: not in the heap */
    struct due_heap heap;
};

static void model_init(struct model *model)
{
    memset(model, 0, sizeof *model);
    for (uint32_t i = 0; i < THINGS; i++)
        model->at_ns[i] = LH_TIME_NEVER;
    due_heap_init(&model->heap, model->places, THINGS);
}

static void set(struct model *model, uint32_t thing, lh_time at_ns)
{
    model->at_ns[thing] = at_ns;
    due_heap_set(&model->heap, &model->things[thing], at_ns);
}

static lh_time earliest(const struct model *model)
{
    lh_time next = LH_TIME_NEVER;
    for (uint32_t i = 0; i < THINGS; i++)
        next = model->at_ns[i] < next ? model->at_ns[i] : next;
    return next;
}

/* Each knows its place, and nothing stands below what is later. */
static void check(const struct model *model)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < THINGS; i++) {
        bool in = model->at_ns[i] != LH_TIME_NEVER;
        assert_int_equal(model->things[i].place != 0, in);
        if (!in)
            continue;
        count++;
        assert_int_equal(model->things[i].at_ns, model->at_ns[i]);
        assert_ptr_equal(model->places[model->things[i].place - 1], &model->things[i]);
    }
    assert_int_equal(model->heap.count, count);
    for (uint32_t i = 2; i <= count; i++)
        assert_true(model->places[i / 2 - 1]->at_ns <= model->places[i - 1]->at_ns);
    assert_int_equal(due_heap_next(&model->heap), earliest(model));
}

static void pop_all(struct model *model, lh_time now)
{
    lh_time before = 0;
    struct due *due;
    while ((due = due_heap_pop(&model->heap, now)) != NULL) {
        ptrdiff_t thing = due - model->things;
        assert_in_range(due->at_ns, before, now);
        assert_int_equal(due->at_ns, model->at_ns[thing]);
        before = due->at_ns;
        model->at_ns[thing] = LH_TIME_NEVER;
    }
    assert_true(earliest(model) > now);
}

static void test_random_operations(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct lh_prng prng;
        struct model model;
        lh_prng_seed(&prng, seed);
        model_init(&model);
        /* Few times, so that many are due together, or many. */
        uint64_t times = seed % 2 ? 8 : 100000;
        for (uint32_t i = 0; i < 2000; i++) {
            uint32_t thing = (uint32_t)lh_prng_below(&prng, THINGS);
            uint64_t what = lh_prng_below(&prng, 20);
            if (what == 0)
                pop_all(&model, lh_prng_below(&prng, times) / 4);
            else
                set(&model, thing, what < 5 ? LH_TIME_NEVER : lh_prng_below(&prng, times));
            check(&model);
        }
        pop_all(&model, times);
        check(&model);
        assert_int_equal(model.heap.count, 0);
    }
}

static void test_expiry(void **state)
{
    (void)state;
    struct model model;
    model_init(&model);
    assert_null(due_heap_pop(&model.heap, LH_TIME_NEVER));
    assert_int_equal(due_heap_next(&model.heap), LH_TIME_NEVER);
    set(&model, 5, 100);
    assert_null(due_heap_pop(&model.heap, 99));
    assert_ptr_equal(due_heap_pop(&model.heap, 100), &model.things[5]);
    assert_null(due_heap_pop(&model.heap, 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations),
        cmocka_unit_test(test_expiry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
