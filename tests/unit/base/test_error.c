/*
 * test_error.c - the last error of a thread, the words of the codes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/longhaul.h>

#include "base/error.h"

/* ---- test error ------------------------------------------------------------------------------------ */

static void test_fail_returns_minus_code_and_keeps_words(void **state)
{
    (void)state;
    assert_int_equal(lh_fail(LH_EADDR, "address %s: port %d is taken", "::1", 4791), -LH_EADDR);
    assert_string_equal(lh_last_error(), "address ::1: port 4791 is taken");
}

static void test_null(void **state)
{
    const char *pointer = NULL;
    (void)state;
    assert_int_equal(lh_fail_if_null("broadcast", "buffer", pointer), -LH_EINVAL);
    assert_string_equal(lh_last_error(), "broadcast: buffer is NULL");
    pointer = "";
    assert_int_equal(lh_fail_if_null("broadcast", "buffer", pointer), 0);
}

static void test_known_codes(void **state)
{
    (void)state;
    assert_true(lh_error_known(LH_EINVAL));
    assert_true(lh_error_known(LH_EPATH));
    const int unknown[] = {0, -LH_EINVAL, LH_EPATH + 1, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        assert_false(lh_error_known(unknown[i]));
}

static void test_former_error_may_be_wrapped(void **state)
{
    (void)state;
    lh_fail(LH_EINVAL, "inner");
    assert_int_equal(lh_fail(LH_ERANGE, "outer: %s", lh_last_error()), -LH_ERANGE);
    assert_string_equal(lh_last_error(), "outer: inner");
}

static void test_long_words_are_cut(void **state)
{
    (void)state;
    char words[2000];
    memset(words, 'x', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    lh_fail(LH_EINVAL, "%s", words);
    assert_int_equal(strlen(lh_last_error()), 511);
}

static void *other_thread(void *out)
{
    memcpy(out, lh_last_error(), strlen(lh_last_error()) + 1);
    lh_fail(LH_EINVAL, "of the other thread");
    return NULL;
}

static void test_each_thread_has_its_own(void **state)
{
    (void)state;
    char seen[512] = "nothing was written";
    pthread_t thread;
    lh_fail(LH_EINVAL, "of this thread");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(seen, "");
    assert_string_equal(lh_last_error(), "of this thread");
}

static void test_words_of_codes(void **state)
{
    (void)state;
    assert_string_equal(lh_strerror(-LH_EAGAIN), "not possible now, try again");
    assert_string_equal(lh_strerror(LH_EAGAIN), "not possible now, try again");
    assert_string_equal(lh_strerror(-LH_EPROTOCOL), "peer broke the protocol");
    assert_string_equal(lh_strerror(0), "success");
    assert_string_equal(lh_strerror(LH_EPROTOCOL + 1000), "unknown error");
    assert_string_equal(lh_strerror(INT_MIN), "unknown error");
    assert_string_equal(lh_strerror(INT_MAX), "unknown error");
}

static void test_codes_count_from_one_without_gap(void **state)
{
    (void)state;
    int expected = 1;
#define CHECK_CODE(name, number, words)                                                                    \
    assert_int_equal(name, expected++);                                                                    \
    assert_string_equal(lh_strerror(name), words);
    LH_ERRORS(CHECK_CODE)
#undef CHECK_CODE
}

static int run_error(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_known_codes),
        cmocka_unit_test(test_fail_returns_minus_code_and_keeps_words),
        cmocka_unit_test(test_former_error_may_be_wrapped),
        cmocka_unit_test(test_long_words_are_cut),
        cmocka_unit_test(test_each_thread_has_its_own),
        cmocka_unit_test(test_words_of_codes),
        cmocka_unit_test(test_codes_count_from_one_without_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test version ---------------------------------------------------------------------------------- */

/* Lh_version(): that of the header and of the build. */

static void version_is_that_of_header_and_build(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", LH_VERSION_MAJOR, LH_VERSION_MINOR, LH_VERSION_PATCH);
    assert_string_equal(lh_version(), text);
    assert_string_equal(lh_version(), LH_VERSION_STRING);
}

static int run_version(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(version_is_that_of_header_and_build)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_error() + run_version();
}
