/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/perf/perf_messages.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <longhaul/congestion.h>
#include <longhaul/connection.h>
#include <longhaul/error.h>

#include "cli/file/file_blocks.h"
#include "cli/terminal/terminal.h"

/* ---- message --------------------------------------------------------------------------------------- */

#define CLI_PERF_VERSION 1

static const char magic[6] = {'L', 'H', 'P', 'E', 'R', 'F'};

size_t cli_perf_encode(const struct cli_perf_message *message, uint8_t *out)
{
    uint32_t text = (uint32_t)strlen(message->text);
    uint8_t *next = out + CLI_PERF_HEADER;
    assert(text <= CLI_PERF_TEXT_MAX && message->count <= CLI_PERF_NUMBERS_MAX);
    memcpy(out, magic, sizeof magic);
    out[6] = CLI_PERF_VERSION;
    out[7] = (uint8_t)message->kind;
    cli_put_u32(out + 8, message->flags);
    cli_put_u32(out + 12, text | message->count << 16);
    for (uint32_t i = 0; i < message->count; i++, next += 8)
        cli_put_u64(next, message->numbers[i]);
    memcpy(next, message->text, text);
    return (size_t)(next - out) + text;
}

static bool right_count(uint8_t kind, uint32_t flags, uint32_t count)
{
    if (kind == CLI_PERF_RUN)
        return !flags && count == CLI_PERF_RUN_NUMBERS;
    if (flags & CLI_PERF_NO)
        return count == 0;
    return kind == CLI_PERF_READY ? count == 1 : count <= CLI_PERF_NUMBERS_MAX;
}

int cli_perf_decode(const uint8_t *data, size_t bytes, struct cli_perf_message *message)
{
    if (bytes < CLI_PERF_HEADER || memcmp(data, magic, sizeof magic))
        return -LH_EPROTOCOL;
    if (data[6] != CLI_PERF_VERSION)
        return -LH_EVERSION;
    uint32_t flags = cli_get_u32(data + 8), lengths = cli_get_u32(data + 12);
    uint32_t text = lengths & 0xFFFF, count = lengths >> 16;
    const uint8_t *words = data + CLI_PERF_HEADER + (size_t)8 * count;
    if (data[7] < CLI_PERF_RUN || data[7] > CLI_PERF_RESULT || flags & ~CLI_PERF_NO ||
        !right_count(data[7], flags, count))
        return -LH_EPROTOCOL;
    if (text > CLI_PERF_TEXT_MAX || bytes != CLI_PERF_HEADER + (size_t)8 * count + text ||
        memchr(words, 0, text))
        return -LH_EPROTOCOL;
    *message =
        (struct cli_perf_message){.kind = (enum cli_perf_kind)data[7], .flags = flags, .count = count};
    for (uint32_t i = 0; i < count; i++)
        message->numbers[i] = cli_get_u64(data + CLI_PERF_HEADER + (size_t)8 * i);
    memcpy(message->text, words, text);
    return 0;
}

/* ---- control --------------------------------------------------------------------------------------- */

int cli_perf_send(struct lh_connection *control, const struct cli_perf_message *message)
{
    uint8_t bytes[CLI_PERF_MESSAGE_MAX];
    struct lh_request *request;
    struct lh_result result;
    int code = lh_send(control, bytes, cli_perf_encode(message, bytes), NULL, &request);
    if (code)
        return code;
    code = cli_wait(request, CLI_PERF_TIMEOUT_NS, &result);
    lh_request_free(request);
    return code ? code : result.error;
}

int cli_perf_receive(struct lh_connection *control, enum cli_perf_kind kind, lh_time timeout_ns,
                     struct cli_perf_message *message)
{
    uint8_t bytes[CLI_PERF_MESSAGE_MAX];
    struct cli_perf_message came;
    struct lh_request *request;
    struct lh_result result;
    int code = lh_recv(control, bytes, sizeof bytes, NULL, &request);
    if (code)
        return code;
    code = cli_wait(request, timeout_ns, &result);
    lh_request_free(request);
    if (!code)
        code = result.error;
    if (!code)
        code = cli_perf_decode(bytes, result.bytes, &came);
    if (!code && came.kind != kind)
        code = -LH_EPROTOCOL;
    if (!code)
        *message = came;
    return code;
}

static uint64_t packets_moved(struct lh_connection *connection)
{
    struct lh_stats stats;
    return lh_connection_stats(connection, &stats) ? 0 : stats.tx_packets + stats.rx_packets;
}

