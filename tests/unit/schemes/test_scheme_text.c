/*
 * test_scheme_text.c - schemes of the model, as text and back; what cannot be is refused in words.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/scheme_table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"

static double rto_of(const struct lh_model_scheme *scheme)
{
    return model_predictor_rto(scheme_table_kind(scheme->kind)->predictor, scheme);
}

static int check(const struct lh_model_scheme *scheme)
{
    return model_predictor_check(scheme_table_kind(scheme->kind)->predictor, scheme);
}

static struct lh_model_scheme parsed(const char *text)
{
    struct lh_model_scheme scheme;
    if (lh_model_scheme_parse(text, &scheme) != 0)
        fail_msg("%s: %s", text, lh_last_error());
    return scheme;
}

static void test_defaults(void **state)
{
    (void)state;
    struct lh_model_scheme rto = parsed("sr-rto");
    struct lh_model_scheme nack = parsed("sr-nack");
    struct lh_model_scheme mds = parsed("ec:mds");
    struct lh_model_scheme paper = parsed("ec:xor,fallback=sr");
    assert_near(rto_of(&rto), 3, 0);
    assert_near(rto_of(&nack), 1, 0);
    assert_near(rto_of(&mds), 1, 0);
    assert_near(rto_of(&paper), 3, 0);
    assert_int_equal(mds.k, 32);
    assert_int_equal(mds.m, 8);
    assert_near(mds.beta, 0.5, 0);
    assert_int_equal(mds.fallback, LH_MODEL_FALLBACK_IR);
    assert_int_equal(paper.kind, LH_MODEL_EC_XOR);
    assert_int_equal(parsed("ideal").kind, LH_MODEL_IDEAL);
    assert_int_equal(parsed("gbn").kind, LH_MODEL_GBN);
}

static void test_values(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = parsed("ec:mds,k=100,m=20,spread=4,beta=0.25,fallback=sr,rto=1.5");
    assert_int_equal(scheme.k, 100);
    assert_int_equal(scheme.m, 20);
    assert_int_equal(scheme.spread, 4);
    assert_near(scheme.beta, 0.25, 0);
    assert_int_equal(scheme.fallback, LH_MODEL_FALLBACK_SR);
    assert_near(rto_of(&scheme), 1.5, 0);
    scheme = parsed("sr-rto,alpha=0.25");
    assert_near(rto_of(&scheme), 1.25, 0);
}

static void test_format_and_back(void **state)
{
    (void)state;
    const char *texts[] = {
        "ideal",           "sr-rto",          "sr-rto,alpha=0.25",
        "sr-nack",         "sr-nack,rto=1.5", "gbn,rto=10",
        "ec:mds,k=32,m=8", "ec:xor,k=32,m=8", "ec:mds,k=100,m=20,spread=4,beta=0.25,fallback=sr,rto=1.5"};
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[LH_MODEL_SCHEME_TEXT_MAX];
        struct lh_model_scheme scheme = parsed(texts[i]);
        assert_string_equal(lh_model_scheme_format(&scheme, text, sizeof text), texts[i]);
        for (size_t size = 1; size < strlen(texts[i]); size++) { /* cut, never beyond */
            memset(text, 'x', sizeof text);
            lh_model_scheme_format(&scheme, text, size);
            assert_int_equal(strlen(text), size - 1);
            assert_int_equal(text[size], 'x');
        }
    }
}

static void refused(const char *text, const char *word)
{
    struct lh_model_scheme scheme = {.kind = LH_MODEL_GBN};
    assert_true(lh_model_scheme_parse(text, &scheme) < 0);
    if (!strstr(lh_last_error(), word))
        fail_msg("%s: \"%s\" does not say %s", text, lh_last_error(), word);
    assert_int_equal(scheme.kind, LH_MODEL_GBN); /* set only on success */
}

static void test_refused(void **state)
{
    (void)state;
    refused("", "unknown scheme");
    refused("sr", "sr-rto");
    refused("ec:mds,", "parameter");
    refused("ec:mds,k", "parameter");
    refused("ec:mds,k=", "number");
    refused("ec:mds,k=-3", "number");
    refused("ec:mds,k=0", "k=0");
    refused("ec:mds,k=1.5", "whole");
    refused("ec:mds,k=250,m=6", "255");
    refused("ec:mds,m=99999999", "whole");
    refused("ec:xor,k=4,m=5", "parity");
    refused("ec:mds,beta=nan", "number");
    refused("ec:mds,fallback=no", "fallback");
    refused("ec:mds,fallback=", "fallback");
    refused("sr-rto,alpha=-1", "number");
    refused("sr-rto,rto=0.5", "at least 1");
    refused("sr-rto,beta=1", "alpha");
    refused("sr-nack,alpha=1", "rto");
    refused("ideal,rto=1", "none");
    refused("gbn,rto=1e300", "out of range");
    refused("gbn,rto=1x", "number");
}

static void test_check(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = parsed("ec:mds");
    assert_int_equal(check(&scheme), 0);
    scheme.beta = NAN;
    assert_int_equal(check(&scheme), -LH_ERANGE);
    scheme = parsed("ec:mds");
    scheme.encode_bytes_per_s = -1;
    assert_int_equal(check(&scheme), -LH_ERANGE);
    scheme = parsed("ec:mds");
    scheme.k = UINT32_MAX;
    scheme.m = 2; /* the sum wraps */
    assert_int_equal(check(&scheme), -LH_EINVAL);
    scheme = parsed("sr-rto");
    scheme.rto_rtts = NAN;
    assert_int_equal(check(&scheme), -LH_ERANGE);
    struct lh_model_times times;
    scheme.kind = (enum lh_model_kind)77;
    assert_int_equal(lh_model_predict(&(struct lh_model_path){0}, &scheme, &times), -LH_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),        cmocka_unit_test(test_values),
        cmocka_unit_test(test_format_and_back), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
