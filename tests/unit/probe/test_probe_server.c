/*
 * test_probe_server.c - a server against a client that the test plays packet by packet, on the loopback
 * interface: what it answers, what it counts, and which clients it does not serve. The last packets of a
 * round are sent before its END, so that nothing is waited for.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/probe.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "launch/tcp.h"
#include "probe/probe_messages.h"

/* Far beyond what any of these takes. */
#define PATIENCE_NS (60 * LH_NS_PER_S)
#define BYTES       100u /* of a packet of a flow */

struct bench {
    struct lh_probe_server *server;
    int result; /* of the server's call */
    char reason[256];
    pthread_t thread;
    int tcp, udp;
    uint64_t token;
};

static void *serve(void *argument)
{
    struct bench *bench = argument;
    bench->result = lh_probe_serve(bench->server, PATIENCE_NS);
    snprintf(bench->reason, sizeof bench->reason, "%s", lh_last_error());
    return NULL;
}

static void begin(struct bench *bench)
{
    char where[32];
    memset(bench, 0, sizeof *bench);
    bench->udp = -1;
    assert_int_equal(lh_probe_listen("127.0.0.1:0", &bench->server), 0);
    snprintf(where, sizeof where, "127.0.0.1:%u", lh_probe_server_port(bench->server));
    assert_int_equal(pthread_create(&bench->thread, NULL, serve, bench), 0);
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &bench->tcp), 0);
}

static void end(struct bench *bench, int result, const char *reason)
{
    shutdown(bench->tcp, SHUT_WR);
    pthread_join(bench->thread, NULL);
    assert_int_equal(bench->result, result);
    if (result != 0 && !strstr(bench->reason, reason))
        fail_msg("\"%s\" is not in: %s", reason, bench->reason);
    close(bench->tcp);
    if (bench->udp >= 0)
        close(bench->udp);
    lh_probe_server_close(bench->server);
}

static void say(const struct bench *bench, const struct probe_message *message)
{
    assert_int_equal(probe_message_write(bench->tcp, message, tcp_deadline(PATIENCE_NS)), 0);
}

static struct probe_message hear(const struct bench *bench, enum probe_message_type type)
{
    struct probe_message message;
    assert_int_equal(probe_message_read(bench->tcp, &message, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(message.type, type);
    return message;
}

static void send_hello(const struct bench *bench, const char *link)
{
    struct probe_message hello = {.type = PROBE_HELLO, .numbers = {LH_PROBE_TIME_MIN}};
    snprintf(hello.text, sizeof hello.text, "%s", link);
    say(bench, &hello);
}

static void greet(struct bench *bench)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    begin(bench);
    send_hello(bench, "");
    struct probe_message welcome = hear(bench, PROBE_WELCOME);
    bench->token = welcome.numbers[PROBE_WELCOME_TOKEN];
    to.sin_port = htons((uint16_t)welcome.numbers[PROBE_WELCOME_UDP_PORT]);
    bench->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(bench->udp, (struct sockaddr *)&to, sizeof to), 0);
}

static void send_packet(const struct bench *bench, struct probe_packet packet)
{
    uint8_t data[BYTES] = {0};
    assert_true(packet.bytes <= sizeof data);
    probe_packet_encode(&packet, data);
    assert_int_equal(send(bench->udp, data, packet.bytes, 0), packet.bytes);
}

static struct probe_packet receive_packet(const struct bench *bench)
{
    uint8_t data[BYTES];
    struct probe_packet packet;
    assert_int_equal(tcp_wait(bench->udp, false, tcp_deadline(PATIENCE_NS)), 0);
    ssize_t got = recv(bench->udp, data, sizeof data, 0);
    assert_int_equal(got, LH_PROBE_PAYLOAD_MIN);
    assert_true(probe_packet_decode(data, (size_t)got, &packet));
    return packet;
}

static void begin_round(const struct bench *bench, uint64_t round, uint64_t packets, uint64_t flows)
{
    say(bench, &(struct probe_message){.type = PROBE_BEGIN, .numbers = {round, packets, flows}});
    assert_int_equal(hear(bench, PROBE_READY).numbers[PROBE_READY_ROUND], round);
}

static void send_data(const struct bench *bench, uint32_t round, const uint32_t *numbers, uint32_t count,
                      uint32_t flows)
{
    for (uint32_t i = 0; i < count; i++)
        send_packet(bench, (struct probe_packet){.kind = PROBE_DATA,
                                                 .token = bench->token,
                                                 .round = round,
                                                 .number = numbers[i],
                                                 .flow = (uint16_t)(numbers[i] % flows),
                                                 .bytes = BYTES});
}

