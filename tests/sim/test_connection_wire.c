/*
 * test_connection_wire.c - what goes over the wire, and in which order: seen by a tap on the simulated
 * network.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/onesided.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "message/connection_state.h"
#include "sdr/qp.h"
#include "support/connection_pair.h"
#include "support/echo_scheme.h"
#include "wire/control_messages.h"
#include "wire/roce_packet.h"
#include "wire/scheme_messages.h"

#define SLOT  16384u
#define MTU   1024u
#define BYTES (24 * SLOT)
#define MS    LH_NS_PER_MS

static struct connection_pair pair;
static uint8_t *data;
static uint8_t *buffer;

static void open_pair(const char *link, const struct lh_attr *attr)
{
    struct lh_attr preset;
    connection_pair_attr(&preset);
    connection_pair_open(&pair, "wire", 11, link, attr ? attr : &preset, NULL);
    connection_pair_run(&pair, 200 * MS); /* the round trip is known */
    data = connection_pair_bytes(BYTES, 1);
    buffer = calloc(1, BYTES);
}

static void close_pair(void)
{
    connection_pair_close(&pair);
    free(data);
    free(buffer);
}

/* The connection's own message in a packet; false when there is none. */
static bool upper_message(const struct sim_datagram *datagram, struct transfer_message *message)
{
    struct control_message control;
    if (!datagram->control || datagram->bytes < ROCE_BTH_BYTES + CONTROL_HEADER_BYTES)
        return false;
    const uint8_t *header = datagram->data + ROCE_BTH_BYTES;
    return control_decode(header, lh_get_be16(header + 2), &control) == 0 &&
           control.header.type == CONTROL_UPPER &&
           transfer_decode(control.body.upper.data, control.body.upper.bytes, message) == 0;
}

/* The slot that a data packet is for. */
static uint32_t slot_of(const struct sim_datagram *datagram)
{
    return lh_get_be32(datagram->data + ROCE_BTH_BYTES + ROCE_RETH_BYTES) >> 22;
}

/* ---- order ------------------------------------------------------------------------------------------- */

struct order {
    uint32_t packets[8]; /* that each slot was sent */
    uint32_t segments;   /* slots that were sent anything */
    uint32_t slots[8];   /* in that order */
    uint32_t marks;
    bool ahead;    /* a MARK spoke of a chunk that had not been sent */
    bool mixed_up; /* a segment began before the one before it was sent whole */
};

static void note_data(struct order *order, uint32_t slot)
{
    assert_true(slot < 8);
    if (order->packets[slot]++ > 0)
        return;
    if (order->segments > 0 && order->packets[order->slots[order->segments - 1]] < SLOT / MTU)
        order->mixed_up = true;
    order->slots[order->segments++] = slot;
}

static bool watch_order(void *context, struct sim_datagram *datagram)
{
    struct order *order = context;
    struct transfer_message message;
    struct sr_mark mark;
    if (datagram->from != 0)
        return true;
    if (!datagram->control)
        note_data(order, slot_of(datagram));
    if (!upper_message(datagram, &message) || message.kind != TRANSFER_TO_RECEIVER ||
        sr_mark_decode(message.body.to_receiver.scheme, message.body.to_receiver.scheme_bytes, &mark) != 0)
        return true;
    order->marks++;
    uint32_t segment = message.body.to_receiver.segment;
    if (segment >= order->segments || order->packets[order->slots[segment]] < mark.sent_through)
        order->ahead = true;
    return true;
}

/* Eight segments through a slow link, with a full queue all the time. */
static void marks_stay_behind_their_chunks(void **state)
{
    (void)state;
    struct order order = {.marks = 0};
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.slot_bytes = SLOT;
    attr.reliability = "sr-nack"; /* whose marks these are */
    open_pair("rtt=10ms,rate=100Mbit", &attr);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, 8 * SLOT);
    connection_pair_run(&pair, 50 * MS);
    sim_world_tap(pair.world, watch_order, &order);
    struct lh_request *send = connection_pair_send(&pair, 0, data, 8 * SLOT);
    assert_int_equal(connection_pair_finish(&pair, send).error, 0);
    assert_int_equal(connection_pair_finish(&pair, recv).error, 0);
    assert_int_equal(order.segments, 8);
    assert_true(order.marks >= 8);
    assert_false(order.ahead);
    assert_false(order.mixed_up);
    close_pair();
}

