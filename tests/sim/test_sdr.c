/*
 * test_sdr.c - the SDK call by call, over a simulated network in virtual time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sdr/qp.h"
#include "sdr/sdr_state.h"
#include "sdr/sdr_driver.h"
#include "support/sdr_pair.h"

#define MTU   SDR_PAIR_MTU
#define CHUNK (4 * MTU)
#define SLOT  (256u * 1024)
#define MS    LH_NS_PER_MS

static struct sdr_pair open_pair(struct sdr_pair_options options)
{
    struct sdr_pair pair;
    options.seed = options.seed ? options.seed : 1;
    sdr_pair_open(&pair, &options);
    sdr_pair_run(&pair, 50 * MS); /* hello, and the first round trip */
    return pair;
}

/* ---- matching ---- */

static void test_retry_until_a_receive_is_posted(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){.link.delay_ns = 5 * MS});
    struct sdr_send_handle *send;
    struct sdr_send_start_wr start = {0};
    struct sdr_recv_handle *recv;
    struct lh_cts cts;
    struct sdr_qp *qp = pair.ends[SDR_PAIR_TX].qp;
    assert_int_equal(sdr_pair_send(&pair, 0, MTU, 0, &send), SDR_RETRY);
    assert_int_equal(sdr_streaming_send_start(qp, &start, &send), SDR_RETRY);
    assert_int_equal(lh_sdr_cts_peek(qp, &cts), -LH_EAGAIN);
    assert_int_equal(lh_sdr_cts_skip(qp), -LH_EAGAIN);
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, 5 * MS - 1);
    assert_int_equal(sdr_pair_send(&pair, 0, MTU, 0, &send), SDR_RETRY);
    sdr_pair_run(&pair, 1);
    assert_int_equal(lh_sdr_cts_peek(qp, &cts), 0);
    assert_int_equal(cts.length_bytes, SLOT);
    assert_int_equal(cts.sequence, lh_sdr_recv_sequence(recv));
    assert_int_equal(sdr_pair_send(&pair, 0, MTU, 0, &send), SDR_SUCCESS);
    assert_int_equal(sdr_pair_send(&pair, 0, MTU, 0, &send), SDR_RETRY);
    sdr_pair_close(&pair);
}

static void test_sends_land_in_the_order_of_receives(void **state)
{
    (void)state;
    struct sdr_pair pair =
        open_pair((struct sdr_pair_options){.link = {.delay_ns = MS, .jitter_ns = 3 * MS}});
    struct sdr_recv_handle *recv[4];
    struct sdr_send_handle *send[4];
    const uint32_t bytes[4] = {SLOT, 3 * CHUNK + 5, 1, 40 * MTU};
    for (uint32_t turn = 0; turn < 5; turn++) {
        uint8_t upper[LH_CTS_UPPER_BYTES] = {0x42, (uint8_t)turn};
        for (uint32_t i = 0; i < 4; i++) {
            struct sdr_pair_end *end = &pair.ends[SDR_PAIR_RX];
            struct sdr_recv_wr wr = {bytes[i], end->lkey, (uint64_t)(uintptr_t)(end->arena + i * SLOT)};
            assert_int_equal(lh_sdr_recv_post(end->qp, &wr, upper, &recv[i]), 0);
            assert_int_equal(lh_sdr_recv_sequence(recv[i]), 4 * turn + i);
        }
        sdr_pair_run(&pair, 20 * MS);
        for (uint32_t i = 0; i < 4; i++) {
            struct lh_cts cts;
            assert_int_equal(lh_sdr_cts_peek(pair.ends[SDR_PAIR_TX].qp, &cts), 0);
            assert_memory_equal(cts.upper, upper, sizeof upper);
            assert_int_equal(cts.length_bytes, bytes[i]);
            assert_int_equal(sdr_pair_send(&pair, (turn + i) * SLOT, bytes[i], 100 * turn + i, &send[i]),
                             SDR_SUCCESS);
        }
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(sdr_pair_finish(&pair, send[i]), 0);
        sdr_pair_run(&pair, 20 * MS);
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t immediate;
            assert_int_equal(sdr_pair_chunks(recv[i]), (bytes[i] + CHUNK - 1) / CHUNK);
            assert_int_equal(lh_sdr_recv_chunks_arrived(recv[i]), (bytes[i] + CHUNK - 1) / CHUNK);
            assert_int_equal(sdr_recv_imm_get(recv[i], &immediate), SDR_SUCCESS);
            assert_int_equal(immediate, 100 * turn + i);
            assert_true(sdr_pair_same(&pair, i * SLOT, (turn + i) * SLOT, bytes[i]));
            assert_int_equal(sdr_recv_complete(recv[i]), SDR_SUCCESS);
        }
    }
    sdr_pair_close(&pair);
}

static uint32_t announcements(uint32_t mtu_bytes)
{
    enum { RECEIVES = 16 };
    struct sdr_pair pair = open_pair((struct sdr_pair_options){.mtu_bytes = mtu_bytes, .slots_log = 4});
    struct sdr_recv_handle *recv[RECEIVES];
    uint64_t before = sdr_pair_stats(&pair, SDR_PAIR_RX).tx_control;
    for (uint32_t i = 0; i < RECEIVES; i++)
        assert_int_equal(sdr_pair_recv(&pair, i * CHUNK, CHUNK, &recv[i]), SDR_SUCCESS);
    sdr_pair_run(&pair, 0);
    struct lh_stats stats = sdr_pair_stats(&pair, SDR_PAIR_RX);
    assert_int_equal(stats.cts_sent, RECEIVES);
    assert_int_equal(stats.cts_repeated, 0);
    sdr_pair_close(&pair);
    return (uint32_t)(stats.tx_control - before);
}

