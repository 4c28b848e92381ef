/*
 * exchange.h - what the benchmarks of small messages share: what is asked for, and what comes out, as JSON.
 *
 * usage of such a program:
 *   --server ADDRESS PORT WAIT HOW                                 one client, then ends; PORT 0: any
 *   FROM ADDRESS PORT WAIT HOW PATTERN BYTES IN_FLIGHT MESSAGES
 *
 * WAIT: poll (never sleeps) or sleep. HOW: the scheme of what this side receives, or its congestion control.
 * PATTERN: echo (each message comes back) or stream (one way). The server prints "listening on PORT".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BENCH_EXCHANGE_H
#define LH_BENCH_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#define EXCHANGE_BYTES_MIN  8u /* a message contains its number */
#define EXCHANGE_BYTES_MAX  (1u << 20)
#define EXCHANGE_COUNT_MAX  (1u << 26)
#define EXCHANGE_FLIGHT_MAX 1024u

/* What a client wants, and sends ahead of its messages as it is: both ends are of one build. */
struct exchange {
    uint64_t messages; /* without those that warm up */
    uint64_t warmup;
    uint32_t bytes;
    uint32_t in_flight;
    uint32_t echo; /* 0: stream */
};

struct exchange_arguments {
    bool server;
    bool polls;
    const char *from; /* NULL: of a server */
    const char *address;
    uint16_t port;
    const char *how;
    struct exchange exchange;
};

/* False: wrong, and the usage was printed. */
bool exchange_parse(int argc, char **argv, struct exchange_arguments *arguments);
/* Whether what a peer sent is an exchange that was checked. */
bool exchange_is_valid(const struct exchange *exchange);

/* Times of a client's messages. */
struct exchange_times {
    const struct exchange *exchange;
    double *posted_s; /* by number; 0: it is not in flight */
    double *took_s;   /* of those after the warm-up */
    double began_s;   /* when the warm-up was over */
    uint64_t done;    /* of all, with the warm-up */
};

void exchange_begin(struct exchange_times *times, const struct exchange *exchange);
void exchange_post(struct exchange_times *times, uint64_t number);
/* Message `number` came back, or (stream) was acknowledged. Ends the program if it was not in flight. */
void exchange_finish(struct exchange_times *times, uint64_t number);
/* Prints {"p50_us", "p99_us", "max_us": of a message; "per_s": messages a second} and frees. */
void exchange_print(struct exchange_times *times);

/* Prints and ends the program. */
_Noreturn void exchange_die(const char *what, const char *reason);

#endif
