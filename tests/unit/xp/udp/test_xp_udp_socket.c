/*
 * test_xp_udp_socket.c - what an XP object does when its socket takes nothing, takes a part, or fails: the
 * kernel's calls are this file's, so that they answer as a test wants.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "unit/xp/udp/xp_udp_pair.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <longhaul/error.h>

#define PACKET 1000u
#define SENDS  5u
#define BATCH  64u
#define TURNS  16u

/* ---- the kernel --------------------------------------------------------------------------------------- */

/* Only for the socket `of`, -1: for none. */
static struct {
    int of;
    int error;      /* that calls fail with; 0: none */
    int rest;       /* that all calls after the next one that succeeds fail with; 0: none */
    unsigned most;  /* messages that a call takes at most */
    unsigned calls; /* so far */
    unsigned last;  /* messages that were given to the last of them */
} sending, receiving;

static struct lh_xp *endless; /* one datagram after another is there for it, each from itself */

int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    if (fd != sending.of)
        return (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
    sending.calls++;
    sending.last = count;
    if (sending.error) {
        errno = sending.error;
        return -1;
    }
    sending.error = sending.rest;
    unsigned taken = count < sending.most ? count : sending.most;
    return taken ? (int)syscall(SYS_sendmmsg, fd, messages, taken, flags) : 0;
}

static int receive_endlessly(struct mmsghdr *messages, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        memcpy(messages[i].msg_hdr.msg_name, &endless->local, sizeof endless->local);
        messages[i].msg_hdr.msg_controllen = 0;
        messages[i].msg_hdr.msg_flags = 0;
        messages[i].msg_len = 0;
    }
    return (int)count;
}

int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout)
{
    if (fd != receiving.of)
        return (int)syscall(SYS_recvmmsg, fd, messages, count, flags, timeout);
    receiving.calls++;
    if (receiving.error) {
        errno = receiving.error;
        return -1;
    }
    return receive_endlessly(messages, count);
}

/* ------------------------------------------------------------------------------------------------------ */

static struct lh_xp *xps[2];
static struct xp_udp_end senders[SENDS], receivers[SENDS];
static uint8_t source[SENDS * PACKET], target[SENDS * PACKET];

static int start(void **state)
{
    (void)state;
    struct lh_xp_attr attr = xp_udp_attr("::1");
    sending.of = receiving.of = -1;
    attr.mtu_bytes = PACKET;
    for (unsigned i = 0; i < 2; i++)
        xps[i] = xp_udp_create(&attr);
    for (unsigned i = 0; i < SENDS; i++) {
        struct xp_udp_end ends[2];
        xp_udp_join(xps[0], xps[1], ends);
        senders[i] = ends[0];
        receivers[i] = ends[1];
    }
    for (unsigned i = 0; i < sizeof source; i++)
        source[i] = (uint8_t)(i * 7 + i / 251);
    memset(target, 0, sizeof target);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    lh_xp_destroy(xps[0]);
    lh_xp_destroy(xps[1]);
    return 0;
}

static void block(const struct lh_xp *xp, int error)
{
    sending.of = lh_xp_fd(xp);
    sending.error = error;
    sending.rest = 0;
    sending.most = BATCH;
    sending.calls = 0;
}

/* A message of one packet on each queue pair: pacing holds none of them up. */
static void post_all(void)
{
    for (unsigned i = 0; i < SENDS; i++) {
        xp_udp_post(&receivers[i], (struct lh_xp_request){
                                       .verb = LH_XP_RECV, .buffer = target + i * PACKET, .bytes = PACKET});
        xp_udp_post(&senders[i],
                    (struct lh_xp_request){
                        .verb = LH_XP_SEND, .buffer = source + i * PACKET, .bytes = PACKET, .user = i});
    }
}

/* Takes what has come. */
static void receive_all(void)
{
    sending.of = -1;
    while (lh_xp_progress(xps[1]))
        ;
}

/* All that was sent came, but for those of the mask, and nothing else did. */
static void expect_lost(uint32_t mask)
{
    struct lh_xp_completion completions[SENDS + 1];
    unsigned lost = 0;
    receive_all();
    for (unsigned i = 0; i < SENDS; i++) {
        bool is_lost = mask >> i & 1;
        lost += is_lost;
        assert_int_equal(memcmp(target + i * PACKET, source + i * PACKET, PACKET) != 0, is_lost);
    }
    assert_int_equal(lh_xp_poll(xps[0], completions, SENDS + 1), SENDS);
    assert_int_equal(lh_xp_poll(xps[1], completions, SENDS + 1), SENDS - lost);
    struct lh_xp_counters counters = xp_udp_counters(xps[1]), wanted = {.rx_packets = SENDS - lost};
    assert_memory_equal(&counters, &wanted, sizeof wanted);
}

/* ---- out ---------------------------------------------------------------------------------------------- */

