/*
 * test_repeat_model.c - a path in the model's message; nonsense is refused in words.
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

#include "model/repeat_model.h"
#include "support/near.h"

/* ---- test message ---------------------------------------------------------------------------------- */

static const struct lh_model_path good = {.message_bytes = 128 << 20,
                                          .chunk_bytes = 65536,
                                          .mtu_bytes = 4096,
                                          .bandwidth_bps = 400e9,
                                          .rtt_s = 25e-3,
                                          .loss = 1e-4};

#define RTO 3.0

static void test_terms(void **state)
{
    (void)state;
    struct model_message message;
    assert_int_equal(model_message_of(&good, RTO, &message), 0);
    assert_near(message.chunks, 2048, 0);
    assert_near(message.packets, 32768, 0);
    assert_near(message.inject_s, 1.31072e-6, 1e-12);
    assert_near(message.ideal_s, 27.68435456e-3, 1e-12);
    assert_near(model_message_overhead(&message), 1 + 75e-3 / 1.31072e-6, 1e-12);
    assert_near(message.loss.chunk, -expm1(16 * log1p(-1e-4)), 1e-12);
}

/* A short message is one chunk of its own packets; injection takes what its bytes take. */
static void test_odd_sizes(void **state)
{
    (void)state;
    struct lh_model_path path = good;
    struct model_message message;
    path.message_bytes = 5000;
    assert_int_equal(model_message_of(&path, RTO, &message), 0);
    assert_near(message.chunks, 1, 0);
    assert_near(message.loss.chunk, -expm1(2 * log1p(-1e-4)), 1e-12);
    assert_near(message.ideal_s, 25e-3 + 5000 * 8 / 400e9, 1e-15);
    path.message_bytes = 65537;
    path.header_bytes = 84;
    assert_int_equal(model_message_of(&path, RTO, &message), 0);
    assert_near(message.chunks, 2, 0);
    assert_near(message.message_wire_bytes, 65537 + 17 * 84, 0);
    assert_near(message.chunks * message.inject_s, message.message_wire_bytes * 8 / 400e9, 1e-12);
}

/* Loss told by the chunk is the same as told by the packet. */
static void test_loss_of_chunk(void **state)
{
    (void)state;
    struct lh_model_path path = good;
    struct model_message by_packet;
    struct model_message by_chunk;
    for (path.burst_packets = 0; path.burst_packets <= 10; path.burst_packets += 10) {
        path.loss_of_chunk = false;
        path.loss = 1e-4;
        assert_int_equal(model_message_of(&path, RTO, &by_packet), 0);
        path.loss_of_chunk = true;
        path.loss = by_packet.loss.chunk;
        assert_int_equal(model_message_of(&path, RTO, &by_chunk), 0);
        assert_near(by_chunk.loss.packet, 1e-4, 1e-9);
    }
}

static void refused(struct lh_model_path path, int code, const char *word)
{
    struct model_message message = {.chunks = 7};
    assert_int_equal(model_message_of(&path, RTO, &message), code);
    if (!strstr(lh_last_error(), word))
        fail_msg("\"%s\" does not say %s", lh_last_error(), word);
    assert_near(message.chunks, 7, 0); /* set only on success */
}

#define REFUSED(code, word, ...)                                                                           \
    do {                                                                                                   \
        struct lh_model_path path = good;                                                                  \
        __VA_ARGS__;                                                                                       \
        refused(path, code, word);                                                                         \
    } while (0)

