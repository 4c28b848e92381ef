/*
 * test_keepers.c - of those that lead to one peer exactly one keeps the way open, whoever comes and goes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/run/keepers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"

#define PEERS   600u /* more than there are lists: some share one */
#define MEMBERS 2000u

static struct keepers keepers;
static struct keeper members[MEMBERS];
static uint32_t peer_of[MEMBERS];
static uint32_t members_of[PEERS], keepers_of[PEERS];

static void add(uint32_t i, uint32_t peer)
{
    uint8_t key[KEEPERS_KEY_BYTES] = {4, (uint8_t)peer, (uint8_t)(peer >> 8)};
    keepers_add(&keepers, &members[i], key);
    peer_of[i] = peer;
}

static void check(void)
{
    for (uint32_t p = 0; p < PEERS; p++)
        members_of[p] = keepers_of[p] = 0;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        assert_true(members[i].listed || !members[i].keeps);
        members_of[peer_of[i]] += members[i].listed;
        keepers_of[peer_of[i]] += members[i].keeps;
    }
    for (uint32_t p = 0; p < PEERS; p++)
        assert_int_equal(keepers_of[p], members_of[p] > 0);
}

static void test_one_for_each_peer(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 5);
    keepers_init(&keepers);
    for (uint32_t turn = 0; turn < 40000; turn++) {
        uint32_t i = (uint32_t)(lh_prng_next(&prng) % MEMBERS);
        if (!members[i].listed) {
            add(i, (uint32_t)(lh_prng_next(&prng) % PEERS));
            continue;
        }
        bool kept = members[i].keeps;
        struct keeper *heir = keepers_remove(&keepers, &members[i]);
        if (heir)
            assert_true(kept && heir->keeps && peer_of[heir - members] == peer_of[i]);
        if (turn % 100 == 0)
            check();
    }
    check();
    for (uint32_t i = 0; i < MEMBERS; i++)
        keepers_remove(&keepers, &members[i]);
    check();
    keepers_destroy(&keepers);
}

/* Each byte of the key counts. */
static void test_who_is_the_same_peer(void **state)
{
    (void)state;
    uint8_t key[KEEPERS_KEY_BYTES] = {0};
    keepers_init(&keepers);
    keepers_add(&keepers, &members[0], key);
    keepers_add(&keepers, &members[1], key);
    assert_true(members[0].keeps && !members[1].keeps);
    for (uint32_t i = 0; i < KEEPERS_KEY_BYTES; i++) {
        key[i] ^= 1;
        keepers_add(&keepers, &members[2 + i], key);
        assert_true(members[2 + i].keeps);
        key[i] ^= 1;
    }
    assert_null(keepers_remove(&keepers, &members[2]));
    assert_null(keepers_remove(&keepers, &members[2])); /* again: nothing */
    assert_ptr_equal(keepers_remove(&keepers, &members[0]), &members[1]);
    for (uint32_t i = 1; i < 2 + KEEPERS_KEY_BYTES; i++)
        keepers_remove(&keepers, &members[i]);
    keepers_destroy(&keepers);
}

/* One side of some pairs of QPs; a token of this side is its peer's plus or minus 5000. */
static struct keepers sides[2];
static struct keeper ends[2][4];

static void begin_pairs(uint32_t count)
{
    for (uint32_t side = 0; side < 2; side++) {
        keepers_init(&sides[side]);
        for (uint32_t i = 0; i < count; i++) {
            uint8_t key[KEEPERS_KEY_BYTES] = {0};
            ends[side][i] = (struct keeper){.token = 5000 * side + KEEPERS_TOKENS * i,
                                            .peer_token = 5000 * (1 - side) + KEEPERS_TOKENS * i,
                                            .asked_for = true,
                                            .interval_ns = 1000};
            keepers_add(&sides[side], &ends[side][i], key);
            keeper_wait(&ends[side][i], side == 0, 0);
        }
    }
}

static void end_pairs(uint32_t count)
{
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < count; i++)
            keepers_remove(&sides[side], &ends[side][i]);
        keepers_destroy(&sides[side]);
    }
}