/* No announcement is longer than a packet of the path, but for a single entry. */
static void test_announcements_fit_the_mtu(void **state)
{
    (void)state;
    assert_int_equal(announcements(1024), 1);
    assert_int_equal(announcements(512), 2);
    assert_int_equal(announcements(256), 4);
    assert_int_equal(announcements(64), 16);
}

static void test_a_receive_is_passed_by(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){0});
    struct sdr_recv_handle *recv[2];
    struct sdr_send_handle *send;
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv[0]), SDR_SUCCESS);
    assert_int_equal(sdr_pair_recv(&pair, SLOT, SLOT, &recv[1]), SDR_SUCCESS);
    sdr_pair_run(&pair, MS);
    assert_int_equal(lh_sdr_cts_skip(pair.ends[SDR_PAIR_TX].qp), 0);
    assert_int_equal(sdr_pair_send(&pair, 0, CHUNK, 9, &send), SDR_SUCCESS);
    sdr_pair_run(&pair, MS);
    assert_int_equal(sdr_pair_chunks(recv[0]), 0);
    assert_true(sdr_pair_blank(&pair, 0, SLOT));
    assert_int_equal(sdr_pair_chunks(recv[1]), 1);
    sdr_pair_close(&pair);
}

static void test_slots_run_out(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){.slots_log = 1});
    struct sdr_recv_handle *recv[3];
    assert_int_equal(sdr_pair_recv(&pair, 0, CHUNK, &recv[0]), SDR_SUCCESS);
    assert_int_equal(sdr_pair_recv(&pair, CHUNK, CHUNK, &recv[1]), SDR_SUCCESS);
    assert_int_equal(sdr_pair_recv(&pair, 2 * CHUNK, CHUNK, &recv[2]), SDR_RETRY);
    assert_int_equal(sdr_recv_complete(recv[1]), SDR_SUCCESS);
    assert_int_equal(sdr_recv_complete(recv[1]), SDR_ERROR); /* once for every receive */
    assert_int_equal(lh_sdr_recv_truncate(recv[1], 1), -LH_ESTATE);
    assert_int_equal(sdr_pair_recv(&pair, 2 * CHUNK, CHUNK, &recv[2]), SDR_SUCCESS);
    /* A peer that hears nothing bounds how far a receiver runs ahead. */
    sim_world_partition(pair.world, true);
    uint32_t ahead = 0;
    while (ahead < 1000) {
        assert_int_equal(sdr_recv_complete(recv[2]), SDR_SUCCESS);
        if (sdr_pair_recv(&pair, 2 * CHUNK, CHUNK, &recv[2]) == SDR_RETRY)
            break;
        ahead++;
    }
    assert_true(ahead > 0 && ahead < 100);
    sim_world_partition(pair.world, false);
    sdr_pair_run(&pair, 1000 * MS);
    assert_int_equal(sdr_pair_recv(&pair, 2 * CHUNK, CHUNK, &recv[2]), SDR_SUCCESS);
    sdr_pair_close(&pair);
}

/* ---- streaming ---- */

static int add_chunk(struct sdr_pair *pair, struct sdr_send_handle *send, uint32_t chunk, uint32_t bytes)
{
    struct sdr_pair_end *end = &pair->ends[SDR_PAIR_TX];
    struct sdr_send_continue_wr wr = {.length = bytes,
                                      .local_addr = (uint64_t)(uintptr_t)(end->arena + chunk * CHUNK),
                                      .lkey = end->lkey,
                                      .remote_offset = chunk};
    return sdr_streaming_send_continue(send, &wr);
}

static struct sdr_send_handle *start_stream(struct sdr_pair *pair, uint32_t immediate)
{
    struct sdr_send_handle *send;
    struct sdr_send_start_wr start = {SDR_WR_WRITE_WITH_IMM, immediate};
    sdr_pair_run(pair, 20 * MS);
    assert_int_equal(sdr_streaming_send_start(pair->ends[SDR_PAIR_TX].qp, &start, &send), SDR_SUCCESS);
    return send;
}

static void test_streaming_in_any_order(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){.link.delay_ns = MS});
    struct sdr_recv_handle *recv;
    int done = 0;
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
    struct sdr_send_handle *send = start_stream(&pair, 0xFEEDF00D);
    const uint32_t order[] = {7, 3, 0, 3, 63};
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(add_chunk(&pair, send, order[i], CHUNK), SDR_SUCCESS);
    sdr_pair_run(&pair, 5 * MS);
    assert_int_equal(sdr_send_poll(send, &done, NULL), SDR_RETRY); /* it has not ended */
    uint8_t *bitmap;
    size_t chunks;
    assert_int_equal(sdr_recv_bitmap_get(recv, &bitmap, &chunks), SDR_SUCCESS);
    assert_int_equal(chunks, SLOT / CHUNK);
    for (uint32_t c = 0; c < chunks; c++) {
        bool sent = c == 7 || c == 3 || c == 0 || c == 63;
        assert_int_equal(bitmap[c], sent);
        assert_true(sent ? sdr_pair_same(&pair, c * CHUNK, c * CHUNK, CHUNK)
                         : sdr_pair_blank(&pair, c * CHUNK, CHUNK));
    }
    struct lh_stats rx = sdr_pair_stats(&pair, SDR_PAIR_RX);
    assert_int_equal(rx.rx_duplicate_packets, 4);
    assert_int_equal(sdr_qp_rx_new_packets(pair.ends[SDR_PAIR_RX].qp), rx.rx_packets - 4);
    assert_int_equal(sdr_streaming_send_end(send), SDR_SUCCESS);
    assert_int_equal(sdr_streaming_send_end(send), SDR_ERROR);
    assert_int_equal(add_chunk(&pair, send, 1, CHUNK), SDR_ERROR);
    assert_int_equal(sdr_pair_finish(&pair, send), 0);
    sdr_pair_close(&pair);
}

