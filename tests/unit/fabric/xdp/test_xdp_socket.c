/*
 * test_xdp_socket.c - AF_XDP sockets against a kernel of the test's own: rings at the wrap of their counters,
 * frames that come back, and descriptors that no kernel should write.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <linux/if_xdp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "fabric/xdp/xdp_socket.h"

#define FRAMES 16u

/* ---- kernel ------------------------------------------------------------------------------------------ */

/* A ring as both sides see it. Counters begin below their wrap. */
struct kernel_ring {
    uint32_t producer, consumer, flags;
    union {
        uint64_t address[2 * XDP_TRANSMIT_FRAMES];
        struct xdp_desc descriptor[XDP_TRANSMIT_FRAMES];
    } entries;
};

static struct kernel_ring fill, completed, received, transmit;
static int bind_error;   /* of each call; 0: none */
static unsigned busy;    /* calls of bind() that find the queue busy */
static int memory_error; /* of the registration of memory */
static int send_error;   /* of each call */
static unsigned send_calls;
static int receive_error; /* of each call */

int socket(int domain, int type, int protocol)
{
    if (domain != AF_XDP)
        return (int)syscall(SYS_socket, domain, type, protocol);
    return (int)syscall(SYS_memfd_create, "xdp", 0);
}

int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes)
{
    if (address.__sockaddr__->sa_family != AF_XDP)
        return (int)syscall(SYS_bind, fd, address.__sockaddr__, bytes);
    errno = busy > 0 ? EBUSY : bind_error;
    if (busy > 0) {
        busy--;
        return -1;
    }
    return bind_error != 0 ? -1 : 0;
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t bytes)
{
    if (level != SOL_XDP)
        return (int)syscall(SYS_setsockopt, fd, level, option, value, bytes);
    errno = memory_error;
    return option == XDP_UMEM_REG && memory_error != 0 ? -1 : 0;
}

int getsockopt(int fd, int level, int option, void *value, socklen_t *bytes)
{
    static const struct xdp_ring_offset at = {
        offsetof(struct kernel_ring, producer), offsetof(struct kernel_ring, consumer),
        offsetof(struct kernel_ring, entries), offsetof(struct kernel_ring, flags)};
    if (level != SOL_XDP)
        return (int)syscall(SYS_getsockopt, fd, level, option, value, bytes);
    memset(value, 0, *bytes);
    if (option == XDP_MMAP_OFFSETS)
        *(struct xdp_mmap_offsets *)value = (struct xdp_mmap_offsets){at, at, at, at};
    return 0;
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (fd < 0 || !(flags & MAP_SHARED))
        return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
    switch ((uint64_t)offset) {
    case XDP_UMEM_PGOFF_FILL_RING:
        return &fill;
    case XDP_UMEM_PGOFF_COMPLETION_RING:
        return &completed;
    case XDP_PGOFF_RX_RING:
        return &received;
    default:
        return &transmit;
    }
}

int munmap(void *address, size_t bytes)
{
    const void *const rings[] = {&fill, &completed, &received, &transmit};
    for (size_t i = 0; i < sizeof rings / sizeof rings[0]; i++)
        if (address == rings[i])
            return 0;
    return (int)syscall(SYS_munmap, address, bytes);
}

ssize_t sendto(int fd, const void *data, size_t bytes, int flags, __CONST_SOCKADDR_ARG to,
               socklen_t to_bytes)
{
    if (data != NULL)
        return syscall(SYS_sendto, fd, data, bytes, flags, to.__sockaddr__, to_bytes);
    send_calls++;
    errno = send_error;
    return send_error != 0 ? -1 : 0;
}

ssize_t recvfrom(int fd, void *data, size_t bytes, int flags, __SOCKADDR_ARG from, socklen_t *from_bytes)
{
    if (data != NULL)
        return syscall(SYS_recvfrom, fd, data, bytes, flags, from.__sockaddr__, from_bytes);
    errno = receive_error;
    return receive_error != 0 ? -1 : 0;
}