/* Returns how many were asked for; *alone: how many are left alone by that. */
static uint32_t ask(lh_time now, bool answered, uint32_t *alone)
{
    uint32_t tokens[2], found[2], count, asked = 0;
    struct keepers_question question = keepers_ask(&sides[0], &ends[0][0], now);
    while ((count = keepers_fill(&sides[0], &question, tokens, 2)) > 0) {
        asked += count;
        if (!answered)
            continue;
        count = keepers_answer(&sides[1], &ends[1][0], tokens, count, now, found);
        keepers_on_alive(&sides[0], &ends[0][0], found, count, now);
    }
    *alone = 0;
    for (struct keeper *at = question.alone; at; at = at->next_alone)
        ++*alone;
    return asked;
}

static void test_one_asks_for_all(void **state)
{
    (void)state;
    uint32_t alone;
    begin_pairs(4);
    assert_true(keeper_is_alone(&ends[0][0]) && keeper_is_alone(&ends[0][1]));
    assert_int_equal(ask(1000, true, &alone), 3);
    assert_true(keeper_is_alone(&ends[0][0])); /* who asks */
    for (uint32_t i = 1; i < 4; i++) {
        assert_false(keeper_is_alone(&ends[0][i]));
        assert_int_equal(ends[0][i].alive_ns, 1000);
        assert_int_equal(ends[1][i].alive_ns, 1000); /* its peer, which was asked for */
    }
    assert_int_equal(ask(1499, true, &alone), 0); /* that is known */
    keeper_wait(&ends[0][2], false, 0);
    assert_int_equal(ask(2000, true, &alone), 2);
    /* One that has ended: alone after the next question, and asked for nevertheless. */
    keepers_remove(&sides[1], &ends[1][1]);
    assert_int_equal(ask(3000, true, &alone), 2);
    assert_int_equal(alone, 0);
    assert_int_equal(ask(4000, true, &alone), 2);
    assert_int_equal(alone, 1);
    assert_true(keeper_is_alone(&ends[0][1]) && !keeper_is_alone(&ends[0][3]));
    assert_in_range(ends[0][1].ping_from, 4000, 5000);
    assert_int_equal(ends[0][1].alive_ns, 2000);
    end_pairs(4);
}

static void test_who_is_alone(void **state)
{
    (void)state;
    uint32_t alone;
    begin_pairs(4);
    ends[0][1].interval_ns = 999; /* more often than the first asks */
    ends[0][2].asked_for = false; /* of an older peer */
    assert_int_equal(ask(1000, true, &alone), 1);
    assert_true(keeper_is_alone(&ends[0][1]) && keeper_is_alone(&ends[0][2]));
    assert_int_equal(ask(2000, false, &alone), 1);
    assert_false(keeper_is_alone(&ends[0][3]));
    ask(3000, false, &alone);
    assert_true(keeper_is_alone(&ends[0][3]));
    assert_int_equal(ask(4000, true, &alone), 1); /* the peer is back */
    assert_false(keeper_is_alone(&ends[0][3]));
    end_pairs(4);
}

/* Tokens of another peer's QPs, and such as nobody has. */
static void test_others_are_not_answered_for(void **state)
{
    (void)state;
    uint32_t found[2];
    uint8_t key[KEEPERS_KEY_BYTES] = {6};
    begin_pairs(2);
    struct keeper stranger = {.token = 77, .peer_token = 78};
    keepers_add(&sides[1], &stranger, key);
    assert_int_equal(keepers_answer(&sides[1], &ends[1][0], (const uint32_t[]){77, 78}, 2, 1000, found), 0);
    assert_int_equal(stranger.alive_ns, 0);
    keepers_on_alive(&sides[1], &ends[1][0], (const uint32_t[]){77, 78}, 2, 1000);
    assert_int_equal(stranger.alive_ns, 0);
    keepers_remove(&sides[1], &stranger);
    end_pairs(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_for_each_peer),
        cmocka_unit_test(test_who_is_the_same_peer),
        cmocka_unit_test(test_one_asks_for_all),
        cmocka_unit_test(test_who_is_alone),
        cmocka_unit_test(test_others_are_not_answered_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
