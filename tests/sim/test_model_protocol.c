/*
 * test_model_protocol.c - the model says how long the running protocol takes: means within 5 %, tails within
 * 10 %. (bench/run model-protocol has more points and more messages.)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/model.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/connection_pair.h"
#include "wire/roce_packet.h"

#define MTU      1024u
#define MESSAGES 500u
#define TAIL     0.99
/* Of 500 messages 1 to 10 are above the true 99th percentile, with 98 %. */
#define ABOVE_MIN 1u
#define ABOVE_MAX 10u

struct point {
    const char *scheme;
    const char *link;
    double bandwidth_bps;
    double rtt_s;
    double loss;
    uint32_t chunks;
    uint32_t chunk_packets;
};

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Completion times, sorted. */
static void run(const struct point *point, double *seconds)
{
    struct connection_pair pair;
    struct lh_attr attr;
    size_t bytes = (size_t)point->chunks * point->chunk_packets * MTU;
    uint8_t *data = connection_pair_bytes(bytes, 1);
    uint8_t *buffer = malloc(bytes);
    assert_non_null(buffer);
    connection_pair_attr(&attr);
    attr.reliability = point->scheme;
    attr.chunk_bytes = point->chunk_packets * MTU;
    attr.slot_bytes = bytes;
    connection_pair_open(&pair, "model", 11, point->link, &attr, NULL);
    connection_pair_run(&pair, 100 * LH_NS_PER_MS); /* the path is measured */
    for (unsigned i = 0; i < MESSAGES; i++) {
        memset(buffer, 0, bytes);
        struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, bytes);
        struct lh_request *send = connection_pair_send(&pair, 0, data, bytes);
        struct lh_result sent = connection_pair_finish(&pair, send);
        assert_int_equal(connection_pair_finish(&pair, recv).bytes, bytes);
        assert_memory_equal(buffer, data, bytes);
        seconds[i] = (double)(sent.ended_ns - sent.started_ns) / 1e9;
    }
    connection_pair_close(&pair);
    qsort(seconds, MESSAGES, sizeof *seconds, compare);
    free(buffer);
    free(data);
}

static void check(const struct point *point)
{
    static double seconds[MESSAGES];
    const struct lh_model_path path = {
        .message_bytes = (uint64_t)point->chunks * point->chunk_packets * MTU,
        .chunk_bytes = point->chunk_packets * MTU,
        .mtu_bytes = MTU,
        .header_bytes = ROCE_WRITE_IMM_OVERHEAD_V6,
        .bandwidth_bps = point->bandwidth_bps,
        .rtt_s = point->rtt_s,
        .loss = point->loss,
    };
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    double tail;
    double mean = 0;
    assert_int_equal(lh_model_scheme_parse(point->scheme, &scheme), 0);
    scheme.timing = LH_MODEL_TIMING_LONGHAUL;
    assert_int_equal(lh_model_predict(&path, &scheme, &times), 0);
    assert_int_equal(lh_model_quantile(&path, &scheme, TAIL, &tail), 0);
    run(point, seconds);
    for (unsigned i = 0; i < MESSAGES; i++)
        mean += seconds[i] / MESSAGES;
    double low = seconds[MESSAGES - 1 - ABOVE_MAX];
    double high = seconds[MESSAGES - ABOVE_MIN];
    print_message("%-32s mean %.3f ms, model %.3f; 99 %% %.3f to %.3f, model %.3f\n", point->scheme,
                  mean * 1e3, times.mean_s * 1e3, low * 1e3, high * 1e3, tail * 1e3);
    assert_true(fabs(times.mean_s / mean - 1) < 0.05);
    assert_true(tail > low * 0.9 && tail < high * 1.1);
    assert_true(mean > times.ideal_s * 1.02); /* something was lost that counts */
}

static void selective_repeat(void **state)
{
    (void)state;
    check(
        &(struct point){"sr-rto", "rtt=10ms,rate=1Gbit,queue=16KiB,loss=0.005", 1e9, 10e-3, 0.005, 64, 1});
    check(&(struct point){"sr-nack", "rtt=10ms,rate=1Gbit,queue=16KiB,loss=0.01", 1e9, 10e-3, 0.01, 64, 1});
    check(&(struct point){"sr-nack", "rtt=2ms,rate=1Gbit,queue=8KiB,loss=0.01", 1e9, 2e-3, 0.01, 64, 8});
}

static void erasure_codes(void **state)
{
    (void)state;
    check(&(struct point){"ec:mds,k=16,m=2", "rtt=10ms,rate=1Gbit,queue=16KiB,loss=0.03", 1e9, 10e-3, 0.03,
                          64, 1});
    check(&(struct point){"ec:xor,k=16,m=4", "rtt=2ms,rate=500Mbit,queue=8KiB,loss=0.03", 500e6, 2e-3, 0.03,
                          256, 1});
    check(&(struct point){"ec:mds,k=16,m=2,fallback=sr", "rtt=10ms,rate=1Gbit,queue=16KiB,loss=0.05", 1e9,
                          10e-3, 0.05, 64, 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(selective_repeat), cmocka_unit_test(erasure_codes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
