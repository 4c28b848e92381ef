/*
 * probe_server.c - one client's probe at the server: answers its packets, counts what arrives, reports.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/probe.h>

#include "base/error.h"
#include "base/min_max.h"
#include "fabric/fabric.h"
#include "launch/admission.h"
#include "launch/tcp.h"
#include "model/arrival_model.h"
#include "probe/probe_messages.h"
#include "probe/probe_port.h"

/* ---- serve ----------------------------------------------------------------------------------------- */

/*
 * Timers: the end of the run, its time and SPARE_NS after its HELLO; silence, SILENCE_NS after the last
 * packet or message; the end of a round's drain, as the client asks, after which it gets its report.
 */

/* What a probe may take above its time: its handshakes, and phases that a lossy or long path stretches. */
#define SPARE_NS       (120 * LH_NS_PER_S)
#define SILENCE_NS     (15 * LH_NS_PER_S)
#define MESSAGE_NS     (2 * LH_NS_PER_S) /* to finish a message that was begun, or to take one */
#define TIMER_SLACK_NS 1ul
/* Batches of packets that are read before other work has its turn. */
#define BATCHES_MAX 64u

/* A flow that is measured. */
struct round {
    uint32_t number; /* 0: none */
    uint32_t packets, flows, sent;
    bool draining;
    lh_time drained_ns;
    struct model_place *places; /* of all flows, one behind the other */
    struct model_arrival_order orders[LH_PROBE_FLOWS_MAX];
    lh_time first_ns, last_ns;
    uint64_t socket_drops, host_drops; /* the counters as it began */
};

struct run {
    int tcp;
    uint64_t token;
    struct probe_port port;
    lh_time ends_ns, heard_ns;
    struct round round;
    bool ended;
    bool reached; /* a packet of the client came */
    uint16_t udp_port;
};

/* ---- a round ----------------------------------------------------------------------------------------- */

static uint32_t packets_of_flow(uint32_t packets, uint32_t flows, uint32_t flow)
{
    return packets / flows + (flow < packets % flows);
}

static int begin_round(struct run *run, const struct probe_message *begin)
{
    struct round *round = &run->round;
    uint32_t packets = (uint32_t)begin->numbers[PROBE_BEGIN_PACKETS];
    if (round->number != 0)
        return lh_fail(LH_EPROTOCOL, "unexpected start of a round");
    struct model_place *places = calloc(packets, sizeof *places);
    if (places == NULL)
        return lh_fail(LH_ENOMEM, "no memory for a round of %u packets", packets);
    *round = (struct round){.number = (uint32_t)begin->numbers[PROBE_BEGIN_ROUND],
                            .packets = packets,
                            .flows = (uint32_t)begin->numbers[PROBE_BEGIN_FLOWS],
                            .places = places,
                            .socket_drops = socket_drops(run->port.fds[0]),
                            .host_drops = host_drops_of_stack()};
    for (uint32_t flow = 0; flow < round->flows; flow++) {
        uint32_t count = packets_of_flow(packets, round->flows, flow);
        model_arrival_order_init(&round->orders[flow], places, count);
        places += count;
    }
    probe_port_start_round(&run->port, round->number);
    struct probe_message ready = {.type = PROBE_READY, .numbers = {round->number}};
    return probe_message_write(run->tcp, &ready, tcp_deadline(MESSAGE_NS));
}

static void end_round(struct run *run)
{
    free(run->round.places);
    run->round = (struct round){0};
}

static void on_data(struct run *run, const struct port_arrival *arrival)
{
    struct round *round = &run->round;
    const struct probe_packet *packet = &arrival->packet;
    if (round->number == 0 || packet->round != round->number || packet->number >= round->packets ||
        packet->flow != packet->number % round->flows)
        return;
    model_arrival_order_add(&round->orders[packet->flow], packet->number / round->flows, arrival->at_ns);
    if (round->first_ns == 0)
        round->first_ns = arrival->at_ns;
    if (arrival->at_ns > round->last_ns)
        round->last_ns = arrival->at_ns;
}

static uint64_t received(const struct round *round)
{
    uint64_t sum = 0;
    for (uint32_t flow = 0; flow < round->flows; flow++)
        sum += round->orders[flow].received;
    return sum;
}

