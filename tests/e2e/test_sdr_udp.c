/*
 * test_sdr_udp.c - a program of the SDK's own calls over real sockets, shaped like its authors' benchmark.
 *
 * A server thread posts receives, busy-polls the immediate and the bitmap of the oldest, completes it and
 * posts it again; a client thread posts one-shot sends, spins on SDR_RETRY, and polls for completion.
 * Neither calls for progress: the contexts' workers make it. Loopback drops packets when a socket buffer is
 * full, and nobody sends again here, so the client keeps few messages ahead of what the server has told it
 * by their own channel (a counter), and the server gives a message up when nothing of it moves any more.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <sdr.h>
#include <sdr_mr.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <longhaul/sdr_ext.h>

#include "sdr/sdr_state.h"

#define CHANNELS      8u
#define SLOTS_LOG     3u
#define SLOTS         (1u << SLOTS_LOG)
#define MESSAGE_BYTES (1u << 20)
#define CHUNK_LOG     16u
#define CHUNK         (1u << CHUNK_LOG)
#define MESSAGES      64u
#define AHEAD         2u /* messages on the way */
#define GIVE_UP_NS    (2000 * LH_NS_PER_MS)

/* One side: what a process of the benchmark has. */
struct side {
    struct sdr_context *context;
    struct sdr_qp *qp;
    struct sdr_mr *mr;
    uint8_t *memory; /* SLOTS messages */
    uint32_t lkey;
};

struct run {
    struct side server;
    struct side client;
    _Atomic uint32_t received; /* the programs' own channel */
    uint32_t whole;
    uint32_t whole_chunks;
    uint32_t messages;
};

/* What message m holds at byte i, so that both sides know it. */
static uint8_t byte_of(uint32_t message, uint32_t i)
{
    uint32_t x = (message + 1) * 0x9E3779B1u ^ i * 0x85EBCA77u;
    return (uint8_t)(x >> 24);
}

static uint32_t length_of(uint32_t message)
{
    const uint32_t lengths[] = {MESSAGE_BYTES,        MESSAGE_BYTES / 2, CHUNK, 4096, 1,
                                MESSAGE_BYTES - 4097, CHUNK + 1,         70000};
    return lengths[message % 8];
}

/* Or the program's arguments: tests/vm runs it on devices. */
static const char *ipv6 = "udp:[::1]";
static const char *ipv4 = "udp:127.0.0.1";

static lh_time now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (lh_time)now.tv_sec * LH_NS_PER_S + (lh_time)now.tv_nsec;
}

static void open_side(struct side *side, const char *device, bool sends)
{
    struct sdr_dev_attr dev = {.num_channels = CHANNELS};
    struct sdr_qp_attr attr = {0};
    attr.bitmap_chunk_size_log_bytes = CHUNK_LOG;
    attr.max_in_flight_log_bytes = 20 + SLOTS_LOG;
    attr.max_log_num_msgs = SLOTS_LOG;
    attr.mtu = SDR_MTU_4096;
    attr.send_enable = sends;
    attr.recv_enable = !sends;
    side->context = sdr_context_create(device, &dev);
    if (!side->context)
        fail_msg("%s", lh_last_error());
    side->memory = calloc(SLOTS, MESSAGE_BYTES);
    assert_non_null(side->memory);
    side->mr =
        sdr_mr_reg(side->context, side->memory, (size_t)SLOTS * MESSAGE_BYTES, SDR_ACCESS_REMOTE_WRITE);
    assert_non_null(side->mr);
    assert_int_equal(sdr_mr_lkey_get(side->mr, &side->lkey), SDR_SUCCESS);
    side->qp = sdr_qp_create(side->context, &attr);
    if (!side->qp)
        fail_msg("%s", lh_last_error());
}

/* Sizes first, then the blobs. */
static void exchange(struct side *one, struct side *other)
{
    size_t bytes;
    assert_int_equal(sdr_qp_info_size_get(other->qp, &bytes), SDR_SUCCESS);
    void *info = malloc(bytes);
    assert_non_null(info);
    assert_int_equal(sdr_qp_info_get(other->qp, info), SDR_SUCCESS);
    if (sdr_qp_connect(one->qp, info) != SDR_SUCCESS)
        fail_msg("%s", lh_last_error());
    free(info);
}

static void close_side(struct side *side)
{
    assert_int_equal(sdr_qp_destroy(side->qp), SDR_SUCCESS);
    assert_int_equal(sdr_mr_dereg(side->mr), SDR_SUCCESS);
    assert_int_equal(sdr_context_destroy(side->context), SDR_SUCCESS);
    free(side->memory);
}

/* ---- the client ---- */

static void fill(uint8_t *memory, uint32_t message)
{
    for (uint32_t i = 0; i < length_of(message); i++)
        memory[i] = byte_of(message, i);
}