/* Only chunk 1, of one packet each: the other fragments follow in empty packets when the stream ends. */
/* A receiver takes one short packet, behind all others; whoever asks for another one is told. */
static void test_only_the_end_is_short(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){0});
    struct sdr_pair_end *end = &pair.ends[SDR_PAIR_TX];
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    struct sdr_send_start_wr start = {0};
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, MS);
    assert_int_equal(sdr_streaming_send_start(end->qp, &start, &send), SDR_SUCCESS);
    const struct part {
        uint32_t offset, length;
        int result;
    } parts[] = {
        {1, CHUNK, SDR_SUCCESS},   {0, MTU + 5, SDR_ERROR}, {2, MTU + 5, SDR_SUCCESS},
        {2, MTU + 5, SDR_SUCCESS}, {2, CHUNK, SDR_ERROR},   {3, CHUNK, SDR_ERROR},
        {0, 1, SDR_ERROR},         {0, CHUNK, SDR_SUCCESS},
    };
    for (uint32_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        uint64_t address = (uint64_t)(uintptr_t)(end->arena + parts[i].offset * CHUNK);
        struct sdr_send_continue_wr wr = {.length = parts[i].length,
                                          .lkey = end->lkey,
                                          .local_addr = address,
                                          .remote_offset = parts[i].offset};
        assert_int_equal(sdr_streaming_send_continue(send, &wr), parts[i].result);
    }
    assert_int_equal(sdr_streaming_send_end(send), SDR_SUCCESS);
    sdr_pair_finish(&pair, send);
    sdr_pair_run(&pair, MS);
    assert_true(sdr_pair_same(&pair, 0, 0, 2 * CHUNK + MTU + 5));
    assert_int_equal(sdr_pair_stats(&pair, SDR_PAIR_RX).bad_length, 0);
    sdr_pair_close(&pair);
}

static void test_streaming_end_completes_the_immediate(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){.chunk_bytes = MTU});
    struct sdr_recv_handle *recv;
    uint32_t immediate;
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
    struct sdr_send_handle *send = start_stream(&pair, 0xFEEDF00D);
    assert_int_equal(add_chunk(&pair, send, 1, MTU), SDR_SUCCESS);
    sdr_pair_run(&pair, MS);
    assert_int_equal(sdr_recv_imm_get(recv, &immediate), SDR_RETRY);
    assert_int_equal(sdr_streaming_send_end(send), SDR_SUCCESS);
    assert_int_equal(sdr_pair_finish(&pair, send), 0);
    sdr_pair_run(&pair, MS);
    assert_int_equal(sdr_recv_imm_get(recv, &immediate), SDR_SUCCESS);
    assert_int_equal(immediate, 0xFEEDF00D);
    assert_int_equal(sdr_pair_chunks(recv), 1);
    sdr_pair_close(&pair);
}

static void test_queue_of_ranges_is_bounded(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){0});
    struct sdr_recv_handle *recv;
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
    struct sdr_send_handle *send = start_stream(&pair, 0);
    uint32_t added = 0;
    while (added < 10000 && add_chunk(&pair, send, 0, MTU) == SDR_SUCCESS)
        added++;
    assert_int_equal(add_chunk(&pair, send, 0, MTU), SDR_RETRY);
    assert_int_equal(sdr_streaming_send_end(send), SDR_RETRY);
    assert_true(added >= 512 && added < 10000);
    assert_int_equal(lh_sdr_send_queued_bytes(pair.ends[SDR_PAIR_TX].qp), (uint64_t)added * MTU);
    sdr_pair_run(&pair, MS);
    assert_int_equal(lh_sdr_send_queued_bytes(pair.ends[SDR_PAIR_TX].qp), 0);
    assert_int_equal(add_chunk(&pair, send, 1, MTU), SDR_SUCCESS);
    assert_int_equal(sdr_streaming_send_end(send), SDR_SUCCESS);
    assert_int_equal(sdr_pair_finish(&pair, send), 0);
    sdr_pair_close(&pair);
}

/* After abort has returned the payload may change: nothing of it may leave then. */
static void test_abort_lets_go_of_the_payload(void **state)
{
    (void)state;
    struct sdr_pair pair =
        open_pair((struct sdr_pair_options){.rate_bps = 1000000000, .link.delay_ns = MS});
    struct sdr_recv_handle *recv[2];
    struct sdr_send_handle *first, *second;
    struct sdr_send_status status;
    int done = 0;
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv[0]), SDR_SUCCESS);
    assert_int_equal(sdr_pair_recv(&pair, SLOT, SLOT, &recv[1]), SDR_SUCCESS);
    sdr_pair_run(&pair, 20 * MS);
    assert_int_equal(sdr_pair_send(&pair, 0, SLOT, 1, &first), SDR_SUCCESS); /* takes the pacer's burst */
    second = start_stream(&pair, 2);
    for (uint32_t chunk = 0; chunk < 4; chunk++)
        assert_int_equal(add_chunk(&pair, second, chunk, CHUNK), SDR_SUCCESS);
    struct sdr_send_handle *aborted = second;
    for (uint32_t turn = 0; turn < 40; turn++)
        assert_int_equal(add_chunk(&pair, aborted, 8, CHUNK), SDR_SUCCESS);
    assert_int_equal(lh_sdr_streaming_send_abort(aborted), 0);
    memset(pair.ends[SDR_PAIR_TX].arena + 4 * CHUNK, 0x55, 60 * CHUNK);
    sdr_pair_run(&pair, 100 * MS);
    assert_int_equal(sdr_send_poll(aborted, &done, &status), SDR_SUCCESS);
    assert_true(done);
    assert_int_equal(status.flags, 1);
    assert_int_equal(lh_sdr_send_queued_bytes(pair.ends[SDR_PAIR_TX].qp), 0);
    for (uint32_t i = 4 * CHUNK; i < SLOT; i++)
        assert_int_not_equal(pair.ends[SDR_PAIR_RX].arena[SLOT + i], 0x55);
    sdr_pair_close(&pair);
}

