/*
 * test_sdr_overrun.c - a program of the SDK that sends far more than the receiver's socket holds: all of it
 * arrives, and the kernel drops nothing, though nobody retransmits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <sdr.h>
#include <sdr_mr.h>

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <longhaul/sdr_ext.h>

#define DEVICE       "udp:127.0.0.1"
#define KIB          1024u
#define MIB          (1024u * KIB)
#define MESSAGES_MAX 128u
#define SPAN_NS      (240 * LH_NS_PER_S) /* only ever stops what hangs */

struct side {
    struct sdr_context *context;
    struct sdr_qp *qp;
    struct sdr_mr *mr;
    uint8_t *memory; /* of one message: all are the same */
    uint32_t lkey;
};

static lh_time now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (lh_time)now.tv_sec * LH_NS_PER_S + (lh_time)now.tv_nsec;
}

static void open_side(struct side *side, struct sdr_context *context, uint32_t bytes)
{
    struct sdr_qp_attr attr = {.bitmap_chunk_size_log_bytes = 16,
                               .max_in_flight_log_bytes = 30,
                               .max_log_num_msgs = 7,
                               .mtu = SDR_MTU_4096};
    assert_non_null(context);
    side->context = context;
    side->qp = sdr_qp_create(context, &attr);
    assert_non_null(side->qp);
    side->memory = calloc(1, bytes);
    assert_non_null(side->memory);
    side->mr = sdr_mr_reg(context, side->memory, bytes, SDR_ACCESS_REMOTE_WRITE);
    assert_non_null(side->mr);
    sdr_mr_lkey_get(side->mr, &side->lkey);
}

static void close_side(struct side *side)
{
    assert_int_equal(sdr_qp_destroy(side->qp), SDR_SUCCESS);
    assert_int_equal(sdr_mr_dereg(side->mr), SDR_SUCCESS);
    assert_int_equal(sdr_context_destroy(side->context), SDR_SUCCESS);
    free(side->memory);
}

static void connect_to(struct side *side, const struct side *peer)
{
    size_t bytes;
    sdr_qp_info_size_get(peer->qp, &bytes);
    void *info = malloc(bytes);
    assert_non_null(info);
    sdr_qp_info_get(peer->qp, info);
    assert_int_equal(sdr_qp_connect(side->qp, info), SDR_SUCCESS);
    free(info);
}

static bool whole(struct sdr_recv_handle *recv)
{
    uint8_t *bitmap;
    size_t chunks;
    sdr_recv_bitmap_get(recv, &bitmap, &chunks);
    for (size_t i = 0; i < chunks; i++)
        if (!__atomic_load_n(&bitmap[i], __ATOMIC_ACQUIRE))
            return false;
    return true;
}

/* Posts all receives, then all sends at once, and waits for each. */
static void exchange(struct side *sender, struct side *receiver, uint32_t messages, uint32_t bytes)
{
    struct sdr_recv_handle *recvs[MESSAGES_MAX];
    struct sdr_send_handle *sends[MESSAGES_MAX];
    lh_time end = now_ns() + SPAN_NS;
    for (uint32_t m = 0; m < messages; m++) {
        struct sdr_recv_wr wr = {bytes, receiver->lkey, (uint64_t)(uintptr_t)receiver->memory};
        assert_int_equal(sdr_recv_post(receiver->qp, &wr, &recvs[m]), SDR_SUCCESS);
    }
    for (uint32_t m = 0; m < messages; m++) {
        struct sdr_send_wr wr = {
            .length = bytes, .lkey = sender->lkey, .local_addr = (uint64_t)(uintptr_t)sender->memory};
        int result;
        while ((result = sdr_send_post(sender->qp, &wr, &sends[m])) == SDR_RETRY && now_ns() < end)
            sched_yield();
        assert_int_equal(result, SDR_SUCCESS);
    }
    struct timespec pause = {0, 1000000};
    for (uint32_t m = 0; m < messages; m++) {
        int done = 0;
        while (sdr_send_poll(sends[m], &done, NULL) != SDR_SUCCESS && now_ns() < end)
            nanosleep(&pause, NULL);
        assert_true(done);
        while (!whole(recvs[m]) && now_ns() < end)
            nanosleep(&pause, NULL);
        assert_true(whole(recvs[m]));
        assert_int_equal(sdr_recv_complete(recvs[m]), SDR_SUCCESS);
    }
}

static void run(struct sdr_context *receiving, uint32_t messages, uint32_t bytes)
{
    struct side sender, receiver;
    struct lh_stats stats;
    open_side(&sender, sdr_context_create(DEVICE, NULL), bytes);
    open_side(&receiver, receiving, bytes);
    connect_to(&receiver, &sender);
    connect_to(&sender, &receiver);
    exchange(&sender, &receiver, messages, bytes);
    lh_sdr_stats(receiver.qp, &stats);
    assert_int_equal(stats.rx_socket_drops, 0);
    assert_int_equal(stats.rx_packets, (uint64_t)messages * ((bytes + 4095) / 4096));
    close_side(&sender);
    close_side(&receiver);
}

static void test_all_messages_at_once(void **state)
{
    (void)state;
    run(sdr_context_create(DEVICE, NULL), MESSAGES_MAX, 8 * MIB);
}

/* What Linux grants without a sysctl. */
static void test_small_socket_buffer(void **state)
{
    (void)state;
    struct sdr_context *context;
    const struct lh_context_attr attr = {.receive_buffer_bytes = 208 * KIB};
    assert_int_equal(lh_sdr_context_create(DEVICE, &attr, &context), 0);
    run(context, 16, 4 * MIB);
}

/* Each packet takes as much of the kernel's memory as a full one. */
static void test_short_messages(void **state)
{
    (void)state;
    struct sdr_context *context;
    const struct lh_context_attr attr = {.receive_buffer_bytes = 208 * KIB};
    assert_int_equal(lh_sdr_context_create(DEVICE, &attr, &context), 0);
    run(context, MESSAGES_MAX, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_messages_at_once),
        cmocka_unit_test(test_small_socket_buffer),
        cmocka_unit_test(test_short_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
