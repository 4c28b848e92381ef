/*
 * test_qp_setup.c - QPs that are created with and without defaults, and peers that they refuse.
 *
 * Nothing is sent over a network; it is a simulated one, or loopback.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/sdr_ext.h>

#include "netsim/fabric/sim_packets.h"
#include "sdr/sdr_driver.h"
#include "wire/qp_info.h"
#include "wire/wire_numbers.h"

/* ---- defaults are printed ---------------------------------------------------------------------------- */

/* What sdr_qp_create() of a new context prints on standard error. */
static void create_and_read(const struct sdr_qp_attr *attr, char *printed, size_t size)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    struct sdr_context *context = sdr_context_create("sim:setup/0", NULL);
    assert_non_null(context);
    struct sdr_qp_attr wanted = *attr;
    fflush(stderr);
    int before = dup(STDERR_FILENO);
    assert_true(before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    struct sdr_qp *qp = sdr_qp_create(context, &wanted);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    assert_non_null(qp);
    rewind(file);
    printed[fread(printed, 1, size - 1, file)] = '\0';
    fclose(file);
    assert_int_equal(sdr_qp_destroy(qp), SDR_SUCCESS);
    assert_int_equal(sdr_context_destroy(context), SDR_SUCCESS);
}

static void zeros_are_printed_as_what_they_became(void **state)
{
    (void)state;
    char printed[1024];
    struct sim_world *world = sim_world_create("setup", 1, NULL);
    const struct sdr_qp_attr attrs[] = {
        {.max_in_flight_log_bytes = 20, .max_log_num_msgs = 2},
        {.max_in_flight_log_bytes = 20, .mtu = SDR_MTU_1024},
        {.max_in_flight_log_bytes = 20, .max_log_num_msgs = 2, .mtu = SDR_MTU_1024},
    };
    create_and_read(&attrs[0], printed, sizeof printed);
    assert_non_null(strstr(printed, "MTU 4096, chunk 64KiB, 4 messages of up to 256KiB"));
    create_and_read(&attrs[1], printed, sizeof printed);
    assert_non_null(strstr(printed, "MTU 1024, chunk 64KiB, 128 messages of up to 8KiB"));
    create_and_read(&attrs[2], printed, sizeof printed);
    assert_string_equal(printed, "");
    sim_world_destroy(world);
}

/* ---- peers ------------------------------------------------------------------------------------------- */

struct side {
    struct sdr_context *context;
    struct sdr_qp *qp;
};

static const struct sdr_qp_attr usual = {.max_log_num_msgs = 2};
static const struct lh_qp_attr small = {.mtu_bytes = 1024, .slot_bytes = 65536, .chunk_bytes = 4096};

static struct side open_side(uint32_t host, uint32_t channels, const struct sdr_qp_attr *attr,
                             const struct lh_qp_attr *more)
{
    char device[FABRIC_NAME_MAX];
    struct side side;
    const struct lh_context_attr context = {.channels = channels, .workers = LH_SDR_NO_WORKERS};
    snprintf(device, sizeof device, "sim:setup/%u", host);
    assert_int_equal(lh_sdr_context_create(device, &context, &side.context), 0);
    assert_int_equal(lh_sdr_qp_create(side.context, attr, more, &side.qp), 0);
    return side;
}

static void close_side(struct side *side)
{
    assert_int_equal(sdr_qp_destroy(side->qp), SDR_SUCCESS);
    assert_int_equal(sdr_context_destroy(side->context), SDR_SUCCESS);
}

static void get_info(const struct side *side, uint8_t info[QP_INFO_BYTES_MAX])
{
    size_t bytes;
    memset(info, 0, QP_INFO_BYTES_MAX);
    assert_int_equal(sdr_qp_info_size_get(side->qp, &bytes), SDR_SUCCESS);
    assert_in_range(bytes, 1, QP_INFO_BYTES_MAX);
    assert_int_equal(sdr_qp_info_get(side->qp, info), SDR_SUCCESS);
}

/* Whatever differs between both ends is refused by each, and both values are named. An end of one direction
 * takes a peer that has both. */