/* ---- fixture ----------------------------------------------------------------------------------------- */

struct fixture {
    struct xdp_queue *queue;
    struct xdp_socket *socket;
};

static const struct xdp_queue_attr attr = {.interface = "eth0", .ifindex = 2, .receive_frames = FRAMES};

static struct fixture open_fixture(void)
{
    struct fixture made;
    struct kernel_ring *const rings[] = {&fill, &completed, &received, &transmit};
    for (size_t i = 0; i < 4; i++)
        memset(rings[i], 0, sizeof *rings[i]);
    transmit.flags = XDP_RING_NEED_WAKEUP;
    send_calls = 0;
    send_error = 0;
    assert_int_equal(xdp_queue_open(&attr, &made.queue), 0);
    assert_int_equal(xdp_socket_open(made.queue, &made.socket), 0);
    return made;
}

static void close_fixture(const struct fixture *fixture)
{
    xdp_socket_close(fixture->socket);
    xdp_queue_close(fixture->queue);
}

/* The kernel's side of the receive ring. */
static void arrive(uint64_t address, uint32_t bytes)
{
    received.entries.descriptor[received.producer % FRAMES] = (struct xdp_desc){address, bytes, 0};
    received.producer++;
}

/* The kernel takes a frame to fill. */
static uint64_t take_fill(void)
{
    assert_int_not_equal(fill.producer, fill.consumer);
    return fill.entries.address[fill.consumer++ % FRAMES];
}

static void complete(uint64_t address)
{
    completed.entries.address[completed.producer % XDP_TRANSMIT_FRAMES] = address;
    completed.producer++;
}

/* ---- rings ------------------------------------------------------------------------------------------- */

static void test_rings_at_the_wrap(void **state)
{
    (void)state;
    uint32_t producer = UINT32_MAX - 1, consumer = UINT32_MAX - 1, flags = 0;
    uint64_t entries[4];
    struct xdp_ring ring = {&producer, &consumer, &flags, entries, 4, UINT32_MAX - 1};
    assert_int_equal(xdp_ring_free(&ring), 4);
    assert_int_equal(xdp_ring_waiting(&ring), 0);
    for (uint32_t i = 0; i < 4; i++)
        *xdp_ring_address(&ring, ring.next++) = i;
    assert_int_equal(ring.next, 2);
    assert_int_equal(entries[2], 0); /* UINT32_MAX - 1 is there */
    assert_int_equal(xdp_ring_free(&ring), 0);
    xdp_ring_produce(&ring);
    assert_int_equal(producer, 2);
    ring.next = consumer; /* the other side's view */
    assert_int_equal(xdp_ring_waiting(&ring), 4);
    ring.next += 3;
    assert_int_equal(xdp_ring_waiting(&ring), 1);
    xdp_ring_consume(&ring);
    assert_int_equal(consumer, 1);
}

/* More than it holds: nothing that is believed. */
static void test_rings_with_impossible_counters(void **state)
{
    (void)state;
    uint32_t producer = 5, consumer = 9, flags = 0;
    uint64_t entries[4];
    const struct xdp_ring ring = {&producer, &consumer, &flags, entries, 4, 0};
    assert_int_equal(xdp_ring_waiting(&ring), 0);
    assert_int_equal(xdp_ring_free(&ring), 0);
}

