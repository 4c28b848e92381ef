/*
 * server.c - listens, reads the HELLO of several clients side by side, and serves one at a time.
 *
 * Timers: HELLO_TIMEOUT_NS from a client's arrival to its whole HELLO.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/probe.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/earlier.h"
#include "base/error.h"
#include "launch/admission.h"
#include "launch/tcp.h"
#include "probe/serve.h"

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

/* Takes a client out of the list; its descriptor is the caller's. */
static int take_out(struct lh_probe_server *server, uint32_t index)
{
    int fd = server->clients[index].fd;
    if (tcp_peer_name(fd, server->peer, sizeof server->peer) != 0)
        snprintf(server->peer, sizeof server->peer, "unknown client");
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

/* As many as there are places; without one a single client, since each is to be read once before it may
 * have to leave. */
static void let_in(struct lh_probe_server *server)
{
    int fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct admission_address address = {0};
    while (fd >= 0) { /* until all places are taken */
        address = admission_address_of(fd);
        if (server->client_count == CLIENTS_MAX)
            send_away(server, &address);
        struct client *client = &server->clients[server->client_count++];
        *client = (struct client){.fd = fd, .address = address, .deadline = tcp_deadline(HELLO_TIMEOUT_NS)};
        if (server->client_count == CLIENTS_MAX)
            return;
        fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    }
    if (tcp_is_exhausted(errno) && !send_away(server, &address))
        nanosleep(&(struct timespec){.tv_nsec = NO_DESCRIPTOR_NS}, NULL);
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
    if (ready > 0 && fds[0].revents != 0)
        let_in(server);
    return 0;
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