/* What waits stays, and its completions with it: its bytes are still to be read. */
static void test_a_socket_that_is_full(void **state)
{
    (void)state;
    static const int errors[] = {EAGAIN, ENOBUFS, EINTR};
    struct lh_xp_completion completion;
    post_all();
    for (unsigned i = 0; i < 3; i++) {
        block(xps[0], errors[i]);
        assert_int_equal(lh_xp_progress(xps[0]), 0);
        assert_int_equal(sending.calls, 1);
        assert_int_equal(sending.last, SENDS);
        assert_int_equal(xps[0]->outgoing, SENDS);
        assert_int_equal(lh_xp_poll(xps[0], &completion, 1), 0);
        assert_int_equal(lh_xp_wait_ns(xps[0]), 0);
    }
    block(xps[0], 0);
    assert_int_equal(lh_xp_progress(xps[0]), 1);
    assert_int_equal(sending.calls, 1);
    assert_true(lh_xp_wait_ns(xps[0]) > 0);
    expect_lost(0);
}

/* The rest follows, from where the socket stopped. */
static void test_a_socket_that_takes_a_part(void **state)
{
    (void)state;
    post_all();
    block(xps[0], 0);
    sending.most = 2;
    assert_int_equal(lh_xp_progress(xps[0]), 1);
    assert_int_equal(sending.calls, 3);
    assert_int_equal(sending.last, 1);
    expect_lost(0);
}

/* There is no way for a packet, or the kernel took none and says not why: that one is lost, and the next is
 * tried. */
static void test_packets_without_a_way(void **state)
{
    static const int errors[] = {EPERM, EMSGSIZE, ENETUNREACH, ECONNREFUSED, 0};
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++) {
        start(state);
        post_all();
        block(xps[0], errors[i]);
        sending.most = 0;
        assert_int_equal(lh_xp_progress(xps[0]), 1);
        assert_int_equal(sending.calls, SENDS);
        assert_int_equal(sending.last, 1);
        expect_lost((1 << SENDS) - 1);
        stop(state);
    }
}

static void test_a_socket_that_fails(void **state)
{
    (void)state;
    static const int errors[] = {EBADF, ENOTSOCK, EINVAL};
    post_all();
    for (unsigned i = 0; i < 3; i++) {
        block(xps[0], errors[i]);
        assert_int_equal(lh_xp_progress(xps[0]), -LH_ESYSTEM);
        assert_non_null(strstr(lh_last_error(), "cannot send packets"));
        assert_non_null(strstr(lh_last_error(), strerror(errors[i])));
    }
    block(xps[0], 0);
    assert_int_equal(lh_xp_progress(xps[0]), 1);
    expect_lost(0);
}

/* ---- in ----------------------------------------------------------------------------------------------- */

static void test_nothing_to_receive(void **state)
{
    (void)state;
    static const int errors[] = {EAGAIN, EINTR, ECONNREFUSED};
    for (unsigned i = 0; i < 3; i++) {
        receiving.of = lh_xp_fd(xps[0]);
        receiving.error = errors[i];
        receiving.calls = 0;
        assert_int_equal(lh_xp_progress(xps[0]), 0);
        assert_int_equal(receiving.calls, 1);
    }
}

static void test_a_receive_that_fails(void **state)
{
    (void)state;
    static const int errors[] = {EBADF, ENOMEM, ENOTSOCK};
    for (unsigned i = 0; i < 3; i++) {
        receiving.of = lh_xp_fd(xps[0]);
        receiving.error = errors[i];
        assert_int_equal(lh_xp_progress(xps[0]), -LH_ESYSTEM);
        assert_non_null(strstr(lh_last_error(), "cannot receive packets"));
        assert_non_null(strstr(lh_last_error(), strerror(errors[i])));
    }
}

/* A call ends, however much there is. */
static void test_a_flood(void **state)
{
    (void)state;
    endless = xps[0];
    receiving.of = lh_xp_fd(xps[0]);
    receiving.error = 0;
    receiving.calls = 0;
    assert_int_equal(lh_xp_progress(xps[0]), 1);
    assert_int_equal(receiving.calls, TURNS);
    assert_int_equal(xp_udp_counters(xps[0]).bad_packets, TURNS * BATCH);
}

/* ---- withdrawn ---------------------------------------------------------------------------------------- */

/* The other side answers a READ of each second packet of the source by its region, and has messages to send
 * beside that, into a socket that is full. */
static void answer_reads(uint32_t key)
{
    for (unsigned i = 0; i < SENDS; i++) {
        struct lh_xp_request request = {
            .verb = LH_XP_RECV, .buffer = target + i * PACKET, .bytes = PACKET, .key = key};
        if (i % 2) {
            request.verb = LH_XP_READ;
            request.remote = (i - 1) * PACKET;
        }
        xp_udp_post(&senders[i], request);
    }
    assert_int_equal(lh_xp_progress(xps[0]), 1);
    for (unsigned i = 0; i < SENDS; i += 2)
        xp_udp_post(&receivers[i], (struct lh_xp_request){
                                       .verb = LH_XP_SEND, .buffer = source + i * PACKET, .bytes = PACKET});
    block(xps[1], EAGAIN);
    assert_int_equal(lh_xp_progress(xps[1]), 1);
    assert_int_equal(xps[1]->outgoing, SENDS);
}

