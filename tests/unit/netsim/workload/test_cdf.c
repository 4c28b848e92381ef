/*
 * test_cdf.c - distributions of sizes: their text, their mean, what is drawn.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/cdf.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "support/netsim_text.h"

/* Both passes, which agree. *memory is to be freed. */
static int read_cdf(const struct netsim_text *text, struct netsim_cdf *cdf, void **memory)
{
    struct netsim_arena counting = {0};
    struct netsim_cdf counted;
    *memory = NULL;
    int rc = netsim_cdf_read(&counted, "workload.sizes", text, &counting);
    if (rc != 0)
        return rc;
    assert_null(counted.bytes);
    struct netsim_arena arena = {.capacity_bytes = counting.used_bytes};
    arena.base = *memory = aligned_alloc(64, counting.used_bytes);
    assert_non_null(arena.base);
    assert_int_equal(netsim_cdf_read(cdf, "workload.sizes", text, &arena), 0);
    assert_int_equal(arena.used_bytes, counting.used_bytes);
    assert_int_equal(cdf->points, counted.points);
    assert_true(cdf->mean_bytes == counted.mean_bytes);
    return 0;
}

static struct netsim_cdf good(const char *words, void **memory)
{
    struct netsim_cdf cdf;
    struct netsim_text text = netsim_text_of(words);
    assert_int_equal(read_cdf(&text, &cdf, memory), 0);
    return cdf;
}

static void refuse(const char *words, int code, const char *word, const char *other)
{
    void *memory;
    struct netsim_cdf cdf;
    struct netsim_text text = netsim_text_of(words);
    assert_int_equal(read_cdf(&text, &cdf, &memory), code);
    if (strstr(lh_last_error(), word) == NULL || strstr(lh_last_error(), other) == NULL)
        fail_msg("\"%s\" has no \"%s\" or no \"%s\"", lh_last_error(), word, other);
}

/* A file of netsim/scenarios/workloads. */
static void read_scenario(const char *name, struct netsim_cdf *cdf, void **memory)
{
    static char words[16384];
    char path[1024];
    const char *root = getenv("LH_SOURCE_DIR");
    if (root == NULL)
        skip();
    snprintf(path, sizeof path, "%s/netsim/scenarios/workloads/%s", root, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    struct netsim_text text = {.data = words, .bytes = fread(words, 1, sizeof words, file)};
    fclose(file);
    assert_true(text.bytes > 0 && text.bytes < sizeof words);
    assert_int_equal(read_cdf(&text, cdf, memory), 0);
}

static void test_published_means(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double mean_bytes;
        uint32_t points;
        double median_bytes;
    } files[] = {{"websearch.cdf", 1711250, 12, 50000 + 30000 * 10.0 / 13},
                 {"fb_hadoop.cdf", 120420.75, 20, 700}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        void *memory;
        struct netsim_cdf cdf = {0};
        read_scenario(files[i].name, &cdf, &memory);
        assert_int_equal(cdf.points, files[i].points);
        /* Sizes below half a byte become 1: 7.5e-6 and 5e-5 bytes in the mean. */
        assert_true(fabs(cdf.mean_bytes - files[i].mean_bytes) < 1e-4);
        assert_true(fabs(netsim_cdf_quantile(&cdf, 0.5) - files[i].median_bytes) < 1e-6);
        free(memory);
    }
}

static void test_quantiles_are_linear_between_points(void **state)
{
    (void)state;
    void *memory;
    struct netsim_cdf cdf = good("0 0\n1000 0.25\n2000 0.25\n10kB 1 # all\n", &memory);
    assert_true(netsim_cdf_quantile(&cdf, 0) == 0);
    assert_true(netsim_cdf_quantile(&cdf, 0.125) == 500);
    assert_true(netsim_cdf_quantile(&cdf, 0.25) == 2000);
    assert_true(netsim_cdf_quantile(&cdf, 0.625) == 6000);
    assert_true(netsim_cdf_quantile(&cdf, 1 - 0x1p-53) <= 10000);
    assert_true(netsim_cdf_quantile(&cdf, 1 - 0x1p-53) > 9999.999);
    free(memory);
}

/* Half of all flows have 100 bytes, a quarter 300. */
static void test_steps_are_sizes_by_themselves(void **state)
{
    (void)state;
    void *memory;
    struct netsim_cdf cdf = good("100 0.5\n300 0.5\n300 0.75\n500 1\n", &memory);
    assert_true(cdf.mean_bytes == 0.5 * 100 + 0.25 * 300 + 0.25 * 400);
    assert_true(netsim_cdf_quantile(&cdf, 0) == 100 && netsim_cdf_quantile(&cdf, 0.499) == 100);
    assert_true(netsim_cdf_quantile(&cdf, 0.5) == 300 && netsim_cdf_quantile(&cdf, 0.749) == 300);
    assert_true(netsim_cdf_quantile(&cdf, 0.875) == 400);
    free(memory);
}

static void test_percent(void **state)
{
    (void)state;
    void *memory[2];
    struct netsim_cdf shares = good("0 0\n1kB 0.15\n2kB 0.9\n3kB 1", &memory[0]);
    struct netsim_cdf percent = good("0 0\n1kB 15\n2kB 90\n3kB 100", &memory[1]);
    assert_int_equal(shares.points, percent.points);
    for (uint32_t i = 0; i < shares.points; i++)
        assert_true(shares.bytes[i] == percent.bytes[i] && shares.cumulative[i] == percent.cumulative[i]);
    assert_true(fabs(shares.mean_bytes - percent.mean_bytes) < 1e-9);
    free(memory[0]);
    free(memory[1]);
}

