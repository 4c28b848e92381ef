/*
 * test_sdr_notice.c - what a program of the published SDK learns of itself: the lines that the library prints
 * on standard error, the attributes that zero stands for, and the counter of what the kernel dropped.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <sdr.h>
#include <sdr_mr.h>

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/sdr_ext.h>

#define DEVICE        "udp:127.0.0.1"
#define MIB           ((uint64_t)1 << 20)
#define MESSAGE_LOG   26u /* 64 MiB, more than any buffer here */
#define MESSAGE_BYTES (UINT32_C(1) << MESSAGE_LOG)
#define SPAN_NS       (10 * LH_NS_PER_S) /* only ever stops what hangs */

/* ---- what the library prints ---- */

static char printed[4096];

/* Standard error goes to a file from now on. */
static int stderr_taken(int *before)
{
    int file = memfd_create("stderr", MFD_CLOEXEC);
    assert_true(file >= 0);
    fflush(stderr);
    *before = dup(STDERR_FILENO);
    assert_true(*before >= 0 && dup2(file, STDERR_FILENO) >= 0);
    return file;
}

/* And is given back; `printed` has what came. */
static void stderr_back(int file, int before)
{
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    ssize_t got = pread(file, printed, sizeof printed - 1, 0);
    assert_true(got >= 0);
    printed[got] = '\0';
    close(file);
}

static uint32_t lines(const char *text)
{
    uint32_t count = 0;
    for (const char *line = printed; (line = strstr(line, text)); line++)
        count++;
    return count;
}

/* ---- two sides ---- */

struct side {
    struct sdr_context *context;
    struct sdr_qp *qp;
    struct sdr_mr *mr;
    uint8_t *memory; /* MESSAGE_BYTES */
    uint32_t lkey;
};

static struct sdr_qp_attr whole_attr(void)
{
    return (struct sdr_qp_attr){.bitmap_chunk_size_log_bytes = 16,
                                .max_in_flight_log_bytes = MESSAGE_LOG + 1,
                                .max_log_num_msgs = 1,
                                .mtu = SDR_MTU_4096};
}

static void give_memory(struct side *side)
{
    side->memory = mmap(NULL, MESSAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(side->memory != MAP_FAILED);
    side->mr = sdr_mr_reg(side->context, side->memory, MESSAGE_BYTES, SDR_ACCESS_REMOTE_WRITE);
    assert_non_null(side->mr);
    sdr_mr_lkey_get(side->mr, &side->lkey);
}

static void open_published(struct side *side, struct sdr_qp_attr attr)
{
    side->context = sdr_context_create(DEVICE, NULL);
    assert_non_null(side->context);
    side->qp = sdr_qp_create(side->context, &attr);
    assert_non_null(side->qp);
    give_memory(side);
}

/* Whoever asks for no control gets it. */
static const struct lh_qp_attr unbridled = {.congestion = "fixed"};

static void open_unbridled(struct side *side, struct sdr_qp_attr attr)
{
    side->context = sdr_context_create(DEVICE, NULL);
    assert_non_null(side->context);
    assert_int_equal(lh_sdr_qp_create(side->context, &attr, &unbridled, &side->qp), 0);
    give_memory(side);
}

static void open_extended(struct side *side, const struct lh_context_attr *context_attr,
                          const struct sdr_qp_attr *attr, const struct lh_qp_attr *more)
{
    assert_int_equal(lh_sdr_context_create(DEVICE, context_attr, &side->context), 0);
    assert_int_equal(lh_sdr_qp_create(side->context, attr, more, &side->qp), 0);
    give_memory(side);
}

static void connect_to(struct side *side, const struct side *peer)
{
    size_t bytes;
    sdr_qp_info_size_get(peer->qp, &bytes);
    void *info = malloc(bytes);
    assert_non_null(info);
    sdr_qp_info_get(peer->qp, info);
    if (sdr_qp_connect(side->qp, info) != SDR_SUCCESS)
        fail_msg("%s", lh_last_error());
    free(info);
}

static void connect_both(struct side *one, struct side *other)
{
    connect_to(one, other);
    connect_to(other, one);
}

static void close_side(struct side *side)
{
    assert_int_equal(sdr_qp_destroy(side->qp), SDR_SUCCESS);
    assert_int_equal(sdr_mr_dereg(side->mr), SDR_SUCCESS);
    assert_int_equal(sdr_context_destroy(side->context), SDR_SUCCESS);
    munmap(side->memory, MESSAGE_BYTES);
}

static lh_time now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (lh_time)now.tv_sec * LH_NS_PER_S + (lh_time)now.tv_nsec;
}

