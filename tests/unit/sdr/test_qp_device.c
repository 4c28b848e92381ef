/*
 * test_qp_device.c - QPs over a fabric that fails, takes nothing for a while, registers memory, paces packets
 * or passes NAT: the simulated fabric, with single operations of a test.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/sdr_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/error.h"
#include "sdr/qp.h"
#include "sdr/sdr_driver.h"
#include "sdr/sdr_state.h"
#include "wire/control_messages.h"

#define BYTES 20000u

static struct {
    const struct fabric_ops *real;
    struct fabric_ops ops;
    struct fabric *fabric; /* whose operations these are */
    uint32_t refusals;     /* calls that take nothing; the others are passed on */
    uint32_t calls;        /* of any operation below */
    const char *reason;    /* of the next failures */
    uint64_t number;       /* an argument of the last call */
    const void *pointer;
} altered;

static void alter(struct fabric *fabric)
{
    memset(&altered, 0, sizeof altered);
    altered.fabric = fabric;
    altered.real = fabric->ops;
    altered.ops = *fabric->ops;
    fabric->ops = &altered.ops;
}

static void restore(void)
{
    altered.fabric->ops = altered.real;
}

static int fails(void)
{
    altered.calls++;
    return lh_fail(LH_EDEVICE, "%s", altered.reason);
}

static int post_fails(struct fabric_endpoint *endpoint, uint32_t channel, const struct fabric_write *writes,
                      uint32_t count)
{
    (void)endpoint, (void)channel, (void)writes, (void)count;
    return fails();
}

static int poll_fails(struct fabric_endpoint *endpoint, uint32_t channel, struct fabric_arrival *arrivals,
                      uint32_t count)
{
    (void)endpoint, (void)channel, (void)arrivals, (void)count;
    return fails();
}

static int control_send_fails(struct fabric_endpoint *endpoint, const struct fabric_datagram *datagrams,
                              uint32_t count)
{
    (void)endpoint, (void)datagrams, (void)count;
    return fails();
}

static int control_poll_fails(struct fabric_endpoint *endpoint, struct fabric_control_arrival *arrivals,
                              uint32_t count)
{
    (void)endpoint, (void)arrivals, (void)count;
    return fails();
}

static int post_refuses(struct fabric_endpoint *endpoint, uint32_t channel,
                        const struct fabric_write *writes, uint32_t count)
{
    altered.calls++;
    return altered.calls <= altered.refusals ? 0
                                             : altered.real->post_writes(endpoint, channel, writes, count);
}

static int control_send_refuses(struct fabric_endpoint *endpoint, const struct fabric_datagram *datagrams,
                                uint32_t count)
{
    altered.calls++;
    return altered.calls <= altered.refusals ? 0 : altered.real->control_send(endpoint, datagrams, count);
}

/* ---- a device that is gone ---------------------------------------------------------------------------- */

/* The QP says why from then on, does not use the device any more, and can be destroyed. */
static void has_ended(struct sdr_pair *pair, uint32_t end, const char *words)
{
    struct sdr_recv_wr receive = {.max_length = 16,
                                  .lkey = pair->ends[end].lkey,
                                  .address = (uint64_t)(uintptr_t)pair->ends[end].arena};
    struct sdr_recv_handle *handle;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lh_sdr_error(pair->ends[end].qp), -LH_EDEVICE);
        assert_string_equal(lh_last_error(), "fake0: the port is down");
        assert_int_equal(sdr_recv_post(pair->ends[end].qp, &receive, &handle), SDR_ERROR);
        assert_non_null(strstr(lh_last_error(), words));
        uint32_t calls = altered.calls;
        altered.reason = "fake1: the second reason";
        sdr_pair_run(pair, 3 * LH_NS_PER_S);
        assert_int_equal(altered.calls, calls);
    }
    sdr_qp_punch(pair->ends[end].qp);
    assert_int_equal(altered.calls, 1);
}

static void punched(struct fabric_endpoint *endpoint, uint32_t proof)
{
    altered.calls++;
    altered.pointer = endpoint;
    altered.number = proof;
}

