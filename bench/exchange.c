/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report.h"

#define WARMUP_SHARE 10u

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void exchange_die(const char *what, const char *reason)
{
    fprintf(stderr, "bench: %s: %s\n", what, reason);
    exit(1);
}

bool exchange_is_valid(const struct exchange *exchange)
{
    return exchange->messages > 0 && exchange->messages <= EXCHANGE_COUNT_MAX &&
           exchange->warmup <= exchange->messages && exchange->bytes >= EXCHANGE_BYTES_MIN &&
           exchange->bytes <= EXCHANGE_BYTES_MAX && exchange->in_flight > 0 &&
           exchange->in_flight <= EXCHANGE_FLIGHT_MAX;
}

static bool parse_client(int argc, char **argv, struct exchange_arguments *out)
{
    struct exchange *exchange = &out->exchange;
    if (argc != 10)
        return false;
    *exchange = (struct exchange){
        .messages = strtoull(argv[9], NULL, 10),
        .bytes = (uint32_t)strtoul(argv[7], NULL, 10),
        .in_flight = (uint32_t)strtoul(argv[8], NULL, 10),
        .echo = strcmp(argv[6], "echo") == 0,
    };
    exchange->warmup = exchange->messages / WARMUP_SHARE;
    out->from = argv[1];
    return exchange_is_valid(exchange) && (exchange->echo || strcmp(argv[6], "stream") == 0);
}

bool exchange_parse(int argc, char **argv, struct exchange_arguments *out)
{
    *out = (struct exchange_arguments){.server = argc == 6 && strcmp(argv[1], "--server") == 0};
    bool good = argc >= 6;
    if (good) {
        out->address = argv[2];
        out->port = (uint16_t)strtoul(argv[3], NULL, 10);
        out->polls = strcmp(argv[4], "poll") == 0;
        out->how = argv[5];
        good =
            (out->polls || strcmp(argv[4], "sleep") == 0) && (out->server || parse_client(argc, argv, out));
    }
    if (!good)
        fprintf(stderr,
                "usage: --server ADDRESS PORT poll|sleep HOW\n"
                "       FROM ADDRESS PORT poll|sleep HOW echo|stream BYTES IN_FLIGHT MESSAGES\n"
                "       BYTES %u to %u, IN_FLIGHT 1 to %u\n",
                EXCHANGE_BYTES_MIN, EXCHANGE_BYTES_MAX, EXCHANGE_FLIGHT_MAX);
    return good;
}

/* ---- times ------------------------------------------------------------------------------------------- */

void exchange_begin(struct exchange_times *times, const struct exchange *exchange)
{
    *times = (struct exchange_times){
        .exchange = exchange,
        .posted_s = calloc(exchange->warmup + exchange->messages, sizeof(double)),
        .took_s = calloc(exchange->messages, sizeof(double)),
        .began_s = seconds(),
    };
    if (!times->posted_s || !times->took_s)
        exchange_die("times", "no memory");
}

void exchange_post(struct exchange_times *times, uint64_t number)
{
    times->posted_s[number] = seconds();
}

void exchange_finish(struct exchange_times *times, uint64_t number)
{
    const struct exchange *exchange = times->exchange;
    double now = seconds();
    if (number >= exchange->warmup + exchange->messages || times->posted_s[number] == 0)
        exchange_die("message", "one came that was not in flight");
    if (number >= exchange->warmup)
        times->took_s[number - exchange->warmup] = now - times->posted_s[number];
    times->posted_s[number] = 0;
    if (++times->done == exchange->warmup)
        times->began_s = now;
}

void exchange_print(struct exchange_times *times)
{
    size_t count = times->exchange->messages;
    double took = seconds() - times->began_s;
    double p50 = report_quantile(times->took_s, count, 0.5);
    double p99 = report_quantile(times->took_s, count, 0.99);
    printf("{\"p50_us\": %.3f, \"p99_us\": %.3f, \"max_us\": %.3f, \"per_s\": %.1f}\n", 1e6 * p50,
           1e6 * p99, 1e6 * times->took_s[count - 1], (double)count / took);
    free(times->posted_s);
    free(times->took_s);
}
