/*
 * A peer behind NAT, as one fabric sees it: answers go to where the packets of each socket come from, once
 * they are the peer's. NAT is bind() of this file: the sockets of 127.0.0.1 are at 127.9.9.9, on ports that
 * their owner does not know, and the packets bear iCRCs of what it knows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "device/open.h"
#include "support/udp_pair.h"

#define INSIDE   0x7F000001u
#define OUTSIDE  0x7F090909u
#define CHANNELS 2u

/* Instead of the C library's bind(), whose declaration takes every kind of address. */
int bind_to(int fd, const struct sockaddr *address, socklen_t size) __asm__("bind");

int bind_to(int fd, const struct sockaddr *address, socklen_t size)
{
    struct sockaddr_in four;
    if (address->sa_family != AF_INET)
        return (int)syscall(SYS_bind, fd, address, size);
    memcpy(&four, address, sizeof four);
    if (ntohl(four.sin_addr.s_addr) == INSIDE) {
        four.sin_addr.s_addr = htonl(OUTSIDE);
        four.sin_port = 0;
    }
    return (int)syscall(SYS_bind, fd, &four, sizeof four);
}

static void open_side(struct udp_side *side, const char *device, const struct fabric_endpoint_attr *attr)
{
    struct fabric_endpoint_attr own = *attr;
    own.stats = &side->stats;
    if (fabric_open(device, 0, &side->fabric) != 0 ||
        side->fabric->ops->endpoint_create(side->fabric, &own, &side->endpoint) != 0)
        fail_msg("%s", lh_last_error());
    side->fabric->ops->endpoint_info(side->endpoint, &side->info);
}

/* The receiver is behind NAT; the sender knows at which host it is seen. */
static void open_pair(struct udp_pair *pair, bool translated)
{
    *pair = (struct udp_pair){.attr = udp_pair_attr(), .seed = 1};
    pair->attr.channels = CHANNELS;
    open_side(&pair->sender, "udp:127.0.0.2", &pair->attr);
    open_side(&pair->receiver, "udp:127.0.0.1", &pair->attr);
    struct qp_info_endpoint peer = pair->receiver.info;
    const struct in_addr seen = {htonl(OUTSIDE)};
    peer.translated = translated;
    memcpy(peer.seen_address, &seen, sizeof seen);
    struct udp_side *sender = &pair->sender, *receiver = &pair->receiver;
    assert_int_equal(sender->fabric->ops->endpoint_connect(sender->endpoint, &peer), 0);
    assert_int_equal(receiver->fabric->ops->endpoint_connect(receiver->endpoint, &sender->info), 0);
}

static void send_control(struct udp_side *side, const char *text)
{
    struct fabric_datagram datagram = {(const uint8_t *)text, (uint32_t)strlen(text), 0};
    assert_int_equal(side->fabric->ops->control_send(side->endpoint, &datagram, 1), 1);
}

/* How many there are now: what was sent on the loopback interface has arrived. */
static int receive_control(struct udp_side *side)
{
    struct fabric_control_arrival arrivals[4];
    return side->fabric->ops->control_poll(side->endpoint, arrivals, 4);
}

static void test_control_goes_where_it_came_from(void **state)
{
    (void)state;
    struct udp_pair pair;
    open_pair(&pair, true);
    send_control(&pair.sender, "to where nobody is");
    assert_int_equal(receive_control(&pair.receiver), 0);
    send_control(&pair.receiver, "here I am");
    assert_int_equal(receive_control(&pair.sender), 1);
    send_control(&pair.sender, "an answer");
    assert_int_equal(receive_control(&pair.receiver), 1);
    udp_pair_assert_no_bad(&pair);
    udp_pair_close(&pair);
}

/* Who was not expected elsewhere is not answered there. */
static void test_without_a_known_host(void **state)
{
    (void)state;
    struct udp_pair pair;
    open_pair(&pair, false);
    send_control(&pair.receiver, "here I am");
    assert_int_equal(receive_control(&pair.sender), 0);
    send_control(&pair.sender, "nobody");
    assert_int_equal(receive_control(&pair.receiver), 0);
    assert_int_equal(pair.sender.stats.bad_icrc, 1);
    udp_pair_close(&pair);
}

/* Each data socket has a port of its own out there; a punch shows it, and is no packet of data. */
static void test_data_follows_the_punch(void **state)
{
    (void)state;
    struct udp_pair pair;
    open_pair(&pair, true);
    struct udp_side *receiver = &pair.receiver, *sender = &pair.sender;
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 32 * 4096);
    struct fabric_write write = udp_pair_write(&pair, message, 0);
    udp_pair_send(&pair, &write, 1);
    udp_pair_settle(&pair);
    assert_int_equal(pair.arrivals, 0);
    receiver->fabric->ops->punch(receiver->endpoint);
    send_control(receiver, "and punches");
    struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
    for (uint32_t c = 0; c < CHANNELS; c++)
        assert_int_equal(sender->fabric->ops->poll(sender->endpoint, c, arrivals, FABRIC_BATCH_MAX), 0);
    uint32_t packets[32];
    for (uint32_t i = 0; i < 32; i++)
        packets[i] = i;
    udp_pair_deliver(&pair, message, packets, 32);
    udp_message_assert_whole(message);
    udp_pair_assert_no_bad(&pair);
    udp_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_control_goes_where_it_came_from),
        cmocka_unit_test(test_without_a_known_host),
        cmocka_unit_test(test_data_follows_the_punch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
