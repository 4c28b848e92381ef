/*
 * test_segment_times.c - erasure codes as Longhaul's machines run them, against messages played chunk by
 * chunk: how much parity they wait for, how often they ask, how long they take.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/ec/segment_times.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/predictions.h"
#include "support/near.h"

#define PLAYED      20000
#define GROUPS_MAX  32u
#define PLACES_MAX  32u
#define PACKETS_MAX 4u

static const char *const codes[] = {
    "ec:mds,k=8,m=3",          "ec:mds,k=8,m=3,spread=1", "ec:mds,k=8,m=3,spread=2,fallback=sr",
    "ec:xor,k=8,m=3",          "ec:xor,k=8,m=4,spread=1", "ec:xor,k=8,m=3,fallback=sr",
    "ec:mds,k=4,m=8,beta=0.05"};
#define CODES (sizeof codes / sizeof *codes)

static struct lh_prng prng;
static struct ec_segment_times code;
static struct lh_model_scheme scheme;
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
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    scheme.timing = LH_MODEL_TIMING_LONGHAUL;
    assert_int_equal(message_of(path, &scheme, &message), 0);
    ec_segment_start(&code, &scheme, &message);
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
    if (scheme.kind == LH_MODEL_EC_XOR && message.chunks > 1) {
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

/* Sends again what is asked for; false: there is nothing to ask for. Not mds with fallback ir. */
static bool ask(struct group *group, bool *failed)
{
    bool sr = scheme.fallback == LH_MODEL_FALLBACK_SR;
    unsigned classes = code.missing.rows < group->size ? code.missing.rows : group->size;
    bool asked[PLACES_MAX];
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
    if (message.chunks > 1 && scheme.kind == LH_MODEL_EC_MDS && scheme.fallback == LH_MODEL_FALLBACK_IR)
        return played; /* it asks for so much that it is enough */
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
            assert_int_equal(prediction_of(&path, &scheme, &sampler), 0);
            uint8_t *cells = calloc(1, sampler.cells + 1);
            double sum = 0;
            for (unsigned n = 0; n < PLAYED; n++)
                sum += draw_one(&sampler, &prng, cells);
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

int main(void)
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