/* Loss in the order of sending, over all flows: a burst at one place of the path hits neighbours there. */
static void report_loss(const struct round *round, struct probe_message *report)
{
    struct model_loss_runs runs = {0};
    struct model_loss_before before = {0};
    for (uint32_t number = 0; number < round->sent; number++) {
        uint32_t flow = number % round->flows;
        bool lost = !model_arrival_order_has(&round->orders[flow], number / round->flows);
        model_loss_runs_add(&runs, &before, lost);
        report->numbers[PROBE_REPORT_FLOW_LOST + flow] += lost;
    }
    probe_message_set_runs(report, &runs);
    report->numbers[PROBE_REPORT_RECEIVED] = runs.packets - runs.lost;
}

static void report_order(const struct round *round, struct probe_message *report)
{
    uint64_t *numbers = report->numbers;
    for (uint32_t flow = 0; flow < round->flows; flow++) {
        const struct model_arrival_order *order = &round->orders[flow];
        numbers[PROBE_REPORT_DUPLICATES] += order->duplicates;
        numbers[PROBE_REPORT_REORDERED] += order->reordered;
        numbers[PROBE_REPORT_EXTENT_SUM] += order->extent_sum;
        if (order->extent_max > numbers[PROBE_REPORT_EXTENT_MAX])
            numbers[PROBE_REPORT_EXTENT_MAX] = order->extent_max;
        if (order->late_max_ns > numbers[PROBE_REPORT_LATE_MAX_NS])
            numbers[PROBE_REPORT_LATE_MAX_NS] = order->late_max_ns;
    }
}

static int report_round(struct run *run)
{
    const struct round *round = &run->round;
    struct probe_message report = {.type = PROBE_REPORT};
    report.numbers[PROBE_REPORT_ROUND] = round->number;
    report.numbers[PROBE_REPORT_SPAN_NS] =
        round->last_ns > round->first_ns ? round->last_ns - round->first_ns : 0;
    report.numbers[PROBE_REPORT_SOCKET_DROPS] = socket_drops(run->port.fds[0]) - round->socket_drops;
    report.numbers[PROBE_REPORT_HOST_DROPS] = host_drops_of_stack() - round->host_drops;
    report_loss(round, &report);
    report_order(round, &report);
    end_round(run);
    return probe_message_write(run->tcp, &report, tcp_deadline(MESSAGE_NS));
}

static bool is_drained(const struct round *round, lh_time now)
{
    return round->draining && (received(round) >= round->sent || now >= round->drained_ns);
}

/* ---- packets and messages ---------------------------------------------------------------------------- */

/* Answers are never longer than what they answer, and go where it came from. */
static void answer(struct run *run, const struct port_arrival *arrival, enum probe_packet_kind kind)
{
    struct probe_packet packet = arrival->packet;
    lh_time now = tcp_now();
    lh_time held_ns = now > arrival->at_ns ? now - arrival->at_ns : 0;
    packet.kind = kind;
    packet.bytes = LH_PROBE_PAYLOAD_MIN;
    packet.held_ns = held_ns < UINT32_MAX ? (uint32_t)held_ns : UINT32_MAX;
    struct port_packet out = {.bytes = packet.bytes, .to = arrival->from};
    if (arrival->packet.bytes < packet.bytes)
        return;
    probe_packet_encode(&packet, out.header);
    probe_port_send(&run->port, &out, now); /* or not: then it is as lost as on a full link */
}

static void on_packet(struct run *run, const struct port_arrival *arrival)
{
    switch (arrival->packet.kind) {
    case PROBE_PING:
        answer(run, arrival, PROBE_PONG);
        break;
    case PROBE_WHOLE:
        answer(run, arrival, PROBE_CAME);
        break;
    case PROBE_DATA:
        on_data(run, arrival);
        break;
    case PROBE_PONG:
    case PROBE_CAME:
        break;
    }
}

/* Whether nothing is left. */
static bool receive(struct run *run)
{
    struct port_arrival arrivals[PORT_BATCH];
    uint32_t seen = PORT_BATCH;
    for (uint32_t batch = 0; batch < BATCHES_MAX && seen == PORT_BATCH; batch++) {
        uint32_t count = probe_port_receive(&run->port, run->token, arrivals, &seen);
        for (uint32_t i = 0; i < count; i++)
            on_packet(run, &arrivals[i]);
        if (count > 0)
            run->heard_ns = tcp_now();
        run->reached |= count > 0;
    }
    return seen < PORT_BATCH;
}