static void peers_that_differ_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        uint32_t channels;
        struct sdr_qp_attr attr;
        struct lh_qp_attr more;
    } others[] = {
        {"MTU mismatch: peer 2048, this side 1024",
         2,
         {.max_log_num_msgs = 2},
         {.mtu_bytes = 2048, .slot_bytes = 65536, .chunk_bytes = 4096}},
        {"chunk size mismatch: peer 8192 bytes, this side 4096",
         2,
         {.max_log_num_msgs = 2},
         {.mtu_bytes = 1024, .slot_bytes = 65536, .chunk_bytes = 8192}},
        {"immediate split mismatch: peer 9 and 4 bits, this side 10 and 4",
         2,
         {.max_log_num_msgs = 2},
         {.mtu_bytes = 1024, .slot_bytes = 65536, .chunk_bytes = 4096, .immediate_message_bits = 9}},
        {"immediate split mismatch: peer 10 and 8 bits, this side 10 and 4",
         2,
         {.max_log_num_msgs = 2},
         {.mtu_bytes = 1024, .slot_bytes = 65536, .chunk_bytes = 4096, .immediate_fragment_bits = 8}},
        {"channel mismatch: peer 3 of 4 generations, this side 2 of 4",
         3,
         {.max_log_num_msgs = 2},
         {.mtu_bytes = 1024, .slot_bytes = 65536, .chunk_bytes = 4096}},
        {"channel mismatch: peer 2 of 2 generations, this side 2 of 4",
         2,
         {.max_log_num_msgs = 2},
         {.mtu_bytes = 1024, .slot_bytes = 65536, .chunk_bytes = 4096, .generations = 2}},
        {"peer sends 1 and receives 0",
         2,
         {.max_log_num_msgs = 2, .send_enable = 1},
         {.mtu_bytes = 1024, .slot_bytes = 65536, .chunk_bytes = 4096}},
        {"peer sends 0 and receives 1",
         2,
         {.max_log_num_msgs = 2, .recv_enable = 1},
         {.mtu_bytes = 1024, .slot_bytes = 65536, .chunk_bytes = 4096}},
    };
    struct sim_world *world = sim_world_create("setup", 1, NULL);
    struct side mine = open_side(0, 2, &usual, &small);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        uint8_t info[QP_INFO_BYTES_MAX];
        struct side other = open_side(1, others[i].channels, &others[i].attr, &others[i].more);
        get_info(&other, info);
        assert_int_equal(lh_sdr_qp_connect(mine.qp, info), -LH_EHANDSHAKE);
        if (!strstr(lh_last_error(), others[i].words))
            fail_msg("\"%s\" is not in \"%s\"", others[i].words, lh_last_error());
        assert_int_equal(sdr_qp_connect(mine.qp, info), SDR_ERROR);
        get_info(&mine, info);
        bool both = !others[i].attr.send_enable && !others[i].attr.recv_enable;
        assert_int_equal(lh_sdr_qp_connect(other.qp, info), both ? -LH_EHANDSHAKE : 0);
        close_side(&other);
    }
    /* None of that was a connection. */
    uint8_t info[QP_INFO_BYTES_MAX];
    struct side alike = open_side(1, 2, &usual, &small);
    get_info(&alike, info);
    assert_int_equal(lh_sdr_qp_connect(mine.qp, info), 0);
    assert_int_equal(lh_sdr_qp_connect(mine.qp, info), -LH_ESTATE);
    assert_int_equal(sdr_qp_connect(mine.qp, info), SDR_ERROR);
    close_side(&alike);
    close_side(&mine);
    sim_world_destroy(world);
}

