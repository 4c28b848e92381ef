/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/pure/tx_ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/prng.h"

#define WRITES 16u

static struct tx_batch batches[WRITES];

static struct tx_ring empty_ring(void)
{
    return (struct tx_ring){.batches = batches, .writes_max = WRITES};
}

static void test_released_in_order(void **state)
{
    (void)state;
    struct tx_ring ring = empty_ring();
    tx_ring_push(&ring, 3); /* 0 */
    tx_ring_push(&ring, 1); /* 1 */
    tx_ring_push(&ring, 5); /* 2 */
    assert_int_equal(tx_ring_room(&ring), WRITES - 9);
    assert_true(tx_ring_complete(&ring, 1));
    assert_int_equal(ring.released, 0);
    assert_true(tx_ring_complete(&ring, 0));
    assert_int_equal(ring.released, 4);
    assert_true(tx_ring_complete(&ring, 2));
    assert_int_equal(ring.released, 9);
    assert_int_equal(ring.taken, 9);
    assert_int_equal(tx_ring_room(&ring), WRITES);
}

static void test_foreign_numbers(void **state)
{
    (void)state;
    struct tx_ring ring = empty_ring();
    assert_false(tx_ring_complete(&ring, 0));
    tx_ring_push(&ring, 1);
    tx_ring_push(&ring, 1);
    assert_false(tx_ring_complete(&ring, 2));
    assert_false(tx_ring_complete(&ring, UINT64_MAX));
    assert_true(tx_ring_complete(&ring, 1));
    assert_false(tx_ring_complete(&ring, 1)); /* twice */
    assert_true(tx_ring_complete(&ring, 0));
    assert_false(tx_ring_complete(&ring, 0)); /* over */
    assert_int_equal(ring.released, 2);
}

static void test_full(void **state)
{
    (void)state;
    struct tx_ring ring = empty_ring();
    for (uint32_t i = 0; i < WRITES; i++)
        tx_ring_push(&ring, 1);
    assert_int_equal(tx_ring_room(&ring), 0);
    assert_true(tx_ring_complete(&ring, WRITES - 1)); /* does not help: the oldest is in the way */
    assert_int_equal(tx_ring_room(&ring), 0);
    assert_true(tx_ring_complete(&ring, 0));
    assert_int_equal(tx_ring_room(&ring), 1);
}

/* Against a plain list: batches of any size, completed in any order, many times round. */
static void test_against_list(void **state)
{
    (void)state;
    struct tx_ring ring = empty_ring();
    struct lh_prng prng;
    lh_prng_seed(&prng, 4711);
    static uint32_t size[20000];
    static bool done[20000];
    uint64_t pushed = 0;
    uint64_t first = 0;
    uint64_t released = 0;
    while (pushed < 20000) {
        uint32_t room = tx_ring_room(&ring);
        if (room > 0 && lh_prng_next(&prng) % 2 == 0) {
            size[pushed] = 1 + (uint32_t)(lh_prng_next(&prng) % room);
            tx_ring_push(&ring, size[pushed++]);
        } else if (first < pushed) {
            uint64_t number = first + lh_prng_next(&prng) % (pushed - first);
            assert_int_equal(tx_ring_complete(&ring, number), !done[number]);
            done[number] = true;
            while (first < pushed && done[first])
                released += size[first++];
        }
        assert_int_equal(ring.released, released);
        assert_int_equal(ring.oldest, first);
        assert_int_equal(ring.next, pushed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_released_in_order),
        cmocka_unit_test(test_foreign_numbers),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_against_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
