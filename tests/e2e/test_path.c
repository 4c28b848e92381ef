/*
 * test_path.c - the path between two network namespaces does what it says: by what arrives, and by what
 * it counts.
 *
 * One thread sends, moves the packets and receives; so a burst waits in the kernel until the path
 * looks, and no assertion depends on how fast this machine is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/path/path_loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MS   1000000ll
#define MTU  4200
#define PORT 5000

enum { EXIT_SKIP = 77, UDP_HEADERS = 28, ECT = 2 };

static struct path_end ends[PATH_ENDS];
static volatile sig_atomic_t never;

static struct path_direction_config plain(void)
{
    return (struct path_direction_config){
        .line = {.queue_bytes = PATH_NO_LIMIT, .mark_bytes = PATH_NO_LIMIT, .seed = 1},
    };
}

static void open_both(struct path *path, struct path_direction_config config)
{
    const struct path_direction_config both[PATH_ENDS] = {config, config};
    assert_true(path_open(path, ends, both, MTU));
}

static int open_socket(unsigned side, int family)
{
    int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    assert_int_equal(setns(ends[side].network, CLONE_NEWNET), 0);
    int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    setns(own, CLONE_NEWNET);
    close(own);
    return fd;
}

/* Bound to the address of that end. */
static int open_udp(unsigned side, int family)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
    int fd = open_socket(side, family), bytes = 8 << 20, tos = ECT, yes = 1;
    inet_pton(AF_INET, path_ipv4[side], &in.sin_addr);
    inet_pton(AF_INET6, path_ipv6[side], &in6.sin6_addr);
    assert_int_equal(family == AF_INET ? bind(fd, (struct sockaddr *)&in, sizeof in)
                                       : bind(fd, (struct sockaddr *)&in6, sizeof in6),
                     0);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    if (family == AF_INET) {
        setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
        setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &yes, sizeof yes);
    }
    return fd;
}

/* A pair of sockets, left and right, each connected to the other. */
static void open_pair(int fd[PATH_ENDS], int family)
{
    struct sockaddr_storage address;
    for (unsigned side = 0; side < PATH_ENDS; side++)
        fd[side] = open_udp(side, family);
    for (unsigned side = 0; side < PATH_ENDS; side++) {
        socklen_t bytes = sizeof address;
        assert_int_equal(getsockname(fd[PATH_ENDS - 1 - side], (struct sockaddr *)&address, &bytes), 0);
        assert_int_equal(connect(fd[side], (struct sockaddr *)&address, bytes), 0);
    }
}

static void close_pair(const int fd[PATH_ENDS])
{
    close(fd[PATH_LEFT]);
    close(fd[PATH_RIGHT]);
}

/* Sends packets of that many bytes, IPv4 header included. */
static void send_burst(int fd, unsigned packets, size_t ip_bytes)
{
    static const uint8_t data[MTU];
    for (unsigned i = 0; i < packets; i++)
        assert_int_equal(send(fd, data, ip_bytes - UDP_HEADERS, 0), ip_bytes - UDP_HEADERS);
}

/* Moves packets until so many from the left have met their fate. */
static void run_until_seen(struct path *path, uint64_t packets)
{
    const struct path_direction *direction = &path->direction[PATH_LEFT];
    while (direction->line.counts.packets + direction->filtered_packets < packets)
        path_run(path, path_now() + MS, &never);
}

/* And until none of them is on its way. */
static void run_until_empty(struct path *path, uint64_t packets)
{
    run_until_seen(path, packets);
    while (path_ring_first(&path->direction[PATH_LEFT].ring[PATH_NEAR]))
        path_run(path, path_now() + MS, &never);
}