static void a_device_that_is_gone(void **state)
{
    (void)state;
    for (int fault = 0; fault < 4; fault++) {
        struct sdr_pair pair;
        struct sdr_send_handle *send;
        struct sdr_recv_handle *receive;
        const uint32_t end = fault == 0 ? SDR_PAIR_TX : SDR_PAIR_RX;
        sdr_pair_open(&pair, &(struct sdr_pair_options){.seed = 1});
        assert_int_equal(sdr_pair_recv(&pair, 0, BYTES, &receive), SDR_SUCCESS);
        sdr_pair_run(&pair, LH_NS_PER_MS);
        alter(pair.ends[end].qp->endpoint->fabric);
        altered.reason = "fake0: the port is down";
        altered.ops.punch = punched;
        altered.ops.post_writes = fault == 0 ? post_fails : altered.ops.post_writes;
        altered.ops.poll = fault == 1 ? poll_fails : altered.ops.poll;
        altered.ops.control_poll = fault == 2 ? control_poll_fails : altered.ops.control_poll;
        altered.ops.control_send = fault == 3 ? control_send_fails : altered.ops.control_send;
        if (fault < 2)
            assert_int_equal(sdr_pair_send(&pair, 0, BYTES, 1, &send), SDR_SUCCESS);
        sdr_pair_run(&pair, 3 * LH_NS_PER_S); /* pings, in any case */
        assert_int_equal(altered.calls, 1);
        has_ended(&pair, end, "QP has ended: fake0: the port is down");
        if (fault == 0)
            assert_int_equal(sdr_pair_stats(&pair, end).tx_packets, 0);
        restore();
        sdr_pair_close(&pair);
    }
}

/* ---- a device that is full ---------------------------------------------------------------------------- */

/* Data and clear-to-send leave when it takes them again. */
static void a_device_that_is_full(void **state)
{
    (void)state;
    for (int control = 0; control < 2; control++) {
        struct sdr_pair pair;
        struct sdr_send_handle *send;
        struct sdr_recv_handle *receive;
        sdr_pair_open(&pair, &(struct sdr_pair_options){.seed = 2});
        sdr_pair_run(&pair, LH_NS_PER_MS);
        uint64_t cts = sdr_pair_stats(&pair, SDR_PAIR_RX).cts_sent;
        uint64_t sent = sdr_pair_stats(&pair, SDR_PAIR_RX).tx_control;
        alter(pair.ends[control ? SDR_PAIR_RX : SDR_PAIR_TX].qp->endpoint->fabric);
        altered.refusals = 5;
        if (control)
            altered.ops.control_send = control_send_refuses;
        else
            altered.ops.post_writes = post_refuses;
        assert_int_equal(sdr_pair_recv(&pair, 0, BYTES, &receive), SDR_SUCCESS);
        if (control) {
            sdr_pair_run(&pair, 0);
            assert_int_equal(sdr_pair_stats(&pair, SDR_PAIR_RX).cts_sent, cts);
            assert_int_equal(sdr_pair_stats(&pair, SDR_PAIR_RX).tx_control, sent);
            assert_int_equal(sdr_pair_send(&pair, 0, BYTES, 1, &send), SDR_RETRY);
        }
        sdr_pair_run(&pair, 10 * LH_NS_PER_MS);
        const struct lh_stats stats = sdr_pair_stats(&pair, SDR_PAIR_RX);
        assert_int_equal(stats.cts_sent - stats.cts_repeated, cts + 1);
        assert_int_equal(sdr_pair_send(&pair, 0, BYTES, 1, &send), SDR_SUCCESS);
        sdr_pair_finish(&pair, send);
        sdr_pair_run(&pair, LH_NS_PER_MS);
        assert_true(altered.calls > altered.refusals);
        assert_true(sdr_pair_same(&pair, 0, 0, BYTES));
        assert_int_equal(sdr_pair_stats(&pair, SDR_PAIR_TX).tx_packets, (BYTES + 1023) / 1024);
        assert_int_equal(sdr_pair_stats(&pair, SDR_PAIR_TX).tx_bytes, BYTES);
        assert_int_equal(sdr_recv_complete(receive), SDR_SUCCESS);
        restore();
        sdr_pair_close(&pair);
    }
}

/* ---- what a fabric has, or has not --------------------------------------------------------------------- */

static int registers(struct fabric *fabric, void *address, size_t bytes, uint32_t *lkey, void **handle)
{
    altered.calls++;
    assert_ptr_equal(fabric, altered.fabric);
    if (altered.reason)
        return lh_fail(LH_ENOMEM, "%s", altered.reason);
    altered.number = bytes;
    *lkey = 0x1234;
    *handle = address;
    return 0;
}

static void deregisters(struct fabric *fabric, void *handle)
{
    altered.calls++;
    assert_ptr_equal(fabric, altered.fabric);
    altered.pointer = handle;
}

