/*
 * test_peer_address.c - a blob names the address of a host that knows nothing of it, and which is played
 * here: what reaches it, before and after it answers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fabric/udp/udp_address.h"
#include "wire/control_messages.h"
#include "wire/qp_info.h"
#include "wire/roce_packet.h"

#define BLOB_HEADER 8u
#define TOKEN       0x7E57u
#define CHALLENGES  19u /* in the first 10 s */
#define PING_BYTES  (ROCE_SEND_HEADER_BYTES + CONTROL_HEADER_BYTES + ROCE_ICRC_BYTES)

struct host {
    int fd;
    union udp_address address;
};

struct seen {
    uint32_t of[CONTROL_CLOSE + 1]; /* by type */
    uint32_t all;
    uint32_t longest;
    struct control_header last;
};

static struct lh_connection *connection;
static struct qp_info own; /* of the connection under test */
static struct host third;

static void must(int code, const char *what)
{
    if (code != 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

static struct host open_host(const char *address)
{
    struct host host = {.fd = socket(AF_INET, SOCK_DGRAM, 0)};
    assert_true(host.fd >= 0);
    assert_int_equal(udp_address_parse(address, &host.address), 0);
    assert_int_equal(bind(host.fd, &host.address.any, udp_address_size(&host.address)), 0);
    socklen_t size = sizeof host.address;
    assert_int_equal(getsockname(host.fd, &host.address.any, &size), 0);
    return host;
}

/* Its own blob, but for where the peer is. */
static void attach_to(struct lh_connection *from, const struct host *there)
{
    uint8_t blob[LH_BLOB_MAX];
    size_t bytes = sizeof blob;
    must(lh_blob(from, blob, &bytes), "lh_blob");
    must(qp_info_decode(blob + BLOB_HEADER, bytes - BLOB_HEADER, &own), "qp_info_decode");
    struct qp_info peer = own;
    peer.token = TOKEN;
    udp_address_bytes(&there->address, peer.endpoint.address);
    peer.endpoint.control_port = udp_address_port(&there->address);
    for (uint32_t c = 0; c < peer.endpoint.channels; c++)
        peer.endpoint.channel_port[c] = udp_address_port(&there->address);
    bytes = BLOB_HEADER + qp_info_encode(&peer, blob + BLOB_HEADER);
    must(lh_attach(from, blob, bytes), "lh_attach");
}

/* What comes within that time. */
static void watch(struct seen *seen, int ms)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int left = ms; left > 0;) {
        struct pollfd fd = {.fd = third.fd, .events = POLLIN};
        if (poll(&fd, 1, left) > 0) {
            uint8_t data[2048];
            struct roce_packet packet;
            struct control_message message;
            ssize_t got = recv(third.fd, data, sizeof data, 0);
            assert_true(got > 0);
            assert_int_equal(roce_decode(data, (size_t)got, &packet), ROCE_OK);
            assert_int_equal(packet.opcode, ROCE_UC_SEND_ONLY);
            assert_int_equal(control_decode(packet.payload, packet.payload_bytes, &message), 0);
            seen->of[message.header.type]++;
            seen->all++;
            seen->longest = (uint32_t)got > seen->longest ? (uint32_t)got : seen->longest;
            seen->last = message.header;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        left = ms - (int)((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000);
    }
}

/* Waits for at least one of a type. */
static void await(struct seen *seen, enum control_type type)
{
    for (uint32_t before = seen->of[type]; seen->of[type] == before;) /* the test's time limit ends it */
        watch(seen, 20);
}

static void answer(enum control_type type, uint64_t sent_ns, uint64_t echo_ns)
{
    struct control_message message = {
        .header = {.type = type, .token = own.token, .sent_ns = sent_ns, .echo_ns = echo_ns}};
    uint8_t data[ROCE_SEND_HEADER_BYTES + CONTROL_MESSAGE_MAX + ROCE_ICRC_BYTES];
    struct roce_packet packet = {.opcode = ROCE_UC_SEND_ONLY, .dest_qpn = own.endpoint.control_qpn};
    uint32_t bytes = (uint32_t)control_encode(&message, data + ROCE_SEND_HEADER_BYTES);
    packet.payload_bytes = bytes;
    roce_encode_header(&packet, data);
    bytes += ROCE_SEND_HEADER_BYTES;
    struct icrc_flow flow = {.ipv4 = true,
                             .source_port = udp_address_port(&third.address),
                             .destination_port = own.endpoint.control_port};
    udp_address_bytes(&third.address, flow.source);
    memcpy(flow.destination, own.endpoint.address, 16);
    icrc_store(icrc_add_header(icrc_begin(&flow, bytes + ROCE_ICRC_BYTES, 0, true), data, bytes),
               data + bytes);
    union udp_address to =
        udp_address_make(4, own.endpoint.address, own.endpoint.control_port, &third.address);
    /* An unconnected socket that probes numbers its packets 0, as the iCRC says. */
    int probe = IP_PMTUDISC_PROBE;
    setsockopt(third.fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe);
    assert_true(sendto(third.fd, data, bytes + ROCE_ICRC_BYTES, 0, &to.any, udp_address_size(&to)) > 0);
}

/* Connects to the third host, and has a lot to say. */
static void set_out(struct lh_request *requests[2])
{
    static uint8_t buffer[1 << 20], data[1 << 20];
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.device = "udp:127.0.0.1";
    must(lh_open(&attr, &connection), "lh_open");
    third = open_host("127.0.0.5");
    attach_to(connection, &third);
    must(lh_recv(connection, buffer, sizeof buffer, NULL, &requests[0]), "lh_recv");
    must(lh_send(connection, data, sizeof data, NULL, &requests[1]), "lh_send");
}

static void clean_up(struct lh_request *requests[2])
{
    lh_close(connection);
    lh_request_free(requests[0]);
    lh_request_free(requests[1]);
}

/* A few pings, small and ever rarer; not a byte of anything else, nor a goodbye. */
static void test_a_third_host_is_left_alone(void **state)
{
    (void)state;
    struct lh_request *requests[2];
    struct seen seen = {0};
    struct lh_path_view path;
    set_out(requests);
    while (seen.all < 6) /* the test's time limit ends what hangs */
        watch(&seen, 20);
    watch(&seen, 300);
    /* Who knows the token, and the time, still cannot echo what he did not get. */
    answer(CONTROL_PONG, 1, 1);
    answer(CONTROL_PONG, 2, seen.last.sent_ns - 1);
    answer(CONTROL_PONG, 3, seen.last.sent_ns + 1);
    watch(&seen, 100);
    assert_int_equal(lh_connection_path(connection, &path), 0);
    assert_int_equal(path.rtt_ns, 0);
    clean_up(requests);
    watch(&seen, 100);
    assert_int_equal(seen.of[CONTROL_PING], seen.all);
    assert_in_range(seen.all, 6, CHALLENGES);
    assert_int_equal(seen.longest, PING_BYTES);
    close(third.fd);
}

/* One answer for each ping that comes from there, no larger; and when a stamp is echoed, all the rest. */
static void test_an_echo_is_the_proof(void **state)
{
    (void)state;
    struct lh_request *requests[2];
    struct seen seen = {0};
    struct lh_path_view path;
    set_out(requests);
    await(&seen, CONTROL_PING);
    for (uint64_t i = 1; i <= 3; i++) {
        answer(CONTROL_PING, i, 0);
        await(&seen, CONTROL_PONG);
        assert_int_equal(seen.last.echo_ns, i);
    }
    watch(&seen, 50);
    assert_int_equal(seen.of[CONTROL_PONG], 3);
    assert_int_equal(seen.of[CONTROL_PING] + 3, seen.all);
    assert_int_equal(seen.longest, PING_BYTES);
    answer(CONTROL_PONG, 9, seen.last.sent_ns);
    await(&seen, CONTROL_CTS);
    assert_int_equal(lh_connection_path(connection, &path), 0);
    assert_true(path.rtt_ns > 0);
    clean_up(requests);
    close(third.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_third_host_is_left_alone),
        cmocka_unit_test(test_an_echo_is_the_proof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
