/*
 * test_connection_auto.c - `auto`: what a connection finds out about its path while messages cross it, and
 * by which schemes they come then.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/connection_pair.h"
#include "support/near.h"
#include "support/sanitized.h"
#include "wire/eager_packets.h"

#define KIB ((size_t)1 << 10)
#define MTU 1024u

/* Chunks of one packet; 46 bytes of headers above it: the share of a link's rate that is payload. */
#define PAYLOAD_SHARE 0.93

static struct connection_pair open_pair(const char *link, const char *reliability)
{
    struct connection_pair pair;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.reliability = reliability;
    attr.slot_bytes = 256 * KIB;
    attr.slots = 16;
    connection_pair_open(&pair, "auto", 1, link, &attr, NULL);
    return pair;
}

static void transfer(struct connection_pair *pair, uint32_t count, size_t bytes)
{
    for (uint32_t i = 0; i < count; i++)
        connection_pair_transfer(pair, 0, bytes, bytes);
}

static struct lh_scheme_report ask(const struct connection_pair *pair)
{
    struct lh_scheme_report report;
    assert_int_equal(lh_connection_scheme(pair->ends[1], &report), 0);
    assert_true(report.automatic);
    return report;
}

static bool codes(const struct lh_scheme_report *report)
{
    return strncmp(report->scheme, "ec:", 3) == 0 || strcmp(report->scheme, "hybrid") == 0;
}

/* Whatever scheme runs meanwhile, the path is found to be what it is. */
static void the_path_is_found_out(void **state)
{
    (void)state;
    static const struct {
        const char *link, *reliability;
        double rtt_s, rate_bps, loss, run;
    } paths[] = {
        {"rtt=20ms,rate=500Mbit,loss=0.01", "auto", 20e-3, 500e6, 0.01, 1},
        {"rtt=5ms,rate=100Mbit,loss=0.05", "auto", 5e-3, 100e6, 0.05, 1},
        {"rtt=40ms,rate=1Gbit,loss=0.02,burst=6", "auto", 40e-3, 1e9, 0.02, 6},
        /* With a code, what comes after its segment could be decoded counts as lost; with repeats not. */
        {"rtt=20ms,rate=500Mbit,reorder=0.05,loss=0.003", "auto,overhead=0", 20e-3, 500e6, 0.003, 1},
        {"rtt=20ms,rate=500Mbit", "auto", 20e-3, 500e6, 0, 1},
    };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct connection_pair pair = open_pair(paths[i].link, paths[i].reliability);
        transfer(&pair, 60, 512 * KIB);
        struct lh_scheme_report report = ask(&pair);
        print_message("%s: %s, rtt %.2f ms, %.0f Mbit/s, loss %.5f, runs of %.2f, %llu seen\n",
                      paths[i].link, report.scheme, (double)report.rtt_ns / 1e6, report.rate_bps / 1e6,
                      report.chunk_loss, report.run_chunks, (unsigned long long)report.chunks_seen);
        assert_true(report.chunks_seen > 25000); /* of 30,720 */
        assert_near(report.chunk_loss, paths[i].loss, paths[i].run > 1 ? 0.3 : 0.15);
        assert_near(report.run_chunks, paths[i].run > 1 ? paths[i].run : 1 / (1 - paths[i].loss), 0.2);
        assert_near(report.rate_bps, PAYLOAD_SHARE * paths[i].rate_bps, 0.1);
        assert_true(report.rtt_ns >= (lh_time)(paths[i].rtt_s * 1e9));
        assert_true((double)report.rtt_ns / 1e9 < 2.5 * paths[i].rtt_s); /* packets wait in the link, too */
        connection_pair_close(&pair);
    }
}

