/*
 * test_run_queue.c - marks, due times and the end of entries against a table of what is to be served.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/run/run_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

#define ENTRIES 23u

struct model {
    struct run_queue queue;
    struct due *places[ENTRIES];
    struct run_entry entries[ENTRIES];
    bool attached[ENTRIES];
    bool ready[ENTRIES];
    bool marked[ENTRIES]; /* of those that are ready; the others linger */
    lh_time due_ns[ENTRIES];
    lh_time now;
};

static void attach(struct model *model, uint32_t i)
{
    run_queue_attach(&model->queue, &model->entries[i]);
    model->attached[i] = true;
}

static void detach(struct model *model, uint32_t i)
{
    run_queue_detach(&model->queue, &model->entries[i]);
    model->entries[i] = (struct run_entry){0};
    model->attached[i] = false;
    model->ready[i] = false;
    model->marked[i] = false;
    model->due_ns[i] = LH_TIME_NEVER;
}

static void mark(struct model *model, uint32_t i)
{
    run_queue_mark(&model->queue, &model->entries[i]);
    model->ready[i] = true;
    model->marked[i] = true;
}

static void linger(struct model *model, uint32_t i)
{
    run_queue_linger(&model->queue, &model->entries[i]);
    model->ready[i] = true;
}

static void set_due(struct model *model, uint32_t i, lh_time at_ns)
{
    if (!model->attached[i])
        return;
    due_heap_set(&model->queue.due, &model->entries[i].due, at_ns);
    model->due_ns[i] = at_ns;
}

/* Each that is ready or due is taken once, and no other; it is known whether it was marked. */
static void serve_all(struct model *model)
{
    run_queue_mark_due(&model->queue, model->now);
    for (uint32_t i = 0; i < ENTRIES; i++)
        if (model->due_ns[i] <= model->now) {
            model->ready[i] = true;
            model->marked[i] = true;
            model->due_ns[i] = LH_TIME_NEVER;
        }
    struct run_entry *next;
    for (struct run_entry *entry = run_queue_take(&model->queue); entry; entry = next) {
        next = entry->next;
        ptrdiff_t i = entry - model->entries;
        assert_true(model->attached[i] && model->ready[i]);
        assert_int_equal(run_entry_begin(entry), model->marked[i]);
        model->ready[i] = false;
        model->marked[i] = false;
    }
    for (uint32_t i = 0; i < ENTRIES; i++)
        assert_false(model->attached[i] && model->ready[i]);
}

static void step(struct model *model, struct lh_prng *prng)
{
    uint32_t i = (uint32_t)lh_prng_below(prng, ENTRIES);
    switch (lh_prng_below(prng, 14)) {
    case 0:
        if (!model->attached[i])
            attach(model, i);
        break;
    case 1:
        if (model->attached[i])
            detach(model, i);
        break;
    case 2:
        serve_all(model);
        break;
    case 3:
        model->now += lh_prng_below(prng, 10);
        break;
    case 4:
    case 5:
    case 6:
        set_due(model, i, model->now + lh_prng_below(prng, 20));
        break;
    case 7:
    case 8:
        linger(model, i);
        break;
    default:
        mark(model, i);
    }
}

static void test_random_operations(void **state)
{
    (void)state;
    static struct model model;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct lh_prng prng;
        lh_prng_seed(&prng, seed);
        memset(&model, 0, sizeof model);
        run_queue_init(&model.queue, model.places, ENTRIES);
        for (uint32_t i = 0; i < ENTRIES; i++)
            model.due_ns[i] = LH_TIME_NEVER;
        for (uint32_t i = 0; i < 2000; i++)
            step(&model, &prng);
        for (uint32_t i = 0; i < ENTRIES; i++)
            if (model.attached[i])
                detach(&model, i);
        run_queue_destroy(&model.queue);
    }
}

/* In the order in which they became ready; a mark during service counts for the next time. */
static void test_order(void **state)
{
    (void)state;
    static struct model model;
    memset(&model, 0, sizeof model);
    run_queue_init(&model.queue, model.places, ENTRIES);
    for (uint32_t i = 0; i < 3; i++)
        attach(&model, i);
    mark(&model, 2);
    mark(&model, 0);
    mark(&model, 2);
    struct run_entry *first = run_queue_take(&model.queue);
    assert_ptr_equal(first, &model.entries[2]);
    assert_ptr_equal(first->next, &model.entries[0]);
    assert_null(first->next->next);
    run_queue_mark(&model.queue, &model.entries[0]); /* its turn is still to come */
    run_entry_begin(&model.entries[2]);
    run_queue_mark(&model.queue, &model.entries[2]);
    run_entry_begin(&model.entries[0]);
    first = run_queue_take(&model.queue);
    assert_ptr_equal(first, &model.entries[2]);
    assert_null(first->next);
    for (uint32_t i = 0; i < 3; i++)
        detach(&model, i);
    run_queue_destroy(&model.queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
