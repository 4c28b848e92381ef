/*
 * test_ec_arrival_model.c - how much parity a message waits for, against binomials.
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

#include "schemes/ec_arrival_model.h"
#include "support/near.h"
#include "support/predictions.h"

/* ---- test partial arrival -------------------------------------------------------------------------- */

static struct ec_partial_arrival partial_arrival_partial;

static void of(const char *text, double p, double chunks)
{
    static struct ec_missing missing;
    struct lh_model_scheme scheme;
    struct model_loss loss = model_loss_of_packets(p, 0, 1);
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    ec_missing_of(&scheme, &loss, chunks, &missing);
    ec_partial_start(&partial_arrival_partial, &scheme, &loss, chunks, &missing);
}

/* One submessage of 4 chunks: j lost of its 4 + j at most after j rows. */
static void test_one_submessage(void **state)
{
    (void)state;
    const double p = 0.1, q = 0.9;
    of("ec:mds,k=4,m=2", p, 4);
    assert_near(ec_partial_log(&partial_arrival_partial, 0), 4 * log(q), 1e-12);
    assert_near(exp(ec_partial_log(&partial_arrival_partial, 1)), pow(q, 5) + 5 * p * pow(q, 4), 1e-12);
    double all = pow(q, 6) + 6 * p * pow(q, 5) + 15 * p * p * pow(q, 4);
    assert_near(exp(ec_partial_log(&partial_arrival_partial, 2)), all, 1e-12);
    assert_near(ec_partial_log(&partial_arrival_partial, 100), ec_partial_log(&partial_arrival_partial, 2),
                0);
    double mean = 1 - pow(q, 4) + 1 - pow(q, 5) - 5 * p * pow(q, 4);
    assert_near(ec_partial_mean(&partial_arrival_partial), mean, 1e-12);
}

/* Rows in their order: one that comes later never makes a message less complete, and the quantile is the
 * first that is enough. */
static void test_quantile(void **state)
{
    (void)state;
    static const char *const texts[] = {"ec:mds,k=8,m=3", "ec:xor,k=8,m=4", "ec:xor,k=8,m=4,spread=2"};
    for (unsigned t = 0; t < 3; t++) {
        of(texts[t], 0.05, 50);
        double all = partial_arrival_partial.submessages * partial_arrival_partial.rows;
        for (double parity = 1; parity <= all; parity++)
            assert_true(ec_partial_log(&partial_arrival_partial, parity) >=
                        ec_partial_log(&partial_arrival_partial, parity - 1) - 1e-12);
        for (double share = 0.05; share < 1; share += 0.05) {
            double parity = ec_partial_quantile(&partial_arrival_partial, share);
            if (isinf(parity)) {
                assert_true(ec_partial_log(&partial_arrival_partial, all) < log(share));
                continue;
            }
            assert_true(ec_partial_log(&partial_arrival_partial, parity) >= log(share));
            assert_true(parity == 0 || ec_partial_log(&partial_arrival_partial, parity - 1) < log(share));
        }
    }
}