/* What arrives is payload, not chunks: small messages in large chunks do not make a slow path a fast one. */
static void small_messages_are_no_high_rate(void **state)
{
    (void)state;
    enum { COUNT = 64, SIZE = EAGER_MAX + 1 }; /* smaller ones come without a scheme */
    struct connection_pair pair = open_pair("rtt=20ms,rate=10Mbit", "auto");
    uint8_t *data = connection_pair_bytes(SIZE, 1);
    static uint8_t rooms[COUNT][SIZE];
    struct lh_request *requests[2][COUNT];
    for (int i = 0; i < COUNT; i++) {
        requests[0][i] = connection_pair_recv(&pair, 1, rooms[i], SIZE);
        requests[1][i] = connection_pair_send(&pair, 0, data, SIZE);
    }
    for (int i = 0; i < 2 * COUNT; i++)
        assert_int_equal(connection_pair_finish(&pair, requests[i % 2][i / 2]).error, 0);
    struct lh_scheme_report report = ask(&pair);
    assert_true(report.rate_bps > 0 && report.rate_bps < 10e6);
    connection_pair_close(&pair);
    free(data);
}

static void it_is_the_default(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=2ms", NULL);
    assert_string_equal(ask(&pair).scheme, "sr-nack");
    connection_pair_close(&pair);
}

static void before_it_is_attached(void **state)
{
    (void)state;
    struct lh_attr attr;
    struct lh_connection *alone;
    struct lh_scheme_report report;
    lh_attr_init(&attr);
    attr.device = "udp:127.0.0.1";
    attr.reliability = "auto,overhead=0";
    assert_int_equal(lh_open(&attr, &alone), 0);
    assert_int_equal(lh_connection_scheme(alone, &report), 0); /* not attached */
    assert_true(report.automatic && report.rtt_ns == 0 && report.chunks_seen == 0);
    assert_string_equal(report.scheme, "sr-nack");
    lh_close(alone);
}

static void loss_makes_it_code(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=20ms,rate=500Mbit,loss=0.01", "auto");
    assert_int_equal(ask(&pair).plans, 0);
    transfer(&pair, 1, 256 * KIB);
    struct lh_scheme_report report = ask(&pair);
    assert_true(codes(&report)); /* nothing was known */
    transfer(&pair, 20, 256 * KIB);
    report = ask(&pair);
    assert_true(codes(&report));
    assert_true(report.expected_s > 0 && report.expected_s < report.other_expected_s);
    assert_string_equal(report.other, "sr-nack");
    assert_int_equal(report.message_bytes, 256 * KIB);
    connection_pair_close(&pair);
}

/* Short messages of a path that is not known come by a code, which saves the repairs of the first ones: no
 * message takes a round trip more. Where nothing is lost the code gets thinner. */
