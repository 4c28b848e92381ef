/*
 * test_message_times.c - a coded message in segments, against segments that are drawn one by one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/ec/message_times.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "support/near.h"

#define DRAWS 20000

static struct ec_message_times segments;
static struct lh_prng prng;

static struct lh_model_path path_of(uint64_t chunks, uint64_t segment_chunks, double loss)
{
    return (struct lh_model_path){.message_bytes = chunks * 1024,
                                  .chunk_bytes = 1024,
                                  .mtu_bytes = 1024,
                                  .bandwidth_bps = 1e9,
                                  .rtt_s = 1e-3,
                                  .loss = loss,
                                  .segment_bytes = segment_chunks * 1024};
}

static void start(const char *text, const struct lh_model_path *path)
{
    struct lh_model_scheme scheme;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    scheme.timing = LH_MODEL_TIMING_LONGHAUL;
    assert_int_equal(ec_message_start(&segments, path, &scheme), 0);
}

static double drawn(void)
{
    double latest = 0;
    for (double i = 0; i <= segments.before; i++) {
        const struct ec_segment_times *code = i < segments.before ? &segments.full : &segments.last;
        double seconds = ec_segment_quantile(code, lh_prng_double(&prng));
        latest = fmax(latest, i * segments.apart_s + seconds);
    }
    return latest;
}

static void check(const char *text, const struct lh_model_path *path)
{
    double sum = 0;
    double squares = 0;
    unsigned within[3] = {0};
    const double shares[3] = {0.2, 0.9, 0.99};
    start(text, path);
    double at[3];
    for (unsigned s = 0; s < 3; s++)
        at[s] = ec_message_quantile(&segments, shares[s]);
    for (unsigned n = 0; n < DRAWS; n++) {
        double seconds = drawn();
        sum += seconds;
        squares += seconds * seconds;
        for (unsigned s = 0; s < 3; s++)
            within[s] += seconds <= at[s] * (1 + 1e-9);
    }
    double mean = sum / DRAWS;
    double error = sqrt(fmax(0, squares / DRAWS - mean * mean) / DRAWS);
    assert_true(fabs(ec_message_mean(&segments) - mean) < 5 * error + 2e-3 * mean);
    for (unsigned s = 0; s < 3; s++) {
        double share = ec_message_cdf(&segments, at[s] * (1 + 1e-9));
        assert_true(share >= shares[s] * (1 - 1e-6));
        assert_true(fabs((double)within[s] / DRAWS - share) < 0.02);
    }
}

static void test_drawn_one_by_one(void **state)
{
    (void)state;
    const char *const codes[] = {"ec:mds,k=8,m=2", "ec:xor,k=8,m=4", "ec:mds,k=8,m=2,fallback=sr"};
    lh_prng_seed(&prng, 9);
    for (unsigned i = 0; i < 3; i++)
        for (double loss = 0.002; loss < 0.1; loss *= 6) {
            struct lh_model_path few = path_of(300, 128, loss);
            check(codes[i], &few); /* the last is shorter */
            struct lh_model_path many = path_of(1280, 64, loss);
            check(codes[i], &many); /* longer than its round trips */
        }
}

static void test_without_loss(void **state)
{
    (void)state;
    struct lh_model_path path = path_of(512, 128, 0);
    start("ec:mds,k=8,m=2", &path);
    assert_near(segments.before, 3, 0);
    /* The parity of all but the last is ahead of the last data. */
    double wanted = (512 + 3 * 32) * 1024 * 8 / 1e9 + 1e-3;
    assert_near(ec_message_mean(&segments), wanted, 1e-9);
    assert_near(ec_message_quantile(&segments, 0.999), wanted, 1e-9);
    assert_near(ec_message_parity(&segments), 128, 0);
    path.segment_bytes = 0;
    start("ec:mds,k=8,m=2", &path);
    assert_near(ec_message_mean(&segments), 512 * 1024 * 8 / 1e9 + 1e-3, 1e-12);
}

static void test_whole_chunks(void **state)
{
    (void)state;
    struct lh_model_path path = path_of(512, 128, 0.01);
    start("ec:mds,k=8,m=2", &path);
    double wanted = ec_message_mean(&segments);
    path.segment_bytes += 1023;
    start("ec:mds,k=8,m=2", &path);
    assert_near(ec_message_mean(&segments), wanted, 0);
    path.segment_bytes = 1; /* a chunk at least */
    start("ec:mds,k=8,m=2", &path);
    assert_near(segments.before, 511, 0);
}

static void test_refused(void **state)
{
    (void)state;
    struct lh_model_path path = path_of(512, 128, 0.01);
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    assert_int_equal(lh_model_scheme_parse("ec:mds", &scheme), 0);
    path.reorder_window_s = NAN;
    assert_int_equal(lh_model_predict(&path, &scheme, &times), -LH_ERANGE);
    path.reorder_window_s = 0;
    scheme.timing = (enum lh_model_timing)7;
    assert_int_equal(lh_model_predict(&path, &scheme, &times), -LH_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drawn_one_by_one),
                                       cmocka_unit_test(test_without_loss),
                                       cmocka_unit_test(test_whole_chunks), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
