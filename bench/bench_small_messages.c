/*
 * bench_small_messages.c - small messages between two processes, an engine and a completion queue each.
 * Usage: exchange.h; HOW is the scheme of what this side receives. With "poll" the engine has no workers and
 * the caller makes progress; with "sleep" it has one, and the caller sleeps in lh_queue_wait().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/longhaul.h>

#define BATCH      64u
#define WHERE_MAX  64u
#define TIMEOUT_NS (30 * LH_NS_PER_S)

struct end {
    struct lh_engine *engine;
    struct lh_completion_queue *queue;
    struct lh_connection *connection;
    bool polls;
    struct exchange exchange;
    uint8_t *memory; /* places of messages: those that are received first */
    uint32_t receives;
    uint32_t sends;
};

static void must(int code, const char *what)
{
    if (code < 0)
        exchange_die(what, *lh_last_error() ? lh_last_error() : lh_strerror(code));
}

static void open_engine(struct end *end, const char *address, bool polls)
{
    struct lh_engine_attr attr;
    char device[WHERE_MAX];
    bool ipv6 = strchr(address, ':') != NULL;
    snprintf(device, sizeof device, ipv6 ? "udp:[%s]" : "udp:%s", address);
    lh_engine_attr_init(&attr);
    attr.device = device;
    attr.workers = polls ? LH_NO_WORKERS : 1;
    end->polls = polls;
    must(lh_engine_create(&attr, &end->engine), device);
    must(lh_completion_queue_create(end->engine, 4 * EXCHANGE_FLIGHT_MAX, &end->queue), "completion queue");
}

/* The attributes of connections, and "HOST:PORT" in where[WHERE_MAX]. */
static struct lh_attr prepare(const struct end *end, const struct exchange_arguments *arguments,
                              char *where)
{
    struct lh_attr attr;
    bool ipv6 = strchr(arguments->address, ':') != NULL;
    snprintf(where, WHERE_MAX, ipv6 ? "[%s]:%u" : "%s:%u", arguments->address, arguments->port);
    lh_attr_init(&attr);
    attr.engine = end->engine;
    attr.reliability = arguments->how;
    return attr;
}

static uint8_t *place(const struct end *end, uint64_t index)
{
    return end->memory + index * end->exchange.bytes;
}

/* As many places for receives as for sends: twice what is in flight, so that none of them is awaited. */
static void make_places(struct end *end)
{
    end->receives = end->sends = 2 * end->exchange.in_flight;
    end->memory = calloc((size_t)end->receives + end->sends, end->exchange.bytes);
    if (!end->memory)
        exchange_die("messages", "no memory");
}

static uint32_t take(struct end *end, struct lh_completion *entries)
{
    int taken = end->polls ? lh_poll(end->queue, entries, BATCH)
                           : lh_queue_wait(end->queue, entries, BATCH, TIMEOUT_NS);
    must(taken, "waiting for messages");
    return (uint32_t)taken;
}

static int post_receive(struct end *end, uint64_t index)
{
    return lh_post_recv(end->connection, place(end, index), end->exchange.bytes, NULL, end->queue, index,
                        NULL);
}

static int post_send(struct end *end, uint64_t index)
{
    return lh_post_send(end->connection, place(end, index), end->exchange.bytes, NULL, end->queue, index,
                        NULL);
}

/* The only request that is pending. */
static void finish_first(struct end *end)
{
    struct lh_completion entry[BATCH];
    uint32_t taken = 0;
    while (taken == 0)
        taken = take(end, entry);
    must(entry[0].result.error, "the order");
}

static void end_all(struct end *end)
{
    if (end->connection)
        lh_close(end->connection);
    lh_completion_queue_destroy(end->queue);
    lh_engine_destroy(end->engine);
    free(end->memory);
}

/* ---- the server -------------------------------------------------------------------------------------- */

/* A message goes back from where it came to. Until the client closes. */
static void answer(struct end *end)
{
    struct lh_completion entries[BATCH];
    for (;;) {
        uint32_t taken = take(end, entries);
        for (uint32_t i = 0; i < taken; i++) {
            const struct lh_completion *entry = &entries[i];
            bool back = entry->operation == LH_OPERATION_RECV && end->exchange.echo;
            int code = entry->result.error;
            if (code == 0)
                code = back ? post_send(end, entry->user) : post_receive(end, entry->user);
            if (code == -LH_ECLOSED)
                return;
            must(code, "a message");
        }
    }
}