/* What lay in the region does not leave any more: the answers, and the third message. What lies right before
 * it or behind it does. */
static void test_withdraw(void **state)
{
    (void)state;
    uint32_t key;
    struct lh_xp_completion completions[SENDS];
    assert_int_equal(lh_xp_expose(xps[1], source + PACKET, 3 * PACKET, LH_XP_REMOTE_READ, &key), 0);
    answer_reads(key);
    assert_int_equal(lh_xp_withdraw(xps[1], key), 0);
    sending.of = -1;
    assert_int_equal(xps[1]->outgoing, 2);
    assert_int_equal(lh_xp_progress(xps[1]), 1);
    while (lh_xp_progress(xps[0]))
        ;
    assert_int_equal(lh_xp_poll(xps[0], completions, SENDS), 2);
    struct lh_xp_counters counters = xp_udp_counters(xps[0]), wanted = {.rx_packets = 2, .tx_packets = 2};
    assert_memory_equal(&counters, &wanted, sizeof wanted);
    for (unsigned i = 0; i < SENDS; i++)
        assert_int_equal(memcmp(target + i * PACKET, source + i * PACKET, PACKET) == 0, i % 4 == 0);
}

/* The kernel takes so many of what waits, and is full again. */
static void send_some(unsigned packets)
{
    block(xps[0], packets ? 0 : EAGAIN);
    sending.most = packets;
    sending.rest = EAGAIN;
    assert_int_equal(lh_xp_progress(xps[0]), packets > 0);
}

/* Of a batch the first has left already: only the rest is looked at, by its own buffers. */
static void test_withdraw_the_rest(void **state)
{
    static const unsigned taken_first[] = {0, 1};
    for (unsigned i = 0; i < 2; i++) {
        uint32_t key;
        start(state);
        post_all();
        block(xps[0], EAGAIN);
        assert_int_equal(lh_xp_progress(xps[0]), 0);
        send_some(taken_first[i]);
        assert_int_equal(lh_xp_expose(xps[0], source + 2 * PACKET, PACKET, LH_XP_REMOTE_READ, &key), 0);
        assert_int_equal(lh_xp_withdraw(xps[0], key), 0);
        assert_int_equal(xps[0]->outgoing, SENDS - 1 - taken_first[i]);
        sending.of = -1;
        assert_int_equal(lh_xp_progress(xps[0]), 1);
        expect_lost(1 << 2);
        stop(state);
    }
}

/* Its place is not given away while a packet for it waits: it would go to somebody else. */
static void test_a_peer_that_packets_wait_for(void **state)
{
    (void)state;
    struct lh_xp_attr attr = xp_udp_attr("::1");
    struct xp_udp_end ends[2];
    attr.peers = 1;
    struct lh_xp *xp = xp_udp_create(&attr);
    xp_udp_join(xp, xps[1], ends);
    xp_udp_post(&ends[1], (struct lh_xp_request){.verb = LH_XP_RECV, .buffer = target, .bytes = PACKET});
    xp_udp_post(&ends[0], (struct lh_xp_request){.verb = LH_XP_SEND, .buffer = source, .bytes = PACKET});
    block(xp, EAGAIN);
    assert_int_equal(lh_xp_progress(xp), 0);
    assert_int_equal(lh_xp_close(xp, ends[0].qpn), 0);
    struct xp_udp_end other = xp_udp_open(xp);
    assert_int_equal(xp_udp_connect(&other, &senders[0]), -LH_EAGAIN);
    block(xp, 0);
    assert_int_equal(lh_xp_progress(xp), 1);
    assert_int_equal(xp_udp_connect(&other, &senders[0]), 0);
    receive_all();
    assert_memory_equal(target, source, PACKET);
    lh_xp_destroy(xp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_socket_that_is_full, start, stop),
        cmocka_unit_test_setup_teardown(test_a_socket_that_takes_a_part, start, stop),
        cmocka_unit_test(test_packets_without_a_way),
        cmocka_unit_test_setup_teardown(test_a_socket_that_fails, start, stop),
        cmocka_unit_test_setup_teardown(test_nothing_to_receive, start, stop),
        cmocka_unit_test_setup_teardown(test_a_receive_that_fails, start, stop),
        cmocka_unit_test_setup_teardown(test_a_flood, start, stop),
        cmocka_unit_test_setup_teardown(test_withdraw, start, stop),
        cmocka_unit_test(test_withdraw_the_rest),
        cmocka_unit_test_setup_teardown(test_a_peer_that_packets_wait_for, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