/* The ECN bits of each packet that has arrived; how many there are. */
static unsigned receive_all(int fd, uint8_t *ecn, unsigned max)
{
    uint8_t data[MTU], control[64];
    for (unsigned i = 0; i < max; i++) {
        struct iovec vector = {data, sizeof data};
        struct msghdr message = {
            .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        if (recvmsg(fd, &message, 0) < 0)
            return i;
        const struct cmsghdr *tos = CMSG_FIRSTHDR(&message);
        ecn[i] = tos ? *CMSG_DATA(tos) & 3 : 0xFF;
    }
    return max;
}

static void packets_cross_no_sooner_than_the_delay(void **state)
{
    (void)state;
    const int families[] = {AF_INET, AF_INET6};
    struct path_direction_config config = plain();
    config.line.delay_ns = 30 * MS;
    for (unsigned i = 0; i < 1u + ends[PATH_LEFT].with_ipv6; i++) {
        for (unsigned side = 0; side < PATH_ENDS; side++) {
            int fd[PATH_ENDS];
            char data[8];
            struct path path;
            open_both(&path, config);
            open_pair(fd, families[i]);
            int64_t sent_ns = path_now();
            assert_int_equal(send(fd[side], "hello", 5, 0), 5);
            while (recv(fd[PATH_ENDS - 1 - side], data, sizeof data, 0) != 5)
                path_run(&path, path_now() + MS, &never);
            assert_true(path_now() - sent_ns >= 30 * MS);
            assert_memory_equal(data, "hello", 5);
            assert_int_equal(path.direction[side].line.counts.delivered_packets, 1);
            assert_int_equal(path.direction[PATH_ENDS - 1 - side].line.counts.packets, 0);
            close_pair(fd);
            path_close(&path);
        }
    }
}

static void a_burst_leaves_at_the_rate(void **state)
{
    (void)state;
    enum { PACKETS = 100, BYTES = 1000 };
    int fd[PATH_ENDS];
    uint8_t ecn[PACKETS + 1];
    struct path path;
    struct path_direction_config config = plain();
    config.line.rate_bps = 8000000; /* a packet a millisecond */
    open_both(&path, config);
    open_pair(fd, AF_INET);
    int64_t sent_ns = path_now();
    send_burst(fd[PATH_LEFT], PACKETS, BYTES);
    run_until_empty(&path, PACKETS);
    assert_true(path_now() - sent_ns >= PACKETS * MS);
    assert_int_equal(receive_all(fd[PATH_RIGHT], ecn, PACKETS + 1), PACKETS);
    assert_int_equal(path.direction[PATH_LEFT].line.counts.delivered_bytes, PACKETS * BYTES);
    assert_int_equal(path.direction[PATH_LEFT].late.count, PACKETS);
    close_pair(fd);
    path_close(&path);
}

static void what_the_queue_does_not_hold_is_dropped(void **state)
{
    (void)state;
    int fd[PATH_ENDS];
    struct path path;
    struct path_direction_config config = plain();
    config.line.rate_bps = 800; /* ten seconds for a packet: none leaves meanwhile */
    config.line.queue_bytes = 5500;
    open_both(&path, config);
    open_pair(fd, AF_INET);
    send_burst(fd[PATH_LEFT], 20, 1000);
    run_until_seen(&path, 20);
    const struct path_line_counts *counts = &path.direction[PATH_LEFT].line.counts;
    assert_int_equal(counts->packets, 20);
    assert_int_equal(counts->delivered_packets, 5);
    assert_int_equal(counts->queue_dropped_packets, 15);
    assert_int_equal(counts->queue_dropped_bytes, 15000);
    assert_in_range(counts->queue_peak_bytes, 4990, 5000);
    close_pair(fd);
    path_close(&path);
}

static void losses_are_those_of_the_seed(void **state)
{
    (void)state;
    enum { PACKETS = 2000 };
    int fd[PATH_ENDS];
    unsigned received = 0;
    uint8_t ecn[PACKETS];
    struct path path;
    struct path_line alike;
    struct path_direction_config config = plain();
    config.line.loss = 0.1;
    path_line_init(&alike, &config.line);
    for (unsigned i = 0; i < PACKETS; i++)
        path_line_arrival(&alike, 0, 100, false);
    open_both(&path, config);
    open_pair(fd, AF_INET);
    for (unsigned i = 1; i <= PACKETS / 100; i++) {
        send_burst(fd[PATH_LEFT], 100, 100);
        run_until_empty(&path, 100 * i);
        received += receive_all(fd[PATH_RIGHT], ecn, PACKETS);
    }
    assert_int_equal(path.direction[PATH_LEFT].line.counts.lost_packets, alike.counts.lost_packets);
    assert_int_equal(received, PACKETS - alike.counts.lost_packets);
    close_pair(fd);
    path_close(&path);
}

/* The rate is so low that the n-th packet of a burst finds all before it; then they may leave. */
static void marks_reach_the_receiver_or_are_removed(void **state)
{
    (void)state;
    enum { PACKETS = 10 };
    for (int cleared = 0; cleared < 2; cleared++) {
        int fd[PATH_ENDS];
        uint8_t ecn[PACKETS];
        struct path path;
        struct path_direction_config config = plain();
        config.line.rate_bps = 800; /* a second for a packet */
        config.rate_max_bps = 8000000;
        config.line.mark_bytes = 450;
        config.clear_ecn = cleared;
        open_both(&path, config);
        open_pair(fd, AF_INET);
        send_burst(fd[PATH_LEFT], PACKETS, 100);
        run_until_seen(&path, PACKETS);
        path_set_rate(&path, PATH_LEFT, 8000000);
        run_until_empty(&path, PACKETS);
        assert_int_equal(receive_all(fd[PATH_RIGHT], ecn, PACKETS), PACKETS);
        unsigned marked = 0;
        for (unsigned i = 0; i < PACKETS; i++) {
            assert_true(cleared ? ecn[i] == 0 : ecn[i] == ECT || ecn[i] == PATH_ECN_CONGESTION);
            marked += ecn[i] == PATH_ECN_CONGESTION;
        }
        assert_int_equal(marked, cleared ? 0 : 5);
        assert_int_equal(marked, path.direction[PATH_LEFT].line.counts.marked_packets);
        close_pair(fd);
        path_close(&path);
    }
}

static void black_holes_swallow_what_they_should(void **state)
{
    (void)state;
    int fd[PATH_ENDS];
    uint8_t ecn[8];
    struct path path;
    struct path_direction_config config = plain();
    config.filter = (struct path_filter){.udp = true, .but_port = PORT, .above_bytes = 1400};
    open_both(&path, config);
    open_pair(fd, AF_INET);
    send_burst(fd[PATH_LEFT], 2, 1400);
    send_burst(fd[PATH_LEFT], 3, 1401);
    run_until_empty(&path, 5);
    assert_int_equal(receive_all(fd[PATH_RIGHT], ecn, 8), 2);
    assert_int_equal(path.direction[PATH_LEFT].filtered_packets, 3);
    path.direction[PATH_LEFT].config.filter.but_port = PORT + 1;
    send_burst(fd[PATH_LEFT], 4, 1000);
    run_until_empty(&path, 9);
    assert_int_equal(receive_all(fd[PATH_RIGHT], ecn, 8), 0);
    assert_int_equal(path.direction[PATH_LEFT].filtered_packets, 7);
    close_pair(fd);
    path_close(&path);
}

/* Both wait for packets that the parent moves; their own address is that of the right end. */
static pid_t start_tcp(unsigned side, int ready[2])
{
    pid_t process = fork();
    if (process)
        return process;
    int64_t took_ns;
    char byte = 0;
    setns(ends[side].network, CLONE_NEWNET);
    if (side == PATH_RIGHT) {
        int listener = path_tcp_listen(path_ipv4[PATH_RIGHT], PORT);
        if (write(ready[1], &byte, 1) != 1)
            _exit(3);
        _exit(listener >= 0 && path_tcp_answer(accept(listener, NULL, NULL), NULL, 0) ? 0 : 1);
    }
    if (read(ready[0], &byte, 1) != 1)
        _exit(3);
    int fd = path_tcp_connect(path_ipv4[PATH_RIGHT], PORT, NULL, NULL);
    for (unsigned i = 0; i < 10; i++) {
        if (fd < 0 || !path_tcp_send(fd, NULL, 1 << 20, &took_ns))
            _exit(2);
    }
    _exit(0);
}

/* With its large segments cut before the path sees them. */
static void tcp_crosses_in_single_packets(void **state)
{
    (void)state;
    int ready[2], status, left = 0;
    struct path path;
    struct path_direction_config config = plain();
    config.line.rate_bps = 500000000;
    config.line.loss = 0.001;
    config.line.queue_bytes = 1 << 20;
    open_both(&path, config);
    assert_int_equal(pipe(ready), 0);
    pid_t server = start_tcp(PATH_RIGHT, ready), client = start_tcp(PATH_LEFT, ready);
    while (!left) {
        path_run(&path, path_now() + 5 * MS, &never);
        left = waitpid(client, &status, WNOHANG) == client;
    }
    assert_int_equal(status, 0);
    path_run(&path, path_now() + 50 * MS, &never);
    kill(server, SIGKILL);
    waitpid(server, &status, 0);
    const struct path_line_counts *counts = &path.direction[PATH_LEFT].line.counts;
    assert_true(counts->delivered_bytes > 10 << 20);
    assert_true(counts->packets >= counts->bytes / MTU);
    assert_int_equal(counts->delivered_packets + counts->lost_packets + counts->queue_dropped_packets,
                     counts->packets);
    close(ready[0]);
    close(ready[1]);
    path_close(&path);
}

/* Of two flows one has a longer delay; each is counted. */
static void far_flows_take_longer(void **state)
{
    (void)state;
    static struct path_flows flows;
    int fd[PATH_ENDS], far;
    struct path path;
    char data[8] = "";
    struct sockaddr_in source = {.sin_family = AF_INET},
                       right = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct path_direction_config config = plain();
    config.far_ns = 20 * MS;
    assert_true(path_end_add_host(&ends[PATH_LEFT], PATH_FLOW_FAR_FIRST));
    open_both(&path, config);
    open_pair(fd, AF_INET);
    far = open_socket(PATH_LEFT, AF_INET);
    inet_pton(AF_INET, "10.99.0.131", &source.sin_addr);
    inet_pton(AF_INET, path_ipv4[PATH_RIGHT], &right.sin_addr);
    assert_int_equal(bind(far, (struct sockaddr *)&source, sizeof source), 0);
    flows.started_ns = path_now();
    path.direction[PATH_LEFT].flows = &flows;
    /* Any sender may write to the right end's socket. */
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    assert_int_equal(connect(fd[PATH_RIGHT], &none, sizeof none), 0);
    int64_t sent_ns = path_now();
    assert_int_equal(sendto(far, "far", 3, 0, (struct sockaddr *)&right, sizeof right), 3);
    assert_int_equal(send(fd[PATH_LEFT], "near!", 5, 0), 5);
    while (recv(fd[PATH_RIGHT], data, sizeof data, 0) != 3)
        path_run(&path, path_now() + MS, &never);
    assert_true(path_now() - sent_ns >= 20 * MS);
    uint64_t near_bytes = 0, far_bytes = 0;
    for (unsigned i = 0; i < flows.intervals; i++) {
        near_bytes += flows.bytes[i][1];
        far_bytes += flows.bytes[i][131];
    }
    assert_int_equal(near_bytes, UDP_HEADERS + 5);
    assert_int_equal(far_bytes, UDP_HEADERS + 3);
    close(far);
    close_pair(fd);
    path_close(&path);
}

int main(void)
{
    char reason[256];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_cross_no_sooner_than_the_delay),
        cmocka_unit_test(a_burst_leaves_at_the_rate),
        cmocka_unit_test(what_the_queue_does_not_hold_is_dropped),
        cmocka_unit_test(losses_are_those_of_the_seed),
        cmocka_unit_test(marks_reach_the_receiver_or_are_removed),
        cmocka_unit_test(black_holes_swallow_what_they_should),
        cmocka_unit_test(tcp_crosses_in_single_packets),
        cmocka_unit_test(far_flows_take_longer),
    };
    if (!path_ends_open(ends, MTU, reason, sizeof reason)) {
        printf("skipped: %s\n", reason);
        return EXIT_SKIP;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    path_ends_close(ends);
    return failed;
}
