/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/missing.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/prng.h"
#include "support/near.h"

#define CHUNK_S 8e-6 /* 1000 bytes at 1 Gbit/s */
#define RTT_S   10e-3
#define WINDOW  1e-3

static struct bounded_missing segment_of(const char *text, double loss, unsigned chunks, unsigned packets)
{
    const struct lh_model_path path = {.message_bytes = (uint64_t)chunks * packets * 1000,
                                       .chunk_bytes = packets * 1000,
                                       .mtu_bytes = 1000,
                                       .bandwidth_bps = 1e9 * packets,
                                       .rtt_s = RTT_S,
                                       .loss = loss};
    struct lh_model_scheme scheme;
    struct model_message message;
    struct bounded_missing segment;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    assert_int_equal(model_message_of(&path, 0, &message), 0);
    message.window_s = WINDOW;
    bounded_missing_start(&segment, &scheme, &message);
    return segment;
}

static void without_a_code(void **state)
{
    (void)state;
    struct bounded_missing segment = segment_of("bounded", 0.01, 1000, 1);
    double all_s = RTT_S + 1000 * CHUNK_S;
    assert_near(bounded_missing_settled(&segment), all_s + WINDOW, 1e-12);
    assert_true(isinf(bounded_missing_log_whole(&segment, all_s - CHUNK_S)));
    assert_near(bounded_missing_log_whole(&segment, all_s), 1000 * log1p(-0.01), 1e-9);
    assert_near(bounded_missing_share(&segment, INFINITY), 0.01, 1e-12);
    assert_near(bounded_missing_share(&segment, all_s - 500 * CHUNK_S), 1 - 0.99 / 2, 1e-9);
    assert_near(bounded_missing_share(&segment, RTT_S / 2), 1, 1e-12);
}

/* Of a chunk of 8 packets that is lost the others are there. */
static void packets_of_a_chunk(void **state)
{
    (void)state;
    struct bounded_missing segment = segment_of("bounded", 0.01, 125, 8);
    assert_near(bounded_missing_share(&segment, INFINITY), 0.01, 1e-12);
    struct bounded_missing coded = segment_of("bounded,code=mds,k=25,m=3", 0.01, 125, 8);
    struct bounded_missing single = segment_of("bounded,code=mds,k=25,m=3", 1 - pow(0.99, 8), 125, 1);
    double lost = 1 - pow(0.99, 8);
    assert_near(bounded_missing_share(&coded, INFINITY) / 0.01,
                bounded_missing_share(&single, INFINITY) / lost, 1e-9);
}

/* ---- codes, beside losses that are drawn --------------------------------------------------------------- */

#define K      16u
#define M      4u
#define LOSS   0.08
#define GROUPS 200000u

static unsigned count_lost(const bool *lost, unsigned from, unsigned step, unsigned end)
{
    unsigned count = 0;
    for (unsigned i = from; i < end; i += step)
        count += lost[i];
    return count;
}

/* Whether a group of K chunks with `rows` rows of parity behind them can be decoded. */
static bool is_met(const bool *lost, unsigned rows, bool xor_code)
{
    if (!xor_code)
        return count_lost(lost, 0, 1, K + rows) <= rows;
    for (unsigned class = 0; class < M; class ++) {
        unsigned spared = class < rows;
        unsigned data = count_lost(lost, class, M, K);
        if (data + (spared ? lost[K + class] : 0) > spared && data > 0)
            return false;
    }
    return true;
}

static double drawn_share(unsigned rows, bool xor_code)
{
    struct lh_prng prng;
    bool lost[K + M];
    uint64_t missing = 0;
    lh_prng_seed(&prng, 19);
    for (unsigned group = 0; group < GROUPS; group++) {
        for (unsigned i = 0; i < K + M; i++)
            lost[i] = lh_prng_double(&prng) < LOSS;
        missing += is_met(lost, rows, xor_code) ? 0 : count_lost(lost, 0, 1, K);
    }
    return (double)missing / K / GROUPS;
}

static void check_code(const char *text, bool xor_code)
{
    unsigned chunks = 40 * K, parity = 40 * M;
    struct bounded_missing segment = segment_of(text, LOSS, chunks, 1);
    double data_s = RTT_S + chunks * CHUNK_S;
    for (unsigned rows = 0; rows <= M; rows++) {
        double seen = drawn_share(rows, xor_code);
        double share = bounded_missing_share(&segment, data_s + rows * 40 * CHUNK_S);
        assert_near(share, seen, 0.03);
        assert_near(bounded_missing_share(&segment, data_s + (rows * 40 + 0.5) * CHUNK_S), share, 1e-12);
    }
    assert_near(bounded_missing_settled(&segment), data_s + parity * CHUNK_S + WINDOW, 1e-12);
    assert_true(bounded_missing_log_whole(&segment, INFINITY) >
                bounded_missing_log_whole(&segment, data_s));
}

static void mds(void **state)
{
    (void)state;
    check_code("bounded,code=mds,k=16,m=4", false);
}

static void xor_code(void **state)
{
    (void)state;
    check_code("bounded,code=xor,k=16,m=4", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_code),
        cmocka_unit_test(packets_of_a_chunk),
        cmocka_unit_test(mds),
        cmocka_unit_test(xor_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
