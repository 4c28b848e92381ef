/*
 * Timers: each client's handshake, GROUP_CLIENT_TIMEOUT_NS from its connection; the deadline of the call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "launch/group/group_root.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/big_endian.h"
#include "base/error.h"
#include "launch/group/group_member.h"

/* The table for poll(): the listener, the clients, the ranks. */
#define FIRST_CLIENT 1u
#define FIRST_RANK   (FIRST_CLIENT + GROUP_CLIENTS_MAX)
/* Deadlines of clients are looked at that often. */
#define POLL_SPAN_NS LH_NS_PER_S
/* After an accept() without a descriptor, whose client stays in the backlog. */
#define PAUSE_NS       (10 * LH_NS_PER_MS)
#define NAMED_RANKS    8u
#define REFUSAL_MAX    (GROUP_REASON_MAX + TCP_NAME_MAX)
#define ALL_HEAD_BYTES (GROUP_FRAME_HEADER_BYTES + GROUP_ROUND_BYTES)

/* What the ranks that are there are waited for. */
enum phase { PHASE_JOIN, PHASE_READ, PHASE_WRITE };

struct group_root {
    int fd;
    struct group_terms terms;
    uint32_t round;
    enum phase phase;
    uint32_t waiting;           /* ranks that the phase still waits for */
    bool *over;                 /* by rank: it does not wait for this one */
    struct group_member *ranks; /* ranks[0] is not used */
    struct group_member clients[GROUP_CLIENTS_MAX];
    struct pollfd *polls;
    char refusal[REFUSAL_MAX]; /* the last one, for who misses a rank */
    /* the exchange that is under way */
    uint8_t *all; /* the frame ALL */
    size_t part_bytes;
};

/* ---- messages ---------------------------------------------------------------------------------------- */

/* "rank 2", "ranks 1, 3 and 5 others". */
static void name_waiting(const struct group_root *root, char *out, size_t size)
{
    uint32_t named = 0;
    int used = snprintf(out, size, root->waiting == 1 ? "rank" : "ranks");
    for (uint32_t rank = 1; rank < root->terms.size && named < NAMED_RANKS; rank++)
        if (!root->over[rank])
            used += snprintf(out + used, size - (size_t)used, "%s %u", named++ ? "," : "", rank);
    if (root->waiting > named)
        snprintf(out + used, size - (size_t)used, " and %u others", root->waiting - named);
}

static int timed_out(const struct group_root *root, lh_time timeout_ns)
{
    char names[NAMED_RANKS * 8 + 32];
    double seconds = (double)timeout_ns / 1e9;
    bool joining = root->phase == PHASE_JOIN, refused = joining && *root->refusal;
    name_waiting(root, names, sizeof names);
    return lh_fail(LH_ETIMEDOUT, "%s of %u: %s within %g s%s%s", names, root->terms.size,
                   joining ? "not joined" : "no answer", seconds, refused ? "; refused " : "",
                   refused ? root->refusal : " (start all ranks; is MASTER_ADDR the same for all?)");
}

/* ---- clients ----------------------------------------------------------------------------------------- */

static void refuse_client(struct group_root *root, struct group_member *client, int error)
{
    char reason[REFUSAL_MAX];
    snprintf(reason, sizeof reason, "%.*s", (int)GROUP_REASON_MAX, lh_last_error());
    if (error != -LH_EPEER)
        snprintf(root->refusal, sizeof root->refusal, "%.*s: %.*s", (int)TCP_NAME_MAX - 16, client->name,
                 (int)GROUP_REASON_MAX, reason);
    group_member_refuse(client);
}

/* A free place, or that of the client that has been there longest. */
static struct group_member *make_place(struct group_root *root)
{
    struct group_member *oldest = &root->clients[0];
    for (uint32_t i = 0; i < GROUP_CLIENTS_MAX; i++) {
        struct group_member *client = &root->clients[i];
        if (client->fd < 0)
            return client;
        if (client->deadline < oldest->deadline)
            oldest = client;
    }
    group_member_close(oldest);
    return oldest;
}

