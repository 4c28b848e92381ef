/*
 * test_probe_measure_served.c - a probe against a server that the test plays: what the probe asks it for,
 * what becomes of its answers, and which of them end the probe.
 *
 * The server says what it likes of losses and rates, so that results are exact. It answers at once; how long
 * that takes decides nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/probe.h>

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "launch/tcp.h"
#include "probe/probe_messages.h"
#include "support/near.h"

#define PATIENCE_NS  (60 * LH_NS_PER_S)
#define TOKEN        0x1122334455667788u
#define HEADERS      28u /* IPv4 and UDP */
#define ROUNDS_MAX   32u
#define LOSS_ROUND_1 1001u

enum fault {
    NO_FAULT,
    SILENT,       /* no WELCOME */
    REFUSES,      /* REFUSE instead of WELCOME */
    OTHER_TYPE,   /* READY instead of WELCOME */
    OTHER_READY,  /* READY of another round */
    OTHER_REPORT, /* REPORT of another round */
    SHORT_REPORT, /* REPORT of one packet less */
    LEAVES_MTU,   /* closes at the first packet whose size is tried */
    LEAVES_FLOW,  /* closes at the first packet of a flow */
    SPEAKS_FLOW,  /* says something then */
};

struct player;
typedef void report_fn(struct player *player, uint32_t round, uint32_t sent, struct probe_message *report);

struct player {
    uint32_t path_mtu;
    uint32_t unheard; /* so many pings at first */
    enum fault fault;
    report_fn *fill_in; /* NULL: all came */
    int listener, tcp, udp;
    bool failed, left; /* failed: no probe speaks like that */
    struct probe_message hello;
    uint32_t rounds;
    struct {
        uint64_t round, packets, flows, sent, drain_ns, bytes;
    } asked[ROUNDS_MAX];
    pthread_t thread;
};

static void say(struct player *player, enum probe_message_type type, uint64_t first, uint64_t second,
                const char *text)
{
    struct probe_message message = {.type = type, .numbers = {first, second}};
    snprintf(message.text, sizeof message.text, "%s", text);
    player->failed |= probe_message_write(player->tcp, &message, tcp_deadline(PATIENCE_NS)) != 0;
}

static void welcome(struct player *player)
{
    struct sockaddr_in local;
    socklen_t bytes = sizeof local;
    getsockname(player->udp, (struct sockaddr *)&local, &bytes);
    if (player->fault == REFUSES)
        say(player, PROBE_REFUSE, 0, 0, "no time for probes");
    else if (player->fault == OTHER_TYPE)
        say(player, PROBE_READY, 1, 0, "");
    else if (player->fault != SILENT)
        say(player, PROBE_WELCOME, ntohs(local.sin_port), TOKEN, "");
}

/* One that probe_message_decode() takes: single losses in the first flow, each with an arrival before and
 * behind it. */
static void put_losses(struct probe_message *report, uint32_t sent, uint32_t lost)
{
    const struct model_loss_runs runs = {.packets = sent,
                                         .lost = lost,
                                         .after_arrived = sent - lost - 1,
                                         .lost_after_arrived = lost,
                                         .after_lost = lost,
                                         .arrived_after_lost = lost};
    probe_message_set_runs(report, &runs);
    report->numbers[PROBE_REPORT_RECEIVED] = sent - lost;
    report->numbers[PROBE_REPORT_FLOW_LOST] = lost;
}

static void report(struct player *player, const uint64_t *end)
{
    struct probe_message answer = {.type = PROBE_REPORT};
    uint32_t sent = (uint32_t)end[PROBE_END_SENT];
    answer.numbers[PROBE_REPORT_ROUND] = end[PROBE_END_ROUND] + (player->fault == OTHER_REPORT);
    answer.numbers[PROBE_REPORT_SPAN_NS] = 1; /* as fast as any wish */
    put_losses(&answer, sent - (player->fault == SHORT_REPORT), 0);
    if (player->fill_in)
        player->fill_in(player, (uint32_t)end[PROBE_END_ROUND], sent, &answer);
    player->failed |= probe_message_write(player->tcp, &answer, tcp_deadline(PATIENCE_NS)) != 0;
}