/* From the first byte that the fabric has not taken on: what a channel took ahead of it counts. */
static void test_unsent_bytes(void **state)
{
    (void)state;
    for (uint32_t channels = 1; channels <= 2; channels++) {
        struct sdr_pair pair = open_pair((struct sdr_pair_options){.channels = channels});
        struct sdr_context *sender = pair.ends[SDR_PAIR_TX].context;
        struct sdr_qp *qp = pair.ends[SDR_PAIR_TX].qp;
        struct sdr_recv_handle *recv;
        struct sdr_send_handle *send;
        bool moved;
        lh_time next;
        assert_int_equal(sdr_qp_send_unsent_bytes(qp), 0);
        assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
        sdr_pair_run(&pair, MS);
        assert_int_equal(sdr_pair_send(&pair, 0, SLOT, 0, &send), SDR_SUCCESS);
        assert_int_equal(sdr_qp_send_unsent_bytes(qp), SLOT);
        for (uint32_t turn = 0; turn < 100; turn++) /* the last channel has a worker of its own */
            sdr_context_round(sender, channels - 1, channels, &moved, &next);
        assert_int_equal(lh_sdr_send_queued_bytes(qp), channels == 1 ? 0 : SLOT / 2);
        assert_int_equal(sdr_qp_send_unsent_bytes(qp), channels == 1 ? 0 : SLOT);
        assert_int_equal(sdr_pair_finish(&pair, send), 0);
        assert_int_equal(sdr_qp_send_unsent_bytes(qp), 0);
        sdr_pair_close(&pair);
    }
}

/* ---- what is refused ---- */

static void test_bad_requests(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){0});
    struct sdr_pair_end *tx = &pair.ends[SDR_PAIR_TX], *rx = &pair.ends[SDR_PAIR_RX];
    struct sdr_recv_handle *recv, *none;
    struct sdr_send_handle *send;
    uint64_t address = (uint64_t)(uintptr_t)rx->arena;
    struct sdr_recv_wr too_long = {SLOT + 1, rx->lkey, address};
    struct sdr_recv_wr wrong_key = {SLOT, rx->lkey + 1, address};
    struct sdr_recv_wr outside = {SLOT, rx->lkey, address + SDR_PAIR_ARENA_BYTES - SLOT + 1};
    struct sdr_recv_wr before = {SLOT, rx->lkey, address - 1};
    assert_int_equal(sdr_recv_post(rx->qp, &too_long, &none), SDR_ERROR);
    assert_int_equal(sdr_recv_post(rx->qp, &wrong_key, &none), SDR_ERROR);
    assert_int_equal(sdr_recv_post(rx->qp, &outside, &none), SDR_ERROR);
    assert_int_equal(sdr_recv_post(rx->qp, &before, &none), SDR_ERROR);
    assert_int_equal(sdr_pair_recv(&pair, 0, 2 * CHUNK + 10, &recv), SDR_SUCCESS);
    assert_int_equal(lh_sdr_recv_truncate(recv, 2 * CHUNK + 11), -LH_ERANGE);
    sdr_pair_run(&pair, MS);
    struct sdr_send_wr wr = {.length = 11, .lkey = tx->lkey, .local_addr = (uint64_t)(uintptr_t)tx->arena};
    wr.remote_offset = 2;
    assert_int_equal(sdr_send_post(tx->qp, &wr, &send), SDR_ERROR);
    wr.remote_offset = 3;
    assert_int_equal(sdr_send_post(tx->qp, &wr, &send), SDR_ERROR);
    wr.remote_offset = UINT64_MAX / CHUNK + 1; /* times the chunk it is 0 */
    assert_int_equal(sdr_send_post(tx->qp, &wr, &send), SDR_ERROR);
    wr.remote_offset = 0;
    wr.local_addr += SDR_PAIR_ARENA_BYTES - 10;
    assert_int_equal(sdr_send_post(tx->qp, &wr, &send), SDR_ERROR);
    wr.local_addr = UINT64_MAX - 5;
    assert_int_equal(sdr_send_post(tx->qp, &wr, &send), SDR_ERROR);
    /* None of that used up the clear-to-send. */
    assert_int_equal(sdr_pair_send(&pair, 0, 2 * CHUNK + 10, 0, &send), SDR_SUCCESS);
    assert_int_equal(sdr_pair_finish(&pair, send), 0);
    uint64_t bitmap;
    assert_int_equal(sdr_recv_bitmap_chunk_expand(recv, 3, &bitmap), SDR_ERROR);
    assert_int_equal(sdr_context_destroy(rx->context), SDR_ERROR); /* it has a QP and memory */
    sdr_pair_close(&pair);
}

