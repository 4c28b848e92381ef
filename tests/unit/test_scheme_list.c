/* SPDX-License-Identifier: BSD-3-Clause */
#include "reliability/scheme_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_each_scheme_is_whole(void **state)
{
    (void)state;
    const struct lh_scheme *const *all = lh_schemes();
    size_t count = 0;
    for (; all[count] != NULL; count++) {
        const struct lh_scheme *scheme = all[count];
        assert_non_null(scheme->name);
        assert_null(strchr(scheme->name, ','));
        assert_true(scheme->help != NULL && scheme->help[0] != '\0');
        assert_in_range(scheme->id, 1, LH_SCHEME_ID_USER - 1);
        assert_true(scheme->parse != NULL && scheme->params_valid != NULL);
        assert_true(scheme->sender_bytes != NULL && scheme->sender_start != NULL);
        assert_true(scheme->sender_on_message != NULL && scheme->sender_step != NULL);
        assert_true(scheme->receiver_bytes != NULL && scheme->receiver_start != NULL);
        assert_true(scheme->receiver_on_message != NULL && scheme->receiver_step != NULL);
        uint8_t params[LH_SCHEME_PARAMS];
        assert_int_equal(scheme->parse("", params), 0);
        assert_true(scheme->params_valid(params));
        for (size_t other = 0; other < count; other++) {
            assert_int_not_equal(all[other]->id, scheme->id);
            assert_string_not_equal(all[other]->name, scheme->name);
        }
    }
    assert_string_equal(all[0]->name, "sr-nack"); /* the default comes first */
    assert_true(count >= 2);
}

static void test_ids_stay(void **state)
{
    (void)state;
    assert_int_equal(lh_schemes()[0]->id, 1);
    assert_string_equal(lh_schemes()[1]->name, "sr-rto");
    assert_int_equal(lh_schemes()[1]->id, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_scheme_is_whole),
        cmocka_unit_test(test_ids_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
