/*
 * bench_xp.c - XP over a socket of ::1 with many queue pairs: memory of a queue pair, set-up, and packets a
 * second through all of them in turn. References: the same with one queue pair, and what the OptiNIC paper
 * gives (52 bytes of NIC state).
 *
 * Two objects in one thread; each round posts a receive of one packet and a send on each of a window of
 * queue pairs.
 *
 * usage: bench_xp [--qps 80000] [--seconds 3] [--json FILE]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/xp.h>

#include "report.h"

#define BYTES   4096u
#define WINDOW  256u
#define TIMEOUT (10 * LH_NS_PER_S)

struct ends {
    struct lh_xp *xp[2];
    uint32_t qps;
    uint32_t *qpn[2];
    uint8_t *out, *in; /* of one packet: what comes is only counted */
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*u %lu", &pages) != 1)
        exit(1);
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void must(int code, const char *what)
{
    if (code >= 0)
        return;
    fprintf(stderr, "%s: %s\n", what, lh_last_error());
    exit(1);
}

static void create(struct ends *ends, uint32_t qps)
{
    struct lh_xp_attr attr;
    lh_xp_attr_init(&attr);
    attr.address = "::1";
    attr.qps = qps;
    ends->qps = qps;
    ends->out = calloc(2, BYTES);
    if (!ends->out)
        exit(1);
    ends->in = ends->out + BYTES;
    for (int i = 0; i < 2; i++) {
        must(lh_xp_create(&attr, &ends->xp[i]), "create");
        ends->qpn[i] = malloc(qps * sizeof **ends->qpn);
        if (!ends->qpn[i])
            exit(1);
    }
}

static void connect_all(struct ends *ends)
{
    char address[2][LH_XP_ADDRESS_MAX];
    uint32_t seq[2];
    lh_xp_address(ends->xp[0], address[0]);
    lh_xp_address(ends->xp[1], address[1]);
    for (uint32_t q = 0; q < ends->qps; q++) {
        for (int i = 0; i < 2; i++)
            must(lh_xp_open(ends->xp[i], &ends->qpn[i][q], &seq[i]), "open");
        for (int i = 0; i < 2; i++)
            must(lh_xp_connect(ends->xp[i], ends->qpn[i][q], address[!i], ends->qpn[!i][q], seq[!i]),
                 "connect");
    }
}

static void destroy(struct ends *ends)
{
    for (int i = 0; i < 2; i++) {
        lh_xp_destroy(ends->xp[i]);
        free(ends->qpn[i]);
    }
    free(ends->out);
}

static void post(struct ends *ends, int end, uint32_t q)
{
    const struct lh_xp_request request = {.verb = end ? LH_XP_RECV : LH_XP_SEND,
                                          .buffer = end ? ends->in : ends->out,
                                          .bytes = BYTES,
                                          .timeout_ns = TIMEOUT,
                                          .user = q};
    must(lh_xp_post(ends->xp[end], ends->qpn[end][q], &request), "post");
}

/* A message on each of a window of queue pairs; those that came whole. */
static uint64_t exchange(struct ends *ends, uint32_t first, uint32_t count)
{
    struct lh_xp_completion completions[WINDOW];
    uint64_t sent = 0, came = 0, whole = 0;
    for (uint32_t i = 0; i < count; i++) {
        post(ends, 1, (first + i) % ends->qps);
        post(ends, 0, (first + i) % ends->qps);
    }
    while (sent < count || came < count) {
        must(lh_xp_progress(ends->xp[0]), "progress");
        must(lh_xp_progress(ends->xp[1]), "progress");
        sent += lh_xp_poll(ends->xp[0], completions, WINDOW);
        uint32_t got = lh_xp_poll(ends->xp[1], completions, WINDOW);
        for (uint32_t i = 0; i < got; i++)
            whole += completions[i].status == LH_XP_COMPLETE;
        came += got;
    }
    return whole;
}

static double packets_a_second(struct ends *ends, double seconds)
{
    double began = now_s(), until = began + seconds;
    uint64_t packets = 0;
    uint32_t first = 0;
    while (now_s() < until) {
        packets += exchange(ends, first, WINDOW);
        first = (first + WINDOW) % ends->qps;
    }
    return (double)packets / (now_s() - began);
}

static double option(int argc, char **argv, const char *name, double fallback)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return strtod(argv[i + 1], NULL);
    return fallback;
}

/* All of them with a message of their own under way once: every page of theirs is in use. */
static void touch_all(struct ends *ends)
{
    for (uint32_t first = 0; first < ends->qps; first += WINDOW)
        exchange(ends, first, WINDOW < ends->qps - first ? WINDOW : ends->qps - first);
}

int main(int argc, char **argv)
{
    uint32_t qps = (uint32_t)option(argc, argv, "--qps", 80000), nic, host;
    double seconds = option(argc, argv, "--seconds", 3);
    struct ends one, all;
    FILE *json = report_open(argc, argv);
    if (qps < WINDOW)
        return 1;
    create(&one, WINDOW);
    connect_all(&one);
    touch_all(&one);
    double before = resident_bytes(), began = now_s();
    create(&all, qps);
    connect_all(&all);
    double set_up_us = 1e6 * (now_s() - began) / qps;
    touch_all(&all);
    double bytes = (resident_bytes() - before) / (2.0 * qps);
    lh_xp_qp_bytes(&nic, &host);
    printf("%u queue pairs: %u bytes of NIC state each (OptiNIC: 52), %u of the host's; resident %.0f with "
           "posted work; "
           "set-up %.2f us a pair\n",
           qps, nic, host, bytes, set_up_us);
    double few_rate = packets_a_second(&one, seconds);
    double all_rate = packets_a_second(&all, seconds);
    printf("4 KiB packets a second, one thread for both ends: %.0f through all, %.0f through %u queue "
           "pairs: %.2f\n",
           all_rate, few_rate, WINDOW, all_rate / few_rate);
    report_line(json, "xp_qp_nic_bytes", nic, "bytes", "OptiNIC, table 4", 52, 1);
    report_line(json, "xp_qp_resident_bytes", bytes, "bytes", "", 0, 1);
    report_line(json, "xp_set_up", set_up_us, "us a pair of queue pairs", "", 0, 1);
    report_line(json, "xp_packets", all_rate, "a second", "256 queue pairs", few_rate, 1);
    destroy(&one);
    destroy(&all);
    return 0;
}
