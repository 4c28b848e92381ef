/*
 * event_loop.c - messages of many peers in one event loop: an engine, a completion queue, epoll.
 *
 *   event_loop serve DEVICE :PORT PEERS     receives from PEERS clients until they have closed
 *   event_loop send DEVICE HOST:PORT N      sends N messages; DEVICE is like udp:[::1]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <longhaul/longhaul.h>

#define MESSAGE_BYTES 4096u
#define DEPTH         16u /* messages of a peer at once */
#define BATCH         32u

static struct lh_engine *engine;
static struct lh_completion_queue *queue;

/* Any failure ends the program; returns the code, which is not negative. */
static int must(int code, const char *what)
{
    if (code >= 0)
        return code;
    fprintf(stderr, "%s: %s: %s\n", what, lh_strerror(code), lh_last_error());
    exit(1);
}

static void start(const char *device, uint32_t peers)
{
    struct lh_engine_attr attr;
    lh_engine_attr_init(&attr);
    attr.device = device;
    must(lh_engine_create(&attr, &engine), device);
    must(lh_completion_queue_create(engine, peers * DEPTH, &queue), "lh_completion_queue_create");
}

static struct lh_attr attr_of_engine(void)
{
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.engine = engine;
    return attr;
}

/* ---- serve ------------------------------------------------------------------------------------------- */

struct peer {
    struct lh_connection *connection;
    unsigned long long messages;
    unsigned pending;
    unsigned char buffers[DEPTH][MESSAGE_BYTES];
};

/* The user value of a request is its buffer's number among all. */
static void receive(struct peer *peers, uint64_t number)
{
    struct peer *peer = &peers[number / DEPTH];
    if (lh_post_recv(peer->connection, peer->buffers[number % DEPTH], MESSAGE_BYTES, NULL, queue, number,
                     NULL) == 0)
        peer->pending++;
}

/* Whether its peer is gone, and had nothing else pending. */
static int on_completion(struct peer *peers, const struct lh_completion *entry)
{
    struct peer *peer = &peers[entry->user / DEPTH];
    peer->pending--;
    if (entry->result.error == 0) {
        peer->messages++;
        receive(peers, entry->user);
    }
    return peer->pending == 0;
}

static void loop(struct peer *peers, uint32_t open)
{
    struct lh_completion entries[BATCH];
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(epoll, EPOLL_CTL_ADD, must(lh_queue_fd(queue), "lh_queue_fd"),
              &event); /* and others of yours */
    while (open > 0) {
        int taken = lh_poll(queue, entries, BATCH);
        for (int i = 0; i < taken; i++)
            open -= (uint32_t)on_completion(peers, &entries[i]);
        if (taken == 0 && lh_queue_arm(queue) == 0)
            epoll_wait(epoll, &event, 1, -1);
    }
}

static void serve(const char *where, uint32_t count)
{
    struct lh_attr attr = attr_of_engine();
    struct lh_listener *listener;
    struct peer *peers = calloc(count, sizeof *peers);
    must(lh_listen(where, &attr, &listener), where);
    printf("port %u\n", lh_listener_port(listener));
    fflush(stdout);
    for (uint32_t i = 0; i < count; i++) {
        must(lh_accept(listener, LH_TIME_NEVER, &peers[i].connection), "lh_accept");
        for (uint32_t k = 0; k < DEPTH; k++)
            receive(peers, (uint64_t)i * DEPTH + k);
    }
    lh_listener_close(listener);
    loop(peers, count);
    for (uint32_t i = 0; i < count; i++) {
        printf("%llu messages from %s\n", peers[i].messages, lh_peer_name(peers[i].connection));
        lh_close(peers[i].connection);
    }
    free(peers);
}

/* ---- send -------------------------------------------------------------------------------------------- */

static void send_all(const char *where, unsigned long long messages)
{
    static unsigned char buffer[MESSAGE_BYTES];
    struct lh_attr attr = attr_of_engine();
    struct lh_connection *connection;
    struct lh_completion entries[BATCH];
    unsigned long long posted = 0, done = 0;
    must(lh_connect(where, &attr, 5 * LH_NS_PER_S, &connection), where);
    while (done < messages) {
        for (; posted < messages && posted - done < DEPTH; posted++)
            must(lh_post_send(connection, buffer, MESSAGE_BYTES, NULL, queue, posted, NULL),
                 "lh_post_send");
        int taken = must(lh_queue_wait(queue, entries, BATCH, LH_TIME_NEVER), "lh_queue_wait");
        for (int i = 0; i < taken; i++)
            must(entries[i].result.error, "send");
        done += (unsigned)taken;
    }
    printf("%llu messages sent\n", done);
    lh_close(connection);
}

int main(int argc, char **argv)
{
    unsigned long count = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;
    int serves = argc == 5 && strcmp(argv[1], "serve") == 0 && count <= 1000;
    if (count == 0 || (!serves && strcmp(argv[1], "send") != 0)) {
        fprintf(stderr,
                "usage: event_loop serve DEVICE :PORT PEERS | event_loop send DEVICE HOST:PORT N\n");
        return 2;
    }
    start(argv[2], serves ? (uint32_t)count : 1);
    if (serves)
        serve(argv[3], (uint32_t)count);
    else
        send_all(argv[3], count);
    must(lh_completion_queue_destroy(queue), "lh_completion_queue_destroy");
    must(lh_engine_destroy(engine), "lh_engine_destroy");
    return 0;
}