static void test_descriptors(void **state)
{
    (void)state;
    const struct {
        uint64_t address;
        uint32_t bytes;
        bool valid;
    } cases[] = {
        {0, 4096, false}, /* before the first frame */
        {8192, 4096, true},        {8192 + 256, 3840, true}, {8192 + 256, 3841, false},
        {16383, 1, true},          {16383, 2, false},        {16384, 1, false}, /* after the last */
        {8192, UINT32_MAX, false}, {UINT64_MAX, 1, false},   {UINT64_MAX - 4095, 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct xdp_desc descriptor = {cases[i].address, cases[i].bytes, 0};
        assert_int_equal(xdp_descriptor_is_valid(&descriptor, 2, 2), cases[i].valid);
    }
}

/* ---- receive ----------------------------------------------------------------------------------------- */

static void test_frames_go_round(void **state)
{
    (void)state;
    struct fixture fixture = open_fixture();
    struct xdp_received packets[FRAMES];
    assert_int_equal(fill.producer, FRAMES);
    for (uint32_t round = 0; round < 10 * FRAMES; round++) {
        uint64_t frame = take_fill();
        arrive(frame + 256, 100 + round);
        assert_int_equal(xdp_socket_receive(fixture.socket, packets, FRAMES), 1);
        assert_int_equal(packets[0].bytes, 100 + round);
        assert_int_equal(packets[0].frame, frame + 256);
        xdp_socket_release(fixture.socket, &packets[0].frame, 1);
        assert_int_equal(fill.producer - fill.consumer, FRAMES);
    }
    assert_int_equal(xdp_socket_receive(fixture.socket, packets, FRAMES), 0);
    close_fixture(&fixture);
}

static void test_hostile_descriptors_are_dropped(void **state)
{
    (void)state;
    struct fixture fixture = open_fixture();
    struct xdp_received packets[FRAMES];
    arrive(UINT64_MAX, 1);
    arrive((uint64_t)FRAMES * XDP_FRAME_BYTES, 64); /* a frame of the transmit side */
    arrive(256, XDP_FRAME_BYTES);                   /* into the next one */
    arrive(0, UINT32_MAX);
    arrive(take_fill(), 64);
    assert_int_equal(xdp_socket_receive(fixture.socket, packets, FRAMES), 1);
    assert_int_equal(packets[0].bytes, 64);
    assert_int_equal(xdp_socket_drops(fixture.socket), 4);
    assert_int_equal(received.consumer, 5);
    /* The same frame again, and again: the fill ring takes no more than there are. */
    const uint64_t twice[] = {packets[0].frame, packets[0].frame, packets[0].frame};
    xdp_socket_release(fixture.socket, twice, 3);
    assert_int_equal(fill.producer - fill.consumer, FRAMES);
    close_fixture(&fixture);
}

/* What a socket has not read goes back to the queue, for others. */
static void test_unread_frames_return(void **state)
{
    (void)state;
    struct fixture fixture = open_fixture();
    for (uint32_t i = 0; i < FRAMES; i++)
        arrive(take_fill(), 64);
    xdp_socket_close(fixture.socket);
    assert_int_equal(fill.producer - fill.consumer, FRAMES);
    xdp_queue_close(fixture.queue);
}

/* ---- send -------------------------------------------------------------------------------------------- */

static void send_packets(struct xdp_socket *socket, uint32_t count)
{
    assert_int_equal(xdp_socket_send_begin(socket, count), count);
    for (uint32_t i = 0; i < count; i++) {
        memset(xdp_socket_send_frame(socket), (int)i, 64);
        xdp_socket_send_add(socket, 64 + i % 100);
    }
    assert_int_equal(xdp_socket_send_end(socket), 0);
}

static void test_sending_until_full(void **state)
{
    (void)state;
    struct fixture fixture = open_fixture();
    send_packets(fixture.socket, 64);
    assert_int_equal(transmit.producer, 64);
    assert_int_equal(send_calls, 1);
    assert_int_equal(transmit.entries.descriptor[63].len, 64 + 63);
    send_packets(fixture.socket, XDP_TRANSMIT_FRAMES - 64);
    assert_int_equal(xdp_socket_send_begin(fixture.socket, 10), 0);
    assert_int_equal(xdp_socket_send_end(fixture.socket), 0);
    transmit.consumer = transmit.producer; /* the kernel has read all, and completed ten */
    for (uint32_t i = 0; i < 10; i++)
        complete(transmit.entries.descriptor[i].addr);
    assert_int_equal(xdp_socket_send_begin(fixture.socket, 64), 10);
    assert_int_equal(xdp_socket_send_end(fixture.socket), 0);
    close_fixture(&fixture);
}

static void test_hostile_completions(void **state)
{
    (void)state;
    struct fixture fixture = open_fixture();
    send_packets(fixture.socket, XDP_TRANSMIT_FRAMES);
    transmit.consumer = transmit.producer;
    complete(0); /* a frame of the receive side */
    complete(UINT64_MAX);
    complete((uint64_t)(FRAMES + XDP_TRANSMIT_FRAMES) * XDP_FRAME_BYTES);
    complete(transmit.entries.descriptor[0].addr);
    complete(transmit.entries.descriptor[0].addr); /* twice */
    assert_int_equal(xdp_socket_send_begin(fixture.socket, 64), 1);
    assert_int_equal(xdp_socket_send_end(fixture.socket), 0);
    close_fixture(&fixture);
}

/* A call that sent nothing of a full queue ends the batch; one that fails is reported. */
static void test_errors_of_a_send(void **state)
{
    (void)state;
    struct fixture fixture = open_fixture();
    send_error = EAGAIN;
    send_packets(fixture.socket, 1);
    assert_int_equal(send_calls, 1);
    send_error = ENOBUFS;
    send_packets(fixture.socket, 1);
    send_error = ENETDOWN;
    assert_int_equal(xdp_socket_send_begin(fixture.socket, 1), 1);
    xdp_socket_send_add(fixture.socket, 64);
    assert_int_equal(xdp_socket_send_end(fixture.socket), ENETDOWN);
    close_fixture(&fixture);
}

/* Of an interface that is only down, and of a kernel that knows no such call, the socket stays. */
static void test_an_interface_that_is_removed(void **state)
{
    (void)state;
    static const int harmless[] = {0, ENETDOWN, EOPNOTSUPP, EAGAIN};
    struct fixture fixture = open_fixture();
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
        receive_error = harmless[i];
        assert_false(xdp_socket_is_gone(fixture.socket));
    }
    receive_error = ENXIO;
    assert_true(xdp_socket_is_gone(fixture.socket));
    receive_error = 0;
    close_fixture(&fixture);
}