/* ---- lengths ----------------------------------------------------------------------------------------- */

/* Told ahead of the first chunk, so that a message takes its round trip and no more, whatever its scheme
 * says. */
static void lengths_go_ahead(void **state)
{
    (void)state;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.scheme = &echo_scheme;
    open_pair("rtt=10ms,rate=10Gbit", &attr);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, BYTES);
    connection_pair_run(&pair, 50 * MS);
    struct lh_request *send = connection_pair_send(&pair, 0, data, SLOT + 1);
    struct lh_result sent = connection_pair_finish(&pair, send);
    connection_pair_finish(&pair, recv);
    assert_int_equal(sent.error, 0);
    assert_true(sent.ended_ns - sent.started_ns < 10 * MS + MS / 2);
    close_pair();
}

/* ---- acknowledgement --------------------------------------------------------------------------------- */

struct loss {
    bool answers; /* lose what the receiver says */
};

static bool lose_first_slot(void *context, struct sim_datagram *datagram)
{
    const struct loss *loss = context;
    if (datagram->from == 1)
        return !(datagram->control && loss->answers);
    return datagram->control || slot_of(datagram) != 0;
}

/* A later message has arrived, all three DONE for it were lost, and the first is stuck: its sender asks. */
static void done_is_said_when_asked(void **state)
{
    (void)state;
    struct loss loss = {.answers = false};
    open_pair("rtt=10ms,rate=10Gbit", NULL);
    struct lh_request *recv[2] = {connection_pair_recv(&pair, 1, buffer, SLOT),
                                  connection_pair_recv(&pair, 1, buffer + SLOT, SLOT)};
    connection_pair_run(&pair, 50 * MS);
    sim_world_tap(pair.world, lose_first_slot, &loss);
    struct lh_request *send[2] = {connection_pair_send(&pair, 0, data, SLOT),
                                  connection_pair_send(&pair, 0, data + SLOT, SLOT)};
    while (!lh_test(recv[1], NULL)) {
        loss.answers = true;
        connection_pair_turn(&pair, LH_TIME_NEVER);
    }
    connection_pair_run(&pair, 4 * MS);
    loss.answers = false;
    assert_false(lh_test(send[1], NULL));
    assert_int_equal(connection_pair_finish(&pair, send[1]).error, 0);
    assert_false(lh_test(send[0], NULL));
    sim_world_tap(pair.world, NULL, NULL);
    assert_int_equal(connection_pair_finish(&pair, send[0]).error, 0);
    assert_int_equal(connection_pair_finish(&pair, recv[0]).error, 0);
    assert_int_equal(connection_pair_finish(&pair, recv[1]).error, 0);
    assert_memory_equal(buffer, data, 2 * SLOT);
    close_pair();
}

/* The connection's messages of end 1 take 2 ms longer than all else. */
static bool delay_messages(void *context, struct sim_datagram *datagram)
{
    struct transfer_message message;
    (void)context;
    if (datagram->from != 1 || !upper_message(datagram, &message))
        return true;
    struct sim_datagram late = *datagram;
    late.at_ns += 7 * MS;
    assert_int_equal(sim_world_inject(pair.world, &late), 0);
    return false;
}

static void goodbye_overtakes_an_acknowledgement(void **state)
{
    (void)state;
    open_pair("rtt=10ms,rate=10Gbit", NULL);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, SLOT);
    connection_pair_run(&pair, 50 * MS);
    sim_world_tap(pair.world, delay_messages, NULL);
    struct lh_request *send = connection_pair_send(&pair, 0, data, SLOT);
    struct lh_request *never = connection_pair_recv(&pair, 0, buffer + SLOT, 1);
    while (!lh_test(recv, NULL))
        connection_pair_turn(&pair, LH_TIME_NEVER);
    lh_close(pair.ends[1]);
    pair.ends[1] = NULL;
    assert_int_equal(connection_pair_finish(&pair, send).error, 0);
    assert_int_equal(connection_pair_finish(&pair, never).error, -LH_ECLOSED);
    lh_request_free(recv);
    close_pair();
}

/* ---- many segments at once --------------------------------------------------------------------------- */

