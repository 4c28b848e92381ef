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
                        "401 bytes more exceed the limit of the engine's memory, 1000 bytes");
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
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
