/*
 * test_sim_pcap.c - captures: every field that a reader of the file relies on, found again by a parser of
 * its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/sim/sim_results.h"

#include <longhaul/flowcontrol.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint8_t *text;
static size_t text_bytes;

static unsigned big16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static uint32_t big32(const uint8_t *at)
{
    return (uint32_t)big16(at) << 16 | big16(at + 2);
}

static uint32_t little(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* The file with one packet; returns the record. */
static const uint8_t *write_one(const struct lh_netsim_packet *packet, bool full)
{
    FILE *file;
    free(text);
    file = open_memstream((char **)&text, &text_bytes);
    cli_pcap_start(file);
    cli_pcap_packet(file, packet, 78, full);
    fclose(file);
    assert_int_equal(little(text), 0xa1b23c4d);
    assert_int_equal(little(text + 4), 0x00040002);
    assert_int_equal(little(text + 20), 1);
    assert_int_equal(text_bytes, 24 + 16 + little(text + 24 + 8));
    return text + 24;
}

static void check_ip(const uint8_t *ip, unsigned frame_bytes)
{
    uint32_t sum = 0;
    assert_int_equal(ip[0], 0x45);
    assert_int_equal(ip[9], 17);
    for (unsigned i = 0; i < 20; i += 2)
        sum += big16(ip + i);
    assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
    assert_true(14 + big16(ip + 2) <= frame_bytes);
    assert_int_equal(big16(ip + 24), big16(ip + 2) - 20); /* UDP's length */
    assert_int_equal(big16(ip + 22), 4791);
}

static void data(void **state)
{
    (void)state;
    const struct lh_netsim_packet packet = {
        .at_ps = 3000000001234567,
        .source = 1,
        .destination = 300,
        .flow = 7,
        .sequence = 0x1234567,
        .wire_bytes = 4096 + 78,
        .kind = LH_NETSIM_DATA,
        .priority = 3,
        .marked = true,
    };
    const uint8_t *record = write_one(&packet, false), *frame = record + 16;
    assert_int_equal(little(record), 3000);
    assert_int_equal(little(record + 4), 1234);
    assert_int_equal(little(record + 8), 70);
    assert_int_equal(little(record + 12), 4174);
    assert_int_equal(big16(frame + 12), 0x0800);
    check_ip(frame + 14, 4174);
    assert_int_equal(frame[15], 3 << 5 | 3); /* priority, congestion experienced */
    assert_int_equal(big32(frame + 26), 0x0a000002);
    assert_int_equal(big32(frame + 30), 0x0a00012d);
    assert_int_equal(big16(frame + 34), 0xc007);
    assert_int_equal(big16(frame + 16), 20 + 8 + 12 + 16 + 4096 + 4);
    assert_int_equal(frame[42], 0x0a);
    assert_int_equal(big32(frame + 46), 0x107);
    assert_int_equal(big32(frame + 50), 0x80234567);
    assert_int_equal(big32(frame + 66), 4096);
    record = write_one(&packet, true);
    assert_int_equal(little(record + 8), 4174);
}

static void acknowledgement(void **state)
{
    (void)state;
    struct lh_netsim_packet packet = {
        .source = 2, .destination = 1, .flow = 7, .sequence = 9, .wire_bytes = 64, .kind = LH_NETSIM_ACK};
    const uint8_t *record = write_one(&packet, true), *frame = record + 16;
    assert_int_equal(little(record + 8), 64);
    assert_int_equal(little(record + 12), 64);
    check_ip(frame + 14, 64);
    assert_int_equal(frame[15] & 3, 0);
    assert_int_equal(frame[42], 0x11);
    assert_int_equal(big32(frame + 50), 8);          /* the last of nine */
    assert_int_equal(big32(frame + 54), 0x1f000009); /* an acknowledgement; nine messages are complete */
    packet.sequence = 0x1000000;
    frame = write_one(&packet, true) + 16;
    assert_int_equal(big32(frame + 50), 0xffffff);
    assert_int_equal(big32(frame + 54), 0x1f000000);
    packet.sequence = 0; /* the first one is missing */
    frame = write_one(&packet, true) + 16;
    assert_int_equal(big32(frame + 50), 0);
    assert_int_equal(big32(frame + 54), 0x60000000);
}

static void pause_and_resume(void **state)
{
    (void)state;
    struct lh_netsim_packet packet = {
        .priority = 3, .wire_bytes = 64, .kind = LH_NETSIM_PAUSE, .quanta = 0x1e85};
    const uint8_t *record = write_one(&packet, false), *frame = record + 16;
    assert_int_equal(little(record + 12), 64);
    struct lh_pfc_frame read;
    assert_int_equal(little(record + 8), 64);
    assert_int_equal(lh_pfc_frame_decode(frame, 64, &read), 0);
    assert_int_equal(big16(frame + 12), 0x8808);
    assert_int_equal(big16(frame + 14), 0x0101);
    assert_int_equal(big16(frame + 16), 1 << 3);
    assert_int_equal(big16(frame + 18 + 6), 0x1e85);
    assert_int_equal(big16(frame + 18 + 4), 0);
    packet.kind = LH_NETSIM_RESUME;
    packet.quanta = 0;
    frame = write_one(&packet, false) + 16;
    assert_int_equal(big16(frame + 18 + 6), 0);
}

/* A simulation may have shorter headers than RoCE needs. */
static void packets_shorter_than_their_headers(void **state)
{
    (void)state;
    struct lh_netsim_packet packet = {.wire_bytes = 1, .kind = LH_NETSIM_DATA};
    const uint8_t *record = write_one(&packet, true);
    assert_int_equal(little(record + 8), 74);
    assert_int_equal(little(record + 12), 74);
    check_ip(record + 16 + 14, 74);
    packet.kind = LH_NETSIM_ACK;
    record = write_one(&packet, false);
    assert_int_equal(little(record + 8), 58);
    assert_int_equal(little(record + 12), 62);
    free(text);
    text = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data),
        cmocka_unit_test(acknowledgement),
        cmocka_unit_test(pause_and_resume),
        cmocka_unit_test(packets_shorter_than_their_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
