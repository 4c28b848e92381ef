/*
 * test_ring.c - a ring that doubles keeps each entry by its number, and takes no memory while it is empty.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "store/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/prng.h"

#define MOST     64u
#define NEAR_END (UINT32_MAX - 20) /* numbers wrap */

struct entry {
    uint32_t number;
    uint8_t padding[20];
};

static struct entry *at(const struct ring *ring, uint32_t number)
{
    return ring_at(ring, number);
}

static void test_grows_and_keeps(void **state)
{
    (void)state;
    struct store store;
    struct ring ring;
    store_init(&store, UINT64_MAX);
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct lh_prng prng;
        lh_prng_seed(&prng, seed);
        ring_init(&ring, sizeof(struct entry), MOST);
        uint32_t tail = NEAR_END, head = NEAR_END;
        for (uint32_t turn = 0; turn < 2000; turn++) {
            bool adds = head - tail < MOST && lh_prng_below(&prng, 5) < 3;
            if (adds) {
                assert_true(ring_hold(&ring, &store, tail, head - tail + 1));
                at(&ring, head)->number = head;
                head++;
            } else if (head != tail) {
                assert_int_equal(at(&ring, tail)->number, tail);
                tail++;
            }
            assert_true(ring.size <= MOST && ring.size >= head - tail);
            assert_int_equal(store_bytes(&store), ring.size * sizeof(struct entry));
        }
        assert_int_equal(ring.size, MOST);
        for (; tail != head; tail++)
            assert_int_equal(at(&ring, tail)->number, tail);
        ring_free(&ring, &store);
        assert_int_equal(store_bytes(&store), 0);
        assert_int_equal(ring.size, 0);
    }
}

static void test_new_places_are_zero(void **state)
{
    (void)state;
    struct store store;
    struct ring ring;
    store_init(&store, UINT64_MAX);
    ring_init(&ring, sizeof(struct entry), MOST);
    assert_true(ring_hold(&ring, &store, 6, 4));
    assert_int_equal(ring.size, 4);
    for (uint32_t n = 6; n < 10; n++)
        at(&ring, n)->number = n;
    assert_true(ring_hold(&ring, &store, 6, 9));
    assert_int_equal(ring.size, 16);
    for (uint32_t n = 6; n < 22; n++)
        assert_int_equal(at(&ring, n)->number, n < 10 ? n : 0);
    ring_free(&ring, &store);
}

static void test_without_memory_nothing_changes(void **state)
{
    (void)state;
    struct store store;
    struct ring ring;
    store_init(&store, 8 * sizeof(struct entry) + 4 * sizeof(struct entry));
    ring_init(&ring, sizeof(struct entry), MOST);
    assert_true(ring_hold(&ring, &store, 0, 8));
    at(&ring, 7)->number = 7;
    assert_false(ring_hold(&ring, &store, 0, 9)); /* both rings are there for a moment */
    assert_non_null(strstr(lh_last_error(), "limit of the engine's memory"));
    assert_int_equal(ring.size, 8);
    assert_int_equal(at(&ring, 7)->number, 7);
    assert_int_equal(store_bytes(&store), 8 * sizeof(struct entry));
    ring_free(&ring, &store);
    assert_int_equal(store_bytes(&store), 0);
}

static void test_small_bounds(void **state)
{
    (void)state;
    struct store store;
    struct ring ring;
    store_init(&store, UINT64_MAX);
    for (uint32_t most = 1; most <= 4; most *= 2) {
        ring_init(&ring, sizeof(struct entry), most);
        assert_true(ring_hold(&ring, &store, 3, most));
        assert_int_equal(ring.size, most);
        ring_free(&ring, &store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows_and_keeps),
        cmocka_unit_test(test_new_places_are_zero),
        cmocka_unit_test(test_without_memory_nothing_changes),
        cmocka_unit_test(test_small_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