static void test_refused(void **state)
{
    (void)state;
    REFUSED(-LH_ERANGE, "message of 0", path.message_bytes = 0);
    REFUSED(-LH_ERANGE, "2^63", path.message_bytes = (uint64_t)1 << 63);
    REFUSED(-LH_ERANGE, "2^63", path.message_bytes = (uint64_t)-5);
    REFUSED(-LH_ERANGE, "packets", path.message_bytes = ((uint64_t)1 << 63) - 1; path.mtu_bytes = 1);
    REFUSED(-LH_EINVAL, "MTU", path.mtu_bytes = 0);
    REFUSED(-LH_ERANGE, "chunk of 0", path.chunk_bytes = 0);
    REFUSED(-LH_ERANGE, "2^63", path.chunk_bytes = (uint64_t)-4096);
    REFUSED(-LH_EINVAL, "multiple", path.chunk_bytes = 65537);
    REFUSED(-LH_ERANGE, "bandwidth 0", path.bandwidth_bps = 0);
    REFUSED(-LH_ERANGE, "bandwidth -1", path.bandwidth_bps = -1);
    REFUSED(-LH_ERANGE, "bandwidth nan", path.bandwidth_bps = fabs(NAN));
    REFUSED(-LH_ERANGE, "bandwidth inf", path.bandwidth_bps = INFINITY);
    REFUSED(-LH_ERANGE, "round-trip time 0", path.rtt_s = 0);
    REFUSED(-LH_ERANGE, "round-trip time -0.1", path.rtt_s = -0.1);
    REFUSED(-LH_ERANGE, "round-trip time", path.rtt_s = NAN);
    REFUSED(-LH_ERANGE, "round-trip time", path.rtt_s = INFINITY);
    REFUSED(-LH_ERANGE, "loss -1e-09", path.loss = -1e-9);
    REFUSED(-LH_ERANGE, "loss 1:", path.loss = 1);
    REFUSED(-LH_ERANGE, "loss ", path.loss = NAN);
    REFUSED(-LH_ERANGE, "smaller chunks", path.loss = 0.5);
    REFUSED(-LH_ERANGE, "burst length", path.burst_packets = -1);
    REFUSED(-LH_ERANGE, "burst length", path.burst_packets = NAN);
    REFUSED(-LH_EINVAL, "burst length", path.burst_packets = 0.5);
    REFUSED(-LH_ERANGE, "longer bursts", path.burst_packets = 2; path.loss = 0.7);
}

static int run_message(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terms),
        cmocka_unit_test(test_odd_sizes),
        cmocka_unit_test(test_loss_of_chunk),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test repeat ----------------------------------------------------------------------------------- */

/* Appendix A in closed sums, against its integral chunk by chunk. */

static struct model_repeat repeat_repeat;

static void start(double loss, double overhead, double chunks)
{
    struct model_loss independent = model_loss_of_chunks(loss, 0, 1);
    model_repeat_start(&repeat_repeat, &independent, overhead, chunks);
}

/* Appendix A as it stands, at q behind the start of the last chunk: 1 - P(max X_i >= q). */
static double not_reached(double loss, double overhead, unsigned chunks, double q)
{
    double product = 1;
    for (unsigned behind = 0; behind < chunks; behind++)
        product *= 1 - pow(loss, ceil((q + behind) / overhead));
    return product;
}

/* All steps lie on multiples of 1 / 8 when the overhead does. */
static double integral(double loss, double overhead, unsigned chunks)
{
    double sum = 0;
    for (double q = 1.0 / 16;; q += 1.0 / 8) {
        double tail = 1 - not_reached(loss, overhead, chunks, q);
        sum += tail / 8;
        if (tail < 1e-15)
            return sum;
    }
}

static const struct {
    double loss;
    double overhead;
    unsigned chunks;
} cases[] = {
    {0.1, 7.25, 1},    {0.1, 7.25, 3},    {0.1, 7.25, 7},    {0.1, 7.25, 8},
    {0.1, 7.25, 9},    {0.1, 7.25, 50},   {0.5, 7.375, 50},  {0.5, 1, 50},
    {0.3, 2.5, 200},   {0.01, 30.25, 20}, {0.01, 30, 300},   {0.9, 5.5, 40},
    {0.99, 3.125, 30}, {0.001, 100, 64},  {0.2, 1.125, 100}, {0.7, 1.5, 500},
};
#define CASES (sizeof cases / sizeof *cases)

static void test_mean_is_the_integral(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CASES; i++) {
        start(cases[i].loss, cases[i].overhead, cases[i].chunks);
        assert_near(model_repeat_excess(&repeat_repeat, cases[i].chunks),
                    integral(cases[i].loss, cases[i].overhead, cases[i].chunks), 1e-8);
    }
}

static void test_distribution_is_the_product(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CASES; i++) {
        start(cases[i].loss, cases[i].overhead, cases[i].chunks);
        for (double q = 1.0 / 16; q < 12 * cases[i].overhead; q += 0.625)
            assert_near(model_repeat_cdf(&repeat_repeat, cases[i].chunks, q),
                        not_reached(cases[i].loss, cases[i].overhead, cases[i].chunks, q), 1e-12);
    }
}

/* A quantile is where the distribution first reaches the share, and not before. */
static void test_quantiles_invert(void **state)
{
    (void)state;
    const double shares[] = {0, 0.01, 0.5, 0.99, 0.999, 1 - 1e-9};
    for (unsigned i = 0; i < CASES; i++) {
        start(cases[i].loss, cases[i].overhead, cases[i].chunks);
        for (unsigned s = 0; s < sizeof shares / sizeof *shares; s++) {
            double at = model_repeat_quantile(&repeat_repeat, cases[i].chunks, shares[s]);
            assert_true(model_repeat_cdf(&repeat_repeat, cases[i].chunks, at) >= shares[s]);
            assert_true(at == 0 ||
                        model_repeat_cdf(&repeat_repeat, cases[i].chunks, at * (1 - 1e-9)) < shares[s]);
        }
    }
}

