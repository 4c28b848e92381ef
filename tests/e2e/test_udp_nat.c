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

#include "device/device_registry.h"
#include "fabric/udp/udp_state.h"
#include "message/connection_state.h"
#include "sdr/qp.h"
#include "support/udp_pair.h"
#include "wire/control_messages.h"
#include "wire/roce_packet.h"

#define INSIDE   0x7F000001u
#define OUTSIDE  0x7F090909u
#define CHANNELS 2u
#define PROOF    0x12345678u

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
    peer.proof = PROOF;
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
static int receive_control(struct udp_side *side, bool proven)
{
    struct fabric_control_arrival arrivals[4];
    int count = side->fabric->ops->control_poll(side->endpoint, arrivals, 4);
    for (int i = 0; proven && i < count; i++)
        side->fabric->ops->control_proven(side->endpoint, &arrivals[i]);
    return count;
}

/* Anybody at that host, who has seen the peer's packets: the right numbers, iCRC and all. */
static void send_as_stranger(in_addr_t host, const struct qp_info_endpoint *from,
                             const struct qp_info_endpoint *to, const struct roce_packet *packet,
                             uint16_t from_port, uint16_t to_port)
{
    uint8_t bytes[256];
    struct sockaddr_in source = {.sin_family = AF_INET,
                                 .sin_port = htons(host == INSIDE ? from_port : 0),
                                 .sin_addr.s_addr = htonl(host)};
    struct sockaddr_in target = {.sin_family = AF_INET, .sin_port = htons(to_port)};
    struct icrc_flow flow = {.ipv4 = true, .source_port = from_port, .destination_port = to_port};
    memcpy(flow.source, from->address, sizeof flow.source);
    memcpy(flow.destination, to->address, sizeof flow.destination);
    memcpy(&target.sin_addr, to->address, sizeof target.sin_addr);
    size_t header = roce_encode_header(packet, bytes), covered = header + packet->payload_bytes;
    assert_int_equal(packet->payload_bytes % 4, 0);
    if (packet->payload_bytes > 0)
        memcpy(bytes + header, packet->payload, packet->payload_bytes);
    uint32_t state = icrc_begin(&flow, (uint32_t)covered + ROCE_ICRC_BYTES, 0, true);
    icrc_store(icrc_add_header(state, bytes, covered), bytes + covered);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(syscall(SYS_bind, fd, &source, sizeof source), 0);
    assert_int_equal(
        sendto(fd, bytes, covered + ROCE_ICRC_BYTES, 0, (struct sockaddr *)&target, sizeof target),
        covered + ROCE_ICRC_BYTES);
    close(fd);
}

static void stranger_speaks(const struct qp_info_endpoint *from, const struct qp_info_endpoint *to,
                            const uint8_t *data, uint32_t bytes)
{
    const struct roce_packet packet = {
        .opcode = ROCE_UC_SEND_ONLY, .dest_qpn = to->control_qpn, .payload = data, .payload_bytes = bytes};
    send_as_stranger(OUTSIDE, from, to, &packet, from->control_port, to->control_port);
}

static void test_control_goes_where_it_came_from(void **state)
{
    (void)state;
    struct udp_pair pair;
    open_pair(&pair, true);
    send_control(&pair.sender, "to where nobody is");
    assert_int_equal(receive_control(&pair.receiver, true), 0);
    send_control(&pair.receiver, "here I am");
    assert_int_equal(receive_control(&pair.sender, true), 1);
    send_control(&pair.sender, "an answer");
    assert_int_equal(receive_control(&pair.receiver, true), 1);
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
    assert_int_equal(receive_control(&pair.sender, true), 0);
    send_control(&pair.sender, "nobody");
    assert_int_equal(receive_control(&pair.receiver, true), 0);
    assert_int_equal(pair.sender.stats.bad_icrc, 1);
    udp_pair_close(&pair);
}

/* What is not proven to be the peer's moves nothing. */
static void test_a_stranger_gets_no_control(void **state)
{
    (void)state;
    struct udp_pair pair;
    open_pair(&pair, true);
    send_control(&pair.receiver, "here I am");
    assert_int_equal(receive_control(&pair.sender, true), 1);
    stranger_speaks(&pair.receiver.info, &pair.sender.info, (const uint8_t *)"not it.", 8);
    assert_int_equal(receive_control(&pair.sender, false), 1);
    send_control(&pair.sender, "to the peer");
    assert_int_equal(receive_control(&pair.receiver, true), 1);
    udp_pair_assert_no_bad(&pair);
    udp_pair_close(&pair);
}

