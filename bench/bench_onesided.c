/*
 * bench_onesided.c - lh_write and lh_read beside lh_send, one at a time over loopback: what each takes
 * until its request is done. Reference: lh_send of as many bytes into a receive that is posted, in turn with
 * them. Both ends are in this process, each with an engine of one worker.
 *
 * usage: bench_onesided [--json FILE]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdint.h>
#include <time.h>

#include <longhaul/engine.h>
#include <longhaul/onesided.h>

#include "report.h"

#define BYTES_MAX ((size_t)16 << 20)
#define ROUNDS    2000u
#define PATIENCE  (30 * LH_NS_PER_S)

static struct lh_connection *ends[2];
static uint8_t *memory[2]; /* of the two ends; that of end 1 is exposed */
static struct lh_memory *registered[2];
static struct lh_key key;

static void must(int code, const char *what)
{
    if (code >= 0)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, lh_strerror(code), lh_last_error());
    exit(1);
}

static void finish(struct lh_request *request, const char *what)
{
    struct lh_result result;
    must(lh_wait(request, PATIENCE, &result), what);
    must(result.error, what);
    lh_request_free(request);
}

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static double send_us(size_t bytes)
{
    struct lh_request *send, *recv;
    must(lh_recv(ends[1], memory[1], bytes, registered[1], &recv), "lh_recv");
    double began = now_us();
    must(lh_send(ends[0], memory[0], bytes, registered[0], &send), "lh_send");
    finish(send, "send");
    double took = now_us() - began;
    finish(recv, "receive");
    return took;
}

static double onesided_us(size_t bytes, bool writes)
{
    const struct lh_part part = {.address = memory[0], .bytes = bytes, .memory = registered[0]};
    const struct lh_onesided wanted = {.parts = &part, .count = 1, .key = key};
    struct lh_request *request;
    double began = now_us();
    must(writes ? lh_write(ends[0], &wanted, &request) : lh_read(ends[0], &wanted, &request), "start");
    finish(request, writes ? "write" : "read");
    return now_us() - began;
}

static void open_end(int end)
{
    struct lh_engine_attr engine_attr;
    struct lh_attr attr;
    lh_engine_attr_init(&engine_attr);
    engine_attr.device = "udp:[::1]";
    lh_attr_init(&attr);
    must(lh_engine_create(&engine_attr, &attr.engine), "lh_engine_create");
    must(lh_open(&attr, &ends[end]), "lh_open");
    memory[end] = calloc(1, BYTES_MAX);
    must(lh_register(ends[end], memory[end], BYTES_MAX, &registered[end]), "lh_register");
}

static void open_ends(void)
{
    for (int end = 0; end < 2; end++)
        open_end(end);
    for (int end = 0; end < 2; end++) {
        uint8_t blob[LH_BLOB_MAX];
        size_t bytes = sizeof blob;
        must(lh_blob(ends[1 - end], blob, &bytes), "lh_blob");
        must(lh_attach(ends[end], blob, bytes), "lh_attach");
    }
    const struct lh_part part = {.address = memory[1], .bytes = BYTES_MAX, .memory = registered[1]};
    struct lh_region *region;
    must(lh_expose(ends[1], &part, LH_ACCESS_WRITE | LH_ACCESS_READ, NULL, 0, &region), "lh_expose");
    lh_region_key(region, &key);
}

static void measure(FILE *json, const char *size, size_t bytes, uint32_t rounds)
{
    static double sends[ROUNDS], writes[ROUNDS], reads[ROUNDS];
    char name[64];
    for (uint32_t i = 0; i < rounds + rounds / 10; i++) { /* the first ones warm up */
        uint32_t at = i % rounds;
        sends[at] = send_us(bytes);
        writes[at] = onesided_us(bytes, true);
        reads[at] = onesided_us(bytes, false);
    }
    double send = report_quantile(sends, rounds, 0.5);
    double write = report_quantile(writes, rounds, 0.5), read = report_quantile(reads, rounds, 0.5);
    snprintf(name, sizeof name, "write_%s_latency_p50", size);
    report_line(json, name, write, "us", "lh_send", send, rounds);
    snprintf(name, sizeof name, "read_%s_latency_p50", size);
    report_line(json, name, read, "us", "lh_send", send, rounds);
    printf("%-6s  lh_send %8.1f us  lh_write %8.1f us  lh_read %8.1f us\n", size, send, write, read);
}

int main(int argc, char **argv)
{
    FILE *json = report_open(argc, argv);
    open_ends();
    measure(json, "64B", 64, ROUNDS);
    measure(json, "64KiB", 65536, ROUNDS);
    measure(json, "16MiB", BYTES_MAX, 20);
    for (int end = 0; end < 2; end++)
        lh_close(ends[end]);
    return 0;
}