static struct sdr_recv_handle *post(const struct side *side, uint32_t bytes)
{
    struct sdr_recv_handle *handle;
    struct sdr_recv_wr wr = {bytes, side->lkey, (uint64_t)(uintptr_t)side->memory};
    assert_int_equal(sdr_recv_post(side->qp, &wr, &handle), SDR_SUCCESS);
    return handle;
}

/* For contexts without workers, too. */
static void progress(const struct side *side)
{
    if (lh_sdr_progress(side->context, NULL))
        sched_yield();
}

static struct sdr_send_handle *send_all(const struct side *side, const struct side *peer, uint32_t bytes)
{
    struct sdr_send_handle *handle;
    struct sdr_send_wr wr = {
        .length = bytes, .lkey = side->lkey, .local_addr = (uint64_t)(uintptr_t)side->memory};
    lh_time end = now_ns() + SPAN_NS;
    int result;
    while ((result = sdr_send_post(side->qp, &wr, &handle)) == SDR_RETRY && now_ns() < end) {
        progress(peer);
        progress(side);
    }
    assert_int_equal(result, SDR_SUCCESS);
    return handle;
}

/* ---- the lines ---- */

static void test_what_zero_became_is_printed_once(void **state)
{
    (void)state;
    struct sdr_context *context = sdr_context_create(DEVICE, NULL);
    struct sdr_qp_attr attr = {0}, one_message = whole_attr(), small_packets = whole_attr();
    int before, file = stderr_taken(&before);
    struct sdr_qp *qps[2];
    for (uint32_t i = 0; i < 2; i++)
        assert_non_null(qps[i] = sdr_qp_create(context, &attr));
    stderr_back(file, before);
    assert_int_equal(lines("\n"), 1);
    assert_int_equal(lines("longhaul: sdr_qp_create: "), 1);
    assert_int_equal(lines("MTU 4096, chunk 64KiB, 128 messages of up to 8MiB in flight"), 1);
    for (uint32_t i = 0; i < 2; i++)
        sdr_qp_destroy(qps[i]);
    sdr_context_destroy(context);
    one_message.max_log_num_msgs = 0;
    small_packets.mtu = SDR_MTU_64;
    for (uint32_t i = 0; i < 2; i++) {
        context = sdr_context_create(DEVICE, NULL);
        file = stderr_taken(&before);
        assert_non_null(qps[0] = sdr_qp_create(context, i ? &small_packets : &one_message));
        stderr_back(file, before);
        assert_int_equal(lines("a zero in sdr_qp_attr is the default"), 1);
        sdr_qp_destroy(qps[0]);
        sdr_context_destroy(context);
    }
}

static void test_nothing_is_printed_where_nothing_was_chosen(void **state)
{
    (void)state;
    struct sdr_qp_attr attr = whole_attr(), zero = {0};
    struct side published, extended;
    int before, file = stderr_taken(&before);
    open_published(&published, attr);
    struct sdr_qp *defaults = sdr_qp_create(published.context, NULL); /* who gives none knows it */
    open_extended(&extended, NULL, &zero, NULL);
    stderr_back(file, before);
    assert_string_equal(printed, "");
    assert_non_null(defaults);
    sdr_qp_destroy(defaults);
    close_side(&published);
    close_side(&extended);
}

