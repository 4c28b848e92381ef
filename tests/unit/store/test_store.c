/*
 * test_store.c - memory that is counted, and refused beyond the limit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "store/store.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "support/sanitized.h"

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
    assert_int_equal(store.most, 600);
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
    assert_int_equal(store.most, LIMIT);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit), cmocka_unit_test(test_parts),     cmocka_unit_test(test_uncounted),
        cmocka_unit_test(test_tries), cmocka_unit_test(test_no_memory), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