#define SEGMENTS 80u /* of a packet each */
#define PAST     70u /* more than a DONE's bitmap has bits */

struct kept_back {
    uint32_t later; /* packets of other segments than the first */
    bool sent;      /* the first segment was, after PAST of the others */
};

static bool keep_first_back(void *context, struct sim_datagram *datagram)
{
    struct kept_back *kept = context;
    if (datagram->from != 0 || datagram->control)
        return true;
    if (slot_of(datagram) > 0) {
        kept->later++;
        return true;
    }
    kept->sent = kept->later >= PAST;
    return kept->sent;
}

/* The first segment and those past the bitmap that begins with it arrive in one step of the receiver. */
static void segments_past_a_bitmap(void **state)
{
    (void)state;
    struct kept_back kept = {0};
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.slots = 128;
    attr.slot_bytes = attr.chunk_bytes = MTU;
    attr.reliability = "sr-rto"; /* the first segment is sent again without a word of the receiver */
    open_pair("rtt=10ms,rate=1Gbit", &attr);
    sim_world_tap(pair.world, keep_first_back, &kept);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, SEGMENTS * MTU);
    connection_pair_run(&pair, 50 * MS);
    struct lh_request *send = connection_pair_send(&pair, 0, data, SEGMENTS * MTU);
    while (kept.later < PAST) /* the test's time limit ends what hangs */
        connection_pair_run(&pair, MS);
    struct lh_connection *receiver = pair.ends[1];
    pair.ends[1] = NULL; /* it does nothing */
    while (!kept.sent)
        connection_pair_run(&pair, MS);
    connection_pair_run(&pair, 20 * MS);
    pair.ends[1] = receiver;
    assert_int_equal(connection_pair_finish(&pair, send).error, 0);
    assert_int_equal(connection_pair_finish(&pair, recv).error, 0);
    assert_memory_equal(buffer, data, SEGMENTS * MTU);
    close_pair();
}

/* ---- buffers ----------------------------------------------------------------------------------------- */

/* Freed at once: the address sanitizer sees who still reads it; without it the packets are counted. */
static void canceled_send_is_not_read(void **state)
{
    (void)state;
    struct lh_attr attr;
    struct lh_stats before;
    struct lh_stats after;
    connection_pair_attr(&attr);
    attr.rate_bps = 10000000;
    attr.slots = 64;
    open_pair("rtt=10ms,rate=10Gbit", &attr);
    uint8_t *own = connection_pair_bytes(BYTES, 3);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, BYTES);
    connection_pair_run(&pair, 50 * MS);
    struct lh_request *send = connection_pair_send(&pair, 0, own, BYTES);
    connection_pair_run(&pair, 20 * MS);
    lh_request_free(send); /* cancels */
    free(own);
    assert_int_equal(lh_connection_stats(pair.ends[0], &before), 0);
    assert_int_equal(connection_pair_finish(&pair, recv).error, -LH_ECANCELED);
    connection_pair_run(&pair, 500 * MS);
    assert_int_equal(lh_connection_stats(pair.ends[0], &after), 0);
    assert_true(before.tx_packets > 0 && before.tx_packets < BYTES / MTU);
    assert_int_equal(before.tx_packets, after.tx_packets);
    close_pair();
}

/* ---- silence ----------------------------------------------------------------------------------------- */

static void silence_without_anything_pending(void **state)
{
    (void)state;
    open_pair("rtt=10ms,rate=10Gbit", NULL);
    sim_world_partition(pair.world, true);
    connection_pair_run(&pair, 60 * LH_NS_PER_S);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, SLOT);
    struct lh_request *send = connection_pair_send(&pair, 0, data, SLOT);
    connection_pair_run(&pair, 5 * LH_NS_PER_S);
    sim_world_partition(pair.world, false);
    assert_int_equal(connection_pair_finish(&pair, send).error, 0);
    assert_int_equal(connection_pair_finish(&pair, recv).error, 0);
    close_pair();
}

/* ---- lengths ----------------------------------------------------------------------------------------- */

struct liar {
    uint32_t packets; /* of data, so far */
    bool honest;      /* the lengths may pass, and all packets are whole */
};

