/*
 * bench_small_tcp.c - the reference for small messages: the kernel's TCP, TCP_NODELAY, a system call a
 * message. Usage: exchange.h; HOW is the congestion control of what this side sends.
 *
 * In a stream the receiver reads all that is there, and answers with the number of messages it has read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/path/path_loop.h"

#define PIECE_BYTES (256u << 10)

/* What of the stream was read and not used yet. */
struct intake {
    int fd;
    int flags; /* of recv */
    uint32_t filled;
    uint8_t bytes[PIECE_BYTES + EXCHANGE_BYTES_MAX];
};

static struct intake intake;

static _Noreturn void fail(const char *what)
{
    exchange_die(what, strerror(errno));
}

/* Reads what is there. False: nothing is (polling only). Ends the program when the peer has closed. */
static bool fill(void)
{
    ssize_t got = recv(intake.fd, intake.bytes + intake.filled, PIECE_BYTES, intake.flags);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got == 0)
        _exit(0);
    if (got < 0)
        fail("receiving");
    intake.filled += (uint32_t)got;
    return true;
}

static void use(uint32_t bytes)
{
    memmove(intake.bytes, intake.bytes + bytes, intake.filled - bytes);
    intake.filled -= bytes;
}

static void send_all(const void *data, uint32_t bytes)
{
    const uint8_t *next = data;
    while (bytes > 0) {
        ssize_t sent = send(intake.fd, next, bytes, MSG_NOSIGNAL | intake.flags);
        if (sent < 0 && errno != EINTR && errno != EAGAIN)
            fail("sending");
        if (sent > 0) {
            next += sent;
            bytes -= (uint32_t)sent;
        }
    }
}

/* ---- the server -------------------------------------------------------------------------------------- */

static void answer_forever(const struct exchange *exchange)
{
    uint64_t count = 0;
    for (;;) {
        if (intake.filled < exchange->bytes && !fill())
            continue;
        uint32_t whole = intake.filled / exchange->bytes;
        for (uint32_t i = 0; exchange->echo && i < whole; i++)
            send_all(intake.bytes + i * exchange->bytes, exchange->bytes);
        count += whole;
        if (!exchange->echo && whole > 0)
            send_all(&count, sizeof count);
        if (whole > 0)
            use(whole * exchange->bytes);
    }
}

static void serve(const struct exchange_arguments *arguments)
{
    struct exchange exchange;
    struct sockaddr_in6 bound;
    socklen_t size = sizeof bound;
    int listener = path_tcp_listen(arguments->address, arguments->port);
    /* The port is at the same place for IPv4. */
    if (listener < 0 || getsockname(listener, (struct sockaddr *)&bound, &size) != 0)
        fail("listening");
    printf("listening on %u\n", ntohs(bound.sin6_port));
    fflush(stdout);
    int yes = 1;
    intake.fd = accept(listener, NULL, NULL);
    if (intake.fd < 0 || setsockopt(intake.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0 ||
        setsockopt(intake.fd, IPPROTO_TCP, TCP_CONGESTION, arguments->how,
                   (socklen_t)strlen(arguments->how)) != 0)
        fail("accepting");
    while (intake.filled < sizeof exchange)
        fill();
    memcpy(&exchange, intake.bytes, sizeof exchange);
    use(sizeof exchange);
    if (!exchange_is_valid(&exchange))
        exchange_die("client", "not one of these");
    answer_forever(&exchange);
}

/* ---- the client -------------------------------------------------------------------------------------- */

static void take_echoes(struct exchange_times *times, uint32_t bytes)
{
    uint32_t used = 0;
    for (; intake.filled - used >= bytes; used += bytes) {
        uint64_t number;
        memcpy(&number, intake.bytes + used, sizeof number);
        exchange_finish(times, number);
    }
    use(used);
}

static void take_counts(struct exchange_times *times)
{
    uint64_t count = times->done;
    uint32_t whole = intake.filled / sizeof count;
    if (whole > 0)
        memcpy(&count, intake.bytes + (whole - 1) * sizeof count, sizeof count);
    use(whole * (uint32_t)sizeof count);
    while (times->done < count)
        exchange_finish(times, times->done);
}

static void measure(const struct exchange *exchange)
{
    static uint8_t message[EXCHANGE_BYTES_MAX];
    struct exchange_times times;
    uint64_t sent = 0, all = exchange->warmup + exchange->messages;
    exchange_begin(&times, exchange);
    while (times.done < all) {
        for (; sent < all && sent - times.done < exchange->in_flight; sent++) {
            memcpy(message, &sent, sizeof sent);
            exchange_post(&times, sent);
            send_all(message, exchange->bytes);
        }
        if (!fill())
            continue;
        if (exchange->echo)
            take_echoes(&times, exchange->bytes);
        else
            take_counts(&times);
    }
    exchange_print(&times);
}

int main(int argc, char **argv)
{
    struct exchange_arguments arguments;
    if (!exchange_parse(argc, argv, &arguments))
        return 2;
    intake.flags = arguments.polls ? MSG_DONTWAIT : 0;
    if (arguments.server) {
        serve(&arguments);
        return 0;
    }
    intake.fd = path_tcp_connect(arguments.address, arguments.port, arguments.from, arguments.how);
    if (intake.fd < 0)
        fail("connecting");
    send_all(&arguments.exchange, sizeof arguments.exchange);
    measure(&arguments.exchange);
    return 0;
}