static void serve(const struct exchange_arguments *arguments)
{
    struct end end = {0};
    struct lh_listener *listener;
    char where[WHERE_MAX];
    open_engine(&end, arguments->address, arguments->polls);
    struct lh_attr attr = prepare(&end, arguments, where);
    must(lh_listen(where, &attr, &listener), where);
    printf("listening on %u\n", lh_listener_port(listener));
    fflush(stdout);
    must(lh_accept(listener, LH_TIME_NEVER, &end.connection), "lh_accept");
    lh_listener_close(listener);
    must(lh_post_recv(end.connection, &end.exchange, sizeof end.exchange, NULL, end.queue, 0, NULL),
         "lh_post_recv");
    finish_first(&end);
    if (!exchange_is_valid(&end.exchange))
        exchange_die("client", "not one of these");
    make_places(&end);
    for (uint32_t i = 0; i < end.receives; i++)
        must(post_receive(&end, i), "lh_post_recv");
    answer(&end);
    end_all(&end);
}

/* ---- the client -------------------------------------------------------------------------------------- */

/* Places for sends that are free. */
struct places {
    uint64_t free[2 * EXCHANGE_FLIGHT_MAX];
    uint32_t count;
};

static void on_entry(struct end *end, const struct lh_completion *entry, struct places *places,
                     struct exchange_times *times)
{
    uint64_t number;
    must(entry->result.error, "a message");
    memcpy(&number, place(end, entry->user), sizeof number);
    if (entry->operation == LH_OPERATION_SEND)
        places->free[places->count++] = entry->user;
    if (end->exchange.echo == (entry->operation == LH_OPERATION_RECV))
        exchange_finish(times, number);
}

/* What was received before makes place for others. Not before what is to be sent: enough receives are
 * posted. */
static void post_again(struct end *end, const struct lh_completion *entries, uint32_t taken)
{
    for (uint32_t i = 0; i < taken; i++)
        if (entries[i].operation == LH_OPERATION_RECV)
            must(post_receive(end, entries[i].user), "lh_post_recv");
}

static void measure(struct end *end)
{
    static struct places places;
    struct exchange_times times;
    struct lh_completion entries[BATCH];
    uint64_t sent = 0, all = end->exchange.warmup + end->exchange.messages;
    uint32_t taken = 0;
    make_places(end);
    for (uint32_t i = 0; i < end->sends; i++)
        places.free[places.count++] = end->receives + i;
    for (uint32_t i = 0; end->exchange.echo && i < end->receives; i++)
        must(post_receive(end, i), "lh_post_recv");
    exchange_begin(&times, &end->exchange);
    while (times.done < all) {
        for (; sent < all && sent - times.done < end->exchange.in_flight && places.count > 0; sent++) {
            uint64_t index = places.free[--places.count];
            memcpy(place(end, index), &sent, sizeof sent);
            exchange_post(&times, sent);
            must(post_send(end, index), "lh_post_send");
        }
        post_again(end, entries, taken);
        taken = take(end, entries);
        for (uint32_t i = 0; i < taken; i++)
            on_entry(end, &entries[i], &places, &times);
    }
    exchange_print(&times);
}

static void run_client(const struct exchange_arguments *arguments)
{
    struct end end = {.exchange = arguments->exchange};
    char where[WHERE_MAX];
    open_engine(&end, arguments->from, arguments->polls);
    struct lh_attr attr = prepare(&end, arguments, where);
    must(lh_connect(where, &attr, TIMEOUT_NS, &end.connection), where);
    must(lh_post_send(end.connection, &end.exchange, sizeof end.exchange, NULL, end.queue, 0, NULL),
         "lh_post_send");
    finish_first(&end);
    measure(&end);
    end_all(&end);
}

int main(int argc, char **argv)
{
    struct exchange_arguments arguments;
    if (!exchange_parse(argc, argv, &arguments))
        return 2;
    if (arguments.server)
        serve(&arguments);
    else
        run_client(&arguments);
    return 0;
}