static struct sdr_send_handle *send_message(struct side *side, uint32_t message)
{
    uint8_t *memory = side->memory + (size_t)(message % SLOTS) * MESSAGE_BYTES;
    struct sdr_send_handle *handle;
    struct sdr_send_wr wr = {
        .opcode = SDR_WR_WRITE_WITH_IMM,
        .imm_value = 0xA0000000u | message,
        .length = length_of(message),
        .lkey = side->lkey,
        .local_addr = (uint64_t)(uintptr_t)memory,
    };
    int result;
    fill(memory, message);
    while ((result = sdr_send_post(side->qp, &wr, &handle)) == SDR_RETRY)
        continue; /* as the benchmark does: no pause */
    assert_int_equal(result, SDR_SUCCESS);
    return handle;
}

static void *client(void *argument)
{
    struct run *run = argument;
    for (uint32_t m = 0; m < run->messages; m++) {
        struct sdr_send_status status;
        int done = 0;
        while (m >= atomic_load(&run->received) + AHEAD)
            sched_yield();
        struct sdr_send_handle *handle = send_message(&run->client, m);
        while (!done)
            assert_int_not_equal(sdr_send_poll(handle, &done, &status), SDR_ERROR);
        assert_int_equal(status.flags, 0);
    }
    return NULL;
}

/* ---- the server ---- */

static struct sdr_recv_handle *post(struct side *side, uint32_t message)
{
    struct sdr_recv_handle *handle;
    uint8_t *memory = side->memory + (size_t)(message % SLOTS) * MESSAGE_BYTES;
    struct sdr_recv_wr wr = {length_of(message), side->lkey, (uint64_t)(uintptr_t)memory};
    memset(memory, 0, MESSAGE_BYTES);
    assert_int_equal(sdr_recv_post(side->qp, &wr, &handle), SDR_SUCCESS);
    return handle;
}

static uint32_t count_chunks(const uint8_t *bitmap, size_t chunks)
{
    uint32_t set = 0;
    for (size_t i = 0; i < chunks; i++)
        set += __atomic_load_n(&bitmap[i], __ATOMIC_ACQUIRE) != 0;
    return set;
}

/* Until immediate and bitmap are whole, or a packet was lost. */
static bool await(struct sdr_recv_handle *handle, uint32_t message)
{
    uint8_t *bitmap;
    size_t chunks;
    uint32_t immediate = 0, before = 0;
    lh_time moved = now_ns();
    assert_int_equal(sdr_recv_bitmap_get(handle, &bitmap, &chunks), SDR_SUCCESS);
    assert_int_equal(chunks, (length_of(message) + CHUNK - 1) / CHUNK);
    for (;;) {
        bool has_immediate = sdr_recv_imm_get(handle, &immediate) == SDR_SUCCESS;
        uint32_t there = count_chunks(bitmap, chunks);
        if (has_immediate)
            assert_int_equal(immediate, 0xA0000000u | message);
        if (has_immediate && there == chunks)
            return true;
        if (there != before)
            moved = now_ns();
        before = there;
        if (now_ns() - moved > GIVE_UP_NS)
            return false;
    }
}

/* Every chunk that is marked has every byte. */
static uint32_t check_chunks(const struct side *side, struct sdr_recv_handle *handle, uint32_t message)
{
    const uint8_t *memory = side->memory + (size_t)(message % SLOTS) * MESSAGE_BYTES;
    uint8_t *bitmap;
    size_t chunks;
    uint32_t marked = 0;
    assert_int_equal(sdr_recv_bitmap_get(handle, &bitmap, &chunks), SDR_SUCCESS);
    for (uint32_t c = 0; c < chunks; c++) {
        if (!__atomic_load_n(&bitmap[c], __ATOMIC_ACQUIRE))
            continue;
        marked++;
        for (uint32_t i = c * CHUNK; i < (c + 1) * CHUNK && i < length_of(message); i++)
            if (memory[i] != byte_of(message, i))
                fail_msg("message %u: byte %u is wrong", message, i);
    }
    return marked;
}

static void *server(void *argument)
{
    struct run *run = argument;
    struct sdr_recv_handle *handles[SLOTS];
    for (uint32_t m = 0; m < SLOTS; m++)
        handles[m] = post(&run->server, m);
    for (uint32_t m = 0; m < run->messages; m++) {
        struct sdr_recv_handle *handle = handles[m % SLOTS];
        run->whole += await(handle, m);
        run->whole_chunks += check_chunks(&run->server, handle, m);
        assert_int_equal(sdr_recv_complete(handle), SDR_SUCCESS);
        handles[m % SLOTS] = post(&run->server, m + SLOTS);
        atomic_store(&run->received, m + 1);
    }
    return NULL;
}

