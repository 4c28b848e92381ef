/*
 * test_ec_scheme.c - a coded message in segments, against segments that are drawn one by one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "schemes/ec_scheme.h"
#include "support/near.h"
#include "support/predictions.h"

/* ---- test message times ---------------------------------------------------------------------------- */

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

static double sampled(void)
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
        double seconds = sampled();
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

static int run_message_times(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drawn_one_by_one),
                                       cmocka_unit_test(test_without_loss),
                                       cmocka_unit_test(test_whole_chunks), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test model params ----------------------------------------------------------------------------- */

/* Parameters of the codes as the model reads them, and what the planner weighs. */

static int taken(const char *text, struct lh_model_scheme *scheme)
{
    struct model_parameter parameter = model_parameter_at(text);
    int failed = 0;
    return ec_model_take(&parameter, scheme, &failed) ? failed : 1;
}

static void test_take(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = {.kind = LH_MODEL_EC_MDS};
    ec_model_defaults(&scheme);
    assert_int_equal(ec_model_check(&scheme), 0);
    assert_int_equal(taken("k=100,m=2", &scheme), 0);
    assert_int_equal(taken("m=20", &scheme), 0);
    assert_int_equal(taken("spread=3", &scheme), 0);
    assert_int_equal(taken("beta=0.25", &scheme), 0);
    assert_int_equal(taken("fallback=sr", &scheme), 0);
    assert_true(scheme.k == 100 && scheme.m == 20 && scheme.spread == 3);
    assert_near(scheme.beta, 0.25, 0);
    assert_int_equal(scheme.fallback, LH_MODEL_FALLBACK_SR);
    assert_int_equal(taken("k=1.5", &scheme), -LH_EINVAL);
    assert_int_equal(taken("fallback=none", &scheme), -LH_EINVAL);
    assert_int_equal(taken("alpha=2", &scheme), 1);
    assert_int_equal(taken("k", &scheme), 1);
}

static void test_check(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = {.kind = LH_MODEL_EC_XOR, .k = 4, .m = 5};
    assert_int_equal(ec_model_check(&scheme), -LH_EINVAL);
    scheme.kind = LH_MODEL_EC_MDS;
    assert_int_equal(ec_model_check(&scheme), 0);
    scheme.m = 252;
    assert_int_equal(ec_model_check(&scheme), -LH_EINVAL);
    scheme.m = 0;
    assert_int_equal(ec_model_check(&scheme), -LH_EINVAL);
}

static void test_candidates(void **state)
{
    (void)state;
    struct lh_model_scheme out[SCHEME_CANDIDATES_MAX];
    for (int unspread = 0; unspread < 2; unspread++) {
        uint32_t count = ec_xor_candidates(unspread, out);
        assert_in_range(count, 1, SCHEME_CANDIDATES_MAX);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(ec_model_check(&out[i]), 0);
            assert_int_equal(out[i].kind, LH_MODEL_EC_XOR);
            assert_int_equal(out[i].spread, unspread);
        }
        assert_int_equal(ec_mds_candidates(unspread, out), count);
    }
}

/* Each 8 parity chunks more are one more reading of the data. */
static void test_encode_rate(void **state)
{
    (void)state;
    const struct lh_plan_question question = {.mds_bytes_per_s = 8e9, .xor_bytes_per_s = 9e9};
    struct lh_model_scheme scheme = {.m = 8};
    assert_near(ec_mds_encode_rate(&question, &scheme), 8e9, 0);
    assert_near(ec_xor_encode_rate(&question, &scheme), 9e9, 0);
    scheme.m = 9;
    assert_near(ec_mds_encode_rate(&question, &scheme), 4e9, 0);
    assert_near(ec_xor_encode_rate(&question, &scheme), 9e9, 0);
}