/* One chunk: RTO + T_inj for each of p / (1 - p) losses, to all digits. */
static void test_one_chunk(void **state)
{
    (void)state;
    const double losses[] = {1e-12, 1e-9, 1e-4, 0.01, 0.5, 0.9};
    for (unsigned i = 0; i < sizeof losses / sizeof *losses; i++) {
        start(losses[i], 57221.46, 1);
        assert_near(model_repeat_excess(&repeat_repeat, 1), 57221.46 * losses[i] / (1 - losses[i]), 1e-12);
    }
    start(0, 10, 1e9);
    assert_near(model_repeat_excess(&repeat_repeat, 1e9), 0, 0);
    assert_near(model_repeat_cdf(&repeat_repeat, 1e9, 0), 1, 0);
    assert_near(model_repeat_cdf(&repeat_repeat, 1e9, -1e-9), 0, 0);
}

/* With many chunks and one loss among them at most, the last A of them count: each of the losses p costs
 * A - d when d chunks follow; to first order, p A (A - 1) / 2 and what is left of the last step. */
static void test_rare_loss_in_many_chunks(void **state)
{
    (void)state;
    const double overhead = 1001;
    for (double chunks = 1e4; chunks <= 1e9; chunks *= 10) {
        start(1e-12, overhead, chunks);
        double sum = 1e-12 * overhead * (overhead + 1) / 2;
        assert_near(model_repeat_excess(&repeat_repeat, chunks), sum, 1e-6);
    }
}

static void test_grows(void **state)
{
    (void)state;
    double before = 0;
    for (double chunks = 1; chunks <= 1e9; chunks *= 10) {
        start(0.5, 915528.34, chunks);
        double excess = model_repeat_excess(&repeat_repeat, chunks);
        assert_true(isfinite(excess) && excess >= before * (1 - 1e-12)); /* enough is enough */
        before = excess;
    }
    before = 0;
    for (double loss = 1e-12; loss < 0.99; loss *= 1.5) {
        start(loss, 1e3, 1e5);
        double excess = model_repeat_excess(&repeat_repeat, 1e5);
        assert_true(excess > before);
        before = excess;
    }
}

/* Between two whole numbers of chunks there is no leap: the paper's formula is put a mean number in. */
static void test_parts_of_chunks(void **state)
{
    (void)state;
    start(0.01, 57221.5, 20);
    double sixteen = model_repeat_excess(&repeat_repeat, 16);
    double seventeen = model_repeat_excess(&repeat_repeat, 17);
    double between = model_repeat_excess(&repeat_repeat, 16.5);
    assert_true(sixteen < between && between < seventeen);
    assert_near(between, (sixteen + seventeen) / 2, 1e-4);
    assert_near(model_repeat_excess(&repeat_repeat, 1e-6), 57221.5 * 1e-6 * -log1p(-0.01), 0.02);
}

/* That nothing is lost of a short message is exact with bursts, too: its first packet passes as any does, and
 * none of the others begins a burst. */
static void test_bursts_that_miss(void **state)
{
    (void)state;
    for (double chunks = 1; chunks <= 1000; chunks *= 10) {
        struct model_loss loss = model_loss_of_packets(0.05, 40, 4);
        model_repeat_start(&repeat_repeat, &loss, 2000, chunks);
        assert_near(model_repeat_cdf(&repeat_repeat, chunks, 0), 0.95 * pow(1 - loss.enter, 4 * chunks - 1),
                    1e-12);
        double mean = model_repeat_excess(&repeat_repeat, chunks);
        double sum = 0;
        for (double q = 0.5; q < 40000; q++)
            sum += 1 - model_repeat_cdf(&repeat_repeat, chunks, q);
        assert_near(sum, mean, 1e-6);
    }
}

