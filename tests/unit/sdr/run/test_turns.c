/*
 * test_turns.c - who is served next: equal shares by cost, the idle before the busy, nobody left out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/run/turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

#define ENTRIES   8u
#define FULL_TURN (64u * (4096u + TURNS_PACKET))

struct model {
    struct turn_order turns;
    struct due *places[ENTRIES];
    struct turn entries[ENTRIES];
    uint64_t served[ENTRIES]; /* what its turns cost */
};

static struct model *begin(void)
{
    static struct model model;
    memset(&model, 0, sizeof model);
    turns_init(&model.turns, model.places, ENTRIES);
    return &model;
}

/* The next turn, which costs so much. Returns whose it was. */
static uint32_t serve(struct model *model, uint64_t cost)
{
    struct turn *turn = turns_next(&model->turns);
    assert_non_null(turn);
    turns_charge(turn, cost);
    uint32_t i = (uint32_t)(turn - model->entries);
    model->served[i] += cost;
    return i;
}

/* Turns of entry i cost up to (i + 1) 10,000: all get the same, but for one turn. */
static void test_equal_shares_of_unequal_turns(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    struct model *model = begin();
    for (uint32_t i = 0; i < ENTRIES; i++)
        turns_enter(&model->turns, &model->entries[i]);
    for (uint32_t k = 0; k < 20000; k++) {
        struct turn *first = turns_next(&model->turns);
        uint32_t i = (uint32_t)(first - model->entries);
        uint64_t cost = 1 + lh_prng_below(&prng, (i + 1) * UINT64_C(10000));
        turns_charge(first, cost);
        model->served[i] += cost;
        turns_enter(&model->turns, first);
        for (uint32_t j = 0; j < ENTRIES; j++)
            assert_in_range(model->served[i] + 80000, model->served[j], model->served[j] + 160000);
    }
}

/* Entry 0 has a small message after each third turn of the others, which have used up their credit: it is
 * served at once. */
static void test_small_before_bulk(void **state)
{
    (void)state;
    struct model *model = begin();
    for (uint32_t i = 1; i < ENTRIES; i++)
        turns_enter(&model->turns, &model->entries[i]);
    for (uint32_t k = 1; k < 1000; k++) {
        uint32_t i = serve(model, FULL_TURN);
        turns_enter(&model->turns, &model->entries[i]);
        if (k < 2 * ENTRIES || k % 3 != 0)
            continue;
        turns_enter(&model->turns, &model->entries[0]);
        assert_int_equal(serve(model, 64 + TURNS_PACKET + TURNS_SELF), 0);
    }
}

/* Entry 0 has small messages all the time: the others get as much as it does, and it as much as they. */
static void test_flood_of_small_ones(void **state)
{
    (void)state;
    struct model *model = begin();
    for (uint32_t i = 0; i < ENTRIES; i++)
        turns_enter(&model->turns, &model->entries[i]);
    for (uint32_t k = 0; k < 20000; k++) {
        uint64_t cost =
            model->turns.waiting.places[0] == &model->entries[0].start ? 64 + TURNS_PACKET : FULL_TURN;
        turns_enter(&model->turns, &model->entries[serve(model, cost)]);
    }
    for (uint32_t i = 1; i < ENTRIES; i++)
        assert_in_range(model->served[i], model->served[0] - 2 * FULL_TURN,
                        model->served[0] + 2 * FULL_TURN);
}

/* Who was idle for long does not get what it did not use, but for the credit. */
static void test_idle_time_is_not_saved(void **state)
{
    (void)state;
    struct model *model = begin();
    turns_enter(&model->turns, &model->entries[1]);
    for (uint32_t k = 0; k < 1000; k++)
        turns_enter(&model->turns, &model->entries[serve(model, FULL_TURN)]);
    turns_enter(&model->turns, &model->entries[0]);
    uint64_t before = 0;
    while (serve(model, 4096) == 0) {
        before += 4096;
        turns_enter(&model->turns, &model->entries[0]);
        assert_true(before <= TURNS_CREDIT + FULL_TURN);
    }
    assert_true(before >= TURNS_CREDIT);
}

static void test_leave(void **state)
{
    (void)state;
    struct model *model = begin();
    assert_null(turns_next(&model->turns));
    for (uint32_t i = 0; i < 3; i++)
        turns_enter(&model->turns, &model->entries[i]);
    turns_enter(&model->turns, &model->entries[1]); /* it waits already */
    turns_leave(&model->turns, &model->entries[0]);
    turns_leave(&model->turns, &model->entries[0]);
    assert_true(turns_waiting(&model->turns));
    assert_int_equal(serve(model, 1) + serve(model, 1), 3);
    assert_false(turns_waiting(&model->turns));
    assert_null(turns_next(&model->turns));
}

int main(void)
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