/* Nothing but punches, and what is no data. */
static void poll_data(struct udp_side *side)
{
    struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
    for (uint32_t c = 0; c < CHANNELS; c++)
        assert_int_equal(side->fabric->ops->poll(side->endpoint, c, arrivals, FABRIC_BATCH_MAX), 0);
}

/* All 32 packets of it, and they arrive. */
static void deliver_whole(struct udp_pair *pair, struct udp_message *message)
{
    uint32_t packets[32];
    for (uint32_t i = 0; i < 32; i++)
        packets[i] = i;
    udp_pair_deliver(pair, message, packets, 32);
    udp_message_assert_whole(message);
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
    receiver->fabric->ops->punch(receiver->endpoint, PROOF);
    send_control(receiver, "and punches");
    poll_data(sender);
    deliver_whole(&pair, message);
    udp_pair_assert_no_bad(&pair);
    udp_pair_close(&pair);
}

/* Punches without the proof, and data without the key of a receive, move nothing either. */
static void test_a_stranger_gets_no_data(void **state)
{
    (void)state;
    struct udp_pair pair;
    open_pair(&pair, true);
    struct udp_side *receiver = &pair.receiver, *sender = &pair.sender;
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 32 * 4096);
    receiver->fabric->ops->punch(receiver->endpoint, PROOF);
    send_control(receiver, "and punches");
    poll_data(sender);
    struct roce_packet packet = {.opcode = ROCE_UC_WRITE_ONLY_IMM};
    for (uint32_t c = 0; c < CHANNELS; c++) {
        packet.dest_qpn = sender->info.qpn[0][c];
        for (uint32_t forged = 0; forged < 3; forged++) {
            packet.immediate = forged == 1 ? PROOF + 1 : 0;
            packet.rkey = forged == 2;
            send_as_stranger(OUTSIDE, &receiver->info, &sender->info, &packet,
                             receiver->info.channel_port[c], sender->info.channel_port[c]);
        }
    }
    poll_data(sender);
    assert_int_equal(sender->stats.rx_late_packets,
                     3 * CHANNELS); /* they were read: nothing is bound here */
    deliver_whole(&pair, message);
    udp_pair_close(&pair);
}

/* The peer's punch, resent by the host that it says it is: data stay with the one that control was proven to
 * come from. */
static void test_data_stay_with_the_proven_host(void **state)
{
    (void)state;
    struct udp_pair pair;
    open_pair(&pair, true);
    struct udp_side *receiver = &pair.receiver, *sender = &pair.sender;
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 32 * 4096);
    receiver->fabric->ops->punch(receiver->endpoint, PROOF);
    send_control(receiver, "and punches");
    assert_int_equal(receive_control(sender, true), 1);
    poll_data(sender);
    for (uint32_t c = 0; c < CHANNELS; c++) {
        const struct roce_packet punch = {
            .opcode = ROCE_UC_WRITE_ONLY_IMM, .dest_qpn = sender->info.qpn[0][c], .immediate = PROOF};
        send_as_stranger(INSIDE, &receiver->info, &sender->info, &punch, receiver->info.channel_port[c],
                         sender->info.channel_port[c]);
    }
    poll_data(sender);
    deliver_whole(&pair, message);
    udp_pair_close(&pair);
}

/* The address that a peer gives as its own may be anybody's: once it is elsewhere, nothing is sent there. */
static void test_no_data_to_an_address_that_is_only_told(void **state)
{
    (void)state;
    struct udp_pair pair;
    open_pair(&pair, true);
    struct sockaddr_in told = {.sin_family = AF_INET,
                               .sin_port = htons(pair.receiver.info.channel_port[0]),
                               .sin_addr.s_addr = htonl(INSIDE)};
    int bystander = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(syscall(SYS_bind, bystander, &told, sizeof told), 0);
    send_control(&pair.receiver, "here I am");
    assert_int_equal(receive_control(&pair.sender, true), 1);
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 32 * 4096);
    struct fabric_write write = udp_pair_write(&pair, message, 0);
    udp_pair_send(&pair, &write, 1);
    char byte;
    assert_int_equal(recv(bystander, &byte, 1, MSG_DONTWAIT), -1);
    close(bystander);
    udp_pair_close(&pair);
}