static int on_end(struct run *run, const struct probe_message *end)
{
    struct round *round = &run->round;
    if (round->number == 0 || end->numbers[PROBE_END_ROUND] != round->number || round->draining ||
        end->numbers[PROBE_END_SENT] > round->packets)
        return lh_fail(LH_EPROTOCOL, "unexpected end of a round");
    round->sent = (uint32_t)end->numbers[PROBE_END_SENT];
    round->drained_ns = tcp_now() + end->numbers[PROBE_END_DRAIN_NS];
    round->draining = true;
    return 0;
}

static int on_word(struct run *run)
{
    struct probe_message message;
    char byte;
    ssize_t got = recv(run->tcp, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    run->ended = got <= 0;
    if (run->ended && !run->reached)
        return lh_fail(LH_EPEER,
                       "no packet of the client arrived at UDP port %u, TCP passes: a firewall on the path "
                       "(let UDP port %u through)",
                       run->udp_port, run->udp_port);
    if (run->ended)
        return run->round.number != 0 ? lh_fail(LH_EPEER, "the client disconnected during a measurement")
                                      : 0;
    run->heard_ns = tcp_now();
    int error = probe_message_read(run->tcp, &message, tcp_deadline(MESSAGE_NS));
    if (error != 0)
        return error;
    if (message.type == PROBE_BEGIN)
        return begin_round(run, &message);
    if (message.type == PROBE_END)
        return on_end(run, &message);
    return lh_fail(LH_EPROTOCOL, "unexpected message type %d from the client", message.type);
}

/* ---- the run ----------------------------------------------------------------------------------------- */

static int check_time(const struct run *run, lh_time now)
{
    if (now >= run->ends_ns)
        return lh_fail(LH_ETIMEDOUT, "the probe exceeded its time limit");
    if (now >= run->heard_ns + SILENCE_NS)
        return lh_fail(LH_ETIMEDOUT, "no message from the client in time");
    return 0;
}

static int serve_until_end(struct run *run)
{
    int error = 0;
    while (error == 0 && !run->ended) { /* until the client closes, or its time is over */
        bool all = receive(run);
        lh_time now = tcp_now();
        error = check_time(run, now);
        if (error == 0 && all && is_drained(&run->round, now))
            error = report_round(run);
        if (error != 0)
            break;
        lh_time next_ns = probe_port_pump(&run->port, now);
        if (!all)
            continue;
        lh_keep_earlier(&next_ns, run->heard_ns + SILENCE_NS);
        if (run->round.draining)
            lh_keep_earlier(&next_ns, run->round.drained_ns);
        /* While a round drains only packets matter, and that the client is there shows at the report. */
        if (probe_port_wait(&run->port, run->round.draining ? -1 : run->tcp, next_ns)) {
            receive(run); /* what came before the message counts */
            error = on_word(run);
        }
    }
    return error;
}

static int open_run(struct run *run, const struct probe_message *hello)
{
    struct lh_link_spec link;
    int error = lh_link_parse(hello->text, &link);
    if (error == 0 && getrandom(&run->token, sizeof run->token, 0) != sizeof run->token)
        error = lh_fail(LH_ESYSTEM, "getrandom: %s", strerror(errno));
    if (error == 0)
        error = probe_port_open_server(&run->port, run->tcp, &run->udp_port, &link);
    if (error != 0)
        return error;
    struct probe_message welcome = {.type = PROBE_WELCOME, .numbers = {run->udp_port, run->token}};
    return probe_message_write(run->tcp, &welcome, tcp_deadline(MESSAGE_NS));
}

static void refuse(int tcp)
{
    struct probe_message refusal = {.type = PROBE_REFUSE};
    const char *why = lh_last_error();
    size_t bytes = 0;
    for (; why[bytes] != '\0' && bytes < PROBE_TEXT_MAX; bytes++)
        refusal.text[bytes] = why[bytes];
    probe_message_write(tcp, &refusal, tcp_deadline(MESSAGE_NS));
}

/* From its HELLO to its end. 0 when it closed between two rounds; -LH_EPROTOCOL, -LH_EPEER (in the middle of
 * a round), -LH_ETIMEDOUT, or an error of this side, which the client gets as a REFUSE. */
static int probe_serve(int tcp_fd, const struct probe_message *hello)
{
    lh_time now = tcp_now();
    struct run run = {
        .tcp = tcp_fd, .ends_ns = now + hello->numbers[PROBE_HELLO_TIME_NS] + SPARE_NS, .heard_ns = now};
    int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    int error = open_run(&run, hello);
    if (error == 0)
        error = serve_until_end(&run);
    prctl(PR_SET_TIMERSLACK, slack > 0 ? (unsigned long)slack : 0ul);
    end_round(&run);
    probe_port_close(&run.port);
    if (error != 0 && error != -LH_EPEER)
        refuse(tcp_fd);
    return error;
}

/* ---- server ---------------------------------------------------------------------------------------- */

/*
 * Listens, reads the HELLO of several clients side by side, and serves one at a time.
 *
 * Timers: HELLO_TIMEOUT_NS from a client's arrival to its whole HELLO.
 */

/* Without a HELLO yet; admission.h names the one that has to leave. */
#define CLIENTS_MAX      16u
#define HELLO_TIMEOUT_NS (5 * LH_NS_PER_S)
#define NO_DESCRIPTOR_NS (10 * LH_NS_PER_MS)

struct client {
    int fd;
    struct admission_address address;
    lh_time deadline;
    size_t have;
    uint8_t bytes[PROBE_MESSAGE_BYTES_MAX];
};

struct lh_probe_server {
    int fd;
    uint16_t port;
    bool loopback_only;
    char peer[TCP_NAME_MAX];
    uint32_t client_count;
    struct client clients[CLIENTS_MAX]; /* in the order in which they came */
};

int lh_probe_listen(const char *where, struct lh_probe_server **out)
{
    struct lh_probe_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return lh_fail(LH_ENOMEM, "no memory for a server");
    int error = tcp_listen(where, &server->fd, &server->port);
    if (error != 0) {
        free(server);
        return error;
    }
    *out = server;
    return 0;
}

uint16_t lh_probe_server_port(const struct lh_probe_server *server)
{
    return server->port;
}

const char *lh_probe_server_peer(const struct lh_probe_server *server)
{
    return server->peer;
}

void lh_probe_server_close(struct lh_probe_server *server)
{
    if (server == NULL)
        return;
    for (uint32_t i = 0; i < server->client_count; i++)
        close(server->clients[i].fd);
    close(server->fd);
    free(server);
}

static void name_peer(struct lh_probe_server *server, int fd)
{
    if (tcp_peer_name(fd, server->peer, sizeof server->peer) != 0)
        snprintf(server->peer, sizeof server->peer, "unknown client");
}

/* Takes a client out of the list; its descriptor is the caller's. */
static int take_out(struct lh_probe_server *server, uint32_t index)
{
    int fd = server->clients[index].fd;
    name_peer(server, fd);
    server->client_count--;
    memmove(&server->clients[index], &server->clients[index + 1],
            (server->client_count - index) * sizeof server->clients[0]);
    return fd;
}

static bool send_away(struct lh_probe_server *server, const struct admission_address *newcomer)
{
    struct admission_place places[CLIENTS_MAX];
    for (uint32_t i = 0; i < server->client_count; i++)
        places[i] = (struct admission_place){.address = server->clients[i].address,
                                             .connection = server->clients[i].fd,
                                             .standing = ADMISSION_NEW,
                                             .arrival = i};
    uint32_t victim = admission_victim(places, server->client_count, newcomer);
    if (victim != ADMISSION_NONE)
        close(take_out(server, victim));
    return victim != ADMISSION_NONE;
}

/* One on another host, before anything is read of it: it takes no place, so no client leaves for it. */
static int turn_away(struct lh_probe_server *server, int fd)
{
    name_peer(server, fd);
    int error = lh_fail(LH_EHANDSHAKE, "%s", PROBE_LOOPBACK_ONLY);
    refuse(fd);
    close(fd);
    return error;
}

void lh_probe_server_loopback_only(struct lh_probe_server *server)
{
    server->loopback_only = true;
    for (uint32_t i = server->client_count; i-- > 0;)
        if (!tcp_peer_is_local(server->clients[i].fd))
            turn_away(server, take_out(server, i));
}

/* As many as there are places, up to one that is turned away, whose error is returned; without a place a
 * single client, since each is to be read once before it may have to leave. So none leaves behind one that
 * was just taken: without a descriptor accept() fails even if no client waits. */
static int let_in(struct lh_probe_server *server)
{
    int fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    const struct admission_address unknown = {0};
    if (fd < 0 && tcp_is_exhausted(errno) && !send_away(server, &unknown))
        nanosleep(&(struct timespec){.tv_nsec = NO_DESCRIPTOR_NS}, NULL);
    while (fd >= 0) { /* until all places are taken */
        if (server->loopback_only && !tcp_peer_is_local(fd))
            return turn_away(server, fd);
        const struct admission_address address = admission_address_of(fd);
        if (server->client_count == CLIENTS_MAX)
            send_away(server, &address);
        struct client *client = &server->clients[server->client_count++];
        *client = (struct client){.fd = fd, .address = address, .deadline = tcp_deadline(HELLO_TIMEOUT_NS)};
        if (server->client_count == CLIENTS_MAX)
            break;
        fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    }
    return 0;
}

/* 1: its HELLO is whole; 0: more is to come; or why it is no client. */
static int listen_to(struct client *client, struct probe_message *hello)
{
    size_t whole = PROBE_MESSAGE_HEADER_BYTES;
    for (;;) { /* header, then the rest */
        if (client->have >= PROBE_MESSAGE_HEADER_BYTES) {
            int error = probe_message_header(client->bytes, &whole);
            if (error != 0)
                return error;
        }
        if (client->have >= PROBE_MESSAGE_HEADER_BYTES && client->have == whole)
            break;
        ssize_t got = recv(client->fd, client->bytes + client->have, whole - client->have, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return tcp_now() < client->deadline ? 0 : lh_fail(LH_ETIMEDOUT, "no greeting in time");
        if (got <= 0)
            return lh_fail(LH_EPEER, "disconnected without a greeting");
        client->have += (size_t)got;
    }
    int error = probe_message_decode(client->bytes, whole, hello);
    if (error != 0)
        return error;
    return hello->type == PROBE_HELLO ? 1 : lh_fail(LH_EPROTOCOL, "invalid greeting");
}

/* True: *result is what became of a client. */
static bool serve_one(struct lh_probe_server *server, int *result)
{
    for (uint32_t i = 0; i < server->client_count; i++) {
        struct probe_message hello;
        int outcome = listen_to(&server->clients[i], &hello);
        if (outcome == 0)
            continue;
        int fd = take_out(server, i);
        *result = outcome < 0 ? outcome : probe_serve(fd, &hello);
        close(fd);
        return true;
    }
    return false;
}

static int wait_for_word(struct lh_probe_server *server, lh_time deadline)
{
    struct pollfd fds[CLIENTS_MAX + 1] = {{.fd = server->fd, .events = POLLIN}};
    for (uint32_t i = 0; i < server->client_count; i++) {
        fds[i + 1] = (struct pollfd){.fd = server->clients[i].fd, .events = POLLIN};
        lh_keep_earlier(&deadline, server->clients[i].deadline);
    }
    lh_time now = tcp_now();
    lh_time span = lh_earlier(deadline > now ? deadline - now : 0, LH_NS_PER_S);
    struct timespec timeout = {(time_t)(span / LH_NS_PER_S), (long)(span % LH_NS_PER_S)};
    int ready = ppoll(fds, server->client_count + 1, &timeout, NULL);
    if (ready < 0 && errno != EINTR)
        return lh_fail(LH_ESYSTEM, "poll: %s", strerror(errno));
    return ready > 0 && fds[0].revents != 0 ? let_in(server) : 0;
}

int lh_probe_serve(struct lh_probe_server *server, lh_time timeout_ns)
{
    lh_time deadline = tcp_deadline(timeout_ns);
    int result;
    for (;;) { /* until a client was served, or the deadline passes */
        if (serve_one(server, &result))
            return result == -LH_ETIMEDOUT ? -LH_EPEER : result;
        if (tcp_now() >= deadline)
            return lh_fail(LH_ETIMEDOUT, "no client connected in time");
        int error = wait_for_word(server, deadline);
        if (error != 0)
            return error;
    }
}
