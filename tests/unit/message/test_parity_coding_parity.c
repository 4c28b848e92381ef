/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/parity_coding.h"

#include "unit/message/fake_sdr.h"

static struct parity_pool pool;

static int begin(void **state)
{
    (void)state;
    fake_sdr_reset();
    pool = (struct parity_pool){.context = &context, .store = sdr_context_store(&context)};
    return 0;
}

static int end(void **state)
{
    (void)state;
    parity_free_all(&pool);
    for (uint32_t i = 0; i < FAKE_HANDLES; i++)
        assert_false(registrations[i].in_use);
    return 0;
}

static void test_kept_for_the_next(void **state)
{
    (void)state;
    struct parity_buffer *first = parity_take(&pool, 100, 7);
    assert_true((uintptr_t)first->chunks % 64 == 0 && first->bytes == 100 && first->notes_bytes == 7);
    assert_true(first->notes >= first->chunks + first->bytes);
    assert_int_equal(first->lkey, 100);
    parity_give(&pool, first);
    assert_ptr_equal(parity_take(&pool, 100, 7), first);
    assert_int_equal(pool.in_use, 1);
    parity_give(&pool, first);
}

/* Of another code, or the other direction: the next one fits both. */
static void test_grows_to_fit_both(void **state)
{
    (void)state;
    parity_give(&pool, parity_take(&pool, 100, 0));
    parity_give(&pool, parity_take(&pool, 50, 64));
    struct parity_buffer *both = parity_take(&pool, 1, 1);
    assert_true(both->bytes == 100 && both->notes_bytes == 64);
    parity_give(&pool, both);
}

/* Each size finds its own again, in any order; a larger one serves, too. */
static void test_the_smallest_that_fits(void **state)
{
    (void)state;
    struct parity_buffer *small = parity_take(&pool, 100, 8);
    struct parity_buffer *large = parity_take(&pool, 1000, 8);
    for (int i = 0; i < 2; i++) {
        parity_give(&pool, i == 0 ? small : large);
        parity_give(&pool, i == 0 ? large : small);
        assert_ptr_equal(parity_take(&pool, 90, 8), small);
        assert_ptr_equal(parity_take(&pool, 90, 8), large);
    }
    parity_give(&pool, small);
    parity_give(&pool, large);
    assert_ptr_equal(parity_take(&pool, 900, 0), large);
    parity_give(&pool, large);
}

static void test_that_cannot_be_registered(void **state)
{
    (void)state;
    registrations_left = 0;
    assert_null(parity_take(&pool, 1, 0));
    assert_int_equal(pool.in_use, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kept_for_the_next, begin, end),
        cmocka_unit_test_setup_teardown(test_grows_to_fit_both, begin, end),
        cmocka_unit_test_setup_teardown(test_the_smallest_that_fits, begin, end),
        cmocka_unit_test_setup_teardown(test_that_cannot_be_registered, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