/* What is remembered of a path is known by where the peer was seen. */
static void test_paths_are_of_hosts_that_were_seen(void **state)
{
    (void)state;
    struct lh_connection *ends[2];
    struct lh_attr attr;
    uint8_t blob[LH_BLOB_MAX];
    size_t bytes = sizeof blob;
    lh_attr_init(&attr);
    attr.workers = LH_NO_WORKERS;
    attr.path_file = "/dev/null";
    for (uint32_t i = 0; i < 2; i++) {
        attr.device = i == 0 ? "udp:127.0.0.2" : "udp:127.0.0.3";
        if (lh_open(&attr, &ends[i]) != 0)
            fail_msg("%s", lh_last_error());
    }
    assert_int_equal(lh_blob(ends[1], blob, &bytes), 0);
    connection_peer_seen_at(ends[0], 4, (const uint8_t[16]){127, 9, 9, 9});
    assert_int_equal(lh_attach(ends[0], blob, bytes), 0);
    assert_string_equal(ends[0]->path_memory->record.peer, "127.9.9.9");
    for (uint32_t i = 0; i < 2; i++)
        lh_close(ends[i]);
}

static struct lh_connection *open_end(const char *device)
{
    struct lh_connection *end;
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.workers = LH_NO_WORKERS;
    attr.device = device;
    if (lh_open(&attr, &end) != 0)
        fail_msg("%s", lh_last_error());
    return end;
}

static void turn(struct lh_connection *const ends[2])
{
    lh_time next;
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(lh_progress(ends[i], &next), 0);
}

/* A control message is the peer's when it has the token; until then it moves nothing. */
static void test_the_token_is_the_proof(void **state)
{
    (void)state;
    struct lh_connection *ends[2] = {open_end("udp:127.0.0.2"), open_end("udp:127.0.0.1")};
    uint8_t blob[LH_BLOB_MAX], control[CONTROL_MESSAGE_MAX];
    connection_peer_seen_at(ends[0], 4, (const uint8_t[16]){127, 9, 9, 9});
    for (uint32_t i = 0; i < 2; i++) {
        size_t bytes = sizeof blob;
        assert_int_equal(lh_blob(ends[1 - i], blob, &bytes), 0);
        assert_int_equal(lh_attach(ends[i], blob, bytes), 0);
    }
    struct sdr_qp *qp = ends[0]->qp;
    struct udp_endpoint *endpoint = udp_endpoint_of(qp->endpoint);
    while (!atomic_load(&qp->proven)) /* or the test's time is over */
        turn(ends);
    uint16_t port = atomic_load(&endpoint->seen_port);
    assert_int_not_equal(port, 0);
    struct control_message ping = {.header = {.type = CONTROL_PING, .token = qp->token + 1, .sent_ns = 1}};
    struct qp_info_endpoint own, peer;
    qp->endpoint->fabric->ops->endpoint_info(qp->endpoint, &own);
    qp->endpoint->fabric->ops->endpoint_info(ends[1]->qp->endpoint, &peer);
    for (uint32_t forged = 0; forged < 2; forged++) { /* a foreign token, and no control message */
        uint32_t bytes = (uint32_t)control_encode(&ping, control);
        control[0] += (uint8_t)forged;
        stranger_speaks(&peer, &own, control, bytes);
        while (qp->stats.bad_token + qp->stats.bad_control <= forged)
            turn(ends);
        assert_int_equal(atomic_load(&endpoint->seen_port), port);
    }
    ping.header.token = qp->token; /* a peer whose NAT has changed */
    stranger_speaks(&peer, &own, control, (uint32_t)control_encode(&ping, control));
    while (atomic_load(&endpoint->seen_port) == port)
        lh_progress(ends[0], &(lh_time){0});
    for (uint32_t i = 0; i < 2; i++)
        lh_close(ends[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_control_goes_where_it_came_from),
        cmocka_unit_test(test_without_a_known_host),
        cmocka_unit_test(test_a_stranger_gets_no_control),
        cmocka_unit_test(test_data_follows_the_punch),
        cmocka_unit_test(test_a_stranger_gets_no_data),
        cmocka_unit_test(test_data_stay_with_the_proven_host),
        cmocka_unit_test(test_no_data_to_an_address_that_is_only_told),
        cmocka_unit_test(test_the_token_is_the_proof),
        cmocka_unit_test(test_paths_are_of_hosts_that_were_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