static void on_message(struct player *player)
{
    struct probe_message message;
    if (probe_message_read(player->tcp, &message, tcp_deadline(PATIENCE_NS)) != 0) {
        player->left = true;
    } else if (message.type == PROBE_HELLO) {
        player->hello = message;
        welcome(player);
    } else if (message.type == PROBE_BEGIN && player->rounds < ROUNDS_MAX) {
        player->asked[player->rounds].round = message.numbers[PROBE_BEGIN_ROUND];
        player->asked[player->rounds].packets = message.numbers[PROBE_BEGIN_PACKETS];
        player->asked[player->rounds].flows = message.numbers[PROBE_BEGIN_FLOWS];
        player->rounds++;
        say(player, PROBE_READY, message.numbers[PROBE_BEGIN_ROUND] + (player->fault == OTHER_READY), 0,
            "");
    } else if (message.type == PROBE_END && player->rounds > 0) {
        player->asked[player->rounds - 1].sent = message.numbers[PROBE_END_SENT];
        player->asked[player->rounds - 1].drain_ns = message.numbers[PROBE_END_DRAIN_NS];
        report(player, message.numbers);
    } else {
        player->failed = player->left = true;
    }
}

static void answer(const struct player *player, const struct sockaddr_in *to, struct probe_packet packet)
{
    uint8_t data[LH_PROBE_PAYLOAD_MIN] = {0};
    packet.bytes = sizeof data;
    probe_packet_encode(&packet, data);
    sendto(player->udp, data, sizeof data, 0, (const struct sockaddr *)to, sizeof *to);
}

/* The first pings, which are no samples, take a minute. Of the others, two seconds are the server's own. Each
 * answer comes twice, behind one of another round and one of a packet that was not sent. */
static void on_ping(const struct player *player, const struct sockaddr_in *to, struct probe_packet ping)
{
    struct probe_packet pong = ping, other;
    if (ping.number < player->unheard)
        return;
    pong.kind = PROBE_PONG;
    pong.sent_ns -= ping.number < 3 ? 60 * LH_NS_PER_S : 2 * LH_NS_PER_S;
    pong.held_ns = ping.number < 3 ? 0 : (uint32_t)(2 * LH_NS_PER_S);
    other = pong;
    other.round++;
    other.sent_ns -= LH_NS_PER_S;
    answer(player, to, other);
    other = pong;
    other.number += 1000;
    answer(player, to, other);
    other = pong;
    other.kind = PROBE_CAME;
    other.sent_ns -= LH_NS_PER_S;
    answer(player, to, other);
    answer(player, to, pong);
    pong.sent_ns -= 120 * LH_NS_PER_S;
    answer(player, to, pong);
}

static void leave_or_speak(struct player *player)
{
    if (player->fault == SPEAKS_FLOW)
        say(player, PROBE_READY, 1, 0, "");
    else
        shutdown(player->tcp, SHUT_RDWR);
    player->fault = NO_FAULT;
}

static void on_packet(struct player *player)
{
    uint8_t data[PROBE_HEADER_BYTES];
    struct sockaddr_in from;
    socklen_t from_bytes = sizeof from;
    struct probe_packet packet;
    ssize_t got = recvfrom(player->udp, data, sizeof data, MSG_TRUNC | MSG_DONTWAIT,
                           (struct sockaddr *)&from, &from_bytes);
    if (got < (ssize_t)sizeof data || !probe_packet_decode(data, (size_t)got, &packet))
        return;
    player->failed |= packet.token != TOKEN;
    if (packet.kind == PROBE_PING) {
        on_ping(player, &from, packet);
    } else if (packet.kind == PROBE_WHOLE) {
        if (player->fault == LEAVES_MTU)
            leave_or_speak(player);
        packet.kind = PROBE_CAME;
        if (packet.bytes + HEADERS <= player->path_mtu)
            answer(player, &from, packet);
    } else if (packet.kind == PROBE_DATA && player->rounds > 0) {
        player->asked[player->rounds - 1].bytes = packet.bytes;
        if (player->fault == LEAVES_FLOW || player->fault == SPEAKS_FLOW)
            leave_or_speak(player);
    }
}

