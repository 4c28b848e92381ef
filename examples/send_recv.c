/*
 * send_recv.c - one message from one process to another, over an emulated ocean.
 *
 *   send_recv listen :7000              waits for a peer and receives one message
 *   send_recv HOST:7000 [LINK]          sends it; LINK is like rtt=25ms,rate=1Gbit,loss=1e-3
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/longhaul.h>

#define MESSAGE_BYTES ((size_t)16 << 20)

static int fail(const char *what, int error)
{
    const char *words = lh_last_error();
    fprintf(stderr, "%s: %s%s%s\n", what, lh_strerror(error), *words ? ": " : "", words);
    return 1;
}

/* Waits for a request, frees it, and reports its result. */
static int finish(struct lh_request *request, const char *verb)
{
    struct lh_result result;
    int error = lh_wait(request, LH_TIME_NEVER, &result);
    lh_request_free(request);
    if (error)
        return fail("wait", error);
    if (result.error)
        return fail(verb, result.error);
    printf("%s %llu bytes in %.1f ms\n", verb, (unsigned long long)result.bytes,
           (double)(result.ended_ns - result.started_ns) / 1e6);
    return 0;
}

static int receive(const char *where, unsigned char *buffer)
{
    struct lh_listener *listener;
    struct lh_connection *connection;
    struct lh_request *request;
    int error = lh_listen(where, NULL, &listener);
    if (error)
        return fail(where, error);
    error = lh_accept(listener, LH_TIME_NEVER, &connection);
    lh_listener_close(listener);
    if (error)
        return fail("accept", error);
    error = lh_recv(connection, buffer, MESSAGE_BYTES, NULL, &request);
    int status = error ? fail("recv", error) : finish(request, "received");
    for (size_t i = 0; status == 0 && i < MESSAGE_BYTES; i++)
        if (buffer[i] != (unsigned char)(i % 251)) {
            printf("byte %zu is wrong\n", i);
            status = 1;
        }
    lh_close(connection);
    return status;
}

static int send_to(const char *where, const char *link, unsigned char *buffer)
{
    struct lh_attr attr;
    struct lh_connection *connection;
    struct lh_request *request;
    lh_attr_init(&attr);
    int error = lh_link_parse(link, &attr.link);
    if (error)
        return fail(link, error);
    error = lh_connect(where, &attr, 5 * LH_NS_PER_S, &connection);
    if (error)
        return fail(where, error);
    for (size_t i = 0; i < MESSAGE_BYTES; i++)
        buffer[i] = (unsigned char)(i % 251);
    error = lh_send(connection, buffer, MESSAGE_BYTES, NULL, &request);
    int status = error ? fail("send", error) : finish(request, "sent");
    struct lh_stats stats;
    if (lh_connection_stats(connection, &stats) == 0)
        printf("%llu of %llu packets were sent again\n", (unsigned long long)stats.tx_retransmitted_packets,
               (unsigned long long)stats.tx_packets);
    lh_close(connection);
    return status;
}

int main(int argc, char **argv)
{
    unsigned char *buffer = malloc(MESSAGE_BYTES);
    int status = 2;
    if (!buffer)
        return fail("buffer", -LH_ENOMEM);
    if (argc == 3 && strcmp(argv[1], "listen") == 0)
        status = receive(argv[2], buffer);
    else if (argc == 2 || argc == 3)
        status = send_to(argv[1], argc == 3 ? argv[2] : "none", buffer);
    else
        fprintf(stderr, "usage: send_recv listen :PORT | send_recv HOST:PORT [LINK]\n");
    free(buffer);
    return status;
}