/* One send is more than the peer's buffers, whatever the kernel grants. */
static void test_a_send_that_exceeds_the_buffers(void **state)
{
    (void)state;
    struct side sender, receiver;
    struct lh_sdr_path path;
    struct sdr_qp_attr attr = whole_attr();
    struct lh_context_attr no_workers = {.workers = LH_SDR_NO_WORKERS};
    open_unbridled(&sender, attr);
    open_extended(&receiver, &no_workers, &attr, NULL);
    connect_both(&sender, &receiver);
    lh_sdr_path(sender.qp, &path);
    assert_in_range(path.peer_receive_buffer_bytes, 1, MESSAGE_BYTES - 1);
    post(&receiver, MESSAGE_BYTES);
    post(&receiver, MESSAGE_BYTES);
    int before, file = stderr_taken(&before);
    send_all(&sender, &receiver, MESSAGE_BYTES);
    send_all(&sender, &receiver, MESSAGE_BYTES);
    stderr_back(file, before);
    assert_int_equal(lines("\n"), 1);
    assert_int_equal(lines("longhaul: sdr_send_post: "), 1);
    assert_int_equal(lines("exceed the peer's receive buffers"), 1);
    assert_int_equal(lines("sysctl -w net.core.rmem_max="), 1);
    close_side(&sender);
    close_side(&receiver);
}

/* A pace is for that, and a controller; the lh_ calls leave it to the program; and what fits is no news. */
static void test_sends_of_which_nothing_is_said(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct side sender, receiver;
        struct sdr_qp_attr attr = whole_attr();
        attr.rate_limit = i == 0;
        int before, file = stderr_taken(&before);
        if (i == 1)
            open_extended(&sender, NULL, &attr, &unbridled);
        else if (i == 2)
            open_unbridled(&sender, attr);
        else
            open_published(&sender, attr);
        open_extended(&receiver, NULL, &attr, NULL);
        connect_both(&sender, &receiver);
        post(&receiver, MESSAGE_BYTES);
        send_all(&sender, &receiver, i == 2 ? 4096 : MESSAGE_BYTES);
        stderr_back(file, before);
        assert_string_equal(printed, "");
        close_side(&sender);
        close_side(&receiver);
    }
}