static int run_repeat(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_is_the_integral),     cmocka_unit_test(test_distribution_is_the_product),
        cmocka_unit_test(test_quantiles_invert),         cmocka_unit_test(test_one_chunk),
        cmocka_unit_test(test_rare_loss_in_many_chunks), cmocka_unit_test(test_grows),
        cmocka_unit_test(test_parts_of_chunks),          cmocka_unit_test(test_bursts_that_miss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test repeat sampler --------------------------------------------------------------------------- */

/* Completion times of selective repeat drawn against chunk by chunk. */

static struct lh_prng prng;

/* Each chunk by itself, each transmission drawn. */
static double chunk_by_chunk(const struct model_repeat *repeat, double loss, unsigned chunks)
{
    double latest = 0;
    for (unsigned behind = 0; behind < chunks; behind++) {
        double losses = 0;
        while (lh_prng_chance(&prng, loss))
            losses++;
        if (losses > 0)
            latest = fmax(latest, losses * repeat->overhead - behind);
    }
    return latest;
}

/* Short and long beside the timeout. */
static void test_repeat_is_chunk_by_chunk(void **state)
{
    (void)state;
    static struct model_repeat repeat;
    const double overheads[] = {1, 3.3, 17.2, 1000.5};
    const double losses[] = {0.02, 0.3, 0.8};
    lh_prng_seed(&prng, 5);
    for (unsigned o = 0; o < 4; o++)
        for (unsigned l = 0; l < 3; l++) {
            struct model_loss loss = model_loss_of_chunks(losses[l], 0, 1);
            double sums[2] = {0, 0};
            double squares = 0;
            model_repeat_start(&repeat, &loss, overheads[o], 60);
            for (unsigned i = 0; i < 5000; i++) {
                double sampled = model_sample_repeat(&repeat, log(losses[l]), 60, &prng);
                double each = chunk_by_chunk(&repeat, losses[l], 60);
                sums[0] += sampled;
                sums[1] += each;
                squares += sampled * sampled + each * each;
            }
            double allowed = 5 * sqrt(squares) / 5000;
            assert_true(fabs(sums[0] - sums[1]) / 5000 <= allowed);
            assert_true(fabs(sums[0] / 5000 - model_repeat_excess(&repeat, 60)) <= allowed);
        }
}

/* Much is lost, and a timeout is a few chunks: each chunk that is counted once too often shows. */
static void test_dense_loss(void **state)
{
    (void)state;
    static struct model_repeat repeat;
    lh_prng_seed(&prng, 10);
    for (int bursty = 0; bursty < 2; bursty++) {
        struct model_loss loss = model_loss_of_packets(0.4, bursty ? 1 / 0.6 : 0, 1);
        const unsigned count = bursty ? 40000 : 400000;
        double sum = 0;
        double squares = 0;
        loss.bursty = false;
        model_repeat_start(&repeat, &loss, 2.5, 30);
        double wanted = model_repeat_excess(&repeat, 30);
        for (unsigned i = 0; i < count; i++) {
            double sampled = bursty ? model_sample_repeat_bursts(&repeat, &loss, 30, &prng)
                                    : model_sample_repeat(&repeat, log(0.4), 30, &prng);
            sum += sampled;
            squares += sampled * sampled;
        }
        double mean = sum / count;
        assert_true(fabs(mean - wanted) <= 4 * sqrt((squares / count - mean * mean) / count));
    }
}

static int run_repeat_sampler(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeat_is_chunk_by_chunk),
        cmocka_unit_test(test_dense_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test series ----------------------------------------------------------------------------------- */

/* The closed sum against the sum, term by term. */

static double term_by_term(double first, double rise, unsigned count)
{
    double sum = 0;
    for (unsigned j = 0; j < count; j++)
        sum += -expm1(first + j * rise);
    return sum;
}

static void test_is_the_sum(void **state)
{
    (void)state;
    const double firsts[] = {-1e-15, -1e-6, -1.9e-3, -2.1e-3, -0.5, -30, -800};
    const unsigned counts[] = {1, 2, 3, 4, 17, 1000};
    for (unsigned f = 0; f < sizeof firsts / sizeof *firsts; f++)
        for (unsigned c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int part = 0; part <= 4; part++) { /* from level to all the way up to 0 */
                double rise = counts[c] > 1 ? -firsts[f] * part / 4 / (counts[c] - 1) : 0;
                assert_near(model_series_missing(firsts[f], rise, counts[c]),
                            term_by_term(firsts[f], rise, counts[c]), 2e-12);
            }
}

static void test_ends(void **state)
{
    (void)state;
    assert_near(model_series_missing(-1, 0.1, 0), 0, 0);
    assert_near(model_series_missing(0, 0, 1e9), 0, 0);
    assert_near(model_series_missing(-1e-12, 0, 1e9), 1e-3, 1e-9);
    /* 10^9 terms that end at 0: half of the first, on average. */
    assert_near(model_series_missing(-1e-9, 1e-18, 1e9), 0.5, 1e-8);
}

static int run_series(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_the_sum),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_message() + run_repeat() + run_repeat_sampler() + run_series();
}