/* ---- opening ----------------------------------------------------------------------------------------- */

/* The kernel has not yet freed the queue of a process that has ended. */
static void test_a_queue_that_is_freed_late(void **state)
{
    (void)state;
    busy = 3;
    struct fixture fixture = open_fixture();
    assert_int_equal(busy, 0);
    close_fixture(&fixture);
}

static void test_errors_of_opening(void **state)
{
    (void)state;
    struct xdp_queue *queue;
    const struct {
        int *where, error, code;
        const char *text;
    } cases[] = {
        {&bind_error, EPERM, -LH_EDEVICE, "CAP_NET_RAW"},
        {&bind_error, EBUSY, -LH_EDEVICE, "belongs to another AF_XDP socket"},
        {&bind_error, EINVAL, -LH_ESYSTEM, "binding an AF_XDP socket"},
        {&memory_error, ENOBUFS, -LH_EDEVICE, "RLIMIT_MEMLOCK"},
        {&memory_error, ENOPROTOOPT, -LH_EDEVICE, "kernel without AF_XDP"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        *cases[i].where = cases[i].error;
        assert_int_equal(xdp_queue_open(&attr, &queue), cases[i].code);
        assert_non_null(strstr(lh_last_error(), cases[i].text));
        *cases[i].where = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rings_at_the_wrap),
        cmocka_unit_test(test_rings_with_impossible_counters),
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_frames_go_round),
        cmocka_unit_test(test_hostile_descriptors_are_dropped),
        cmocka_unit_test(test_unread_frames_return),
        cmocka_unit_test(test_sending_until_full),
        cmocka_unit_test(test_hostile_completions),
        cmocka_unit_test(test_errors_of_a_send),
        cmocka_unit_test(test_an_interface_that_is_removed),
        cmocka_unit_test(test_a_queue_that_is_freed_late),
        cmocka_unit_test(test_errors_of_opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