static void a_fabric_that_registers_memory(void **state)
{
    (void)state;
    static uint8_t bytes[100];
    struct sdr_pair pair;
    uint32_t lkey;
    sdr_pair_open(&pair, &(struct sdr_pair_options){.seed = 3});
    struct sdr_context *context = pair.ends[0].context;
    alter(context->fabric);
    altered.ops.memory_register = registers;
    altered.ops.memory_deregister = deregisters;
    struct sdr_mr *mr = sdr_mr_reg(context, bytes, sizeof bytes, SDR_ACCESS_REMOTE_WRITE);
    assert_non_null(mr);
    assert_int_equal(altered.number, sizeof bytes);
    assert_int_equal(sdr_mr_lkey_get(mr, &lkey), SDR_SUCCESS);
    assert_int_equal(lkey, 0x1234);
    assert_true(memory_covers(context, lkey, (uint64_t)(uintptr_t)bytes, sizeof bytes));
    altered.reason = "the device has no room";
    assert_null(sdr_mr_reg(context, bytes, sizeof bytes, SDR_ACCESS_REMOTE_WRITE));
    assert_string_equal(lh_last_error(), "the device has no room");
    assert_int_equal(altered.calls, 2);
    assert_int_equal(sdr_mr_dereg(mr), SDR_SUCCESS);
    assert_int_equal(altered.calls, 3);
    assert_ptr_equal(altered.pointer, bytes);
    assert_false(memory_covers(context, lkey, (uint64_t)(uintptr_t)bytes, 1));
    restore();
    sdr_pair_close(&pair);
}

static void paces(struct fabric_endpoint *endpoint, uint64_t rate_bps)
{
    altered.calls++;
    altered.pointer = endpoint;
    altered.number = rate_bps;
}

/* Where there is no rate, none is said. */
static void a_fabric_that_paces_and_punches(void **state)
{
    (void)state;
    for (uint64_t rate_bps = 0; rate_bps <= 5000000; rate_bps += 5000000) {
        struct sdr_pair pair;
        sdr_pair_open(&pair,
                      &(struct sdr_pair_options){.seed = 4, .rate_bps = rate_bps, .congestion = "fixed"});
        struct sdr_qp *qp = pair.ends[0].qp;
        alter(qp->endpoint->fabric);
        altered.ops.pace = paces;
        altered.ops.punch = punched;
        sdr_pair_run(&pair, 10 * LH_NS_PER_MS);
        assert_int_equal(altered.calls, rate_bps ? 1 : 0);
        assert_int_equal(altered.number, rate_bps);
        assert_ptr_equal(altered.pointer, rate_bps ? qp->endpoint : NULL);
        altered.calls = 0;
        sdr_qp_punch(qp);
        assert_int_equal(altered.calls, 1);
        assert_int_equal(altered.number, qp->peer.token);
        assert_ptr_equal(altered.pointer, qp->endpoint);
        altered.ops.punch = NULL;
        sdr_qp_punch(qp); /* nothing to do */
        restore();
        sdr_pair_close(&pair);
    }
}

/* Before a QP is connected, there is no peer to punch to. */
static void a_punch_needs_a_peer(void **state)
{
    (void)state;
    struct sim_world *world = sim_world_create("device", 1, NULL);
    const struct lh_context_attr attr = {.channels = 1, .workers = LH_SDR_NO_WORKERS};
    const struct sdr_qp_attr qp_attr = {.max_log_num_msgs = 2};
    struct sdr_context *context;
    struct sdr_qp *qp;
    assert_int_equal(lh_sdr_context_create("sim:device/0", &attr, &context), 0);
    assert_int_equal(lh_sdr_qp_create(context, &qp_attr, NULL, &qp), 0);
    alter(qp->endpoint->fabric);
    altered.ops.punch = punched;
    sdr_qp_punch(qp);
    assert_int_equal(altered.calls, 0);
    restore();
    assert_int_equal(sdr_qp_destroy(qp), SDR_SUCCESS);
    assert_int_equal(sdr_context_destroy(context), SDR_SUCCESS);
    sim_world_destroy(world);
}

/* ---- messages in one datagram ------------------------------------------------------------------------- */

#define MESSAGES 6u