static void an_unknown_path_is_coded_for(void **state)
{
    (void)state;
    static const struct {
        const char *link, *reliability;
        size_t bytes;
        const char *first, *later;
    } cases[] = {
        {"rtt=20ms,rate=500Mbit", "auto", 256 * KIB, "ec:mds,k=32,m=8", "hybrid"},
        {"rtt=20ms,rate=500Mbit", "auto,overhead=90%", 256 * KIB, "sr-nack", "sr-nack"},
        /* It takes longer than the round trip. */
        {"rtt=20ms,rate=500Mbit", "auto", 4096 * KIB, "sr-nack", "hybrid"},
        {"rtt=1ms,rate=500Mbit", "auto", 256 * KIB, "sr-nack", "sr-nack"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct connection_pair pair = open_pair(cases[i].link, cases[i].reliability);
        connection_pair_run(&pair, 100 * LH_NS_PER_MS); /* the round trip is measured */
        transfer(&pair, 1, cases[i].bytes);
        assert_string_equal(ask(&pair).scheme, cases[i].first);
        transfer(&pair, 16, 256 * KIB);
        assert_string_equal(ask(&pair).scheme, cases[i].later);
        connection_pair_close(&pair);
    }
    struct connection_pair pair = open_pair("rtt=40ms,rate=1Gbit,loss=0.02", "auto");
    connection_pair_run(&pair, 200 * LH_NS_PER_MS);
    for (int i = 0; i < 4; i++) {
        lh_time begin = connection_pair_now(&pair);
        transfer(&pair, 1, 512 * KIB);
        assert_true(connection_pair_now(&pair) - begin < 79 * LH_NS_PER_MS);
    }
    connection_pair_close(&pair);
}

/* What a round trip of injection does not hide by itself is repeated and covered, both; a short message has
 * parity of a code alone, which sends less. */
static void both_ways_at_once(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=20ms,rate=500Mbit,loss=0.01", "auto");
    transfer(&pair, 20, 2048 * KIB);
    struct lh_scheme_report report = ask(&pair);
    assert_string_equal(report.scheme, "hybrid");
    transfer(&pair, 20, 16 * KIB);
    report = ask(&pair);
    assert_int_equal(strncmp(report.scheme, "ec:", 3), 0);
    connection_pair_close(&pair);
}

/* Without loss nothing is sent beside the data once that is known, and nothing is planned. */
static void no_loss_costs_nothing(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=20ms,rate=500Mbit", "auto");
    struct lh_stats first, stats;
    uint64_t bytes = 0;
    for (; ask(&pair).chunks_seen < 32 * 1024; bytes += 512 * KIB)
        transfer(&pair, 1, 512 * KIB);
    assert_int_equal(lh_connection_stats(pair.ends[0], &first), 0);
    assert_true(first.tx_bytes > bytes && first.tx_bytes < bytes + bytes / 20);
    transfer(&pair, 100, 512 * KIB);
    assert_int_equal(lh_connection_stats(pair.ends[0], &stats), 0);
    assert_int_equal(stats.tx_bytes - first.tx_bytes, 100 * 512 * KIB);
    struct lh_scheme_report report = ask(&pair);
    assert_true(report.chunk_loss == 0 && report.chunks_lost == 0);
    assert_int_equal(report.plans, 0);
    connection_pair_close(&pair);
}

/* Each size has its own answer, and a lossy path does not make it change its mind for ever. */
static void sizes_side_by_side(void **state)
{
    (void)state;
    static const size_t sizes[] = {MTU, 40 * KIB, 512 * KIB, 0, 2048 * KIB};
    struct connection_pair pair = open_pair("rtt=20ms,rate=500Mbit,loss=0.01", "auto");
    for (int i = 0; i < 60; i++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            transfer(&pair, 1, sizes[s]);
    struct lh_scheme_report report = ask(&pair);
    struct lh_stats stats;
    assert_int_equal(lh_connection_stats(pair.ends[1], &stats), 0);
    assert_true(stats.schemes_planned == report.plans && stats.schemes_changed == report.changes);
    assert_true(report.plans >= 3 && report.plans <= 60);
    assert_true(report.changes <= 10);
    connection_pair_close(&pair);
}

/* Buffers may be longer than what comes; parity and bitmaps are those of what came. */
static void shorter_than_the_buffer(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=20ms,rate=500Mbit,loss=0.02", "auto");
    for (size_t i = 0; i < 60; i++)
        connection_pair_transfer(&pair, 0, 1 + i * 7919, 1024 * KIB);
    struct lh_scheme_report report = ask(&pair);
    assert_near(report.chunk_loss, 0.02, 0.3);
    connection_pair_close(&pair);
}

/* Time of so many messages, one after the other, when some came before them. */
static lh_time span_of(const char *link, const char *reliability, size_t bytes)
{
    struct connection_pair pair = open_pair(link, reliability);
    transfer(&pair, 20, bytes);
    lh_time begin = connection_pair_now(&pair);
    transfer(&pair, 40, bytes);
    lh_time span = connection_pair_now(&pair) - begin;
    connection_pair_close(&pair);
    return span;
}

/* In virtual time, so the span follows from the seed alone. bench_auto_sim does this at length. */
static void no_fixed_scheme_is_much_faster(void **state)
{
    (void)state;
    static const char *const fixed[] = {"sr-nack", "sr-rto", "ec:mds", "ec:xor", "hybrid"};
    static const struct {
        const char *link;
        size_t bytes;
    } settings[] = {
        {"rtt=2ms,rate=500Mbit", 64 * KIB},
        {"rtt=5ms,rate=500Mbit,loss=0.03", 256 * KIB},
        {"rtt=40ms,rate=500Mbit,loss=0.001", 1024 * KIB},
        {"rtt=100ms,rate=500Mbit,loss=0.01", 64 * KIB},
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i += SANITIZED ? 3 : 1) {
        lh_time best = LH_TIME_NEVER, chosen = span_of(settings[i].link, "auto", settings[i].bytes);
        for (size_t f = 0; f < sizeof fixed / sizeof fixed[0]; f++) {
            lh_time span = span_of(settings[i].link, fixed[f], settings[i].bytes);
            best = span < best ? span : best;
        }
        print_message("%s, %zu KiB: %.3f of the best fixed scheme\n", settings[i].link,
                      settings[i].bytes / KIB, (double)chosen / (double)best);
        assert_true(chosen <= best + best / 10);
    }
}

/* The word that tells a message's length may be lost, too: until it comes, what is missing of the buffer need
 * not be missing of the message, whatever has arrived of later ones. */
static void a_length_that_is_not_known(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    struct connection_pair pair = open_pair("rtt=20ms,rate=500Mbit,loss=0.2", "auto,overhead=0");
    const size_t bytes = 20 * KIB, room = 256 * KIB;
    uint8_t *data = connection_pair_bytes(bytes, 1), *rooms = connection_pair_bytes(COUNT * room, 2);
    struct lh_request *requests[2][COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        requests[0][i] = connection_pair_recv(&pair, 1, rooms + i * room, room);
        requests[1][i] = connection_pair_send(&pair, 0, data, bytes);
    }
    for (size_t i = 0; i < 2 * (size_t)COUNT; i++)
        assert_int_equal(connection_pair_finish(&pair, requests[i % 2][i / 2]).error, 0);
    struct lh_scheme_report report = ask(&pair);
    assert_near(report.chunk_loss, 0.2, 0.3);
    assert_true(report.chunks_seen <= (uint64_t)COUNT * 20);
    connection_pair_close(&pair);
    free(data);
    free(rooms);
}

/* Many receives are posted ahead, of both directions, and schemes change between them. */
static void many_at_a_time(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    struct connection_pair pair = open_pair("rtt=20ms,rate=500Mbit,loss=0.02", "auto,by=p99");
    const size_t bytes = 300 * KIB;
    uint8_t *data = connection_pair_bytes(bytes, 1), *buffers[2][COUNT];
    struct lh_request *requests[2][2][COUNT];
    for (int i = 0; i < COUNT; i++)
        for (int end = 0; end < 2; end++) {
            buffers[end][i] = connection_pair_bytes(bytes, 2);
            requests[end][0][i] = connection_pair_recv(&pair, end, buffers[end][i], bytes);
            requests[end][1][i] = connection_pair_send(&pair, end, data, bytes);
        }
    for (int i = 0; i < COUNT; i++)
        for (int end = 0; end < 2; end++) {
            assert_int_equal(connection_pair_finish(&pair, requests[end][1][i]).error, 0);
            assert_int_equal(connection_pair_finish(&pair, requests[end][0][i]).error, 0);
            assert_memory_equal(buffers[end][i], data, bytes);
            free(buffers[end][i]);
        }
    struct lh_scheme_report report = ask(&pair);
    assert_true(codes(&report));
    connection_pair_close(&pair);
    free(data);
}

/* Of 128 receives of 256 KiB, 16 MiB are decided, and two times what the path holds: little. */
static void not_all_is_decided_ahead(void **state)
{
    (void)state;
    enum { COUNT = 128 };
    struct connection_pair pair;
    struct lh_attr attr;
    struct lh_stats before, after;
    connection_pair_attr(&attr);
    attr.reliability = "auto,overhead=0"; /* no parity: an announcement a message */
    attr.slot_bytes = 256 * KIB;
    attr.slots = COUNT;
    connection_pair_open(&pair, "auto", 1, "rtt=2ms,rate=500Mbit", &attr, NULL);
    transfer(&pair, 4, 64 * KIB);
    uint8_t *rooms = connection_pair_bytes(COUNT * attr.slot_bytes, 1);
    struct lh_request *requests[COUNT];
    lh_connection_stats(pair.ends[1], &before);
    for (size_t i = 0; i < COUNT; i++)
        requests[i] = connection_pair_recv(&pair, 1, rooms + i * attr.slot_bytes, attr.slot_bytes);
    connection_pair_run(&pair, LH_NS_PER_S);
    lh_connection_stats(pair.ends[1], &after);
    uint64_t decided = after.cts_sent - before.cts_sent;
    assert_true(decided >= 64 && decided < 70);
    lh_cancel(requests[0]); /* makes room for one */
    connection_pair_run(&pair, LH_NS_PER_S);
    lh_connection_stats(pair.ends[1], &after);
    assert_int_equal(after.cts_sent - before.cts_sent, decided + 1);
    connection_pair_close(&pair);
    for (size_t i = 0; i < COUNT; i++)
        lh_request_free(requests[i]);
    free(rooms);
}

static void a_named_scheme_is_reported_as_it_was_named(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=20ms", "ec:mds,k=4,m=2");
    struct lh_scheme_report report;
    char words[LH_SCHEME_WORDS_MAX];
    transfer(&pair, 1, 256 * KIB);
    assert_int_equal(lh_connection_scheme(pair.ends[1], &report), 0);
    assert_false(report.automatic);
    assert_string_equal(report.scheme, "ec:mds,k=4,m=2");
    assert_string_equal(lh_scheme_report_words(&report, words, sizeof words),
                        "ec:mds,k=4,m=2, as requested");
    connection_pair_close(&pair);
}

static void the_words(void **state)
{
    (void)state;
    char words[LH_SCHEME_WORDS_MAX];
    struct lh_scheme_report report = {.automatic = true,
                                      .scheme = "sr-nack",
                                      .message_bytes = 16 << 20,
                                      .rtt_ns = 25 * LH_NS_PER_MS,
                                      .chunk_loss_planned = 1e-3,
                                      .run_chunks = 1};
    assert_string_equal(lh_scheme_report_words(&report, words, sizeof words),
                        "sr-nack until something is lost; round trip 25ms, no chunk received yet");
    report.chunks_seen = 40;
    assert_string_equal(
        lh_scheme_report_words(&report, words, sizeof words),
        "sr-nack until something is lost; round trip 25ms, a rate not known yet, none of 40 "
        "chunks lost");
    report.chunks_lost = 1;
    assert_string_equal(lh_scheme_report_words(&report, words, sizeof words),
                        "sr-nack for messages of 16MiB, not planned yet; round trip 25ms, a rate not known "
                        "yet, 1 of 40 chunks lost in runs of 1.0, planned for 1.0e-03");
    report.expected_s = 0.06;
    report.rate_bps = 4e9;
    strcpy(report.other, "ec:xor");
    report.other_expected_s = 0.08;
    assert_string_equal(lh_scheme_report_words(&report, words, sizeof words),
                        "sr-nack for messages of 16MiB: 60ms expected, 80ms by ec:xor; round trip 25ms, "
                        "4Gbit/s, 1 of 40 chunks lost in runs of 1.0, planned for 1.0e-03");
    assert_int_equal(strlen(lh_scheme_report_words(&report, words, 20)), 19);
}

static void texts(void **state)
{
    (void)state;
    assert_int_equal(lh_reliability_check("auto"), 0);
    assert_int_equal(lh_reliability_check("auto,by=p99,overhead=0.1"), 0);
    assert_int_equal(lh_reliability_check("ec:mds,k=8,m=2"), 0);
    assert_int_equal(lh_reliability_check("automatic"), -LH_EINVAL);
    assert_int_equal(lh_reliability_check("auto,k=8"), -LH_EINVAL);
    assert_int_equal(lh_reliability_check("sr-nack,by=p99"), -LH_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_path_is_found_out),
        cmocka_unit_test(small_messages_are_no_high_rate),
        cmocka_unit_test(it_is_the_default),
        cmocka_unit_test(before_it_is_attached),
        cmocka_unit_test(loss_makes_it_code),
        cmocka_unit_test(an_unknown_path_is_coded_for),
        cmocka_unit_test(both_ways_at_once),
        cmocka_unit_test(no_loss_costs_nothing),
        cmocka_unit_test(sizes_side_by_side),
        cmocka_unit_test(shorter_than_the_buffer),
        cmocka_unit_test(no_fixed_scheme_is_much_faster),
        cmocka_unit_test(a_length_that_is_not_known),
        cmocka_unit_test(many_at_a_time),
        cmocka_unit_test(not_all_is_decided_ahead),
        cmocka_unit_test(a_named_scheme_is_reported_as_it_was_named),
        cmocka_unit_test(the_words),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
