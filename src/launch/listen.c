/*
 * A listener reads the first words of several clients side by side, so that a silent one keeps nobody
 * waiting. A client that has made its proposal is then served to the end, within RENDEZVOUS_PATIENCE_NS.
 *
 * Timers: patience, RENDEZVOUS_PATIENCE_NS from the moment that a client was accepted to its whole
 * proposal.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/connection.h>

#include "base/error.h"
#include "connection/attr.h"
#include "launch/rendezvous.h"
#include "launch/tcp.h"

#define CLIENTS_MAX                                                                                        \
    32u /* that have not made their proposal yet; the one that waited longest goes first                   \
         */
#define PROPOSAL_MAX           (HANDSHAKE_HEADER_BYTES + HANDSHAKE_PROPOSAL_MIN + HANDSHAKE_LINK_TEXT_MAX)
#define LISTEN_TEXT_MAX        256u
#define NO_DESCRIPTOR_PAUSE_NS 10000000L /* 10 ms */
#define LISTEN_CPUS_MAX        64u

struct client {
    int fd;
    lh_time deadline;
    uint32_t have;
    uint8_t words[PROPOSAL_MAX];
};

struct lh_listener {
    int fd;
    uint16_t port;
    struct lh_attr attr; /* its texts and lists are the listener's own */
    char device[LISTEN_TEXT_MAX];
    char reliability[LISTEN_TEXT_MAX];
    int cpus[LISTEN_CPUS_MAX];
    uint32_t client_count;
    struct client clients[CLIENTS_MAX]; /* in the order in which they came */
};

static int keep_text(const char **text, char *room, const char *name)
{
    if (!*text)
        return 0;
    if (strlen(*text) >= LISTEN_TEXT_MAX)
        return lh_fail(LH_EINVAL, "%s is longer than %u bytes", name, LISTEN_TEXT_MAX - 1);
    strcpy(room, *text);
    *text = room;
    return 0;
}

static int keep_attr(struct lh_listener *listener)
{
    struct lh_attr *attr = &listener->attr;
    int error = keep_text(&attr->device, listener->device, "device");
    if (!error)
        error = keep_text(&attr->reliability, listener->reliability, "reliability");
    if (!error && attr->worker_cpus && attr->workers != LH_NO_WORKERS) {
        uint32_t count = attr->workers ? attr->workers : 1;
        memcpy(listener->cpus, attr->worker_cpus, count * sizeof *listener->cpus);
        attr->worker_cpus = listener->cpus;
    }
    return error;
}

int lh_listen(const char *where, const struct lh_attr *given, struct lh_listener **out)
{
    struct lh_listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return lh_fail(LH_ENOMEM, "no memory for a listener");
    int error = attr_check(given, &listener->attr);
    if (!error)
        error = keep_attr(listener);
    if (!error)
        error = tcp_listen(where, &listener->fd, &listener->port);
    if (error) {
        free(listener);
        return error;
    }
    *out = listener;
    return 0;
}

uint16_t lh_listener_port(const struct lh_listener *listener)
{
    return listener->port;
}

static void forget_client(struct lh_listener *listener, uint32_t index)
{
    listener->client_count--;
    memmove(&listener->clients[index], &listener->clients[index + 1],
            (listener->client_count - index) * sizeof listener->clients[0]);
}

void lh_listener_close(struct lh_listener *listener)
{
    if (!listener)
        return;
    for (uint32_t i = 0; i < listener->client_count; i++)
        close(listener->clients[i].fd);
    close(listener->fd);
    free(listener);
}

static void refuse_oldest(struct lh_listener *listener)
{
    lh_fail(LH_EHANDSHAKE, "too many clients were waiting");
    rendezvous_refuse(listener->clients[0].fd);
    forget_client(listener, 0);
}

/* The client stays in the backlog, which would end every wait at once: first one that says nothing makes
 * room, then this thread pauses. */
static void on_no_descriptor(struct lh_listener *listener)
{
    if (listener->client_count > 0)
        refuse_oldest(listener);
    else
        nanosleep(&(struct timespec){.tv_nsec = NO_DESCRIPTOR_PAUSE_NS}, NULL);
}

static void take_client(struct lh_listener *listener)
{
    int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            on_no_descriptor(listener);
        return; /* or it went away again */
    }
    if (listener->client_count == CLIENTS_MAX)
        refuse_oldest(listener);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    listener->clients[listener->client_count++] =
        (struct client){.fd = fd, .deadline = tcp_deadline(RENDEZVOUS_PATIENCE_NS)};
}