static void take_client(struct group_root *root, lh_time now)
{
    int fd = accept4(root->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        group_member_start(make_place(root), fd, now);
    else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* A client has proved that it may be the rank that it claims to be. */
static int join(struct group_root *root, struct group_member *client)
{
    struct group_member *rank = &root->ranks[client->claim.rank];
    if (rank->fd >= 0)
        return lh_fail(LH_EHANDSHAKE,
                       "rank %u joined twice, first from %s (each process has a rank of its own)",
                       client->claim.rank, rank->name);
    assert(root->phase == PHASE_JOIN && root->waiting > 0);
    *rank = *client;
    client->fd = -1;
    root->over[rank->claim.rank] = true;
    root->waiting--;
    return 0;
}

static void step_client(struct group_root *root, struct group_member *client, lh_time now)
{
    int done = group_member_step(client, &root->terms, now);
    if (done == 1)
        done = join(root, client);
    else if (done == 0 && client->deadline <= now)
        done = lh_fail(LH_ETIMEDOUT, "the handshake took longer than %llu s",
                       (unsigned long long)(GROUP_CLIENT_TIMEOUT_NS / LH_NS_PER_S));
    if (done < 0)
        refuse_client(root, client, done);
}

/* ---- ranks ------------------------------------------------------------------------------------------- */

/* While ranks join, one that disconnects may join again. */
static int on_gone(struct group_root *root, struct group_member *member)
{
    uint32_t rank = member->claim.rank;
    if (root->phase != PHASE_JOIN)
        return lh_fail(LH_EPEER, "rank %u (%s) has disconnected (its output has the reason)", rank,
                       member->name);
    group_member_close(member);
    root->over[rank] = false;
    root->waiting++;
    return 0;
}

/* What the phase waits for of a rank. 1: done; 0: goes on; or an error. */
static int step_part(struct group_root *root, uint32_t rank)
{
    struct group_member *member = &root->ranks[rank];
    if (root->phase == PHASE_WRITE)
        return group_member_write(member, root->all, ALL_HEAD_BYTES + root->part_bytes * root->terms.size);
    uint8_t *part = root->all + ALL_HEAD_BYTES + root->part_bytes * rank;
    return group_member_read_part(member, root->round, part, root->part_bytes);
}

static int step_rank(struct group_root *root, uint32_t rank)
{
    struct group_member *member = &root->ranks[rank];
    if (root->over[rank])
        return group_member_is_gone(member) ? on_gone(root, member) : 0;
    int done = step_part(root, rank);
    if (done == -LH_EPEER)
        return on_gone(root, member);
    if (done == 1) {
        root->over[rank] = true;
        root->waiting--;
    }
    return done < 0 ? done : 0;
}

/* ---- the loop ---------------------------------------------------------------------------------------- */

/* Of a rank that is over nothing comes but its end; in the last phase it may give its next part already. */
static struct pollfd wait_for(const struct group_root *root, uint32_t rank)
{
    bool writing = root->phase == PHASE_WRITE;
    return (struct pollfd){.fd = writing && root->over[rank] ? -1 : root->ranks[rank].fd,
                           .events = writing ? POLLOUT : POLLIN};
}

static int sleep_until(struct group_root *root, lh_time wake)
{
    uint32_t size = root->terms.size;
    root->polls[0] = (struct pollfd){.fd = root->fd, .events = POLLIN};
    for (uint32_t i = 0; i < GROUP_CLIENTS_MAX; i++)
        root->polls[FIRST_CLIENT + i] = (struct pollfd){.fd = root->clients[i].fd, .events = POLLIN};
    for (uint32_t rank = 1; rank < size; rank++)
        root->polls[FIRST_RANK + rank] = wait_for(root, rank);
    root->polls[FIRST_RANK].fd = -1;
    lh_time now = tcp_now(), span = wake > now ? wake - now : 0;
    if (span > POLL_SPAN_NS)
        span = POLL_SPAN_NS;
    struct timespec timeout = {(time_t)(span / LH_NS_PER_S), (long)(span % LH_NS_PER_S)};
    int ready = ppoll(root->polls, FIRST_RANK + size, &timeout, NULL);
    if (ready < 0 && errno == EINTR)
        for (uint32_t i = 0; i < FIRST_RANK + size; i++)
            root->polls[i].revents = 0;
    else if (ready < 0)
        return lh_fail(LH_ESYSTEM, "poll: %s", strerror(errno));
    return 0;
}

/* What has come, once. */
static int step_all(struct group_root *root)
{
    int error = 0;
    lh_time now = tcp_now();
    uint32_t size = root->terms.size;
    for (uint32_t rank = 1; rank < size && !error; rank++)
        if (root->polls[FIRST_RANK + rank].revents && root->ranks[rank].fd >= 0)
            error = step_rank(root, rank);
    for (uint32_t i = 0; i < GROUP_CLIENTS_MAX && !error; i++) {
        struct group_member *client = &root->clients[i];
        if (client->fd >= 0 && (root->polls[FIRST_CLIENT + i].revents || client->deadline <= now))
            step_client(root, client, now);
    }
    if (!error && root->polls[0].revents & POLLIN)
        take_client(root, now);
    return error;
}

/* The reason goes to all ranks that are there. */
static void abandon(struct group_root *root)
{
    for (uint32_t rank = 1; rank < root->terms.size; rank++)
        if (root->ranks[rank].fd >= 0)
            group_member_refuse(&root->ranks[rank]);
}

static int run_phase(struct group_root *root, enum phase phase, lh_time deadline, lh_time timeout_ns)
{
    int error = 0;
    root->phase = phase;
    root->waiting = root->terms.size - 1;
    memset(root->over, 0, root->terms.size * sizeof *root->over);
    while (root->waiting > 0 && !error) { /* until the deadline */
        if (tcp_now() >= deadline)
            error = timed_out(root, timeout_ns);
        else
            error = sleep_until(root, deadline);
        if (!error)
            error = step_all(root);
    }
    if (error)
        abandon(root);
    return error;
}

/* ---- calls ------------------------------------------------------------------------------------------- */

static void free_root(struct group_root *root)
{
    free(root->polls);
    free(root->over);
    free(root->ranks);
    free(root);
}

int group_root_open(const char *where, uint32_t size, const char *secret, struct group_root **out)
{
    uint16_t port;
    int error = 0;
    struct group_root *root = calloc(1, sizeof *root);
    if (!root)
        return lh_fail(LH_ENOMEM, "no memory for a rendezvous");
    root->terms = (struct group_terms){.size = size, .secret = secret};
    root->ranks = calloc(size, sizeof *root->ranks);
    root->over = calloc(size, sizeof *root->over);
    root->polls = calloc(FIRST_RANK + size, sizeof *root->polls);
    if (!root->ranks || !root->over || !root->polls)
        error = lh_fail(LH_ENOMEM, "no memory for a rendezvous of %u ranks", size);
    if (!error)
        error = tcp_listen(where, &root->fd, &port);
    if (error) {
        free_root(root);
        return error;
    }
    for (uint32_t rank = 0; rank < size; rank++)
        root->ranks[rank].fd = -1;
    for (uint32_t i = 0; i < GROUP_CLIENTS_MAX; i++)
        root->clients[i].fd = -1;
    *out = root;
    return 0;
}

int group_root_join(struct group_root *root, lh_time timeout_ns)
{
    root->terms.deadline = tcp_deadline(timeout_ns);
    int error = run_phase(root, PHASE_JOIN, root->terms.deadline, timeout_ns);
    for (uint32_t rank = 1; rank < root->terms.size && !error; rank++)
        error = group_member_welcome(&root->ranks[rank], &root->terms);
    if (error)
        abandon(root);
    return error;
}

int group_root_exchange(struct group_root *root, const void *mine, size_t bytes, void *all,
                        lh_time timeout_ns)
{
    uint32_t size = root->terms.size;
    lh_time deadline = tcp_deadline(timeout_ns);
    if (bytes > GROUP_EXCHANGE_MAX / size)
        return lh_fail(LH_ERANGE, "exchange: %zu bytes of %u ranks exceed %llu MiB", bytes, size,
                       (unsigned long long)(GROUP_EXCHANGE_MAX >> 20));
    root->all = malloc(ALL_HEAD_BYTES + bytes * size);
    if (!root->all)
        return lh_fail(LH_ENOMEM, "no memory for an exchange of %zu bytes", bytes * size);
    root->part_bytes = bytes;
    group_frame_encode(&(struct group_frame){GROUP_ALL, (uint32_t)(GROUP_ROUND_BYTES + bytes * size)},
                       root->all);
    lh_put_be32(root->all + GROUP_FRAME_HEADER_BYTES, root->round);
    if (bytes)
        memcpy(root->all + ALL_HEAD_BYTES, mine, bytes);
    for (uint32_t rank = 1; rank < size; rank++)
        root->ranks[rank].part_have = root->ranks[rank].sent = 0;
    int error = run_phase(root, PHASE_READ, deadline, timeout_ns);
    if (!error)
        error = run_phase(root, PHASE_WRITE, deadline, timeout_ns);
    if (!error && bytes)
        memcpy(all, root->all + ALL_HEAD_BYTES, bytes * size);
    free(root->all);
    root->all = NULL;
    root->round++;
    return error;
}

int group_root_socket(const struct group_root *root, uint32_t rank)
{
    assert(rank > 0 && rank < root->terms.size);
    return root->ranks[rank].fd;
}

void group_root_close(struct group_root *root)
{
    lh_time now = tcp_now();
    /* Each turn takes one of the backlog, or closes one that waits. */
    struct pollfd backlog = {.fd = root->fd, .events = POLLIN};
    for (uint32_t i = 0; i < 2 * GROUP_CLIENTS_MAX && poll(&backlog, 1, 0) > 0; i++)
        take_client(root, now);
    close(root->fd);
    lh_fail(LH_EHANDSHAKE, "the group is complete: %u ranks have joined (is a rank used twice?)",
            root->terms.size);
    for (uint32_t i = 0; i < GROUP_CLIENTS_MAX; i++)
        if (root->clients[i].fd >= 0)
            group_member_refuse(&root->clients[i]);
    for (uint32_t rank = 1; rank < root->terms.size; rank++)
        if (root->ranks[rank].fd >= 0)
            group_member_close(&root->ranks[rank]);
    free_root(root);
}