static int run_model_params(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_encode_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test paper times ------------------------------------------------------------------------------ */

/* A message with parity: its mean against the mixture over all fallbacks. */

static struct ec_paper_times coded;
static struct model_repeat repeat;
static struct lh_model_scheme paper_times_scheme;
static struct model_message paper_times_message;

static void of(const char *text, double loss, uint64_t bytes, double rtt_s)
{
    const struct lh_model_path path = {.message_bytes = bytes,
                                       .chunk_bytes = 65536,
                                       .mtu_bytes = 4096,
                                       .bandwidth_bps = 400e9,
                                       .rtt_s = rtt_s,
                                       .loss = loss,
                                       .loss_of_chunk = true};
    assert_int_equal(lh_model_scheme_parse(text, &paper_times_scheme), 0);
    assert_int_equal(message_of(&path, &paper_times_scheme, &paper_times_message), 0);
    ec_paper_start(&coded, &paper_times_scheme, &paper_times_message);
}

/* Each number of failed submessages by itself. */
static double mixture(void)
{
    double all = coded.missing.submessages;
    double fails = coded.missing.kind[0].above[0];
    double sum = coded.whole_s * exp(all * log1p(-fails));
    model_repeat_start(&repeat, &paper_times_message.loss, model_message_overhead(&paper_times_message),
                       paper_times_message.chunks);
    for (double f = 1; f <= all; f++) {
        double chunks = f * coded.missing.kind[0].size;
        sum += exp(model_binomial_log(all, f, fails)) *
               (coded.asked_s +
                (chunks + model_repeat_excess(&repeat, chunks)) * paper_times_message.inject_s);
    }
    return sum;
}

static void test_mean_is_the_mixture(void **state)
{
    (void)state;
    const char *texts[] = {"ec:mds,fallback=sr", "ec:xor,fallback=sr",
                           "ec:mds,k=16,m=2,beta=2,fallback=sr"};
    const double losses[] = {1e-6, 1e-3, 1e-2, 0.1, 0.3};
    for (unsigned t = 0; t < 3; t++)
        for (unsigned l = 0; l < 5; l++) {
            of(texts[t], losses[l], 128 << 20, 25e-3);
            assert_near(ec_paper_mean(&coded), mixture(), 1e-9);
        }
}

/* A short round trip: more may be lacking than is sent within a timeout. */
static void test_mean_where_much_is_lacking(void **state)
{
    (void)state;
    const double losses[] = {1e-3, 1e-2, 0.1, 0.3};
    for (unsigned l = 0; l < 4; l++) {
        of("ec:xor,fallback=sr", losses[l], 128 << 20, 1e-4);
        assert_near(ec_paper_mean(&coded), mixture(), 1e-3);
    }
}

/* The integral of the distribution is the mean, but for the places of what is lacking. */
static void test_distribution_has_the_mean(void **state)
{
    (void)state;
    const char *texts[] = {"ec:mds,fallback=sr", "ec:xor,fallback=sr", "ec:mds", "ec:xor"};
    const double losses[] = {1e-3, 1e-2, 0.1, 0.3};
    for (unsigned t = 0; t < 4; t++)
        for (unsigned l = 0; l < 4; l++) {
            of(texts[t], losses[l], 16 << 20, 25e-3);
            double sum = coded.whole_s;
            const double step = 2e-6;
            for (double at = coded.whole_s + step / 2; ec_paper_cdf(&coded, at) < 1 - 1e-9; at += step)
                sum += (1 - ec_paper_cdf(&coded, at)) * step;
            assert_near(sum, ec_paper_mean(&coded), 1e-3);
        }
}

static void test_quantiles_invert(void **state)
{
    (void)state;
    const double shares[] = {0, 0.3, 0.5, 0.99, 0.999};
    const double losses[] = {0, 1e-3, 1e-2, 0.1, 0.5};
    for (unsigned l = 0; l < 5; l++)
        for (unsigned s = 0; s < 5; s++) {
            of(l % 2 ? "ec:xor" : "ec:xor,fallback=sr", losses[l], 128 << 20, 25e-3);
            double at = ec_paper_quantile(&coded, shares[s]);
            assert_true(ec_paper_cdf(&coded, at) >= shares[s] - 1e-9);
            assert_true(at <= coded.whole_s || ec_paper_cdf(&coded, at * (1 - 1e-8)) <= shares[s]);
        }
}

/* The printed formula at the points that the design settled: 28.4, 28.4, 28.6, 54.4 ms. */
static void test_printed_formula(void **state)
{
    (void)state;
    of("ec:mds,fallback=sr", 1e-2, 128 << 20, 25e-3);
    assert_near(ec_paper_formula(&paper_times_scheme, &paper_times_message), 28.355444018887e-3, 1e-9);
    const double losses[] = {1e-4, 1e-3, 1e-2};
    const double wanted[] = {28.35737720164e-3, 28.559066662435e-3, 54.441867655e-3};
    for (unsigned l = 0; l < 3; l++) {
        of("ec:xor,fallback=sr", losses[l], 128 << 20, 25e-3);
        assert_near(ec_paper_formula(&paper_times_scheme, &paper_times_message), wanted[l], 1e-9);
        double given = ec_paper_formula(&paper_times_scheme, &paper_times_message);
        of("ec:xor,fallback=ir", losses[l], 128 << 20, 25e-3); /* it knows selective repeat only */
        assert_near(ec_paper_formula(&paper_times_scheme, &paper_times_message), given, 0);
    }
}

static int run_paper_times(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_is_the_mixture),       cmocka_unit_test(test_mean_where_much_is_lacking),
        cmocka_unit_test(test_distribution_has_the_mean), cmocka_unit_test(test_quantiles_invert),
        cmocka_unit_test(test_printed_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test predictor -------------------------------------------------------------------------------- */

/* Erasure codes: parity, fallback and distribution by both timings. */

#define PREDICTOR &ec_predictor

static const struct lh_model_path predictor_path = {.message_bytes = 4 << 20,
                                                    .chunk_bytes = 4096,
                                                    .mtu_bytes = 4096,
                                                    .bandwidth_bps = 1e9,
                                                    .rtt_s = 10e-3,
                                                    .loss = 0.01};
static struct model_prediction prediction;

static void test_predictor_of(const char *text, enum lh_model_timing timing, double loss)
{
    struct lh_model_path link = predictor_path;
    struct lh_model_scheme scheme;
    link.loss = loss;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    scheme.timing = timing;
    assert_int_equal(prediction_of(&link, &scheme, &prediction), 0);
    assert_ptr_equal(prediction.predictor, PREDICTOR);
}

/* The quantile is the first moment at which that share is complete. */
static void check_distribution(void)
{
    for (double share = 0.05; share < 1; share += 0.1) {
        double seconds = prediction.predictor->quantile(&prediction, share);
        assert_true(prediction.predictor->cdf(&prediction, seconds * (1 + 1e-7)) >= share - 1e-6);
        assert_true(prediction.predictor->cdf(&prediction, seconds * (1 - 1e-7)) <= share + 0.2);
    }
    assert_true(prediction.predictor->cdf(&prediction, prediction.message.ideal_s * 0.99) == 0);
}

static void test_parity(void **state)
{
    (void)state;
    for (int timing = 0; timing < 2; timing++) {
        test_predictor_of("ec:mds,k=32,m=8", (enum lh_model_timing)timing, 0);
        assert_near(ec_predictor.parity_chunks(&prediction), 1024 / 4.0, 0);
        assert_near(ec_predictor.p_fallback(&prediction), 0, 0);
        assert_near(ec_predictor.overhead_bytes(&prediction), (4 << 20) / 4.0, 1e-9);
    }
}

/* Without a loss the paper's receiver waits for all parity, Longhaul's for none. */
static void test_timing(void **state)
{
    (void)state;
    test_predictor_of("ec:mds,k=32,m=8", LH_MODEL_TIMING_LONGHAUL, 0);
    assert_near(ec_predictor.mean(&prediction), prediction.message.ideal_s, 1e-12);
    test_predictor_of("ec:mds,k=32,m=8", LH_MODEL_TIMING_PAPER, 0);
    double parity_s = 256 * prediction.message.inject_s;
    assert_near(ec_predictor.mean(&prediction), prediction.message.ideal_s + parity_s, 1e-12);
    assert_near(ec_predictor.paper_mean(&prediction), prediction.message.ideal_s + parity_s, 1e-12);
}

static void test_distribution(void **state)
{
    (void)state;
    static const char *const texts[] = {"ec:mds,k=8,m=1", "ec:xor,k=8,m=2", "ec:mds,k=8,m=1,fallback=sr"};
    for (unsigned t = 0; t < 3; t++)
        for (int timing = 0; timing < 2; timing++) {
            test_predictor_of(texts[t], (enum lh_model_timing)timing, 0.01);
            check_distribution();
            assert_true(ec_predictor.p_fallback(&prediction) > 0);
            assert_true(ec_predictor.mean(&prediction) > prediction.message.ideal_s);
        }
}

/* Segments are independent, and what is sent for them adds up. */
static void test_segments_add_up(void **state)
{
    (void)state;
    static const char *const texts[] = {"ec:mds,k=8,m=1", "ec:xor,k=8,m=2", "ec:mds,k=8,m=1,fallback=sr"};
    struct lh_model_path link = predictor_path;
    for (unsigned t = 0; t < 3; t++) {
        struct lh_model_scheme scheme;
        assert_int_equal(lh_model_scheme_parse(texts[t], &scheme), 0);
        scheme.timing = LH_MODEL_TIMING_LONGHAUL;
        link.loss = 0.002;
        link.segment_bytes = 0;
        link.message_bytes = 256 << 10;
        assert_int_equal(prediction_of(&link, &scheme, &prediction), 0);
        double parity = ec_predictor.parity_chunks(&prediction);
        double overhead = ec_predictor.overhead_bytes(&prediction);
        double none = 1 - ec_predictor.p_fallback(&prediction);
        assert_true(none > 0.5 && none < 1 && overhead > parity * 4096);
        link.segment_bytes = 256 << 10;
        for (unsigned count = 2; count <= 8; count *= 2) {
            link.message_bytes = count * link.segment_bytes;
            assert_int_equal(prediction_of(&link, &scheme, &prediction), 0);
            assert_near(1 - ec_predictor.p_fallback(&prediction), pow(none, count), 1e-9);
            assert_near(ec_predictor.parity_chunks(&prediction), count * parity, 1e-9);
            assert_near(ec_predictor.overhead_bytes(&prediction), count * overhead, 1e-9);
        }
    }
}

static int run_predictor(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segments_add_up),
        cmocka_unit_test(test_parity),
        cmocka_unit_test(test_timing),
        cmocka_unit_test(test_distribution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test scheme ----------------------------------------------------------------------------------- */

/* The erasure codes keep their ids; machines and entry are one scheme. */

static void check_entry(const struct scheme_entry *entry, const struct lh_scheme *machines, unsigned id)
{
    assert_int_equal(machines->id, id); /* on the wire: for ever */
    assert_ptr_equal(entry->shown.machines, machines);
    assert_string_equal(entry->shown.name, machines->name);
    assert_string_equal(entry->shown.help, machines->help);
    assert_int_equal(entry->shown.codes, machines->coding != NULL);
}

static void test_entries(void **state)
{
    (void)state;
    check_entry(&ec_mds_entry, &ec_mds_scheme, 3);
    check_entry(&ec_xor_entry, &ec_xor_scheme, 4);
    assert_ptr_not_equal(ec_mds_entry.candidates, ec_xor_entry.candidates);
    assert_ptr_not_equal(ec_mds_entry.encode_rate, ec_xor_entry.encode_rate);
}

static int run_scheme(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_message_times() + run_model_params() + run_paper_times() + run_predictor() + run_scheme();
}