/* What a client has said so far: 1 a whole proposal, 0 not yet, negative: no client of ours. */
static int hear_client(struct client *client, struct handshake_proposal *proposal)
{
    for (;;) { /* at most a header and a body */
        uint32_t want = HANDSHAKE_HEADER_BYTES;
        if (client->have >= want) {
            enum handshake_type type;
            uint32_t body;
            int error = handshake_header_decode(client->words, &type, &body);
            if (error)
                return error;
            if (type != HANDSHAKE_PROPOSAL || body > PROPOSAL_MAX - HANDSHAKE_HEADER_BYTES)
                return lh_fail(LH_EHANDSHAKE, "a handshake begins with a proposal, not with frame %d",
                               (int)type);
            want += body;
            if (client->have == want) {
                error = handshake_proposal_decode(client->words + HANDSHAKE_HEADER_BYTES, body, proposal);
                return error ? error : 1;
            }
        }
        ssize_t got = recv(client->fd, client->words + client->have, want - client->have, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (got <= 0)
            return lh_fail(LH_EPEER, "the other side hung up");
        client->have += (uint32_t)got;
    }
}

/* Serves the client, if it is one of ours; -LH_EAGAIN when it was not, and is gone. */
static int serve_client(struct lh_listener *listener, uint32_t index, struct lh_connection **connection)
{
    struct handshake_proposal proposal;
    struct client *client = &listener->clients[index];
    int fd = client->fd;
    int heard = hear_client(client, &proposal);
    if (heard == 0 && client->deadline > tcp_now())
        return -LH_EAGAIN;
    if (heard == 0)
        heard = lh_fail(LH_ETIMEDOUT, "no proposal within %llu s",
                        (unsigned long long)(RENDEZVOUS_PATIENCE_NS / LH_NS_PER_S));
    forget_client(listener, index);
    if (heard < 0) {
        rendezvous_refuse(fd);
        return -LH_EAGAIN;
    }
    int error =
        rendezvous_accept(fd, &listener->attr, &proposal, tcp_deadline(RENDEZVOUS_PATIENCE_NS), connection);
    return error ? -LH_EAGAIN : 0;
}

static lh_time earliest_deadline(const struct lh_listener *listener, lh_time deadline)
{
    for (uint32_t i = 0; i < listener->client_count; i++)
        if (listener->clients[i].deadline < deadline)
            deadline = listener->clients[i].deadline;
    return deadline;
}

/* Waits for a client or a word of one, until the deadline. */
static int wait_for_word(struct lh_listener *listener, lh_time deadline)
{
    struct pollfd fds[CLIENTS_MAX + 1] = {{.fd = listener->fd, .events = POLLIN}};
    for (uint32_t i = 0; i < listener->client_count; i++)
        fds[i + 1] = (struct pollfd){.fd = listener->clients[i].fd, .events = POLLIN};
    lh_time now = tcp_now();
    lh_time until = earliest_deadline(listener, deadline);
    lh_time span = until == LH_TIME_NEVER ? 3600 * LH_NS_PER_S : until > now ? until - now : 0;
    struct timespec timeout = {(time_t)(span / LH_NS_PER_S), (long)(span % LH_NS_PER_S)};
    int ready = ppoll(fds, listener->client_count + 1, &timeout, NULL);
    if (ready < 0 && errno != EINTR)
        return lh_fail(LH_ESYSTEM, "poll: %s", strerror(errno));
    if (ready < 0)
        return -LH_EAGAIN; /* a signal: the caller may want to stop */
    if (fds[0].revents & POLLIN)
        take_client(listener);
    return 0;
}

int lh_accept(struct lh_listener *listener, lh_time timeout_ns, struct lh_connection **connection)
{
    lh_time deadline = tcp_deadline(timeout_ns);
    for (;;) { /* until a connection stands or the deadline passes */
        for (uint32_t i = listener->client_count; i-- > 0;)
            if (serve_client(listener, i, connection) == 0)
                return 0;
        if (tcp_now() >= deadline)
            return lh_fail(LH_ETIMEDOUT, "nobody connected in time");
        int error = wait_for_word(listener, deadline);
        if (error && error != -LH_EAGAIN)
            return error;
    }
}