static int run_partial_arrival(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_submessage),
        cmocka_unit_test(test_quantile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test request rounds --------------------------------------------------------------------------- */

/*
 * Rounds of requests: one is enough where the code has a margin, else chances fall
 * with each.
 */

static struct ec_rounds request_rounds_rounds;
static struct ec_missing request_rounds_missing;

static void request_rounds_of(const char *text, double p, double chunks)
{
    struct lh_model_scheme scheme;
    struct model_loss loss = model_loss_of_packets(p, 0, 1);
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    ec_missing_of(&scheme, &loss, chunks, &request_rounds_missing);
    ec_rounds_start(&request_rounds_rounds, &scheme, &loss, chunks, &request_rounds_missing);
}

static void test_margin(void **state)
{
    (void)state;
    request_rounds_of("ec:mds,k=32,m=16", 0.2, 320);
    assert_near(ec_rounds_log(&request_rounds_rounds, 0), request_rounds_missing.log_none, 0);
    assert_near(ec_rounds_log(&request_rounds_rounds, 1), 0, 1e-9);
    assert_near(ec_rounds_more(&request_rounds_rounds), 0, 1e-9);
    assert_near(ec_rounds_quantile(&request_rounds_rounds, 0.999), 1, 0);
}

/* One fresh row for some 12 lost chunks: nearly all of them are asked for, and a fifth is lost each time. */
static void test_few_fresh_rows(void **state)
{
    (void)state;
    request_rounds_of("ec:mds,k=64,m=1", 0.2, 3200);
    assert_near(ec_rounds_quantile(&request_rounds_rounds, 0.01), 2, 0);
    assert_near(ec_rounds_quantile(&request_rounds_rounds, 0.9), 4, 0);
}

/* The only chunk and a copy, then once a round: lost r + 2 times. */
static void test_copies(void **state)
{
    (void)state;
    const double p = 0.3;
    request_rounds_of("ec:mds,k=8,m=1", p, 1);
    for (double r = 0; r < 6; r++)
        assert_near(-expm1(ec_rounds_log(&request_rounds_rounds, r)), pow(p, r + 2), 1e-9);
    assert_near(ec_rounds_more(&request_rounds_rounds), pow(p, 3) / (1 - p), 1e-6);
}

static void test_each_round_brings_more(void **state)
{
    (void)state;
    static const char *const texts[] = {"ec:mds,k=8,m=2,fallback=sr", "ec:xor,k=8,m=2",
                                        "ec:xor,k=8,m=2,fallback=sr", "ec:mds,k=8,m=1"};
    for (unsigned t = 0; t < 4; t++) {
        request_rounds_of(texts[t], 0.2, 100);
        for (double r = 1; r < 20; r++)
            assert_true(ec_rounds_log(&request_rounds_rounds, r) >
                        ec_rounds_log(&request_rounds_rounds, r - 1));
        for (double share = 0.1; share < 1; share += 0.2) {
            double r = ec_rounds_quantile(&request_rounds_rounds, share);
            assert_true(ec_rounds_log(&request_rounds_rounds, r) >= log(share));
            assert_true(r == 0 || ec_rounds_log(&request_rounds_rounds, r - 1) < log(share));
        }
    }
}

static int run_request_rounds(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_margin),
        cmocka_unit_test(test_few_fresh_rows),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_each_round_brings_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test segment times ---------------------------------------------------------------------------- */

/*
 * Erasure codes as Longhaul's machines run them, against messages played chunk by
 * chunk: how much parity they wait for, how often they ask, how long they take.
 */

#define PLAYED      20000
#define GROUPS_MAX  32u
#define PLACES_MAX  32u
#define PACKETS_MAX 4u

static const char *const codes[] = {
    "ec:mds,k=8,m=3",          "ec:mds,k=8,m=1,spread=1", "ec:mds,k=8,m=3,spread=2,fallback=sr",
    "ec:xor,k=8,m=3",          "ec:xor,k=8,m=4,spread=1", "ec:xor,k=8,m=3,fallback=sr",
    "ec:mds,k=4,m=8,beta=0.05"};
#define CODES (sizeof codes / sizeof *codes)

static struct lh_prng prng;
static struct ec_segment_times code;
static struct lh_model_scheme segment_times_scheme;
static struct model_message message;

static struct lh_model_path path_of(uint64_t chunks, uint32_t packets, double loss)
{
    return (struct lh_model_path){.message_bytes = chunks * packets * 1024,
                                  .chunk_bytes = packets * 1024,
                                  .mtu_bytes = 1024,
                                  .bandwidth_bps = 1e9,
                                  .rtt_s = 1e-3,
                                  .loss = loss};
}

static void start(const char *text, const struct lh_model_path *path)
{
    assert_int_equal(lh_model_scheme_parse(text, &segment_times_scheme), 0);
    segment_times_scheme.timing = LH_MODEL_TIMING_LONGHAUL;
    assert_int_equal(message_of(path, &segment_times_scheme, &message), 0);
    ec_segment_start(&code, &segment_times_scheme, &message);
}

/* ---- a message, played ------------------------------------------------------------------------------- */

/* Which packets of a chunk have not come: bits. */
struct group {
    unsigned size;
    unsigned data[PLACES_MAX];
    bool parity[PLACES_MAX]; /* is lost */
};

static unsigned send_chunk(unsigned missing)
{
    unsigned lost = 0;
    for (unsigned packet = 0; packet < message.loss.chunk_packets; packet++)
        if (missing >> packet & 1 && lh_prng_chance(&prng, message.loss.packet))
            lost |= 1u << packet;
    return lost;
}

/* Rows of parity are there, of them those before `rows`. */
static bool class_met(const struct group *group, unsigned class, unsigned classes, unsigned rows)
{
    unsigned lost = 0;
    for (unsigned i = class; i < group->size; i += classes)
        lost += group->data[i] != 0;
    return lost == 0 || (lost == 1 && class < rows && !group->parity[class]);
}

static bool met(const struct group *group, unsigned rows)
{
    unsigned lost = 0;
    unsigned there = 0;
    if (segment_times_scheme.kind == LH_MODEL_EC_XOR && message.chunks > 1) {
        unsigned classes = code.missing.rows < group->size ? code.missing.rows : group->size;
        for (unsigned class = 0; class < classes; class ++)
            if (!class_met(group, class, classes, rows))
                return false;
        return true;
    }
    for (unsigned i = 0; i < group->size; i++)
        lost += group->data[i] != 0;
    for (unsigned r = 0; r < rows; r++)
        there += !group->parity[r];
    return there >= lost;
}

/* With fallback ir: all fresh rows, once, and all data that is missing; false: as below. */
static bool ask_for_fresh(struct group *group, bool *failed)
{
    const unsigned rows = code.missing.rows, all = rows + code.rounds.fresh;
    if (met(group, *failed ? all : rows))
        return false;
    for (unsigned r = rows; r < all && !*failed; r++)
        group->parity[r] = send_chunk((1u << (unsigned)message.loss.chunk_packets) - 1) != 0;
    for (unsigned i = 0; i < group->size; i++)
        group->data[i] = send_chunk(group->data[i]);
    *failed = true;
    return true;
}

/* Sends again what is asked for; false: there is nothing to ask for. */
static bool ask(struct group *group, bool *failed)
{
    bool sr = segment_times_scheme.fallback == LH_MODEL_FALLBACK_SR;
    unsigned classes = code.missing.rows < group->size ? code.missing.rows : group->size;
    bool asked[PLACES_MAX];
    if (message.chunks > 1 && segment_times_scheme.kind == LH_MODEL_EC_MDS && !sr)
        return ask_for_fresh(group, failed);
    bool lacks = false;
    if (!*failed && met(group, code.missing.rows))
        return false;
    *failed = true;
    for (unsigned i = 0; i < group->size; i++) {
        asked[i] =
            group->data[i] != 0 && (sr || !class_met(group, i % classes, classes, code.missing.rows));
        lacks |= asked[i];
    }
    for (unsigned i = 0; i < group->size; i++)
        if (asked[i])
            group->data[i] = send_chunk(group->data[i]);
    return lacks;
}

struct played {
    double parity; /* chunks of it that were waited for; infinite: it did not do */
    double rounds;
};

static double rows_waited(const struct group *group)
{
    unsigned rows = 0;
    while (rows <= code.missing.rows && !met(group, rows))
        rows++;
    return rows <= code.missing.rows ? (double)rows : (double)INFINITY;
}

static struct played play(void)
{
    static struct group groups[GROUPS_MAX];
    bool failed[GROUPS_MAX] = {false};
    unsigned count = (unsigned)code.missing.submessages;
    unsigned all = (1u << (unsigned)message.loss.chunk_packets) - 1;
    struct played played = {0, 0};
    assert_true(count <= GROUPS_MAX);
    for (unsigned g = 0; g < count; g++) {
        groups[g].size = code.missing.kind[g < code.missing.kind[0].count ? 0 : 1].size;
        for (unsigned i = 0; i < groups[g].size; i++)
            groups[g].data[i] = send_chunk(all);
        unsigned copy = groups[g].data[0];
        for (unsigned r = 0; r < code.missing.rows; r++) {
            copy = send_chunk(message.chunks > 1 ? all : copy);
            groups[g].parity[r] = copy != 0;
        }
        unsigned stride = (unsigned)code.missing.stride;
        unsigned first = g / stride * stride;
        unsigned in_block = count - first < stride ? count - first : stride;
        double rows = rows_waited(&groups[g]);
        if (message.chunks <= 1)
            groups[g].data[0] = copy; /* what no copy brought */
        if (rows > 0)
            played.parity =
                fmax(played.parity, first * code.missing.rows + (rows - 1) * in_block + (g - first) + 1);
    }
    if (isfinite(played.parity))
        return played;
    played.rounds = 1;
    for (unsigned round = 1;; round++) {
        bool any = false;
        for (unsigned g = 0; g < count; g++)
            any |= ask(&groups[g], &failed[g]);
        if (!any)
            break;
        played.rounds = round;
    }
    return played;
}

/* ---- tests ------------------------------------------------------------------------------------------- */

static void check_share(const char *what, const char *text, double share, double wanted)
{
    double error = sqrt(fmax(wanted * (1 - wanted), 1e-3) / PLAYED);
    if (!(fabs(share - wanted) < 5 * error))
        fail_msg("%s of %s: %g played, %g by formula", what, text, share, wanted);
}

static void check_code(const char *text, uint64_t chunks, uint32_t packets, double loss)
{
    struct lh_model_path path = path_of(chunks, packets, loss);
    start(text, &path);
    double all = code.missing.submessages * code.missing.rows;
    double waited = 0;
    double squares = 0;
    double half = 0;
    double rounds[4] = {0};
    double more = 0;
    for (unsigned i = 0; i < PLAYED; i++) {
        struct played played = play();
        waited += fmin(played.parity, all);
        squares += fmin(played.parity, all) * fmin(played.parity, all);
        half += played.parity <= floor(all / 2);
        more += fmax(0, played.rounds - 1);
        for (unsigned r = 0; r < 4; r++)
            rounds[r] += played.rounds <= r;
    }
    double mean = waited / PLAYED;
    double error = sqrt(fmax(1e-3, squares / PLAYED - mean * mean) / PLAYED);
    assert_true(fabs(ec_partial_mean(&code.partial) - mean) < 5 * error);
    check_share("half of the parity", text, half / PLAYED,
                exp(ec_partial_log(&code.partial, floor(all / 2))));
    for (unsigned r = 0; r < 4; r++)
        check_share("rounds", text, rounds[r] / PLAYED, exp(ec_rounds_log(&code.rounds, r)));
    assert_true(fabs(ec_rounds_more(&code.rounds) - more / PLAYED) < 0.03);
}

static void test_played(void **state)
{
    (void)state;
    lh_prng_seed(&prng, 3);
    for (unsigned i = 0; i < CODES; i++) {
        check_code(codes[i], 64, 1, 0.1);
        check_code(codes[i], 61, 1, 0.02); /* submessages of two sizes */
        check_code(codes[i], 60, 3, 0.05);
    }
    check_code("ec:mds", 1, 1, 0.3); /* copies */
    check_code("ec:xor,m=1", 1, 2, 0.3);
}

static void test_times(void **state)
{
    (void)state;
    struct lh_model_path path = path_of(64, 1, 0);
    start("ec:mds,k=8,m=2", &path);
    assert_near(ec_segment_mean(&code), message.ideal_s, 1e-12); /* waits for no parity */
    assert_near(ec_segment_quantile(&code, 0.999), message.ideal_s, 1e-12);
    path.loss = 0.05;
    start("ec:mds,k=8,m=2", &path);
    double sent_s = (64 + 16) * message.inject_s;
    assert_near(code.asked_s, sent_s + 2.5e-3, 1e-12);
    assert_near(code.round_s, 1.125e-3, 1e-12);
    start("ec:mds,k=8,m=2,beta=0", &path);
    assert_near(code.asked_s, sent_s + 2.125e-3, 1e-12); /* a window at least */
}

/* The distribution is where its quantiles say, and its mean is the mean. */
static void test_distribution(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CODES; i++)
        for (double loss = 1e-3; loss < 0.2; loss *= 5) {
            struct lh_model_path path = path_of(61, 2, loss);
            start(codes[i], &path);
            double sum = 0;
            for (double share = 0.0005; share < 1; share += 0.001) {
                double at = ec_segment_quantile(&code, share);
                assert_true(ec_segment_cdf(&code, at * (1 + 1e-9)) >= share * (1 - 1e-9));
                assert_true(at <= message.ideal_s * (1 + 1e-9) ||
                            ec_segment_cdf(&code, at * (1 - 1e-9)) <= share * (1 + 1e-9));
                sum += at / 1000;
            }
            assert_near(sum, ec_segment_mean(&code), 4e-3);
        }
}