/* One direction each. */
static void a_sender_and_a_receiver(void **state)
{
    (void)state;
    uint8_t info[QP_INFO_BYTES_MAX];
    const struct sdr_qp_attr sends = {.max_log_num_msgs = 2, .send_enable = 1};
    const struct sdr_qp_attr receives = {.max_log_num_msgs = 2, .recv_enable = 1};
    struct sim_world *world = sim_world_create("setup", 1, NULL);
    struct side sender = open_side(0, 1, &sends, &small), receiver = open_side(1, 1, &receives, &small);
    struct side third = open_side(2, 1, &sends, &small);
    get_info(&third, info);
    assert_int_equal(lh_sdr_qp_connect(sender.qp, info), -LH_EHANDSHAKE);
    get_info(&receiver, info);
    assert_int_equal(lh_sdr_qp_connect(sender.qp, info), 0);
    get_info(&sender, info);
    assert_int_equal(lh_sdr_qp_connect(receiver.qp, info), 0);
    struct sdr_recv_wr receive = {.max_length = 65536};
    struct sdr_send_wr send = {.opcode = SDR_WR_WRITE_WITH_IMM};
    struct sdr_recv_handle *received;
    struct sdr_send_handle *sent;
    assert_int_equal(sdr_recv_post(sender.qp, &receive, &received), SDR_ERROR);
    assert_string_equal(lh_last_error(), "QP was created without recv_enable");
    assert_int_equal(sdr_send_post(receiver.qp, &send, &sent), SDR_ERROR);
    assert_string_equal(lh_last_error(), "QP was created without send_enable");
    assert_int_equal(sdr_send_post(sender.qp, &send, &sent), SDR_RETRY); /* nothing is received yet */
    assert_int_equal(sdr_send_post(third.qp, &send, &sent), SDR_ERROR);
    assert_string_equal(lh_last_error(), "QP is not connected yet");
    receive.max_length++;
    assert_int_equal(sdr_recv_post(receiver.qp, &receive, &received), SDR_ERROR);
    assert_string_equal(lh_last_error(),
                        "receive of 65537 bytes: exceeds the message size limit of this QP, 65536");
    assert_int_equal(sdr_recv_complete(NULL), SDR_ERROR);
    assert_string_equal(lh_last_error(), "no receive");
    close_side(&third);
    close_side(&receiver);
    close_side(&sender);
    sim_world_destroy(world);
}

/* Every damaged byte is found: nothing of it is believed. */
static void damaged_information_is_refused(void **state)
{
    (void)state;
    uint8_t info[QP_INFO_BYTES_MAX];
    size_t bytes;
    struct sim_world *world = sim_world_create("setup", 1, NULL);
    struct side mine = open_side(0, 1, &usual, &small), peer = open_side(1, 1, &usual, &small);
    assert_int_equal(lh_sdr_qp_connect(mine.qp, NULL), -LH_EHANDSHAKE);
    get_info(&peer, info);
    assert_int_equal(sdr_qp_info_size_get(peer.qp, &bytes), SDR_SUCCESS);
    for (size_t i = 0; i < bytes; i++) {
        info[i] ^= 0x20;
        int error = lh_sdr_qp_connect(mine.qp, info);
        assert_true(error == -LH_EHANDSHAKE || error == -LH_EVERSION);
        info[i] ^= 0x20;
    }
    assert_int_equal(lh_sdr_qp_connect(mine.qp, info), 0);
    close_side(&peer);
    close_side(&mine);
    sim_world_destroy(world);
}

/* ---- what a peer is told, and what is preset --------------------------------------------------------- */

static struct qp_info told_by(const struct side *side)
{
    uint8_t blob[QP_INFO_BYTES_MAX];
    struct qp_info info;
    size_t bytes;
    get_info(side, blob);
    assert_int_equal(sdr_qp_info_size_get(side->qp, &bytes), SDR_SUCCESS);
    assert_int_equal(qp_info_decode(blob, bytes, &info), 0);
    return info;
}

static void a_peer_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *congestion;
        bool wants_feedback;
        uint8_t credits;
    } cases[] = {{"fixed", false, 0}, {"bbr", true, 0}, {"eqds", true, WIRE_EQDS}};
    struct sim_world *world = sim_world_create("setup", 1, NULL);
    uint32_t tokens[3];
    for (size_t i = 0; i < 3; i++) {
        const struct sdr_qp_attr attr = {.max_log_num_msgs = 3, .send_enable = i != 0, .recv_enable = 1};
        const struct lh_qp_attr more = {.mtu_bytes = 2048,
                                        .slot_bytes = 100000,
                                        .chunk_bytes = 8192,
                                        .generations = 2,
                                        .immediate_message_bits = 9,
                                        .immediate_fragment_bits = 8,
                                        .congestion = cases[i].congestion};
        struct side side = open_side(0, 3, &attr, &more);
        const struct qp_info info = told_by(&side);
        assert_int_equal(info.mtu_bytes, 2048);
        assert_int_equal(info.chunk_bytes, 8192);
        assert_int_equal(info.slots, 8);
        assert_int_equal(info.slot_bytes, 100000);
        assert_int_equal(info.immediate_message_bits, 9);
        assert_int_equal(info.immediate_fragment_bits, 8);
        assert_int_equal(info.send_enable, i != 0);
        assert_int_equal(info.recv_enable, 1);
        assert_int_equal(info.wants_feedback, cases[i].wants_feedback);
        assert_int_equal(info.credits, cases[i].credits);
        assert_int_equal(info.endpoint.fabric, QP_INFO_SIM);
        assert_int_equal(info.endpoint.channels, 3);
        assert_int_equal(info.endpoint.generations, 2);
        assert_int_not_equal(info.token, 0);
        tokens[i] = info.token;
        close_side(&side);
    }
    assert_true(tokens[0] != tokens[1] && tokens[1] != tokens[2]); /* at one address */
    sim_world_destroy(world);
}