int cli_perf_wait(struct lh_connection *connection, struct lh_request *request, struct lh_result *result)
{
    lh_time since = cli_now();
    uint64_t moved = 0;
    for (;;) {
        int code = lh_wait(request, CLI_SLICE_NS, result);
        if (code != -LH_ETIMEDOUT)
            return code;
        if (cli_stopped())
            return -LH_ECANCELED;
        uint64_t now_moved = packets_moved(connection);
        if (now_moved != moved)
            since = cli_now();
        moved = now_moved;
        if (cli_now() - since > CLI_PERF_TIMEOUT_NS)
            return -LH_ETIMEDOUT;
    }
}

/* ---- samples --------------------------------------------------------------------------------------- */

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void cli_samples_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
}

double cli_samples_mean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / (double)count : 0;
}

double cli_samples_percentile(const double *sorted, size_t count, double share)
{
    assert(count && share > 0 && share <= 1);
    /* The small term undoes what 0.999 * 1000 is above 999 in binary. */
    size_t rank = (size_t)ceil(share * (double)count - 1e-9);
    if (rank < 1)
        rank = 1;
    return sorted[(rank < count ? rank : count) - 1];
}

/* ---- tally ----------------------------------------------------------------------------------------- */

#define UNITS 1e9

void cli_perf_tally_init(struct cli_perf_tally *tally, uint64_t warmup)
{
    *tally = (struct cli_perf_tally){.warmup = warmup, .share_min = 1};
}

int cli_perf_tally_add(struct cli_perf_tally *tally, uint64_t index, struct lh_request *request)
{
    struct lh_delivery delivery;
    int error = lh_delivery(request, &delivery);
    if (error || index < tally->warmup)
        return error;
    double all = (double)delivery.arrived_bytes + (double)delivery.missing_bytes;
    double share = all > 0 ? (double)delivery.arrived_bytes / all : 1;
    tally->count++;
    tally->share_sum += share;
    tally->share_min = share < tally->share_min ? share : tally->share_min;
    tally->ranges += delivery.missing_ranges;
    tally->deadline_hits += delivery.end == LH_END_DEADLINE;
    tally->preempted += delivery.end == LH_END_PREEMPTED;
    return 0;
}

void cli_perf_tally_write(const struct cli_perf_tally *tally, uint64_t numbers[CLI_PERF_TALLY_NUMBERS])
{
    double mean = tally->count > 0 ? tally->share_sum / (double)tally->count : 1;
    numbers[CLI_PERF_SHARE_MEAN] = (uint64_t)(mean * UNITS + 0.5);
    numbers[CLI_PERF_SHARE_MIN] = (uint64_t)(tally->share_min * UNITS + 0.5);
    numbers[CLI_PERF_MISSING_RANGES] = tally->ranges;
    numbers[CLI_PERF_DEADLINE_HITS] = tally->deadline_hits;
    numbers[CLI_PERF_PREEMPTED] = tally->preempted;
}

/* ---- cpu others ------------------------------------------------------------------------------------ */

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static double own_seconds(int who)
{
    struct rusage usage;
    if (getrusage(who, &usage))
        return 0;
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void cli_cpu_mark(struct cli_cpu_mark *mark)
{
    /* user, nice, system, idle, iowait, irq, softirq, steal: proc(5) */
    unsigned long long times[8];
    double per_s = (double)sysconf(_SC_CLK_TCK);
    FILE *file = fopen("/proc/stat", "r");
    int found = file ? fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &times[0], &times[1],
                              &times[2], &times[3], &times[4], &times[5], &times[6], &times[7])
                     : 0;
    if (file)
        fclose(file);
    *mark = (struct cli_cpu_mark){.busy_s = -1};
    if (found != 8)
        return;
    for (unsigned i = 0; i < 8; i++)
        mark->total_s += (double)times[i] / per_s;
    /* Interrupts are left out: those of our own packets cannot be distinguished from those of others. */
    mark->busy_s = (double)(times[0] + times[1] + times[2] + times[7]) / per_s;
    mark->own_s = own_seconds(RUSAGE_SELF) + own_seconds(RUSAGE_CHILDREN);
}

double cli_cpu_others(const struct cli_cpu_mark *from, const struct cli_cpu_mark *to)
{
    double total = to->total_s - from->total_s;
    double others = to->busy_s - from->busy_s - (to->own_s - from->own_s);
    if (from->busy_s < 0 || to->busy_s < 0 || total <= 0 || others <= 0)
        return 0;
    return others < total ? others / total : 1;
}
