/*
 * test_hadamard_cuda_arguments.c - what is refused before a GPU is asked, and what a report means: no GPU is
 * needed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/hadamard_cuda.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Never read: each call is refused before. */
#define DEVICE(address) ((void *)(uintptr_t)(address))
#define REPORT          ((struct lh_hadamard_cuda_report *)DEVICE(0x100))
#define NOWHERE         UINT64_MAX

static void expect_invalid(const struct lh_hadamard *hadamard, void *in, void *out, size_t count,
                           struct lh_hadamard_cuda_report *report, const char *words)
{
    assert_int_equal(lh_hadamard_cuda_encode(hadamard, in, out, count, report, NULL), -LH_EINVAL);
    if (!strstr(lh_last_error(), words))
        fail_msg("%s: no \"%s\"", lh_last_error(), words);
    assert_int_equal(lh_hadamard_cuda_decode(hadamard, NULL, in, out, count, report, NULL), -LH_EINVAL);
}

static void test_arguments(void **state)
{
    (void)state;
    struct lh_hadamard hadamard;
    lh_hadamard_init(&hadamard, LH_HADAMARD_F32);
    expect_invalid(&hadamard, DEVICE(0x1000), DEVICE(0x1000 + 4092), 1024, REPORT,
                   "distance of 4092 bytes");
    expect_invalid(&hadamard, DEVICE(0x1002), DEVICE(0x8000), 1024, REPORT,
                   "not aligned to its elements of 4");
    expect_invalid(&hadamard, DEVICE(0x1000), DEVICE(0x8001), 1024, REPORT,
                   "not aligned to its elements of 4");
    expect_invalid(&hadamard, DEVICE(0x1000), DEVICE(0x8000), SIZE_MAX / 2, REPORT, "exceed the memory");
    expect_invalid(&hadamard, DEVICE(0x1000), DEVICE(0x8000), 1024, NULL, "report");
    expect_invalid(&hadamard, DEVICE(0x1000), DEVICE(0x8000), 1024, DEVICE(0x104), "report");
    hadamard.stride = 3;
    expect_invalid(&hadamard, DEVICE(0x1000), DEVICE(0x8000), 1024, REPORT, "stride 3");
    lh_hadamard_init(&hadamard, LH_HADAMARD_BF16);
    expect_invalid(&hadamard, DEVICE(0x1001), DEVICE(0x8000), 1024, REPORT,
                   "not aligned to its elements of 2");
}

static void test_arrival(void **state)
{
    (void)state;
    struct lh_hadamard hadamard;
    lh_hadamard_init(&hadamard, LH_HADAMARD_F32);
    struct lh_range missing[] = {{4096, 4096}, {8100, 100}};
    struct lh_hadamard_arrival arrival = {.missing = missing, .missing_count = 2};
    assert_int_equal(
        lh_hadamard_cuda_decode(&hadamard, &arrival, DEVICE(0x1000), DEVICE(0x8000), 2048, REPORT, NULL),
        -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "100 bytes at 8100 exceeds the tensor of 8192"));
    const uint32_t contributions[] = {4, 5};
    arrival = (struct lh_hadamard_arrival){.contributions = contributions, .contributors = 4};
    assert_int_equal(
        lh_hadamard_cuda_decode(&hadamard, &arrival, DEVICE(0x1000), DEVICE(0x8000), 1025, REPORT, NULL),
        -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "packet 1 has 5 contributions of 4 contributors"));
}

static void test_result(void **state)
{
    (void)state;
    struct lh_hadamard hadamard;
    struct lh_hadamard_result result;
    lh_hadamard_init(&hadamard, LH_HADAMARD_F32);
    struct lh_hadamard_cuda_report report = {UINT64_MAX, NOWHERE, NOWHERE, NOWHERE};
    assert_int_equal(lh_hadamard_cuda_result(&hadamard, &report, &result), 0);
    assert_true(result.zeroed == 0 && result.index == NOWHERE);
    assert_int_equal(lh_hadamard_cuda_result(&hadamard, &report, NULL), 0);
    report.zeroed_less_one = 6;
    assert_int_equal(lh_hadamard_cuda_result(&hadamard, &report, &result), 0);
    assert_int_equal(result.zeroed, 7);
    report.too_large = 2048;
    assert_int_equal(lh_hadamard_cuda_result(&hadamard, &report, &result), -LH_ERANGE);
    assert_non_null(strstr(lh_last_error(), "element 2048 exceeds the type"));
    report.non_finite = 5000;
    assert_int_equal(lh_hadamard_cuda_result(&hadamard, &report, &result), -LH_ERANGE);
    assert_non_null(strstr(lh_last_error(), "element 5000 is NaN or infinite"));
    assert_int_equal(result.index, 5000);
    report.not_scaled = 3;
    assert_int_equal(lh_hadamard_cuda_result(&hadamard, &report, &result), -LH_ERANGE);
    assert_non_null(strstr(lh_last_error(), "packet 3"));
    assert_true(result.index == NOWHERE);
    /* Zeroed, and not counted. */
    hadamard.non_finite = LH_HADAMARD_ZERO;
    report.non_finite = report.too_large = NOWHERE;
    assert_int_equal(lh_hadamard_cuda_result(&hadamard, &report, &result), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_arrival),
        cmocka_unit_test(test_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
