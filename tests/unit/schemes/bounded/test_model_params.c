/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/model_params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"

static void check_text(const char *text, const char *wanted)
{
    struct lh_model_scheme scheme, again;
    char out[LH_MODEL_SCHEME_TEXT_MAX];
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    assert_int_equal(scheme.kind, LH_MODEL_BOUNDED);
    assert_string_equal(lh_model_scheme_format(&scheme, out, sizeof out), wanted);
    assert_int_equal(lh_model_scheme_parse(out, &again), 0);
    assert_near(again.deadline_s, scheme.deadline_s, 1e-12);
    assert_true(again.k == scheme.k && again.m == scheme.m && again.xor_code == scheme.xor_code);
}

static void test_texts(void **state)
{
    (void)state;
    check_text("bounded", "bounded");
    check_text("bounded:deadline=auto", "bounded");
    check_text("bounded:deadline=20ms", "bounded:deadline=20000us");
    check_text("bounded,code=mds,k=16,m=2", "bounded:code=mds,k=16,m=2");
    check_text("bounded,deadline=1s,code=xor", "bounded:deadline=1000000us,code=xor,k=32,m=8");
}

static void test_bad_texts(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "bounded:deadline=0",       "bounded:deadline=2h",         "bounded,code=rs", "bounded,k=3",
        "bounded,code=xor,k=2,m=3", "bounded,code=mds,k=250,m=10", "bounded,beta=3"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct lh_model_scheme scheme;
        assert_true(lh_model_scheme_parse(bad[i], &scheme) < 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_bad_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