/* Sends them at once; returns how many datagrams that took. */
static uint64_t send_messages(struct sdr_pair *pair)
{
    uint64_t before = sdr_pair_stats(pair, SDR_PAIR_TX).tx_control;
    struct sdr_qp *to = pair->ends[SDR_PAIR_RX].qp;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        uint8_t data[20];
        memset(data, (int)i + 1, sizeof data);
        assert_int_equal(lh_sdr_message_send(pair->ends[SDR_PAIR_TX].qp, data, 10 + i), 0);
    }
    sdr_pair_run(pair, 0);
    uint64_t sent = sdr_pair_stats(pair, SDR_PAIR_TX).tx_control - before;
    sdr_pair_run(pair, LH_NS_PER_MS);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        uint8_t data[LH_SDR_MESSAGE_MAX] = {0};
        size_t bytes = 0;
        assert_int_equal(lh_sdr_message_recv(to, data, &bytes), 0);
        assert_int_equal(bytes, 10 + i);
        for (uint32_t k = 0; k < sizeof data; k++)
            assert_int_equal(data[k], k < bytes ? i + 1 : 0);
    }
    assert_int_equal(sdr_pair_stats(pair, SDR_PAIR_RX).rx_inbox_overflow, 0);
    assert_int_equal(sdr_pair_stats(pair, SDR_PAIR_RX).bad_control, 0);
    return sent;
}

/* Where datagrams cost a system call, and the peer has said that it can read several from one. */
static void messages_share_a_datagram(void **state)
{
    (void)state;
    for (int both = 0; both < 2; both++) {
        struct sdr_pair pair;
        struct fabric_ops ops[2];
        const struct fabric_ops *real[2];
        sdr_pair_open(&pair, &(struct sdr_pair_options){.seed = 5});
        for (uint32_t i = 0; i < 2; i++) {
            struct fabric *fabric = pair.ends[i].qp->endpoint->fabric;
            real[i] = fabric->ops;
            ops[i] = *fabric->ops;
            ops[i].bundles_control = i == SDR_PAIR_TX || both;
            fabric->ops = &ops[i];
        }
        sdr_pair_run(&pair, 10 * LH_NS_PER_MS);
        assert_int_equal(pair.ends[SDR_PAIR_RX].qp->bundles, true);
        assert_int_equal(pair.ends[SDR_PAIR_TX].qp->bundles, both);
        assert_int_equal(send_messages(&pair), both ? 1 : MESSAGES);
        for (uint32_t i = 0; i < 2; i++)
            pair.ends[i].qp->endpoint->fabric->ops = real[i];
        sdr_pair_close(&pair);
    }
}

/* ---- what the layer above asks ------------------------------------------------------------------------ */

static bool takes_pieces(struct fabric_endpoint *endpoint)
{
    (void)endpoint;
    return true;
}

static uint64_t releases(struct fabric_endpoint *endpoint, uint32_t channel)
{
    (void)endpoint, (void)channel;
    return 0;
}

static void counts_drops(struct fabric_endpoint *endpoint)
{
    altered.calls++;
    altered.pointer = endpoint;
}

/* Pieces are shorter than the MTU, and not too short; the fabric must not send from what was given back. */
static void whether_packets_may_come_in_pieces(void **state)
{
    (void)state;
    for (uint32_t mtu = 256; mtu <= 1024; mtu *= 2) {
        struct sdr_pair pair;
        sdr_pair_open(&pair,
                      &(struct sdr_pair_options){.seed = 6, .mtu_bytes = mtu, .chunk_bytes = 4 * mtu});
        struct sdr_qp *qp = pair.ends[0].qp;
        alter(qp->endpoint->fabric);
        altered.ops.takes_pieces = NULL;
        assert_false(sdr_qp_can_take_pieces(qp));
        altered.ops.takes_pieces = takes_pieces;
        altered.ops.released = NULL;
        assert_int_equal(sdr_qp_can_take_pieces(qp), mtu > 256);
        altered.ops.released = releases;
        assert_false(sdr_qp_can_take_pieces(qp));
        assert_int_equal(sdr_qp_packet_bytes(qp), mtu);
        restore();
        sdr_pair_close(&pair);
    }
}

static void which_probes_came(void **state)
{
    (void)state;
    struct sdr_pair pair;
    sdr_pair_open(&pair, &(struct sdr_pair_options){.seed = 7});
    struct sdr_qp *qp = pair.ends[0].qp;
    assert_int_equal(sdr_qp_probed(qp, 0), 0);
    qp->probed_ns[2] = 50;
    assert_int_equal(sdr_qp_probed(qp, 0), 256);
    qp->probed_ns[1] = 40;
    assert_int_equal(sdr_qp_probed(qp, 40), 512); /* the largest */
    assert_int_equal(sdr_qp_probed(qp, 41), 256); /* since then */
    assert_int_equal(sdr_qp_probed(qp, 50), 256);
    assert_int_equal(sdr_qp_probed(qp, 51), 0);
    qp->probed_ns[0] = 60;
    assert_int_equal(sdr_qp_probed(qp, 0), 1024);
    sdr_pair_close(&pair);
}

