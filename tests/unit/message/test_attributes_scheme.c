/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/attributes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unit/message/fake_scheme.h"

static struct lh_attr attr_of(const char *reliability, const struct lh_scheme *own)
{
    return (struct lh_attr){.reliability = reliability,
                            .scheme = own,
                            .mtu_bytes = 64,
                            .chunk_bytes = 64,
                            .slot_bytes = 4 * 64,
                            .slots = 8};
}

static int choose(const char *reliability, const struct lh_scheme *own, struct scheme_choice *choice)
{
    struct lh_attr attr = attr_of(reliability, own);
    return scheme_choose(&attr, choice);
}

static void test_by_name(void **state)
{
    (void)state;
    struct scheme_choice choice;
    assert_int_equal(choose(NULL, NULL, &choice), 0);
    assert_true(choice.automatic);
    assert_string_equal(choice.scheme->name, SCHEME_NAME_PLAIN);
    assert_int_equal(choose("sr-rto", NULL, &choice), 0);
    assert_string_equal(choice.scheme->name, "sr-rto");
    assert_false(choice.automatic);
    assert_int_equal(choose("auto", NULL, &choice), 0);
    assert_true(choice.automatic);
}

static void test_what_it_may_not_be(void **state)
{
    (void)state;
    struct scheme_choice choice = {.scheme = &fake_scheme};
    assert_int_equal(choose("no-such", NULL, &choice), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "sr-nack"));
    assert_int_equal(choose("sr-rto,", NULL, &choice), -LH_EINVAL);
    assert_int_equal(choose("sr-rto,bogus=1", NULL, &choice), -LH_EINVAL);
    assert_int_equal(choose("", NULL, &choice), -LH_EINVAL);
    assert_ptr_equal(choice.scheme, &fake_scheme); /* set on success only */
}

/* A scheme of the caller's own: the default then, and it may be called like one of ours. */
static void test_of_the_callers_own(void **state)
{
    (void)state;
    struct scheme_choice choice;
    assert_int_equal(choose(NULL, &fake_scheme, &choice), 0);
    assert_ptr_equal(choice.scheme, &fake_scheme);
    struct lh_scheme own = fake_scheme;
    own.name = "auto";
    assert_int_equal(choose("auto", &own, &choice), 0);
    assert_true(choice.scheme == &own && !choice.automatic);
    own.id = LH_SCHEME_ID_USER - 1;
    assert_int_equal(choose(NULL, &own, &choice), -LH_EINVAL);
}

static void test_by_id(void **state)
{
    (void)state;
    assert_ptr_equal(scheme_find(&fake_scheme, FAKE_ID), &fake_scheme);
    assert_null(scheme_find(NULL, FAKE_ID));
    assert_ptr_equal(scheme_find(&fake_scheme, lh_schemes()[0]->id), lh_schemes()[0]);
}

static void test_bytes_of_a_segment(void **state)
{
    (void)state;
    struct lh_attr attr = attr_of(NULL, NULL);
    struct scheme_choice choice = {.scheme = &fake_scheme};
    assert_int_equal(scheme_segment_bytes(&choice, &attr), attr.slot_bytes);
    choice.scheme = &fake_coded_scheme;
    choice.params[0] = 4;
    assert_int_equal(scheme_segment_bytes(&choice, &attr), attr.slot_bytes);
    choice.params[0] = 5; /* its parity does not fit a slot */
    assert_int_equal(scheme_segment_bytes(&choice, &attr), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_what_it_may_not_be),
        cmocka_unit_test(test_of_the_callers_own),
        cmocka_unit_test(test_by_id),
        cmocka_unit_test(test_bytes_of_a_segment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