static void test_one_size(void **state)
{
    (void)state;
    void *memory;
    struct lh_prng prng;
    struct netsim_cdf cdf = good("64KiB 1", &memory);
    lh_prng_seed(&prng, 1);
    assert_true(cdf.mean_bytes == 65536);
    for (int i = 0; i < 100; i++)
        assert_true(netsim_cdf_draw(&cdf, &prng) == 65536);
    free(memory);
}

/* Shares of the draws at and below each point, and their mean, are the distribution's: within five standard
 * errors. */
static void check_draws(const struct netsim_cdf *cdf, uint64_t seed)
{
    enum { DRAWS = 200000 };
    struct lh_prng prng;
    uint32_t at_most[32] = {0};
    double sum = 0;
    double squares = 0;
    assert_true(cdf->points <= 32);
    lh_prng_seed(&prng, seed);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t bytes = netsim_cdf_draw(cdf, &prng);
        assert_true(bytes >= 1 && (double)bytes <= cdf->bytes[cdf->points - 1]);
        sum += (double)bytes;
        squares += (double)bytes * (double)bytes;
        for (uint32_t point = 0; point < cdf->points; point++)
            at_most[point] += (double)bytes <= cdf->bytes[point];
    }
    double mean = sum / DRAWS;
    double error = sqrt((squares / DRAWS - mean * mean) / DRAWS);
    assert_true(fabs(mean - cdf->mean_bytes) <= 5 * error);
    for (uint32_t point = 0; point < cdf->points; point++) {
        double share = cdf->cumulative[point];
        if (cdf->bytes[point] < 1)
            continue;
        /* Rounding moves what is within half a byte of the point: too little to be seen. */
        assert_true(fabs(at_most[point] / (double)DRAWS - share) <=
                    5 * sqrt(share * (1 - share) / DRAWS) + 1e-3);
    }
}

static void test_draws_follow_the_distribution(void **state)
{
    (void)state;
    static const char *const names[] = {"websearch.cdf", "fb_hadoop.cdf"};
    for (size_t i = 0; i < 2; i++) {
        void *memory;
        struct netsim_cdf cdf = {0};
        read_scenario(names[i], &cdf, &memory);
        check_draws(&cdf, 1 + i);
        free(memory);
    }
}

/* Where rounding and the smallest flow count most: sizes 0 … 3 bytes, of which 0 becomes 1. By hand: 1 for
 * the first 1.5 of 3, 2 for the next 1, 3 for the last half. */
static void test_mean_is_that_of_whole_bytes(void **state)
{
    (void)state;
    void *memory;
    struct netsim_cdf cdf = good("0 0\n3 1\n", &memory);
    assert_true(fabs(cdf.mean_bytes - (1.5 * 1 + 1 * 2 + 0.5 * 3) / 3) < 1e-12);
    check_draws(&cdf, 1);
    free(memory);
    cdf = good("0 0.5\n0 0.75\n10 1\n", &memory);
    assert_true(fabs(cdf.mean_bytes - (0.75 + 0.25 * 5.05)) < 1e-12);
    check_draws(&cdf, 1);
    free(memory);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    refuse("", -LH_EINVAL, "workload.sizes has no points", "10kB 0.15");
    refuse("# only words\n", -LH_EINVAL, "no points", "10kB");
    refuse("0 0\n100\n", -LH_EINVAL, ":2: 1 words", "10kB 0.15");
    refuse("0 0 0\n", -LH_EINVAL, ":1: 3 words", "10kB 0.15");
    refuse("0 0\n1XB 1\n", -LH_EINVAL, ":2: ", "1XB");
    refuse("0 0\n17TiB 1\n", -LH_ERANGE, ":2: size 17TiB", "16TiB");
    /* Shares that end in percent: nobody knows what they mean. */
    refuse("1 0.5\n2 1.0\n3 100\n", -LH_EINVAL, ":3", "0 to 1");
    refuse("0 0\n1kB x\n", -LH_EINVAL, ":2: invalid share \"x\"", "percent");
    refuse("0 0\n1kB 50%\n", -LH_EINVAL, ":2: invalid share \"50%\"", "percent");
    refuse("0 -1\n1kB 1\n", -LH_EINVAL, ":1: invalid share \"-1\"", "percent");
    refuse("0 0\n1kB 100.1\n", -LH_ERANGE, ":2: share 100.1", "percent");
    refuse("0 0\n2kB 0.5\n1kB 1\n", -LH_EINVAL, ":3: size 1kB", "sort");
    refuse("0 0\n1kB 0.5\n2kB 0.4\n", -LH_EINVAL, ":3: share 0.4", "never decrease");
    refuse("0 0\n1kB 0.5\n\n\n", -LH_EINVAL, ":2: the last share must be 1", "100");
    refuse("0 0\n1kB 99\n", -LH_EINVAL, "the last share must be 1", "100");
    refuse("0 0.5\n0 1\n", -LH_EINVAL, "empty", "at least 1");
    refuse("0 0\n\x80 1\n", -LH_EINVAL, ":2", "not text");
}

static void test_too_many_points(void **state)
{
    (void)state;
    static const char point[6] = {'1', ' ', '0', '.', '5', '\n'};
    static char words[6 * (NETSIM_CDF_POINTS_MAX + 1) + 1];
    for (uint32_t i = 0; i <= NETSIM_CDF_POINTS_MAX; i++)
        memcpy(words + (size_t)6 * i, point, sizeof point);
    refuse(words, -LH_ERANGE, "point 65537", "at most 65536");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_means),
        cmocka_unit_test(test_quantiles_are_linear_between_points),
        cmocka_unit_test(test_steps_are_sizes_by_themselves),
        cmocka_unit_test(test_percent),
        cmocka_unit_test(test_one_size),
        cmocka_unit_test(test_draws_follow_the_distribution),
        cmocka_unit_test(test_mean_is_that_of_whole_bytes),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_too_many_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