static void run_benchmark(const char *device, uint32_t messages)
{
    struct run *run = calloc(1, sizeof *run);
    pthread_t threads[2];
    assert_non_null(run);
    run->messages = messages;
    open_side(&run->server, device, false);
    open_side(&run->client, device, true);
    exchange(&run->server, &run->client);
    exchange(&run->client, &run->server);
    assert_int_equal(pthread_create(&threads[0], NULL, server, run), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, client, run), 0);
    for (uint32_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    struct lh_stats tx, rx;
    lh_sdr_stats(run->client.qp, &tx);
    lh_sdr_stats(run->server.qp, &rx);
    assert_int_equal(lh_stats_bad_packets(&rx), 0);
    assert_int_equal(rx.rx_duplicate_packets, 0);
    /* Every packet that was not lost on loopback is in its place. */
    assert_true(rx.rx_packets <= tx.tx_packets);
    assert_true(run->whole == messages || rx.rx_packets < tx.tx_packets);
    assert_true(run->whole * 10 >= messages * 9);
    close_side(&run->client);
    close_side(&run->server);
    free(run);
}

static void test_benchmark_over_ipv6(void **state)
{
    (void)state;
    run_benchmark(ipv6, MESSAGES);
}

static void test_benchmark_over_ipv4(void **state)
{
    (void)state;
    run_benchmark(ipv4, MESSAGES / 4);
}

/* In a container, or bound to a CPU, more workers would only take turns. */
static void test_workers_of_a_bound_caller(void **state)
{
    struct sdr_dev_attr dev = {.num_channels = CHANNELS};
    cpu_set_t all, one;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    struct sdr_context *context = sdr_context_create(ipv4, &dev);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_non_null(context);
    assert_int_equal(context->worker_count, 1);
    assert_int_equal(sdr_context_destroy(context), SDR_SUCCESS);
}

/* Contexts and QPs come and go while workers run; some never connect, some go with a send in flight. */
static void test_create_and_destroy(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < 6; turn++) {
        struct run *run = calloc(1, sizeof *run);
        assert_non_null(run);
        open_side(&run->server, ipv6, false);
        open_side(&run->client, ipv6, true);
        if (turn % 3 > 0) {
            exchange(&run->server, &run->client);
            exchange(&run->client, &run->server);
            post(&run->server, 0);
        }
        if (turn % 3 > 1)
            send_message(&run->client, 0);
        close_side(turn % 2 ? &run->client : &run->server);
        close_side(turn % 2 ? &run->server : &run->client);
        free(run);
    }
}

/* ---- two QPs of one context, and messages of the layer above, from several threads ---- */

struct talker {
    struct sdr_qp *qp;
    uint32_t heard;
};

/* Says 200 things and listens; loopback seldom loses so little, but nothing here depends on it. */
static void *talk(void *argument)
{
    struct talker *talker = argument;
    uint8_t words[LH_SDR_MESSAGE_MAX];
    size_t bytes;
    lh_time end = now_ns() + 500 * LH_NS_PER_MS;
    for (uint32_t said = 0; now_ns() < end;) {
        if (said < 200 && lh_sdr_message_send(talker->qp, &said, sizeof said) == 0)
            said++;
        while (lh_sdr_message_recv(talker->qp, words, &bytes) == 0) {
            assert_int_equal(bytes, sizeof said);
            talker->heard++;
        }
        sched_yield();
    }
    return NULL;
}

static void test_messages_both_ways(void **state)
{
    (void)state;
    struct side sides[2];
    struct talker talkers[2];
    pthread_t threads[2];
    open_side(&sides[0], ipv6, false);
    open_side(&sides[1], ipv6, true);
    exchange(&sides[0], &sides[1]);
    exchange(&sides[1], &sides[0]);
    for (uint32_t i = 0; i < 2; i++) {
        talkers[i] = (struct talker){sides[i].qp, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, talk, &talkers[i]), 0);
    }
    for (uint32_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_in_range(talkers[i].heard, 1, 200);
    }
    struct lh_sdr_path path;
    assert_int_equal(lh_sdr_path(sides[0].qp, &path), 0);
    assert_true(path.rtt_ns > 0);
    close_side(&sides[0]);
    /* The other hears the goodbye: the sockets are there, and three are sent. */
    lh_time end = now_ns() + GIVE_UP_NS;
    while (lh_sdr_error(sides[1].qp) == 0 && now_ns() < end)
        sched_yield();
    assert_int_equal(lh_sdr_error(sides[1].qp), -LH_ECLOSED);
    close_side(&sides[1]);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        ipv6 = argv[1];
    if (argc > 2)
        ipv4 = argv[2];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_benchmark_over_ipv6), cmocka_unit_test(test_benchmark_over_ipv4),
        cmocka_unit_test(test_create_and_destroy),  cmocka_unit_test(test_workers_of_a_bound_caller),
        cmocka_unit_test(test_messages_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