/* Without this privilege the kernel's limit holds, as for most users. */
static void drop_net_admin(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    assert_int_equal(syscall(SYS_capget, &header, data), 0);
    data[0].effective &= ~(1u << CAP_NET_ADMIN);
    assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

static void test_receives_that_exceed_a_small_buffer(void **state)
{
    (void)state;
    struct side receiver;
    struct sdr_qp_attr attr = whole_attr();
    drop_net_admin();
    open_published(&receiver, attr);
    const char *warning = lh_sdr_warning(receiver.context);
    int before, file = stderr_taken(&before);
    struct sdr_recv_handle *handle = post(&receiver, 4096);
    assert_int_equal(sdr_recv_complete(handle), SDR_SUCCESS);
    stderr_back(file, before);
    assert_string_equal(printed, "");
    file = stderr_taken(&before);
    post(&receiver, MESSAGE_BYTES);
    post(&receiver, MESSAGE_BYTES);
    stderr_back(file, before);
    /* Where the kernel grants all that was asked for, there is nothing to raise. */
    assert_int_equal(lines("longhaul: sdr_recv_post: "), warning ? 1 : 0);
    if (warning)
        assert_int_equal(lines(warning), 1);
    close_side(&receiver);
}

/* ---- the counter ---- */

/* The receiver does not look at its socket until all was sent: the kernel drops what does not fit, and no
 * packet comes later that could carry the news. */
static void test_what_the_kernel_dropped_is_counted(void **state)
{
    (void)state;
    struct side sender, receiver;
    struct sdr_qp_attr attr = whole_attr();
    struct lh_context_attr deaf = {.workers = LH_SDR_NO_WORKERS, .receive_buffer_bytes = 256 * 1024};
    struct lh_stats stats;
    struct sdr_send_status status;
    int done = 0;
    open_extended(&sender, &(struct lh_context_attr){.workers = LH_SDR_NO_WORKERS}, &attr, &unbridled);
    open_extended(&receiver, &deaf, &attr, NULL);
    connect_both(&sender, &receiver);
    post(&receiver, MESSAGE_BYTES);
    struct sdr_send_handle *handle = send_all(&sender, &receiver, 8 * MIB);
    lh_sdr_stats(receiver.qp, &stats);
    assert_int_equal(stats.rx_socket_drops, 0);
    lh_time end = now_ns() + SPAN_NS;
    while (!done && now_ns() < end) {
        progress(&sender);
        sdr_send_poll(handle, &done, &status);
    }
    assert_true(done);
    lh_sdr_stats(receiver.qp, &stats);
    assert_true(stats.rx_socket_drops > 0);
    uint64_t dropped = stats.rx_socket_drops;
    /* What did fit tells of drops, too: each counts once. */
    for (uint32_t i = 0; i < 10000; i++)
        progress(&receiver);
    lh_sdr_stats(receiver.qp, &stats);
    assert_true(stats.rx_packets > 0 && stats.rx_packets < 8 * MIB / 4096);
    assert_int_equal(stats.rx_socket_drops, dropped);
    close_side(&sender);
    close_side(&receiver);
}

/* ---- what zero cannot ask for ---- */

static void test_one_message_of_small_packets(void **state)
{
    (void)state;
    static const uint32_t mtus[] = {64, 128};
    for (uint32_t i = 0; i < 2; i++) {
        struct side sender, receiver;
        struct sdr_recv_handle *recv, *second;
        struct lh_qp_attr more = {.mtu_bytes = mtus[i], .slots = 1, .slot_bytes = MIB, .chunk_bytes = 4096};
        const uint32_t bytes = 100 * 1000 + 3;
        uint8_t *bitmap;
        size_t chunks, whole = 0;
        open_extended(&sender, NULL, NULL, &more);
        open_extended(&receiver, NULL, NULL, &more);
        connect_both(&sender, &receiver);
        for (uint32_t b = 0; b < bytes; b++)
            sender.memory[b] = (uint8_t)(b * 7 + (b >> 8));
        recv = post(&receiver, bytes);
        struct sdr_recv_wr wr = {bytes, receiver.lkey, (uint64_t)(uintptr_t)receiver.memory};
        assert_int_equal(sdr_recv_post(receiver.qp, &wr, &second), SDR_RETRY); /* there is one slot */
        send_all(&sender, &receiver, bytes);
        sdr_recv_bitmap_get(recv, &bitmap, &chunks);
        assert_int_equal(chunks, (bytes + 4095) / 4096);
        for (lh_time end = now_ns() + SPAN_NS; whole < chunks && now_ns() < end;)
            whole += __atomic_load_n(&bitmap[whole], __ATOMIC_ACQUIRE) != 0;
        assert_int_equal(whole, chunks);
        assert_memory_equal(receiver.memory, sender.memory, bytes);
        struct lh_stats stats;
        lh_sdr_stats(sender.qp, &stats);
        assert_int_equal(stats.tx_packets, (bytes + mtus[i] - 1) / mtus[i]);
        assert_int_equal(sdr_recv_complete(recv), SDR_SUCCESS);
        close_side(&sender);
        close_side(&receiver);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_zero_became_is_printed_once),
        cmocka_unit_test(test_nothing_is_printed_where_nothing_was_chosen),
        cmocka_unit_test(test_a_send_that_exceeds_the_buffers),
        cmocka_unit_test(test_sends_of_which_nothing_is_said),
        cmocka_unit_test(test_what_the_kernel_dropped_is_counted),
        cmocka_unit_test(test_one_message_of_small_packets),
        cmocka_unit_test(test_receives_that_exceed_a_small_buffer), /* last: it gives up a privilege */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