/* Rows of lost packets, drawn on the wire: as long as chance makes them they are independent. */
static void test_drawn(void **state)
{
    (void)state;
    static struct model_prediction sampler;
    lh_prng_seed(&prng, 4);
    for (unsigned i = 0; i < CODES; i++) {
        struct lh_model_path path = path_of(61, 1, 0.05);
        start(codes[i], &path);
        double wanted = ec_segment_mean(&code);
        for (unsigned rows = 0; rows < 2; rows++) {
            path.burst_packets = rows ? 1 / 0.95 : 0;
            assert_int_equal(prediction_of(&path, &segment_times_scheme, &sampler), 0);
            uint8_t *cells = calloc(1, sampler.cells + 1);
            double sum = 0;
            for (unsigned n = 0; n < PLAYED; n++)
                sum += sample_one(&sampler, &prng, cells);
            assert_near(sum / PLAYED, wanted, 0.012);
            free(cells);
        }
    }
}

/* A row much longer than a block's width fails all of its submessages or none. */
static void test_rows_fail_together(void **state)
{
    (void)state;
    struct lh_model_path path = path_of(64, 1, 0.01);
    path.burst_packets = 64;
    start("ec:mds,k=8,m=2", &path);
    assert_near(ec_missing_apart(&code.missing, &message.loss), (1 / 64.0) / (1 - pow(1 - 1 / 64.0, 8)),
                1e-9);
    assert_true(code.p_fallback < 0.25 * -expm1(code.missing.log_none));
    start("ec:mds,k=8,m=2,spread=1", &path);
    assert_near(ec_missing_apart(&code.missing, &message.loss), 1, 1e-12);
    path.burst_packets = 0;
    start("ec:mds,k=8,m=2", &path);
    assert_near(ec_missing_apart(&code.missing, &message.loss), 1, 0);
}

static int run_segment_times(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_played),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_drawn),
        cmocka_unit_test(test_rows_fail_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_partial_arrival() + run_request_rounds() + run_segment_times();
}