/* "fixed" where a rate was given, to the QP or to an emulated link; else one that finds it out. */
static void which_controller_is_preset(void **state)
{
    (void)state;
    static const struct {
        const char *wanted;
        uint64_t rate_bps, of_link, of_context;
        const char *asked;
    } cases[] = {{"bbr", 0, 0, 0, NULL},         {"fixed", 1000000, 0, 0, NULL},
                 {"fixed", 0, 1000000, 0, NULL}, {"fixed", 0, 0, 1000000, NULL},
                 {"bbr", 1000000, 0, 0, "bbr"},  {"fixed", 0, 0, 0, "fixed"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct lh_context_attr context = {.workers = LH_SDR_NO_WORKERS,
                                                .link.rate_bps = cases[i].of_context};
        const struct sdr_qp_own own = {.link = {.rate_bps = cases[i].of_link,
                                                .delay_ns = LH_NS_PER_MS}}; /* there is a link, at least */
        struct lh_qp_attr more = small;
        struct side side;
        struct lh_congestion_report report;
        more.rate_bps = cases[i].rate_bps;
        more.congestion = cases[i].asked;
        assert_int_equal(lh_sdr_context_create("udp:127.0.0.1", &context, &side.context), 0);
        assert_int_equal(sdr_qp_open(side.context, &usual, &more, &own, &side.qp), 0);
        assert_int_equal(lh_sdr_congestion(side.qp, &report), 0);
        assert_string_equal(report.controller, cases[i].wanted);
        if (cases[i].rate_bps)
            assert_true(report.rate_bps == cases[i].rate_bps || report.feedback);
        close_side(&side);
    }
}

static void rates_are_bounded(void **state)
{
    (void)state;
    const uint64_t most = UINT64_C(100000000000000);
    const struct lh_context_attr attr = {.channels = 1, .workers = LH_SDR_NO_WORKERS};
    struct sim_world *world = sim_world_create("setup", 1, NULL);
    struct side side;
    assert_int_equal(lh_sdr_context_create("sim:setup/0", &attr, &side.context), 0);
    for (int maximum = 0; maximum < 2; maximum++) {
        struct lh_qp_attr more = small;
        uint64_t *rate = maximum ? &more.rate_max_bps : &more.rate_bps;
        *rate = most + 1;
        assert_int_equal(lh_sdr_qp_create(side.context, &usual, &more, &side.qp), -LH_EINVAL);
        assert_string_equal(lh_last_error(), "rate of 100000000000001 bit/s: out of range (at most "
                                             "100000000000000 = 100 Tbit/s, or 0 for none)");
        *rate = most;
        assert_int_equal(lh_sdr_qp_create(side.context, &usual, &more, &side.qp), 0);
        assert_int_equal(sdr_qp_destroy(side.qp), SDR_SUCCESS);
    }
    assert_int_equal(sdr_context_destroy(side.context), SDR_SUCCESS);
    sim_world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_are_printed_as_what_they_became),
        cmocka_unit_test(peers_that_differ_are_refused),
        cmocka_unit_test(a_sender_and_a_receiver),
        cmocka_unit_test(damaged_information_is_refused),
        cmocka_unit_test(a_peer_is_told),
        cmocka_unit_test(which_controller_is_preset),
        cmocka_unit_test(rates_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
