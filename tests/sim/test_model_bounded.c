/*
 * test_model_bounded.c - the model says how long the running protocol takes by bounded completion, and how
 * much of a message it delivers: within 2 % both.
 *
 * Receives are posted ahead, and a message is sent half a round trip after the end of the one before
 * it, as if an answer had asked for it: the receiver's time from that end to the next is the model's,
 * which counts from the first injection to the sender's receipt of DONE.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/model.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/connection_pair.h"
#include "support/sanitized.h"
#include "wire/roce_packet.h"

#define MTU      1024u
#define MESSAGES 400u

struct point {
    const char *scheme;
    double bandwidth_bps;
    double rtt_s;
    double loss;
    double burst; /* packets; 0: single losses */
    uint32_t chunks;
    uint32_t chunk_packets;
    uint32_t segments;
};

struct outcome {
    double mean_s, delivered;
};

/* The queue holds a fiftieth of a round trip, for control waits behind it. */
static struct outcome run(const struct point *point, size_t bytes)
{
    struct connection_pair pair;
    struct lh_attr attr;
    char link[128], burst[32] = "";
    uint8_t *data = connection_pair_bytes(bytes, 1);
    uint8_t *buffer = malloc(bytes);
    struct outcome outcome = {0};
    static struct lh_request *sends[MESSAGES + 1];
    assert_non_null(buffer);
    connection_pair_attr(&attr);
    attr.reliability = point->scheme;
    attr.chunk_bytes = point->chunk_packets * MTU;
    attr.slot_bytes = bytes / point->segments;
    attr.slots = 16;
    if (point->burst > 0)
        snprintf(burst, sizeof burst, ",burst=%g", point->burst);
    snprintf(link, sizeof link, "rtt=%gus,rate=%gMbit,queue=%.0f,loss=%g%s", point->rtt_s * 1e6,
             point->bandwidth_bps / 1e6, fmax(point->rtt_s * point->bandwidth_bps / 400, 4 * MTU),
             point->loss, burst);
    connection_pair_open(&pair, "model", 11, link, &attr, NULL);
    connection_pair_run(&pair, 100 * LH_NS_PER_MS); /* the path is measured */
    lh_time began_ns = 0;
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, bytes);
    for (unsigned i = 0; i <= MESSAGES; i++) {
        struct lh_request *next = connection_pair_recv(&pair, 1, buffer, bytes);
        connection_pair_run(&pair, (lh_time)(1e9 * point->rtt_s / 2));
        struct lh_request *send = connection_pair_send(&pair, 0, data, bytes);
        struct lh_result received = connection_pair_finish(&pair, recv);
        assert_int_equal(received.error, 0);
        if (i > 0) { /* the deadline of the first counts from its post */
            outcome.mean_s += (double)(received.ended_ns - began_ns) / 1e9 / MESSAGES;
            outcome.delivered += 1.0 / MESSAGES - (double)received.missing_bytes / (double)bytes / MESSAGES;
        }
        began_ns = received.ended_ns;
        recv = next;
        sends[i] = send;
    }
    for (unsigned i = 0; i <= MESSAGES; i++)
        assert_int_equal(connection_pair_finish(&pair, sends[i]).error, 0);
    connection_pair_close(&pair);
    lh_request_free(recv);
    free(buffer);
    free(data);
    return outcome;
}

static void check(const struct point *point)
{
    size_t bytes = (size_t)point->chunks * point->chunk_packets * MTU;
    const struct lh_model_path path = {
        .message_bytes = bytes,
        .chunk_bytes = point->chunk_packets * MTU,
        .segment_bytes = bytes / point->segments,
        .mtu_bytes = MTU,
        .header_bytes = ROCE_WRITE_IMM_OVERHEAD_V6,
        .bandwidth_bps = point->bandwidth_bps,
        .rtt_s = point->rtt_s,
        .loss = point->loss,
        .burst_packets = point->burst,
    };
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    assert_int_equal(lh_model_scheme_parse(point->scheme, &scheme), 0);
    scheme.timing = LH_MODEL_TIMING_LONGHAUL;
    assert_int_equal(lh_model_predict(&path, &scheme, &times), 0);
    struct outcome seen = run(point, bytes);
    double missing = 1 - times.delivered;
    print_message("%-43s mean %.3f ms, model %.3f; missing %.3f %%, model %.3f\n", point->scheme,
                  seen.mean_s * 1e3, times.mean_s * 1e3, 100 * (1 - seen.delivered), 100 * missing);
    assert_true(fabs(times.mean_s / seen.mean_s - 1) < 0.02);
    assert_true(fabs(times.delivered / seen.delivered - 1) < 0.01);
    if (times.p999_s <
        scheme.deadline_s) /* nothing is cut off: a share of one per cent does not hide a wrong loss */
        assert_true(fabs(1 - seen.delivered - missing) < 0.2 * missing + 2e-4);
}

static void points(void **state)
{
    static const struct point all[] = {
        {"bounded:deadline=1s", 1e9, 10e-3, 0.01, 0, 64, 1, 1},
        {"bounded:deadline=1s", 1e9, 2e-3, 0.01, 0, 64, 8, 1},
        {"bounded:deadline=1s", 1e9, 10e-3, 0.05, 0, 256, 1, 1},
        {"bounded:deadline=1s", 1e9, 1e-3, 1e-3, 0, 1024, 1, 1},
        {"bounded:deadline=15ms", 1e9, 10e-3, 0.01, 0, 1024, 1, 1},
        {"bounded:deadline=11200us", 1e9, 10e-3, 0.02, 0, 64, 1, 1},
        {"bounded:deadline=1s,code=mds,k=32,m=2", 1e9, 10e-3, 0.01, 0, 512, 1, 1},
        {"bounded:deadline=1s,code=mds,k=16,m=4", 1e9, 5e-3, 0.05, 0, 512, 1, 1},
        {"bounded:deadline=1s,code=xor,k=16,m=4", 500e6, 2e-3, 0.03, 0, 512, 1, 1},
        {"bounded:deadline=1s,code=mds,k=32,m=4", 500e6, 2e-3, 0.01, 0, 128, 4, 1},
        {"bounded:deadline=14600us,code=mds,k=16,m=4", 1e9, 10e-3, 0.05, 0, 480, 1, 1},
        {"bounded:deadline=1s", 1e9, 5e-3, 0.01, 16, 1024, 1, 1},
        {"bounded:deadline=1s,code=mds,k=32,m=4", 1e9, 5e-3, 0.01, 16, 1024, 1, 1},
        {"bounded:deadline=1s", 1e9, 5e-3, 0.01, 0, 1024, 1, 4},
        {"bounded:deadline=1s,code=mds,k=32,m=4", 1e9, 5e-3, 0.02, 0, 1024, 1, 4},
        {"bounded:deadline=11ms", 1e9, 5e-3, 0.01, 0, 1024, 1, 4},
    };
    (void)state;
    /* A third of them has a deadline that cuts off, both codes, bursts and segments. */
    for (size_t i = SANITIZED ? 2 : 0; i < sizeof all / sizeof *all; i += SANITIZED ? 3 : 1)
        check(&all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(points)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