static void what_arrived_is_counted(void **state)
{
    (void)state;
    struct sdr_pair pair;
    struct sdr_send_handle *send;
    struct sdr_recv_handle *receive;
    sdr_pair_open(&pair, &(struct sdr_pair_options){.seed = 8, .link.duplicate = 1});
    struct sdr_qp *to = pair.ends[SDR_PAIR_RX].qp;
    alter(to->endpoint->fabric);
    altered.ops.count_drops = counts_drops;
    assert_int_equal(sdr_pair_recv(&pair, 0, 3 * 1024, &receive), SDR_SUCCESS);
    sdr_pair_run(&pair, LH_NS_PER_MS);
    assert_false(sdr_qp_full_arrived(to));
    assert_int_equal(sdr_pair_send(&pair, 0, 3 * 1024, 1, &send), SDR_SUCCESS);
    sdr_pair_finish(&pair, send);
    sdr_pair_run(&pair, LH_NS_PER_MS);
    struct lh_stats stats = sdr_pair_stats(&pair, SDR_PAIR_RX);
    assert_int_equal(altered.calls, 1);
    assert_ptr_equal(altered.pointer, to->endpoint);
    assert_int_equal(stats.rx_bytes, 2 * 3 * 1024);
    assert_int_equal(stats.rx_duplicate_packets, 3);
    assert_int_equal(sdr_qp_rx_packets(to), stats.rx_packets);
    assert_int_equal(sdr_qp_rx_new_packets(to), stats.rx_packets - 3);
    assert_int_equal(sdr_qp_rx_bytes(to), stats.rx_bytes);
    assert_true(sdr_qp_full_arrived(to));
    assert_false(sdr_qp_full_arrived(to)); /* since the last call */
    assert_int_equal(lh_sdr_error(to), 0);
    assert_int_equal(sdr_recv_complete(receive), SDR_SUCCESS);
    restore();
    sdr_pair_close(&pair);
}

/* What each CLOSE says. */
static int control_send_reads(struct fabric_endpoint *endpoint, const struct fabric_datagram *datagrams,
                              uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct control_message message;
        assert_int_equal(control_decode(datagrams[i].data, datagrams[i].bytes, &message), 0);
        if (message.header.type != CONTROL_CLOSE)
            continue;
        altered.calls++;
        altered.number = message.body.close_reason;
    }
    return altered.real->control_send(endpoint, datagrams, count);
}

/* The first reason stays; the peer's QP has ended. */
static void a_goodbye_with_a_reason(void **state)
{
    (void)state;
    struct sdr_pair pair;
    sdr_pair_open(&pair, &(struct sdr_pair_options){.seed = 9});
    sdr_pair_run(&pair, LH_NS_PER_MS);
    alter(pair.ends[0].qp->endpoint->fabric);
    altered.ops.control_send = control_send_reads;
    assert_int_equal(lh_sdr_error(pair.ends[1].qp), 0);
    assert_int_equal(lh_sdr_goodbye(pair.ends[0].qp, LH_EPROTOCOL), 0);
    assert_int_equal(lh_sdr_goodbye(pair.ends[0].qp, LH_ECLOSED), 0);
    sdr_pair_run(&pair, LH_NS_PER_MS);
    assert_true(altered.calls > 0);
    assert_int_equal(altered.number, LH_EPROTOCOL);
    assert_int_equal(lh_sdr_error(pair.ends[1].qp), -LH_ECLOSED);
    assert_int_equal(lh_sdr_goodbye(pair.ends[1].qp, LH_ECLOSED), -LH_ECLOSED);
    restore();
    sdr_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_that_is_gone),
        cmocka_unit_test(a_device_that_is_full),
        cmocka_unit_test(a_fabric_that_registers_memory),
        cmocka_unit_test(a_fabric_that_paces_and_punches),
        cmocka_unit_test(a_punch_needs_a_peer),
        cmocka_unit_test(messages_share_a_datagram),
        cmocka_unit_test(whether_packets_may_come_in_pieces),
        cmocka_unit_test(which_probes_came),
        cmocka_unit_test(what_arrived_is_counted),
        cmocka_unit_test(a_goodbye_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