static void *play(void *argument)
{
    struct player *player = argument;
    struct pollfd waiting = {.fd = player->listener, .events = POLLIN};
    player->left = poll(&waiting, 1, 60000) <= 0;
    player->tcp = accept(player->listener, NULL, NULL);
    while (!player->left) {
        struct pollfd fds[] = {{.fd = player->udp, .events = POLLIN},
                               {.fd = player->tcp, .events = POLLIN}};
        if (poll(fds, 2, 60000) <= 0)
            break;
        if (fds[0].revents)
            on_packet(player);
        else
            on_message(player);
    }
    close(player->tcp);
    return NULL;
}

struct trial {
    struct player player;
    struct lh_probe_attr attr;
    lh_time wait_ns;
    int error;
    char words[256];
    struct lh_probe_result result;
    pthread_t thread;
    char where[32];
};

static void *run(void *argument)
{
    struct trial *trial = argument;
    trial->error = lh_probe_run(trial->where, &trial->attr, trial->wait_ns, &trial->result);
    snprintf(trial->words, sizeof trial->words, "%s", lh_last_error());
    return NULL;
}

/* Each player serves its probe, all at once. */
static void run_all(struct trial *trials, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct player *player = &trials[i].player;
        uint16_t port;
        assert_int_equal(tcp_listen("127.0.0.1:0", &player->listener, &port), 0);
        player->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(player->udp, (struct sockaddr *)&local, sizeof local), 0);
        snprintf(trials[i].where, sizeof trials[i].where, "127.0.0.1:%u", port);
        assert_int_equal(pthread_create(&player->thread, NULL, play, player), 0);
        assert_int_equal(pthread_create(&trials[i].thread, NULL, run, &trials[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_join(trials[i].thread, NULL);
        pthread_join(trials[i].player.thread, NULL);
        close(trials[i].player.udp);
        close(trials[i].player.listener);
        assert_false(trials[i].player.failed);
    }
}

static struct lh_probe_attr order(uint32_t packets, uint32_t trials, uint32_t flows)
{
    struct lh_probe_attr attr;
    lh_probe_attr_init(&attr);
    attr.time_ns = LH_PROBE_TIME_MIN;
    attr.rate_bps = 80000000;
    attr.packets = packets;
    attr.trials = trials;
    attr.flows = flows;
    return attr;
}

static struct lh_probe_attr order_of(uint32_t packets, uint32_t trials, uint32_t flows, uint32_t count,
                                     const uint32_t *payload_bytes)
{
    struct lh_probe_attr attr = order(packets, trials, flows);
    attr.size_count = count;
    memcpy(attr.payload_bytes, payload_bytes, count * sizeof *payload_bytes);
    return attr;
}

static struct trial trial_of(uint32_t path_mtu, report_fn *fill_in, struct lh_probe_attr attr)
{
    return (struct trial){
        .player = {.path_mtu = path_mtu, .fill_in = fill_in}, .attr = attr, .wait_ns = PATIENCE_NS};
}

static void sizes_are(const struct trial *trial, uint32_t count, const uint32_t *bytes)
{
    assert_int_equal(trial->error, 0);
    assert_int_equal(trial->result.size_count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(trial->result.sizes[i].payload_bytes, bytes[i]);
}

/* Probes that run at the same time, before the tests. */
enum { LOSS_BY_SIZE, LOSS_OF_LARGE, DROPS, RECEIVER, SIZES, UNHEARD = SIZES + 6, MEASURED };
static struct trial measured[MEASURED];

/* ---- what is measured -------------------------------------------------------------------------------- */

static void what_a_probe_asks_for(void **state)
{
    (void)state;
    static struct trial trial;
    trial = trial_of(1500, NULL, order(11, 2, 2));
    run_all(&trial, 1);
    const struct player player = trial.player;
    const struct lh_probe_result result = trial.result;
    assert_int_equal(player.hello.numbers[PROBE_HELLO_TIME_NS], LH_PROBE_TIME_MAX); /* packets are given */
    assert_int_equal(result.path_mtu_bytes, 1500);
    assert_int_equal(result.mtu_bytes, 1408);
    sizes_are(&trial, 3,
              (const uint32_t[]){256, 1024, 1472}); /* the defaults, and the largest that passes */
    assert_int_equal(result.rtt_samples, 17);
    assert_true(result.rtt_max_ns < 60 * LH_NS_PER_S);
    assert_in_range(result.rtt_mean_ns, result.rtt_min_ns, result.rtt_max_ns);
    assert_in_range(result.rtt_jitter_ns, 0, result.rtt_max_ns - result.rtt_min_ns);
    lh_time drain_ns = 30 * LH_NS_PER_MS + result.rtt_ns / 2 + 2 * (result.rtt_max_ns - result.rtt_min_ns);
    /* Trains of the largest packets, 80 ms: 600 us each, then 150. Then two trials of each size. */
    assert_int_equal(player.rounds, 2 + 2 * 3);
    for (uint32_t i = 0; i < player.rounds; i++) {
        assert_int_equal(player.asked[i].flows, 2);
        assert_int_equal(player.asked[i].packets, i == 0 ? 133 : i == 1 ? 533 : 11);
        assert_int_equal(player.asked[i].sent, player.asked[i].packets);
        assert_int_equal(player.asked[i].bytes, i < 2 ? 1472 : result.sizes[(i - 2) % 3].payload_bytes);
        assert_true(player.asked[i].drain_ns == drain_ns || drain_ns > PROBE_DRAIN_MAX_NS);
        if (i > 1)
            assert_int_equal(player.asked[i].round, LOSS_ROUND_1 + i - 2);
    }
    assert_int_equal(result.trials, 6);
    assert_int_equal(result.sent, 66);
    assert_int_equal(result.received, 66);
}

static void sizes_follow_the_path(void **state)
{
    (void)state;
    const struct trial *trials = &measured[SIZES];
    sizes_are(&trials[0], 1, (const uint32_t[]){172});
    assert_int_equal(trials[0].result.mtu_bytes, 0); /* no connection is possible */
    sizes_are(&trials[1], 2, (const uint32_t[]){256, 1024});
    sizes_are(&trials[2], 4, (const uint32_t[]){256, 1024, 4096, 8192});
    sizes_are(&trials[3], 1, (const uint32_t[]){LH_PROBE_PAYLOAD_MAX});
    sizes_are(&trials[4], 2, (const uint32_t[]){1472, 500});
    assert_int_equal(trials[5].error, -LH_EMTU);
    assert_string_equal(trials[5].words,
                        "payload 1473 bytes: exceeds the path MTU 1500 (use at most 1472)");
}

/* More than were wanted: one burst of losses may be that long. */
static void pings_go_on_until_an_answer(void **state)
{
    (void)state;
    assert_int_equal(measured[UNHEARD].error, 0);
    assert_in_range(measured[UNHEARD].result.rtt_samples, 1, 400 - 25);
    assert_true(measured[UNHEARD].result.rtt_max_ns < 60 * LH_NS_PER_S);
}

/* ---- losses ------------------------------------------------------------------------------------------ */

#define PACKETS 60u

/* Of four sizes, the third loses most. Its trials: 40 and 50 lost of 60. */
static void lose_by_size(struct player *player, uint32_t round, uint32_t sent, struct probe_message *answer)
{
    (void)player;
    if (round < LOSS_ROUND_1)
        return;
    uint32_t trial = (round - LOSS_ROUND_1) / 4, size = (round - LOSS_ROUND_1) % 4;
    if (size == 2)
        put_losses(answer, sent, trial ? 25 : 20);
    answer->numbers[PROBE_REPORT_FLOW_LOST] -= size == 2 ? 5 : 0;
    answer->numbers[PROBE_REPORT_FLOW_LOST + 1] = size == 2 ? 5 : 0;
    answer->numbers[PROBE_REPORT_REORDERED] = size == 1 ? 6 : 0;
    answer->numbers[PROBE_REPORT_EXTENT_SUM] = size == 1 ? 9 : 0;
    answer->numbers[PROBE_REPORT_EXTENT_MAX] = size == 1 ? 4 - trial : 0;
    answer->numbers[PROBE_REPORT_LATE_MAX_NS] = size == 1 ? 1000 - trial : 0;
    answer->numbers[PROBE_REPORT_DUPLICATES] = size == 3 ? 7 : 0;
}

static void loss_that_depends_on_the_size(void **state)
{
    (void)state;
    assert_int_equal(measured[LOSS_BY_SIZE].error, 0);
    const struct lh_probe_result result = measured[LOSS_BY_SIZE].result;
    assert_int_equal(result.loss_payload_bytes, 4096);
    assert_int_equal(result.loss.sent, 2 * PACKETS);
    assert_int_equal(result.loss.lost, 45);
    assert_int_equal(result.sizes[2].trials[1].lost, 25);
    assert_near(result.sizes[2].trial_low, 20.0 / PACKETS, 1e-9);
    assert_near(result.sizes[2].trial_high, 25.0 / PACKETS, 1e-9);
    assert_int_equal(result.sent, 8 * PACKETS);
    assert_int_equal(result.received, 8 * PACKETS - 45);
    assert_near(result.sizes[0].reorder, 0, 1e-9);
    assert_near(result.sizes[1].reorder, 12.0 / (2 * PACKETS), 1e-9);
    assert_near(result.reorder, 12.0 / (8 * PACKETS - 45), 1e-9);
    assert_near(result.reorder_extent_mean, 1.5, 1e-9);
    assert_int_equal(result.reorder_extent_max, 4);
    assert_int_equal(result.reorder_late_max_ns, 1000);
    assert_near(result.duplicate, 14.0 / (8 * PACKETS - 45), 1e-9);
    assert_near(result.flow_loss_low, 10.0 / (4 * PACKETS), 1e-9);
    assert_near(result.flow_loss_high, 35.0 / (4 * PACKETS), 1e-9);
}

/* Without one that data packets have, the smallest counts. */
static void lose_first_size(struct player *player, uint32_t round, uint32_t sent,
                            struct probe_message *answer)
{
    (void)player;
    if (round >= LOSS_ROUND_1 && (round - LOSS_ROUND_1) % 3 == 0)
        put_losses(answer, sent, 25);
}

static void loss_of_large_sizes(void **state)
{
    (void)state;
    assert_int_equal(measured[LOSS_OF_LARGE].error, 0);
    const struct lh_probe_result result = measured[LOSS_OF_LARGE].result;
    assert_int_equal(result.loss_payload_bytes, 5000);
    assert_int_equal(result.loss.lost, 0);
    assert_int_equal(result.loss.sent, 2 * PACKETS);
}

/* What a host dropped is no loss of the path: nobody knows which packets these were. */
static void drop_in_hosts(struct player *player, uint32_t round, uint32_t sent,
                          struct probe_message *answer)
{
    (void)player;
    if (round < LOSS_ROUND_1)
        return;
    uint32_t trial = round - LOSS_ROUND_1;
    put_losses(answer, sent, trial == 3 ? 0 : trial);
    answer->numbers[PROBE_REPORT_SOCKET_DROPS] = trial == 1 || trial == 3 ? 5 : 0;
    answer->numbers[PROBE_REPORT_HOST_DROPS] = trial == 2 ? 9 : 0;
    answer->numbers[PROBE_REPORT_REORDERED] = trial == 2;
}

static void drops_of_hosts(void **state)
{
    (void)state;
    assert_int_equal(measured[DROPS].error, 0);
    const struct lh_probe_result result = measured[DROPS].result;
    static const uint64_t excluded[] = {0, 1, 1, 0, 0}, drops[] = {0, 5, 9, 5, 0}, lost[] = {0, 1, 2, 0, 4};
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(result.sizes[0].trials[i].excluded, excluded[i]);
        assert_int_equal(result.sizes[0].trials[i].endpoint_drops, drops[i]);
        assert_int_equal(result.sizes[0].trials[i].lost, lost[i]);
    }
    assert_int_equal(result.trials_excluded, 2);
    assert_int_equal(result.endpoint_drops_socket, 10);
    assert_int_equal(result.endpoint_drops_host, 9);
    assert_int_equal(result.loss.sent, 3 * PACKETS);
    assert_int_equal(result.loss.lost, 4);
    assert_int_equal(result.sent, 5 * PACKETS);
    assert_int_equal(result.received, 5 * PACKETS - 7);
    assert_int_equal(result.loss_payload_bytes, 0);
    assert_near(result.sizes[0].trial_low, 0, 1e-9);
    assert_near(result.sizes[0].trial_high, 4.0 / PACKETS, 1e-9);
    assert_near(result.flow_loss_high, 4.0 / (3 * PACKETS), 1e-9);
    assert_near(result.reorder, 1.0 / (5 * PACKETS - 7), 1e-9); /* of those that came */
}

/* ---- rate -------------------------------------------------------------------------------------------- */

/* The first train: half was lost, by the socket too, and the rest came at 10 Mbit/s. The next: 12 Mbit/s. */
static void drop_at_speed(struct player *player, uint32_t round, uint32_t sent,
                          struct probe_message *answer)
{
    uint32_t lost = player->rounds == 1 ? sent / 2 : 0;
    uint64_t bits = 8 * 1500 * (uint64_t)(sent - lost - 1);
    if (round >= LOSS_ROUND_1)
        return;
    put_losses(answer, sent, lost);
    answer->numbers[PROBE_REPORT_SOCKET_DROPS] = player->rounds == 1;
    answer->numbers[PROBE_REPORT_SPAN_NS] =
        bits * LH_NS_PER_S / (player->rounds == 1 ? 10000000 : 12000000);
}

static void a_receiver_limits_the_rate(void **state)
{
    (void)state;
    assert_int_equal(measured[RECEIVER].error, 0);
    const struct lh_probe_result result = measured[RECEIVER].result;
    /* 66 of 133 were lost: at 95 % of what 10 Mbit/s are of the others, for 80 ms. */
    assert_int_equal(measured[RECEIVER].player.rounds, 2 + 2);
    assert_int_equal(measured[RECEIVER].player.asked[1].packets, 125);
    assert_int_equal(result.rate_limit, LH_PROBE_LIMIT_RECEIVER);
    assert_near(result.rate_bps, 12e6, 1e-4);
    assert_int_equal(result.trials_excluded, 0); /* a train is no trial */
}

/* ---- servers that end a probe ------------------------------------------------------------------------ */

static void servers_that_end_a_probe(void **state)
{
    (void)state;
    static const struct {
        enum fault fault;
        uint32_t path_mtu;
        int error;
        const char *words;
    } cases[] = {
        {SILENT, 1500, -LH_ETIMEDOUT,
         "no answer from the server: busy with another client, or not a longhaul probe (try again, or wait "
         "longer)"},
        {REFUSES, 1500, -LH_EPEER, "server: no time for probes"},
        {OTHER_TYPE, 1500, -LH_EPROTOCOL, "unexpected message type 4 (expected 2)"},
        {OTHER_READY, 65535, -LH_EPROTOCOL, "unexpected round in a READY of the server"},
        {OTHER_REPORT, 65535, -LH_EPROTOCOL, "unexpected round in a report of the server"},
        {SHORT_REPORT, 65535, -LH_EPROTOCOL, "unexpected round in a report of the server"},
        {LEAVES_MTU, 50, -LH_EPEER, "the server disconnected"},
        {LEAVES_FLOW, 65535, -LH_EPEER, "the server disconnected"},
        {SPEAKS_FLOW, 65535, -LH_EPROTOCOL, "unexpected data from the server"},
        {NO_FAULT, 50, -LH_EMTU,
         "all packets of 92 bytes were lost: no measurement (reduce the loss on the path)"},
    };
    enum { CASES = sizeof cases / sizeof cases[0] };
    static struct trial trials[CASES];
    for (uint32_t i = 0; i < CASES; i++) {
        trials[i] = trial_of(cases[i].path_mtu, NULL, order(10, 1, 1));
        trials[i].player.fault = cases[i].fault;
        trials[i].attr.packets = 0;
    }
    trials[0].wait_ns = LH_NS_PER_S / 4;
    run_all(trials, CASES);
    for (uint32_t i = 0; i < CASES; i++) {
        assert_string_equal(trials[i].words, cases[i].words);
        assert_int_equal(trials[i].error, cases[i].error);
        assert_int_equal(trials[i].result.path_mtu_bytes, 0); /* nothing is filled in */
        assert_int_equal(trials[i].player.hello.numbers[PROBE_HELLO_TIME_NS], LH_PROBE_TIME_MIN);
    }
}

static int measure_all(void **state)
{
    (void)state;
    measured[LOSS_BY_SIZE] = trial_of(
        65535, lose_by_size, order_of(PACKETS, 2, 2, 4, (const uint32_t[]){5000, 300, 4096, 4097}));
    measured[LOSS_OF_LARGE] =
        trial_of(65535, lose_first_size, order_of(PACKETS, 2, 1, 3, (const uint32_t[]){6000, 5000, 7000}));
    measured[DROPS] = trial_of(65535, drop_in_hosts, order_of(PACKETS, 5, 1, 1, (const uint32_t[]){200}));
    measured[RECEIVER] =
        trial_of(65535, drop_at_speed, order_of(10, 1, 1, 2, (const uint32_t[]){1472, 200}));
    measured[SIZES] = trial_of(200, NULL, order(10, 1, 1));
    measured[SIZES + 1] = trial_of(1024 + HEADERS, NULL, order(10, 1, 1));
    measured[SIZES + 2] = trial_of(65535, NULL, order(10, 1, 1));
    measured[SIZES + 3] = trial_of(65535, NULL, order_of(10, 1, 1, 1, (const uint32_t[]){65000}));
    measured[SIZES + 4] = trial_of(1500, NULL, order_of(10, 1, 1, 2, (const uint32_t[]){1472, 500}));
    measured[SIZES + 5] = trial_of(1500, NULL, order_of(10, 1, 1, 2, (const uint32_t[]){1472, 1473}));
    measured[UNHEARD] = trial_of(65535, NULL, order(10, 1, 1));
    measured[UNHEARD].player.unheard = 25;
    run_all(measured, MEASURED);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_probe_asks_for),       cmocka_unit_test(sizes_follow_the_path),
        cmocka_unit_test(pings_go_on_until_an_answer), cmocka_unit_test(loss_that_depends_on_the_size),
        cmocka_unit_test(loss_of_large_sizes),         cmocka_unit_test(drops_of_hosts),
        cmocka_unit_test(a_receiver_limits_the_rate),  cmocka_unit_test(servers_that_end_a_probe),
    };
    return cmocka_run_group_tests(tests, measure_all, NULL);
}
