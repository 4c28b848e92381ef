/*
 * test_store.c - memory is given back a second after its last use, looked at once a second at most.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/prng.h"
#include "store/store.h"
#include "support/sanitized.h"

/* ---- test idle ------------------------------------------------------------------------------------- */

#define S STORE_IDLE_NS

static void test_after_the_last_use(void **state)
{
    (void)state;
    struct idle idle;
    idle_init(&idle);
    assert_false(idle_is_over(&idle, 5 * S));
    assert_int_equal(idle.at, LH_TIME_NEVER);
    idle_note(&idle);
    assert_false(idle_is_over(&idle, 5 * S));
    assert_int_equal(idle.at, 6 * S);
    idle_note(&idle);
    assert_false(idle_is_over(&idle, 6 * S - 1));
    assert_int_equal(idle.at, 6 * S);
    assert_false(idle_is_over(&idle, 6 * S)); /* there was a use meanwhile */
    assert_int_equal(idle.at, 7 * S);
    assert_false(idle_is_over(&idle, 7 * S - 1));
    assert_true(idle_is_over(&idle, 7 * S));
    assert_int_equal(idle.at, LH_TIME_NEVER);
    assert_false(idle_is_over(&idle, 8 * S));
    idle_note(&idle);
    assert_false(idle_is_over(&idle, 9 * S));
    assert_true(idle_is_over(&idle, 20 * S));
}

static int run_idle(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_after_the_last_use)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test ring ------------------------------------------------------------------------------------- */

/* A ring that doubles keeps each entry by its number, and takes no memory while it is empty. */

#define MAXIMUM  64u
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
        ring_init(&ring, sizeof(struct entry), MAXIMUM);
        uint32_t tail = NEAR_END, head = NEAR_END;
        for (uint32_t turn = 0; turn < 2000; turn++) {
            bool adds = head - tail < MAXIMUM && lh_prng_below(&prng, 5) < 3;
            if (adds) {
                assert_true(ring_hold(&ring, &store, tail, head - tail + 1));
                at(&ring, head)->number = head;
                head++;
            } else if (head != tail) {
                assert_int_equal(at(&ring, tail)->number, tail);
                tail++;
            }
            assert_true(ring.size <= MAXIMUM && ring.size >= head - tail);
            assert_int_equal(store_bytes(&store), ring.size * sizeof(struct entry));
        }
        assert_int_equal(ring.size, MAXIMUM);
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
    ring_init(&ring, sizeof(struct entry), MAXIMUM);
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
    ring_init(&ring, sizeof(struct entry), MAXIMUM);
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
    for (uint32_t maximum = 1; maximum <= 4; maximum *= 2) {
        ring_init(&ring, sizeof(struct entry), maximum);
        assert_true(ring_hold(&ring, &store, 3, maximum));
        assert_int_equal(ring.size, maximum);
        ring_free(&ring, &store);
    }
}

static int run_ring(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows_and_keeps),
        cmocka_unit_test(test_new_places_are_zero),
        cmocka_unit_test(test_without_memory_nothing_changes),
        cmocka_unit_test(test_small_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test store ------------------------------------------------------------------------------------ */

/* Memory that is counted, and refused beyond the limit. */

#define LIMIT   1000u
#define THREADS 4u

static bool is_zero(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static void test_limit(void **state)
{
    (void)state;
    struct store store;
    store_init(&store, LIMIT);
    void *first = store_take(&store, 600);
    assert_non_null(first);
    assert_true(is_zero(first, 600));
    assert_null(store_take(&store, 401));
    assert_string_equal(lh_last_error(),
                        "401 bytes more exceed the limit of the engine's memory, 1000 bytes (raise "
                        "lh_engine_attr.memory_bytes, or close connections)");
    assert_int_equal(store.refusals, 1);
    assert_int_equal(store.maximum, 600);
    assert_null(store_take(&store, SIZE_MAX));
    void *second = store_take_aligned(&store, 400);
    assert_non_null(second);
    assert_int_equal((uintptr_t)second % 64, 0);
    assert_int_equal(store_bytes(&store), LIMIT);
    store_give(&store, first, 600);
    assert_int_equal(store_bytes(&store), 400);
    store_give(&store, NULL, 0);
    store_give(&store, second, 400);
    assert_int_equal(store_bytes(&store), 0);
    assert_int_equal(store.maximum, LIMIT);
}

/* What a part takes counts in the whole, too, whose limit is for all parts. */
static void test_parts(void **state)
{
    (void)state;
    struct store whole, parts[2];
    store_init(&whole, LIMIT);
    store_init_part(&parts[0], &whole);
    store_init_part(&parts[1], &whole);
    void *first = store_take(&parts[0], 600);
    assert_non_null(first);
    assert_null(store_take(&parts[1], 401));
    assert_int_equal(parts[1].refusals, 1);
    assert_int_equal(parts[0].refusals, 0);
    assert_int_equal(store_bytes(&parts[1]), 0);
    assert_true(store_count(&parts[1], 400));
    assert_int_equal(store_bytes(&whole), LIMIT);
    store_forget(&parts[1], 400);
    store_give(&parts[0], first, 600);
    assert_int_equal(store_bytes(&parts[0]), 0);
    assert_int_equal(store_bytes(&whole), 0);
}

/* What its caller can do without is no refusal, in the part or in the whole. */
static void test_tries(void **state)
{
    (void)state;
    struct store whole, part;
    store_init(&whole, LIMIT);
    store_init_part(&part, &whole);
    assert_null(store_try(&part, LIMIT + 1));
    assert_null(store_try_aligned(&part, LIMIT + 1));
    assert_true(part.refusals == 0 && whole.refusals == 0);
    assert_true(store_bytes(&part) == 0 && store_bytes(&whole) == 0);
    void *bytes = store_try(&part, LIMIT);
    assert_non_null(bytes);
    assert_true(is_zero(bytes, LIMIT));
    assert_null(store_take(&part, 1));
    assert_true(part.refusals == 1 && whole.refusals == 1);
    store_give(&part, bytes, LIMIT);
}

/* Without a store. */
static void test_uncounted(void **state)
{
    (void)state;
    uint8_t *bytes = store_take(NULL, 100);
    assert_non_null(bytes);
    assert_true(is_zero(bytes, 100));
    store_give(NULL, bytes, 100);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct store store;
    if (SANITIZED)
        skip(); /* their allocators end the program */
    store_init(&store, UINT64_MAX);
    assert_null(store_take(&store, (size_t)1 << 62));
    assert_non_null(strstr(lh_last_error(), "no memory for"));
    assert_null(store_take_aligned(&store, (size_t)1 << 62));
    assert_int_equal(store_bytes(&store), 0);
}

static void *take_and_give(void *argument)
{
    struct store *store = argument;
    for (uint32_t i = 0; i < 20000; i++) {
        void *memory = store_take(store, 300);
        if (memory)
            memset(memory, 1, 300);
        assert_true(store_bytes(store) <= LIMIT + THREADS * 300);
        store_give(store, memory, 300);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct store store;
    pthread_t threads[THREADS];
    store_init(&store, LIMIT);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &store), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(store_bytes(&store), 0);
}

static int run_store(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit), cmocka_unit_test(test_parts),     cmocka_unit_test(test_uncounted),
        cmocka_unit_test(test_tries), cmocka_unit_test(test_no_memory), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_idle() + run_ring() + run_store();
}