static struct probe_message end_round(const struct bench *bench, uint64_t round, uint64_t sent)
{
    say(bench, &(struct probe_message){.type = PROBE_END, .numbers = {round, sent, 0}});
    struct probe_message report = hear(bench, PROBE_REPORT);
    assert_int_equal(report.numbers[PROBE_REPORT_ROUND], round);
    return report;
}

/* ---- answers ----------------------------------------------------------------------------------------- */

/* To who has the token, and never more than what came. */
static void packets_are_answered(void **state)
{
    (void)state;
    struct bench bench;
    greet(&bench);
    struct probe_packet ping = {.kind = PROBE_PING,
                                .token = bench.token,
                                .round = 3,
                                .number = 5,
                                .sent_ns = 77,
                                .bytes = LH_PROBE_PAYLOAD_MIN};
    struct probe_packet foreign = ping, shorter = ping;
    foreign.token ^= 1;
    shorter.bytes--;
    send_packet(&bench, foreign);
    send_packet(&bench, shorter); /* too short for its answer */
    send_packet(&bench, ping);
    struct probe_packet answer = receive_packet(&bench);
    assert_int_equal(answer.kind, PROBE_PONG);
    assert_int_equal(answer.round, 3);
    assert_int_equal(answer.number, 5);
    assert_int_equal(answer.sent_ns, 77);
    ping.kind = PROBE_WHOLE;
    ping.bytes = BYTES;
    send_packet(&bench, ping);
    assert_int_equal(receive_packet(&bench).kind, PROBE_CAME);
    end(&bench, 0, "");
}

/* ---- counts ------------------------------------------------------------------------------------------ */

static void expect_runs(const struct probe_message *report, struct model_loss_runs wanted)
{
    struct model_loss_runs runs = probe_message_runs(report);
    assert_int_equal(runs.packets, wanted.packets);
    assert_int_equal(runs.lost, wanted.lost);
    assert_int_equal(runs.after_arrived, wanted.after_arrived);
    assert_int_equal(runs.lost_after_arrived, wanted.lost_after_arrived);
    assert_int_equal(runs.after_lost, wanted.after_lost);
    assert_int_equal(runs.arrived_after_lost, wanted.arrived_after_lost);
}

static void all_in_order(void **state)
{
    (void)state;
    static const uint32_t numbers[] = {0, 1, 2, 3};
    struct bench bench;
    greet(&bench);
    begin_round(&bench, 1, 4, 1);
    send_data(&bench, 1, numbers, 4, 1);
    struct probe_message report = end_round(&bench, 1, 4);
    assert_int_equal(report.numbers[PROBE_REPORT_RECEIVED], 4);
    assert_int_equal(report.numbers[PROBE_REPORT_DUPLICATES], 0);
    assert_int_equal(report.numbers[PROBE_REPORT_REORDERED], 0);
    assert_int_equal(report.numbers[PROBE_REPORT_EXTENT_SUM], 0);
    assert_int_equal(report.numbers[PROBE_REPORT_EXTENT_MAX], 0);
    assert_int_equal(report.numbers[PROBE_REPORT_LATE_MAX_NS], 0);
    assert_int_equal(report.numbers[PROBE_REPORT_SOCKET_DROPS], 0);
    expect_runs(&report, (struct model_loss_runs){.packets = 4, .after_arrived = 3});
    end(&bench, 0, "");
}

/* Two flows, each with an order of its own: the far one first, then the other way round. Packets 2, 3 and 8
 * are lost, 1 comes twice. */
static void reordered_lost_and_twice(void **state)
{
    (void)state;
    static const uint32_t far[] = {0, 6, 4, 1, 5, 1, 7};  /* 4 behind 6 */
    static const uint32_t near[] = {0, 4, 6, 5, 7, 1, 1}; /* 1 behind 5 and 7 */
    static const uint32_t extents[] = {1, 2};
    struct bench bench;
    greet(&bench);
    for (uint32_t round = 1; round <= 2; round++) {
        begin_round(&bench, round, 9, 2);
        send_data(&bench, round, round == 1 ? far : near, 7, 2);
        struct probe_message report = end_round(&bench, round, 9);
        assert_int_equal(report.numbers[PROBE_REPORT_RECEIVED], 6);
        assert_int_equal(report.numbers[PROBE_REPORT_DUPLICATES], 1);
        assert_int_equal(report.numbers[PROBE_REPORT_REORDERED], 1);
        assert_int_equal(report.numbers[PROBE_REPORT_EXTENT_SUM], extents[round - 1]);
        assert_int_equal(report.numbers[PROBE_REPORT_EXTENT_MAX], extents[round - 1]);
        assert_true(report.numbers[PROBE_REPORT_LATE_MAX_NS] <= report.numbers[PROBE_REPORT_SPAN_NS]);
        assert_int_equal(report.numbers[PROBE_REPORT_FLOW_LOST], 2);
        assert_int_equal(report.numbers[PROBE_REPORT_FLOW_LOST + 1], 1);
        expect_runs(&report, (struct model_loss_runs){.packets = 9,
                                                      .lost = 3,
                                                      .after_arrived = 6,
                                                      .lost_after_arrived = 2,
                                                      .after_lost = 2,
                                                      .arrived_after_lost = 1});
    }
    end(&bench, 0, "");
}

