/*
 * bench_tcp_messages.c - completion times of messages over the kernel's TCP, as JSON.
 *
 *
 * usage: bench_tcp_messages --server ADDRESS PORT
 *        bench_tcp_messages ADDRESS PORT CONGESTION BYTES MESSAGES SECONDS [FROM]
 *
 * The server takes connections until it is killed. The client sends messages over one connection, each
 * after the answer to the one before, until it has sent them or the time is over; from the address
 * FROM.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/path/path_loop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int fail(const char *what)
{
    fprintf(stderr, "bench_tcp_messages: %s: %s\n", what, strerror(errno));
    return EXIT_FAILURE;
}

static int serve(const char *address, uint16_t port)
{
    int listener = path_tcp_listen(address, port);
    if (listener < 0)
        return fail("listening");
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            return fail("accepting");
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(path_tcp_answer(fd, NULL, 0) ? EXIT_SUCCESS : fail("receiving"));
        }
        close(fd);
    }
}

static int measure(char **argv, const char *from)
{
    uint64_t bytes = strtoull(argv[3], NULL, 10), sent = 0, again = 0;
    unsigned long messages = strtoul(argv[4], NULL, 10);
    int64_t started_ns = path_now(), took_ns;
    int64_t limit_ns = (int64_t)(strtod(argv[5], NULL) * 1e9);
    int fd = path_tcp_connect(argv[0], (uint16_t)strtoul(argv[1], NULL, 10), from, argv[2]);
    if (fd < 0)
        return fail("connecting");
    printf("{\"completion_s\": [");
    for (unsigned long i = 0; i < messages && path_now() - started_ns < limit_ns; i++) {
        if (!path_tcp_send(fd, NULL, bytes, &took_ns))
            return fail("sending");
        printf("%s%.9f", i ? ", " : "", (double)took_ns * 1e-9);
    }
    path_tcp_sent(fd, &sent, &again);
    printf("], \"sent_bytes\": %llu, \"retransmitted_bytes\": %llu}\n", (unsigned long long)sent,
           (unsigned long long)again);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "--server"))
        return serve(argv[2], (uint16_t)strtoul(argv[3], NULL, 10));
    if (argc == 7 || argc == 8)
        return measure(argv + 1, argc == 8 ? argv[7] : NULL);
    fprintf(stderr, "usage: bench_tcp_messages --server ADDRESS PORT\n"
                    "       bench_tcp_messages ADDRESS PORT CONGESTION BYTES MESSAGES SECONDS [FROM]\n");
    return 2;
}
