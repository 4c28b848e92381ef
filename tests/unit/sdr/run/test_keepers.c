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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_for_each_peer),
        cmocka_unit_test(test_who_is_the_same_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