/* Of another round, behind the last one, or of a flow that its number does not have. */
static void packets_that_do_not_count(void **state)
{
    (void)state;
    static const uint32_t first[] = {0}, behind[] = {4};
    struct bench bench;
    greet(&bench);
    begin_round(&bench, 2, 4, 2);
    send_data(&bench, 1, first, 1, 2);
    send_data(&bench, 2, behind, 1, 2);
    send_packet(
        &bench,
        (struct probe_packet){
            .kind = PROBE_DATA, .token = bench.token, .round = 2, .number = 1, .flow = 0, .bytes = BYTES});
    struct probe_message report = end_round(&bench, 2, 3);
    assert_int_equal(report.numbers[PROBE_REPORT_RECEIVED], 0);
    assert_int_equal(report.numbers[PROBE_REPORT_SPAN_NS], 0);
    expect_runs(&report, (struct model_loss_runs){.packets = 3, .lost = 3, .after_lost = 2});
    end(&bench, 0, "");
}

/* While a packet may come there is no report; once all have come nothing is waited for. */
static void a_report_waits_for_the_last(void **state)
{
    (void)state;
    static const uint32_t first[] = {0}, last[] = {1};
    const struct probe_message message = {.type = PROBE_END, .numbers = {1, 2, PROBE_DRAIN_MAX_NS}};
    struct bench bench;
    greet(&bench);
    begin_round(&bench, 1, 2, 1);
    send_data(&bench, 1, first, 1, 1);
    say(&bench, &message);
    assert_int_equal(tcp_wait(bench.tcp, false, tcp_deadline(50 * LH_NS_PER_MS)), -LH_ETIMEDOUT);
    send_data(&bench, 1, last, 1, 1);
    assert_int_equal(tcp_wait(bench.tcp, false, tcp_deadline(PROBE_DRAIN_MAX_NS / 2)), 0);
    assert_int_equal(hear(&bench, PROBE_REPORT).numbers[PROBE_REPORT_RECEIVED], 2);
    end(&bench, 0, "");
}

/* ---- clients that are not served, or not to the end -------------------------------------------------- */

static void refuse(struct bench *bench, int result, const char *reason)
{
    struct probe_message refusal = hear(bench, PROBE_REFUSE);
    if (!strstr(refusal.text, reason))
        fail_msg("\"%s\" is not in: %s", reason, refusal.text);
    end(bench, result, reason);
}

static void messages_out_of_turn(void **state)
{
    (void)state;
    struct bench bench;
    greet(&bench);
    begin_round(&bench, 1, 4, 1);
    say(&bench, &(struct probe_message){.type = PROBE_BEGIN, .numbers = {2, 4, 1}});
    refuse(&bench, -LH_EPROTOCOL, "unexpected start of a round");
    greet(&bench);
    say(&bench, &(struct probe_message){.type = PROBE_END, .numbers = {1, 4, 0}});
    refuse(&bench, -LH_EPROTOCOL, "unexpected end of a round");
    greet(&bench);
    begin_round(&bench, 1, 4, 1);
    say(&bench, &(struct probe_message){.type = PROBE_END, .numbers = {2, 4, 0}}); /* of another */
    refuse(&bench, -LH_EPROTOCOL, "unexpected end of a round");
    greet(&bench);
    begin_round(&bench, 1, 4, 1);
    say(&bench, &(struct probe_message){.type = PROBE_END, .numbers = {1, 5, 0}}); /* more than there are */
    refuse(&bench, -LH_EPROTOCOL, "unexpected end of a round");
    greet(&bench);
    send_hello(&bench, "");
    refuse(&bench, -LH_EPROTOCOL, "unexpected message type 1");
}

