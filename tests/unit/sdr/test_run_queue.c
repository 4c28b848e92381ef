/*
 * test_run_queue.c - which channel is served next, and how far it may go.
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
#include "sdr/run_queue.h"

/* ---- test channel order ---------------------------------------------------------------------------- */

static void check_next(struct channel_order *order, uint32_t expected)
{
    uint32_t channel;
    assert_true(channel_order_next(order, &channel));
    assert_int_equal(channel, expected);
}

static void check_end(struct channel_order *order)
{
    uint32_t channel;
    assert_false(channel_order_next(order, &channel));
}

static void test_without_fronts_by_index(void **state)
{
    (void)state;
    struct channel_order order;
    uint64_t bound;
    channel_order_init(&order, UINT32_C(1) << 31 | 1 << 4 | 1);
    check_next(&order, 0);
    assert_false(channel_order_bound(&order, 0, &bound));
    check_next(&order, 4);
    check_next(&order, 31);
    check_end(&order);
}

/* Also where the count of posts wraps, and with channels that have nothing. */
static void test_earliest_first(void **state)
{
    (void)state;
    struct channel_order order;
    channel_order_init(&order, 0xF);
    channel_order_set(&order, 1, true, 64);
    channel_order_set(&order, 2, true, UINT64_MAX - 63);
    channel_order_set(&order, 3, true, 0);
    check_next(&order, 2);
    check_next(&order, 3);
    check_next(&order, 1);
    check_next(&order, 0);
    check_end(&order);
}

/* A channel that was served is heeded as long as it has something left, unless it is blocked. */
static void test_bound(void **state)
{
    (void)state;
    struct channel_order order;
    uint64_t bound;
    channel_order_init(&order, 0x7);
    channel_order_set(&order, 0, true, 61);
    channel_order_set(&order, 1, true, 64);
    channel_order_set(&order, 2, true, 128);
    check_next(&order, 0);
    assert_true(channel_order_bound(&order, 0, &bound));
    assert_int_equal(bound, 64);
    channel_order_set(&order, 0, true, 192);
    check_next(&order, 1);
    assert_true(channel_order_bound(&order, 1, &bound));
    assert_int_equal(bound, 128);
    channel_order_set(&order, 1, false, 0);
    check_next(&order, 2);
    assert_true(channel_order_bound(&order, 2, &bound));
    assert_int_equal(bound, 192);
    channel_order_set(&order, 0, false, 0);
    assert_false(channel_order_bound(&order, 2, &bound));
    check_end(&order);
}

