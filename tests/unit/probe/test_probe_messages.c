/*
 * test_probe_messages.c - packets and messages of a probe: said and heard, and what must be refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "probe/probe_messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

static const struct probe_packet said = {.kind = PROBE_DATA,
                                         .flow = 3,
                                         .token = 0x0123456789abcdef,
                                         .round = 7,
                                         .number = 99,
                                         .sent_ns = 1234567890123,
                                         .bytes = 1024,
                                         .held_ns = 55};

static void test_packet(void **state)
{
    (void)state;
    uint8_t wire[PROBE_HEADER_BYTES];
    struct probe_packet heard;
    probe_packet_encode(&said, wire);
    assert_memory_equal(wire, "LHPU\1\5\0\3", 8);
    assert_true(probe_packet_decode(wire, 1024, &heard));
    assert_memory_equal(&heard, &said, sizeof said);
}

static void test_packets_that_are_none(void **state)
{
    (void)state;
    uint8_t wire[PROBE_HEADER_BYTES];
    struct probe_packet heard;
    probe_packet_encode(&said, wire);
    assert_false(probe_packet_decode(wire, 1023, &heard)); /* not the length that it says */
    assert_false(probe_packet_decode(wire, PROBE_HEADER_BYTES - 1, &heard));
    assert_false(probe_packet_decode(wire, 0, &heard));
    assert_false(probe_packet_decode(wire, SIZE_MAX, &heard));
    for (unsigned i = 0; i < 6; i++) { /* magic, version, kind */
        probe_packet_encode(&said, wire);
        wire[i] ^= 0x80;
        assert_false(probe_packet_decode(wire, 1024, &heard));
    }
    probe_packet_encode(&said, wire);
    wire[5] = 0;
    assert_false(probe_packet_decode(wire, 1024, &heard));
    wire[5] = PROBE_DATA + 1;
    assert_false(probe_packet_decode(wire, 1024, &heard));
}

static struct probe_message report_of(void)
{
    struct probe_message report = {.type = PROBE_REPORT};
    const struct model_loss_runs runs = {.packets = 100,
                                         .lost = 3,
                                         .after_arrived = 96,
                                         .lost_after_arrived = 2,
                                         .after_lost = 3,
                                         .arrived_after_lost = 2};
    report.numbers[PROBE_REPORT_ROUND] = 1;
    report.numbers[PROBE_REPORT_RECEIVED] = 97;
    report.numbers[PROBE_REPORT_FLOW_LOST + 1] = 3;
    probe_message_set_runs(&report, &runs);
    return report;
}

static int receive_again(const struct probe_message *message)
{
    uint8_t wire[PROBE_MESSAGE_BYTES_MAX];
    struct probe_message heard;
    size_t bytes = probe_message_encode(message, wire), whole;
    int error = probe_message_header(wire, &whole);
    assert_true(error != 0 || whole == bytes);
    error = probe_message_decode(wire, bytes, &heard);
    if (error == 0)
        assert_memory_equal(&heard, message, sizeof heard);
    return error;
}

static void test_messages(void **state)
{
    (void)state;
    struct probe_message hello = {.type = PROBE_HELLO, .numbers = {10 * LH_NS_PER_S}, .text = "rtt=25ms"};
    assert_int_equal(receive_again(&hello), 0);
    struct probe_message report = report_of();
    assert_int_equal(receive_again(&report), 0);
    assert_int_equal(probe_message_runs(&report).arrived_after_lost, 2);
    struct probe_message refuse = {.type = PROBE_REFUSE};
    memset(refuse.text, 'x', PROBE_TEXT_MAX);
    assert_int_equal(receive_again(&refuse), 0);
}

static void test_numbers_out_of_range(void **state)
{
    (void)state;
    struct probe_message begin = {.type = PROBE_BEGIN, .numbers = {1, LH_PROBE_PACKETS_MAX, 1}};
    assert_int_equal(receive_again(&begin), 0);
    begin.numbers[PROBE_BEGIN_PACKETS]++;
    assert_int_equal(receive_again(&begin), -LH_EPROTOCOL);
    begin.numbers[PROBE_BEGIN_PACKETS] = 0;
    assert_int_equal(receive_again(&begin), -LH_EPROTOCOL);
    begin = (struct probe_message){.type = PROBE_BEGIN, .numbers = {1, 1, LH_PROBE_FLOWS_MAX + 1}};
    assert_int_equal(receive_again(&begin), -LH_EPROTOCOL);
    struct probe_message welcome = {.type = PROBE_WELCOME, .numbers = {65536, 1}};
    assert_int_equal(receive_again(&welcome), -LH_EPROTOCOL);
    struct probe_message hello = {.type = PROBE_HELLO, .numbers = {10 * LH_NS_PER_S}, .text = "\033[2J"};
    assert_int_equal(receive_again(&hello), -LH_EPROTOCOL);
}

static void test_reports_that_contradict_themselves(void **state)
{
    (void)state;
    const unsigned places[] = {PROBE_REPORT_RECEIVED, PROBE_REPORT_RUNS, PROBE_REPORT_RUNS + 1,
                               PROBE_REPORT_FLOW_LOST, PROBE_REPORT_FLOW_LOST + 15};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct probe_message report = report_of();
        report.numbers[places[i]]++;
        assert_int_equal(receive_again(&report), -LH_EPROTOCOL);
    }
    struct probe_message report = report_of(); /* sums that would wrap */
    report.numbers[PROBE_REPORT_FLOW_LOST] = UINT64_MAX;
    report.numbers[PROBE_REPORT_FLOW_LOST + 2] = 1;
    assert_int_equal(receive_again(&report), -LH_EPROTOCOL);
    report = report_of();
    report.numbers[PROBE_REPORT_REORDERED] = 98;
    assert_int_equal(receive_again(&report), -LH_EPROTOCOL);
}

static void test_foreign_headers(void **state)
{
    (void)state;
    uint8_t wire[PROBE_MESSAGE_BYTES_MAX];
    struct probe_message report = report_of(), heard;
    size_t bytes = probe_message_encode(&report, wire), whole;
    assert_int_equal(probe_message_header((const uint8_t *)"GET / HTTP/1.1", &whole), -LH_EHANDSHAKE);
    assert_int_equal(probe_message_decode(wire, bytes - 1, &heard), -LH_EPROTOCOL);
    assert_int_equal(probe_message_decode(wire, 3, &heard), -LH_EPROTOCOL);
    wire[4]++;
    assert_int_equal(probe_message_header(wire, &whole), -LH_EVERSION);
    wire[4]--;
    lh_put_be16(wire + 6, PROBE_NUMBERS_MAX + 1);
    assert_int_equal(probe_message_header(wire, &whole), -LH_EPROTOCOL);
    probe_message_encode(&report, wire);
    wire[5] = 99;
    assert_int_equal(probe_message_header(wire, &whole), -LH_EPROTOCOL);
    wire[5] = 0;
    assert_int_equal(probe_message_header(wire, &whole), -LH_EPROTOCOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packet),
        cmocka_unit_test(test_packets_that_are_none),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_numbers_out_of_range),
        cmocka_unit_test(test_reports_that_contradict_themselves),
        cmocka_unit_test(test_foreign_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