/* The third packet has one byte, and the lengths come late. */
static bool shorten(void *context, struct sim_datagram *datagram)
{
    struct liar *liar = context;
    struct transfer_message message;
    if (datagram->from != 0 || liar->honest)
        return true;
    if (upper_message(datagram, &message))
        return message.kind != TRANSFER_TO_RECEIVER;
    if (datagram->control || liar->packets++ != 2)
        return true;
    datagram->data[1] |= 3 << 4; /* bytes of pad */
    lh_put_be32(datagram->data + ROCE_BTH_BYTES + 12, 1);
    datagram->bytes = ROCE_WRITE_IMM_HEADER_BYTES + 4 + ROCE_ICRC_BYTES;
    memset(datagram->data + ROCE_WRITE_IMM_HEADER_BYTES + 1, 0, 3);
    sim_datagram_seal(datagram);
    return true;
}

/* A short packet in the middle that came before the lengths contradicts them: nothing behind it counts, and
 * no message is made of what came. */
static void packets_that_contradict_the_length(void **state)
{
    (void)state;
    struct liar liar = {0};
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.slot_bytes = SLOT;
    attr.reliability = "sr-nack"; /* no parity after the data */
    open_pair("rtt=10ms", &attr);
    sim_world_tap(pair.world, shorten, &liar);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, 2 * SLOT);
    struct lh_request *send = connection_pair_send(&pair, 0, data, SLOT);
    struct lh_stats stats;
    do
        connection_pair_run(&pair, MS);
    while (liar.packets < SLOT / MTU); /* the test's time limit ends what hangs */
    connection_pair_run(&pair, 10 * MS);
    assert_int_equal(lh_connection_stats(pair.ends[1], &stats), 0);
    assert_int_equal(stats.rx_packets, 3);
    assert_true(stats.bad_length >= SLOT / MTU - 3);
    liar.honest = true;
    assert_int_equal(connection_pair_finish(&pair, recv).error, -LH_EPROTOCOL);
    assert_int_equal(connection_pair_finish(&pair, send).error, -LH_EPROTOCOL);
    connection_pair_transfer(&pair, 0, SLOT, 2 * SLOT); /* the connection goes on */
    close_pair();
}

/* ---- short packets ----------------------------------------------------------------------------------- */

struct lengths {
    uint32_t mtu;
    uint32_t control;  /* datagrams */
    uint32_t too_long; /* of them: the path drops those */
};

static bool drop_what_is_too_long(void *context, struct sim_datagram *datagram)
{
    struct lengths *lengths = context;
    /* A probe is as long as a data packet. */
    bool is_probe = datagram->control && datagram->data[ROCE_BTH_BYTES + 1] == CONTROL_PROBE;
    uint32_t header_bytes = is_probe ? ROCE_WRITE_IMM_HEADER_BYTES : ROCE_BTH_BYTES;
    bool is_long = datagram->bytes > header_bytes + lengths->mtu + ROCE_ICRC_BYTES;
    lengths->control += datagram->control;
    lengths->too_long += datagram->control && is_long;
    return !datagram->control || !is_long;
}

static void write_to_peer(void)
{
    const struct lh_part there = {.address = buffer, .bytes = BYTES},
                         here = {.address = data, .bytes = 1000};
    struct lh_onesided write = {.parts = &here, .count = 1};
    struct lh_region *region;
    struct lh_request *request;
    assert_int_equal(lh_expose(pair.ends[1], &there, LH_ACCESS_WRITE, NULL, 0, &region), 0);
    lh_region_key(region, &write.key);
    memset(buffer, 0, 1000);
    assert_int_equal(lh_write(pair.ends[0], &write, &request), 0);
    assert_int_equal(connection_pair_finish(&pair, request).error, 0);
    assert_memory_equal(buffer, data, 1000);
    lh_revoke(region);
}

static void transfer_with_short_packets(uint32_t mtu, const char *scheme)
{
    struct lengths lengths = {.mtu = mtu};
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.mtu_bytes = attr.chunk_bytes = mtu;
    attr.slot_bytes = BYTES;
    attr.channels = 8; /* so that the blob of the inner connection is long, too */
    attr.reliability = scheme;
    open_pair("rtt=20ms,rate=1Gbit,loss=0.1", &attr);
    sim_world_tap(pair.world, drop_what_is_too_long, &lengths);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, BYTES);
    struct lh_request *send = connection_pair_send(&pair, 0, data, BYTES);
    assert_int_equal(connection_pair_finish(&pair, send).error, 0);
    assert_int_equal(connection_pair_finish(&pair, recv).error, 0);
    assert_memory_equal(buffer, data, BYTES);
    write_to_peer();
    assert_true(lengths.control > 10);
    assert_int_equal(lengths.too_long, 0);
    close_pair();
}