static void test_bad_attributes(void **state)
{
    (void)state;
    struct sim_world *world = sim_world_create("attr", 1, NULL);
    struct lh_context_attr attr = {.workers = LH_SDR_NO_WORKERS};
    struct sdr_context *context;
    struct sdr_qp *qp;
    assert_int_equal(lh_sdr_context_create("sim:attr/0", &attr, &context), 0);
    const struct sdr_qp_attr bad[] = {
        {.mtu = (enum sdr_mtu)7},
        {.bitmap_chunk_size_log_bytes = 11},
        {.bitmap_chunk_size_log_bytes = 32},
        {.max_log_num_msgs = 11},
        {.max_log_num_msgs = 17},
        {.max_in_flight_log_bytes = 49},
        {.max_in_flight_log_bytes = 40},
        {.max_in_flight_log_bytes = 10},
    };
    for (uint32_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_not_equal(lh_sdr_qp_create(context, &bad[i], NULL, &qp), 0);
    const struct lh_qp_attr more[] = {
        {.generations = 9},
        {.immediate_message_bits = 17},
        {.immediate_fragment_bits = 3},
        {.immediate_fragment_bits = 16},
        {.immediate_message_bits = 255},
        {.mtu_bytes = 1000},
        {.mtu_bytes = 32},
        {.chunk_bytes = 12288},
        {.slot_bytes = 4095},
        {.slot_bytes = UINT64_C(1) << 32},
    };
    for (uint32_t i = 0; i < sizeof more / sizeof more[0]; i++)
        assert_int_not_equal(lh_sdr_qp_create(context, NULL, &more[i], &qp), 0);
    assert_int_equal(lh_sdr_qp_create(context, NULL, NULL, &qp), 0);
    assert_int_equal(sdr_qp_destroy(qp), SDR_SUCCESS);
    assert_int_equal(sdr_context_destroy(context), SDR_SUCCESS);
    sim_world_destroy(world);
}

/* log_max_qps of the SDK's own call. Its contexts have a worker, which runs beside this. */
static void test_number_of_qps(void **state)
{
    (void)state;
    struct sim_world *world = sim_world_create("qps", 1, NULL);
    struct sdr_dev_attr attr = {.num_channels = 1, .log_max_qps = 1};
    struct sdr_qp_attr small = {.max_in_flight_log_bytes = 16, .max_log_num_msgs = 1};
    struct sdr_context *context = sdr_context_create("sim:qps/0", &attr);
    struct sdr_qp *qp[2];
    assert_non_null(context);
    for (uint32_t i = 0; i < 2; i++)
        assert_non_null(qp[i] = sdr_qp_create(context, &small));
    assert_null(sdr_qp_create(context, &small));
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(sdr_qp_destroy(qp[i]), SDR_SUCCESS);
    assert_int_equal(sdr_context_destroy(context), SDR_SUCCESS);
    attr.log_max_qps = 40;
    assert_null(sdr_context_create("sim:qps/0", &attr));
    sim_world_destroy(world);
}

/* ---- bitmaps ---- */

/* Drops the data packets whose index in the message is in the set. */
static bool drop_packets(void *context, struct sim_datagram *datagram)
{
    const uint64_t *dropped = context;
    if (datagram->control)
        return true;
    uint32_t immediate = (uint32_t)datagram->data[28] << 24 | (uint32_t)datagram->data[29] << 16 |
                         (uint32_t)datagram->data[30] << 8 | datagram->data[31];
    uint32_t packet = immediate_part(IMMEDIATE_SPLIT_10_18_4, immediate).packet;
    return !((dropped[packet / 64] >> (packet % 64)) & 1);
}

static void test_expanded_chunk_shows_its_packets(void **state)
{
    (void)state;
    for (uint32_t chunk_packets = 1; chunk_packets <= 128; chunk_packets *= 2) {
        struct sdr_pair pair =
            open_pair((struct sdr_pair_options){.chunk_bytes = chunk_packets * MTU, .channels = 3});
        uint64_t dropped[4] = {UINT64_C(0x8000000000000102), UINT64_C(1) << 5, 0, 0x70};
        struct sdr_recv_handle *recv;
        struct sdr_send_handle *send;
        sim_world_tap(pair.world, drop_packets, dropped);
        assert_int_equal(sdr_pair_recv(&pair, 0, 250 * MTU, &recv), SDR_SUCCESS);
        sdr_pair_run(&pair, MS);
        assert_int_equal(sdr_pair_send(&pair, 0, 250 * MTU, 0, &send), SDR_SUCCESS);
        assert_int_equal(sdr_pair_finish(&pair, send), 0);
        uint8_t *bitmap;
        size_t chunks;
        assert_int_equal(sdr_recv_bitmap_get(recv, &bitmap, &chunks), SDR_SUCCESS);
        assert_int_equal(chunks, (250 + chunk_packets - 1) / chunk_packets);
        for (uint32_t c = 0; c < chunks; c++) {
            uint64_t bits[2] = {0};
            bool whole = true;
            assert_int_equal(sdr_recv_bitmap_chunk_expand(recv, c, bits), SDR_SUCCESS);
            for (uint32_t i = 0; i < 128; i++) {
                uint32_t p = c * chunk_packets + i;
                bool there = i < chunk_packets && (p >= 250 || !((dropped[p / 64] >> (p % 64)) & 1));
                assert_int_equal((bits[i / 64] >> (i % 64)) & 1, there);
                whole &= there || i >= chunk_packets;
            }
            assert_int_equal(bitmap[c], whole);
        }
        sdr_pair_close(&pair);
    }
}

static void test_truncated_receive(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){0});
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, MS);
    assert_int_equal(sdr_pair_send(&pair, 0, 5 * CHUNK + MTU + 1, 0, &send), SDR_SUCCESS);
    assert_int_equal(sdr_pair_finish(&pair, send), 0);
    assert_int_equal(lh_sdr_recv_chunks_arrived(recv), 5); /* the last one lacks packets for all it knows */
    assert_int_equal(lh_sdr_recv_truncate(recv, 5 * CHUNK + MTU + 1), 0);
    assert_int_equal(lh_sdr_recv_chunks_arrived(recv), 6);
    assert_int_equal(sdr_pair_chunks(recv), SLOT / CHUNK);
    assert_int_equal(lh_sdr_recv_truncate(recv, SLOT), -LH_ESTATE);
    assert_true(sdr_pair_same(&pair, 0, 0, 5 * CHUNK + MTU + 1));
    assert_true(sdr_pair_blank(&pair, 5 * CHUNK + MTU + 1, CHUNK));
    sdr_pair_close(&pair);
}