static void greetings_that_are_none(void **state)
{
    (void)state;
    struct bench bench;
    begin(&bench);
    say(&bench, &(struct probe_message){.type = PROBE_READY, .numbers = {1}});
    end(&bench, -LH_EPROTOCOL, "invalid greeting");
    begin(&bench);
    end(&bench, -LH_EPEER, "disconnected without a greeting");
    begin(&bench);
    assert_int_equal(tcp_write(bench.tcp, "GET / HTTP/1.1\r\n", 16, tcp_deadline(PATIENCE_NS)), 0);
    end(&bench, -LH_EHANDSHAKE, "");
    begin(&bench);
    send_hello(&bench, "rtt=fast");
    refuse(&bench, -LH_EINVAL, "fast");
}

static void clients_that_leave(void **state)
{
    (void)state;
    static const uint32_t first[] = {0};
    struct bench bench;
    greet(&bench);
    end(&bench, -LH_EPEER, "no packet of the client arrived at UDP port");
    greet(&bench);
    begin_round(&bench, 1, 4, 1);
    send_data(&bench, 1, first, 1, 1);
    end(&bench, -LH_EPEER, "disconnected during a measurement");
}

static int connect_silently(const struct lh_probe_server *server)
{
    char where[32];
    int fd;
    snprintf(where, sizeof where, "127.0.0.1:%u", lh_probe_server_port(server));
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &fd), 0);
    return fd;
}

static void expect_closed(int fd)
{
    char byte;
    assert_int_equal(tcp_wait(fd, false, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
}

/* The oldest that has said nothing leaves for one that comes; who is served is named. */
static void strangers_in_all_places(void **state)
{
    (void)state;
    struct bench bench;
    char name[TCP_NAME_MAX], where[32];
    int strangers[16 + 1];
    memset(&bench, 0, sizeof bench);
    bench.udp = -1;
    assert_int_equal(lh_probe_listen("127.0.0.1:0", &bench.server), 0);
    assert_string_equal(lh_probe_server_peer(bench.server), "");
    snprintf(where, sizeof where, "127.0.0.1:%u", lh_probe_server_port(bench.server));
    for (unsigned i = 0; i < 17; i++)
        strangers[i] = connect_silently(bench.server);
    assert_int_equal(pthread_create(&bench.thread, NULL, serve, &bench), 0);
    expect_closed(strangers[0]);
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &bench.tcp), 0);
    expect_closed(strangers[1]);
    send_hello(&bench, "");
    hear(&bench, PROBE_WELCOME);
    assert_int_equal(tcp_local_name(bench.tcp, name, sizeof name), 0);
    assert_string_equal(lh_probe_server_peer(bench.server), name);
    for (unsigned i = 0; i < 17; i++)
        close(strangers[i]);
    end(&bench, -LH_EPEER, "no packet of the client arrived");
}

/* One that comes takes the descriptor of one that says nothing, and is heard itself. */
static void no_descriptor_left(void **state)
{
    (void)state;
    const struct probe_message ready = {.type = PROBE_READY, .numbers = {1}};
    struct lh_probe_server *server;
    struct rlimit before;
    assert_int_equal(lh_probe_listen("127.0.0.1:0", &server), 0);
    int silent = connect_silently(server), other = connect_silently(server);
    int last = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons(lh_probe_server_port(server));
    assert_int_equal(probe_message_write(other, &ready, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(lh_probe_serve(server, PATIENCE_NS), -LH_EPROTOCOL); /* so both were let in */
    int lowest = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none = {.rlim_cur = (rlim_t)lowest, .rlim_max = before.rlim_max};
    close(lowest);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(connect(last, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(probe_message_write(last, &ready, tcp_deadline(PATIENCE_NS)), 0);
    int error = lh_probe_serve(server, PATIENCE_NS);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(error, -LH_EPROTOCOL);
    expect_closed(silent);
    lh_probe_server_close(server);
    close(silent);
    close(other);
    close(last);
}

static void no_client(void **state)
{
    (void)state;
    struct lh_probe_server *server;
    assert_int_equal(lh_probe_listen("127.0.0.1:0", &server), 0);
    assert_int_equal(lh_probe_serve(server, 0), -LH_ETIMEDOUT);
    lh_probe_server_close(server);
    lh_probe_server_close(NULL);
    assert_int_equal(lh_probe_listen("nowhere", &server), -LH_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_are_answered),
        cmocka_unit_test(all_in_order),
        cmocka_unit_test(reordered_lost_and_twice),
        cmocka_unit_test(packets_that_do_not_count),
        cmocka_unit_test(a_report_waits_for_the_last),
        cmocka_unit_test(messages_out_of_turn),
        cmocka_unit_test(greetings_that_are_none),
        cmocka_unit_test(clients_that_leave),
        cmocka_unit_test(strangers_in_all_places),
        cmocka_unit_test(no_descriptor_left),
        cmocka_unit_test(no_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