/* A path may carry nothing longer: reports of many losses, and blobs, go in parts. */
static void control_fits_the_mtu(void **state)
{
    (void)state;
    static const char *const schemes[] = {"sr-nack", "ec:mds,k=32,m=8,fallback=sr"};
    for (uint32_t mtu = 256; mtu <= 512; mtu *= 2)
        for (int i = 0; i < 2; i++)
            transfer_with_short_packets(mtu, schemes[i]);
}

/* whole: not bounded, which leaves what has not come by its deadline. */
static void transfer(size_t bytes, bool whole)
{
    memset(buffer, 0xA5, BYTES);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, bytes);
    struct lh_request *send = connection_pair_send(&pair, 0, data, bytes);
    assert_int_equal(connection_pair_finish(&pair, send).error, 0);
    assert_int_equal(connection_pair_finish(&pair, recv).error, 0);
    for (size_t i = 0; i < bytes; i++)
        if (buffer[i] != data[i] && (whole || buffer[i] != 0xA5))
            fail_msg("byte %zu of %zu: %02x, not %02x", i, bytes, buffer[i], data[i]);
    assert_true(bytes == BYTES || buffer[bytes] == 0xA5);
}

/* Payloads that are no power of two, and so are the chunks and the slots made of them. */
static void payloads_that_fill_the_path(void **state)
{
    (void)state;
    static const char *const schemes[] = {"sr-rto", "sr-nack", "ec:mds,k=32,m=8",    "ec:xor,k=32,m=8",
                                          "hybrid", "auto",    "bounded:deadline=5s"};
    static const uint32_t mtus[] = {320, 1408, 4032};
    for (unsigned i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        for (unsigned m = 0; m < 3; m++) {
            struct lh_attr attr;
            connection_pair_attr(&attr);
            attr.mtu_bytes = mtus[m];
            attr.chunk_bytes = 2 * mtus[m];
            attr.slot_bytes = 16 * 2 * mtus[m] + 100; /* rounded down to whole chunks */
            attr.reliability = schemes[i];
            open_pair("rtt=20ms,rate=1Gbit,loss=0.05,jitter=1ms", &attr);
            const size_t sizes[] = {1, mtus[m], mtus[m] + 1, 16 * 2 * mtus[m], BYTES};
            for (unsigned s = 0; s < 5; s++)
                transfer(sizes[s], strncmp(schemes[i], "bounded", 7) != 0);
            close_pair();
        }
}

/* A hostile peer: parts of a message that is longer than any that was agreed on. */
static void parts_of_what_is_too_long(void **state)
{
    (void)state;
    struct lh_stats stats;
    static const uint8_t junk[CONTROL_PARTS_MAX];
    open_pair("rtt=1ms,rate=1Gbit", NULL);
    struct sdr_qp *hostile = pair.ends[0]->qp;
    hostile->takes_parts = true;
    hostile->upper_max = CONTROL_LONG_MAX;
    hostile->path_mtu.shift = 1; /* it goes in parts */
    for (unsigned i = 0; i < 12; i++) {
        assert_int_equal(lh_sdr_message_send(hostile, junk, sizeof junk), 0);
        connection_pair_run(&pair, 20 * MS);
    }
    lh_connection_stats(pair.ends[1], &stats);
    assert_true(stats.bad_control >= 12);
    close_pair();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_stay_behind_their_chunks),
        cmocka_unit_test(lengths_go_ahead),
        cmocka_unit_test(done_is_said_when_asked),
        cmocka_unit_test(goodbye_overtakes_an_acknowledgement),
        cmocka_unit_test(segments_past_a_bitmap),
        cmocka_unit_test(canceled_send_is_not_read),
        cmocka_unit_test(silence_without_anything_pending),
        cmocka_unit_test(packets_that_contradict_the_length),
        cmocka_unit_test(control_fits_the_mtu),
        cmocka_unit_test(payloads_that_fill_the_path),
        cmocka_unit_test(parts_of_what_is_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