/* ---- immediates, in both splits, of messages that are shorter than their fragments ---- */

static void check_immediates(struct sdr_pair_options options, uint32_t packets_max)
{
    struct sdr_pair pair = open_pair(options);
    for (uint32_t packets = 0; packets <= packets_max; packets++) {
        struct sdr_recv_handle *recv;
        struct sdr_send_handle *send;
        uint32_t user = 0x9E3779B9u * (packets + 1), immediate;
        uint32_t bytes = packets ? packets * MTU - 3 : 0;
        assert_int_equal(sdr_pair_recv(&pair, 0, bytes, &recv), SDR_SUCCESS);
        assert_int_equal(sdr_recv_imm_get(recv, &immediate), SDR_RETRY);
        sdr_pair_run(&pair, MS);
        assert_int_equal(sdr_pair_send(&pair, 0, bytes, user, &send), SDR_SUCCESS);
        assert_int_equal(sdr_pair_finish(&pair, send), 0);
        assert_int_equal(sdr_recv_imm_get(recv, &immediate), SDR_SUCCESS);
        assert_int_equal(immediate, user);
        assert_int_equal(lh_sdr_recv_chunks_arrived(recv), (packets + 3) / 4);
        assert_true(sdr_pair_same(&pair, 0, 0, bytes));
        assert_int_equal(sdr_recv_complete(recv), SDR_SUCCESS);
    }
    assert_int_equal(sdr_pair_stats(&pair, SDR_PAIR_RX).rx_late_packets, 0);
    struct lh_stats stats = sdr_pair_stats(&pair, SDR_PAIR_RX);
    assert_int_equal(lh_stats_bad_packets(&stats), 0);
    sdr_pair_close(&pair);
}

static void test_immediates(void **state)
{
    (void)state;
    for (uint32_t channels = 1; channels <= 3; channels++) {
        check_immediates((struct sdr_pair_options){.channels = channels}, 10);
        check_immediates(
            (struct sdr_pair_options){.channels = channels, .message_bits = 8, .fragment_bits = 2}, 18);
    }
}

/* ---- pace, statistics, goodbye ---- */

static void test_pace(void **state)
{
    (void)state;
    struct sdr_pair pair =
        open_pair((struct sdr_pair_options){.rate_bps = 8 * 1000000, .slot_bytes = 1 << 20, .channels = 2});
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    int done = 0;
    assert_int_equal(sdr_pair_recv(&pair, 0, 1 << 20, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, MS);
    lh_time from = sim_world_now(pair.world);
    assert_int_equal(sdr_pair_send(&pair, 0, 1 << 20, 0, &send), SDR_SUCCESS);
    while (!done) {
        sdr_pair_run(&pair, MS);
        sdr_send_poll(send, &done, NULL);
    }
    /* A megabyte a second, but for the first two packets. */
    lh_time took = sim_world_now(pair.world) - from;
    assert_in_range(took, 1040 * MS, 1050 * MS);
    sdr_pair_close(&pair);
}

/* Between the first chunk that is missing and the last that has arrived. */
static uint32_t chunks_reordered(struct sdr_recv_handle *recv)
{
    uint8_t *bitmap;
    size_t chunks, first = 0, end = 0;
    assert_int_equal(sdr_recv_bitmap_get(recv, &bitmap, &chunks), SDR_SUCCESS);
    while (first < chunks && bitmap[first])
        first++;
    for (size_t i = first; i < chunks; i++)
        end = bitmap[i] ? i + 1 : end;
    return end > first ? (uint32_t)(end - first) : 0;
}

/* The second worker always comes first. It takes nothing that the pace lets out for what was posted earlier,
 * and waits for the first worker. */
static void test_pace_of_two_workers(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair(
        (struct sdr_pair_options){.rate_bps = 80 * 1000000, .slot_bytes = 1 << 20, .channels = 2});
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    int done = 0;
    uint32_t maximum = 0;
    assert_int_equal(sdr_pair_recv(&pair, 0, 1 << 20, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, MS);
    assert_int_equal(sdr_pair_send(&pair, 0, 1 << 20, 0, &send), SDR_SUCCESS);
    while (!done) {
        bool moved;
        lh_time next;
        for (uint32_t turn = 0; turn < 4; turn++)
            sdr_context_round(pair.ends[SDR_PAIR_TX].context, (turn + 1) % 2, 2, &moved, &next);
        assert_int_equal(lh_sdr_progress(pair.ends[SDR_PAIR_RX].context, &next), 0);
        sim_world_advance(pair.world, sim_world_now(pair.world) + MS / 100);
        sdr_send_poll(send, &done, NULL);
        uint32_t later_arrived = done ? 0 : chunks_reordered(recv);
        maximum = later_arrived > maximum ? later_arrived : maximum;
    }
    assert_int_equal(maximum, 0);
    sdr_pair_close(&pair);
}

/* The pace is known before anything waits for it. */
static void test_pace_is_known(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){.rate_bps = 8 * 1000000});
    struct lh_sdr_path path;
    assert_int_equal(lh_sdr_path(pair.ends[SDR_PAIR_TX].qp, &path), 0);
    assert_int_equal(path.pace_bps, 8 * 1000000);
    sdr_pair_close(&pair);
}