static int run_channel_order(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_fronts_by_index),
        cmocka_unit_test(test_earliest_first),
        cmocka_unit_test(test_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test run queue -------------------------------------------------------------------------------- */

/* Marks, due times and the end of entries against a table of what is to be served. */

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

static int run_run_queue(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test turns ------------------------------------------------------------------------------------ */

/* Who is served next: equal shares by cost, the idle before the busy, nobody left out. */

#define TURNS_ENTRIES 8u
#define FULL_TURN     (64u * (4096u + TURNS_PACKET))

struct turns_model {
    struct turn_order turns;
    struct due *places[TURNS_ENTRIES];
    struct turn entries[TURNS_ENTRIES];
    uint64_t served[TURNS_ENTRIES]; /* what its turns cost */
};

static struct turns_model *begin(void)
{
    static struct turns_model turns_model;
    memset(&turns_model, 0, sizeof turns_model);
    turns_init(&turns_model.turns, turns_model.places, TURNS_ENTRIES);
    return &turns_model;
}

/* The next turn, which costs so much. Returns whose it was. */
static uint32_t serve(struct turns_model *turns_model, uint64_t cost)
{
    struct turn *turn = turns_next(&turns_model->turns);
    assert_non_null(turn);
    turns_charge(turn, cost);
    uint32_t i = (uint32_t)(turn - turns_model->entries);
    turns_model->served[i] += cost;
    return i;
}

/* Turns of entry i cost up to (i + 1) 10,000: all get the same, but for one turn. */
static void test_equal_shares_of_unequal_turns(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    struct turns_model *turns_model = begin();
    for (uint32_t i = 0; i < TURNS_ENTRIES; i++)
        turns_enter(&turns_model->turns, &turns_model->entries[i]);
    for (uint32_t k = 0; k < 20000; k++) {
        struct turn *first = turns_next(&turns_model->turns);
        uint32_t i = (uint32_t)(first - turns_model->entries);
        uint64_t cost = 1 + lh_prng_below(&prng, (i + 1) * UINT64_C(10000));
        turns_charge(first, cost);
        turns_model->served[i] += cost;
        turns_enter(&turns_model->turns, first);
        for (uint32_t j = 0; j < TURNS_ENTRIES; j++)
            assert_in_range(turns_model->served[i] + 80000, turns_model->served[j],
                            turns_model->served[j] + 160000);
    }
}

/* Entry 0 has a small message after each third turn of the others, which have used up their credit: it is
 * served at once. */
static void test_small_before_bulk(void **state)
{
    (void)state;
    struct turns_model *turns_model = begin();
    for (uint32_t i = 1; i < TURNS_ENTRIES; i++)
        turns_enter(&turns_model->turns, &turns_model->entries[i]);
    for (uint32_t k = 1; k < 1000; k++) {
        uint32_t i = serve(turns_model, FULL_TURN);
        turns_enter(&turns_model->turns, &turns_model->entries[i]);
        if (k < 2 * TURNS_ENTRIES || k % 3 != 0)
            continue;
        turns_enter(&turns_model->turns, &turns_model->entries[0]);
        assert_int_equal(serve(turns_model, 64 + TURNS_PACKET + TURNS_SELF), 0);
    }
}

/* Entry 0 has small messages all the time: the others get as much as it does, and it as much as they. */
static void test_flood_of_small_ones(void **state)
{
    (void)state;
    struct turns_model *turns_model = begin();
    for (uint32_t i = 0; i < TURNS_ENTRIES; i++)
        turns_enter(&turns_model->turns, &turns_model->entries[i]);
    for (uint32_t k = 0; k < 20000; k++) {
        uint64_t cost = turns_model->turns.waiting.places[0] == &turns_model->entries[0].start
                            ? 64 + TURNS_PACKET
                            : FULL_TURN;
        turns_enter(&turns_model->turns, &turns_model->entries[serve(turns_model, cost)]);
    }
    for (uint32_t i = 1; i < TURNS_ENTRIES; i++)
        assert_in_range(turns_model->served[i], turns_model->served[0] - 2 * FULL_TURN,
                        turns_model->served[0] + 2 * FULL_TURN);
}

/* Who was idle for long does not get what it did not use, but for the credit. */
static void test_idle_time_is_not_saved(void **state)
{
    (void)state;
    struct turns_model *turns_model = begin();
    turns_enter(&turns_model->turns, &turns_model->entries[1]);
    for (uint32_t k = 0; k < 1000; k++)
        turns_enter(&turns_model->turns, &turns_model->entries[serve(turns_model, FULL_TURN)]);
    turns_enter(&turns_model->turns, &turns_model->entries[0]);
    uint64_t before = 0;
    while (serve(turns_model, 4096) == 0) {
        before += 4096;
        turns_enter(&turns_model->turns, &turns_model->entries[0]);
        assert_true(before <= TURNS_CREDIT + FULL_TURN);
    }
    assert_true(before >= TURNS_CREDIT);
}

static void test_leave(void **state)
{
    (void)state;
    struct turns_model *turns_model = begin();
    assert_null(turns_next(&turns_model->turns));
    for (uint32_t i = 0; i < 3; i++)
        turns_enter(&turns_model->turns, &turns_model->entries[i]);
    turns_enter(&turns_model->turns, &turns_model->entries[1]); /* it waits already */
    turns_leave(&turns_model->turns, &turns_model->entries[0]);
    turns_leave(&turns_model->turns, &turns_model->entries[0]);
    assert_true(turns_waiting(&turns_model->turns));
    assert_int_equal(serve(turns_model, 1) + serve(turns_model, 1), 3);
    assert_false(turns_waiting(&turns_model->turns));
    assert_null(turns_next(&turns_model->turns));
}

static int run_turns(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_shares_of_unequal_turns),
        cmocka_unit_test(test_small_before_bulk),
        cmocka_unit_test(test_flood_of_small_ones),
        cmocka_unit_test(test_idle_time_is_not_saved),
        cmocka_unit_test(test_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_channel_order() + run_run_queue() + run_turns();
}