/* A bottleneck as fast as the pace: what it refuses must not use up the pace. */
static void test_pace_behind_back_pressure(void **state)
{
    (void)state;
    struct sdr_pair pair =
        open_pair((struct sdr_pair_options){.rate_bps = 100000000,
                                            .slot_bytes = 1 << 20,
                                            .link = {.rate_bps = 120000000, .queue_bytes = 8192}});
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    int done = 0;
    assert_int_equal(sdr_pair_recv(&pair, 0, 1 << 20, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, MS);
    lh_time from = sim_world_now(pair.world);
    assert_int_equal(sdr_pair_send(&pair, 0, 1 << 20, 0, &send), SDR_SUCCESS);
    while (!done) {
        sdr_pair_run(&pair, MS);
        sdr_send_poll(send, &done, NULL);
    }
    lh_time took = sim_world_now(pair.world) - from;
    assert_true(took < 84 * MS); /* 2^20 bytes at 100 Mbit/s */
    assert_true(sdr_pair_stats(&pair, SDR_PAIR_TX).tx_backpressure > 0);
    sdr_pair_close(&pair);
}

static const struct fabric_ops *plain;

static int poll_one(struct fabric_endpoint *endpoint, uint32_t channel, struct fabric_arrival *arrivals,
                    uint32_t count)
{
    return plain->poll(endpoint, channel, arrivals, count > 0 ? 1 : 0);
}

/* The reports of a receiver about 16 packets that wait in its socket, where it reads again that long after
 * they were sent, over 5 ms. */
static uint64_t reports_of_what_waited(lh_time after_ns, bool one_a_poll)
{
    struct sdr_pair pair =
        open_pair((struct sdr_pair_options){.congestion = "bbr", .channels = 1, .link.delay_ns = 5 * MS});
    struct sdr_context *receiver = pair.ends[SDR_PAIR_RX].context;
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, 20 * MS);
    uint64_t reports = sdr_pair_stats(&pair, SDR_PAIR_RX).feedback_sent;
    assert_int_equal(sdr_pair_send(&pair, 0, 16 * MTU, 0, &send), SDR_SUCCESS);
    lh_time next, end = sim_world_now(pair.world) + after_ns; /* the receiver does not run */
    while (sim_world_now(pair.world) < end) {
        assert_int_equal(lh_sdr_progress(pair.ends[SDR_PAIR_TX].context, &next), 0);
        sim_world_advance(pair.world, sim_world_now(pair.world) + MS / 100);
    }
    struct fabric_ops slow = *receiver->fabric->ops;
    plain = receiver->fabric->ops;
    slow.poll = one_a_poll ? poll_one : plain->poll;
    receiver->fabric->ops = &slow;
    for (uint32_t i = 0; i < 40; i++)
        assert_int_equal(lh_sdr_progress(receiver, &next), 0);
    receiver->fabric->ops = plain;
    assert_int_equal(sdr_pair_stats(&pair, SDR_PAIR_RX).rx_packets, 16);
    reports = sdr_pair_stats(&pair, SDR_PAIR_RX).feedback_sent - reports;
    sdr_pair_close(&pair);
    return reports;
}

/* A receiver that has paused writes one report about all that waits, however many polls it takes to read it.
 * Else it would read on and on, and write, where it is late already. */
static void test_no_spacing_of_what_waited(void **state)
{
    (void)state;
    assert_int_equal(reports_of_what_waited(7 * MS, true), 1);
    assert_int_equal(reports_of_what_waited(7 * MS, false), 1);
}

/* One that slept for less reports each of the first packets with the time at which it came. */
static void test_spacing_of_the_first_packets(void **state)
{
    (void)state;
    assert_int_equal(reports_of_what_waited(5 * MS + MS / 2, false), 16);
}

static lh_time joined_ns;

static lh_time arrived_together(struct fabric_endpoint *endpoint, uint32_t channel)
{
    (void)endpoint;
    (void)channel;
    return joined_ns;
}

/* The kernel joins datagrams, which then have one time. */
static void test_packets_that_came_at_one_time(void **state)
{
    (void)state;
    struct sdr_pair pair =
        open_pair((struct sdr_pair_options){.congestion = "bbr", .channels = 1, .link.delay_ns = 5 * MS});
    struct sdr_context *receiver = pair.ends[SDR_PAIR_RX].context;
    const struct sdr_qp *qp = pair.ends[SDR_PAIR_RX].qp;
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, 20 * MS);
    assert_int_equal(sdr_pair_send(&pair, 0, 16 * MTU, 0, &send), SDR_SUCCESS);
    lh_time next, end = sim_world_now(pair.world) + 5 * MS + MS / 2;
    while (sim_world_now(pair.world) < end) {
        assert_int_equal(lh_sdr_progress(pair.ends[SDR_PAIR_TX].context, &next), 0);
        sim_world_advance(pair.world, sim_world_now(pair.world) + MS / 100);
    }
    plain = receiver->fabric->ops;
    struct fabric_ops joined = *plain;
    joined.arrived = arrived_together;
    joined_ns = sim_world_now(pair.world) - MS / 4;
    receiver->fabric->ops = &joined;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < 40; i++) {
        uint64_t reports = sdr_pair_stats(&pair, SDR_PAIR_RX).feedback_sent;
        lh_time before_ns = qp->report_newest_ns;
        assert_int_equal(lh_sdr_progress(receiver, &next), 0);
        if (sdr_pair_stats(&pair, SDR_PAIR_RX).feedback_sent == reports)
            continue;
        assert_true(qp->report_newest_ns > before_ns);
        seen++;
    }
    receiver->fabric->ops = plain;
    assert_int_equal(seen, 16);
    assert_true(qp->report_newest_ns < joined_ns + 16);
    sdr_pair_close(&pair);
}

static void test_statistics_of_a_clean_link(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){.link.delay_ns = MS});
    struct sdr_recv_handle *recv[3];
    struct sdr_send_handle *send;
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(sdr_pair_recv(&pair, i * SLOT, SLOT, &recv[i]), SDR_SUCCESS);
    sdr_pair_run(&pair, 30 * MS);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(sdr_pair_send(&pair, 0, 100 * MTU + 1, 0, &send), SDR_SUCCESS);
        assert_int_equal(sdr_pair_finish(&pair, send), 0);
    }
    sdr_pair_run(&pair, 10 * MS);
    struct lh_stats tx = sdr_pair_stats(&pair, SDR_PAIR_TX), rx = sdr_pair_stats(&pair, SDR_PAIR_RX);
    assert_int_equal(tx.tx_packets, 3 * 101);
    assert_int_equal(tx.tx_bytes, 3 * (100 * MTU + 1));
    assert_true(tx.tx_wire_bytes > tx.tx_bytes);
    assert_int_equal(rx.rx_packets, tx.tx_packets);
    assert_int_equal(rx.rx_bytes, tx.tx_bytes);
    assert_int_equal(rx.rx_duplicate_packets + rx.rx_late_packets, 0);
    assert_int_equal(rx.cts_sent, 3);
    assert_int_equal(rx.cts_repeated, 0);
    assert_int_equal(lh_stats_bad_packets(&rx) + lh_stats_bad_packets(&tx), 0);
    assert_int_equal(tx.rx_control, rx.tx_control);
    struct lh_sdr_path path;
    assert_int_equal(lh_sdr_path(pair.ends[SDR_PAIR_RX].qp, &path), 0);
    assert_in_range(path.rtt_ns, 2 * MS, 2 * MS + MS / 10);
    assert_int_equal(path.rtt_minimum_ns, 2 * MS);
    sdr_pair_close(&pair);
}

/* What was said before the goodbye arrives; then the peer knows, and its sends are given up. */
static void test_goodbye(void **state)
{
    (void)state;
    struct sdr_pair pair = open_pair((struct sdr_pair_options){.rate_bps = 1000000, .slot_bytes = 1 << 20});
    struct sdr_qp *tx = pair.ends[SDR_PAIR_TX].qp;
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send, *none;
    struct sdr_send_status status;
    uint8_t words[LH_SDR_MESSAGE_MAX];
    size_t bytes;
    int done = 0;
    assert_int_equal(sdr_pair_recv(&pair, 0, 1 << 20, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, MS);
    assert_int_equal(sdr_pair_send(&pair, 0, 1 << 20, 0, &send), SDR_SUCCESS);
    sdr_pair_run(&pair, MS);
    assert_int_equal(sdr_send_poll(send, &done, NULL), SDR_RETRY);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(lh_sdr_message_send(pair.ends[SDR_PAIR_RX].qp, &i, sizeof i), 0);
    assert_int_equal(sdr_qp_destroy(pair.ends[SDR_PAIR_RX].qp), SDR_SUCCESS);
    pair.ends[SDR_PAIR_RX].qp = NULL;
    sdr_pair_run(&pair, MS);
    assert_int_equal(lh_sdr_error(tx), -LH_ECLOSED);
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(lh_sdr_message_recv(tx, words, &bytes), 0);
        assert_int_equal(bytes, sizeof i);
        assert_memory_equal(words, &i, sizeof i);
    }
    assert_int_equal(lh_sdr_message_recv(tx, words, &bytes), -LH_EAGAIN);
    assert_int_equal(sdr_send_poll(send, &done, &status), SDR_SUCCESS);
    assert_true(done);
    assert_int_equal(status.flags, 1);
    assert_int_equal(lh_sdr_send_queued_bytes(tx), 0);
    struct sdr_send_start_wr start = {0};
    assert_int_equal(sdr_pair_send(&pair, 0, 1, 0, &none), SDR_ERROR);
    assert_int_equal(sdr_streaming_send_start(tx, &start, &none), SDR_ERROR);
    assert_int_equal(lh_sdr_message_send(tx, words, 1), -LH_ECLOSED);
    sdr_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retry_until_a_receive_is_posted),
        cmocka_unit_test(test_sends_land_in_the_order_of_receives),
        cmocka_unit_test(test_announcements_fit_the_mtu),
        cmocka_unit_test(test_a_receive_is_passed_by),
        cmocka_unit_test(test_slots_run_out),
        cmocka_unit_test(test_streaming_in_any_order),
        cmocka_unit_test(test_only_the_end_is_short),
        cmocka_unit_test(test_streaming_end_completes_the_immediate),
        cmocka_unit_test(test_queue_of_ranges_is_bounded),
        cmocka_unit_test(test_abort_lets_go_of_the_payload),
        cmocka_unit_test(test_unsent_bytes),
        cmocka_unit_test(test_bad_requests),
        cmocka_unit_test(test_bad_attributes),
        cmocka_unit_test(test_number_of_qps),
        cmocka_unit_test(test_expanded_chunk_shows_its_packets),
        cmocka_unit_test(test_truncated_receive),
        cmocka_unit_test(test_immediates),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_pace_of_two_workers),
        cmocka_unit_test(test_pace_is_known),
        cmocka_unit_test(test_pace_behind_back_pressure),
        cmocka_unit_test(test_no_spacing_of_what_waited),
        cmocka_unit_test(test_spacing_of_the_first_packets),
        cmocka_unit_test(test_packets_that_came_at_one_time),
        cmocka_unit_test(test_statistics_of_a_clean_link),
        cmocka_unit_test(test_goodbye),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
