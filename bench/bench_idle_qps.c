/*
 * bench_idle_qps.c - CPU of connected QPs that do nothing, on two workers: what their keepalive costs.
 * Reference: 1 % of a core.
 *
 * usage: bench_idle_qps [--json FILE]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include <longhaul/sdr_ext.h>

#include "report.h"

#define QPS_LOG  14u
#define QPS      10000u
#define SPAN_S   5u
#define SETTLE_S 3u

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static void pause_for(uint32_t seconds)
{
    const struct timespec span = {(time_t)seconds, 0};
    nanosleep(&span, NULL);
}

static void connect_to(struct sdr_qp *one, struct sdr_qp *other)
{
    size_t bytes;
    sdr_qp_info_size_get(one, &bytes);
    void *info = malloc(bytes);
    if (!info || sdr_qp_info_get(one, info) != SDR_SUCCESS || sdr_qp_connect(other, info) != SDR_SUCCESS)
        abort();
    free(info);
}

/* As many as there is memory and room for. */
static uint32_t create_all(struct sdr_context *context, struct sdr_qp **qps, uint32_t wanted)
{
    const struct sdr_qp_attr none = {0};
    const struct lh_qp_attr small = {.slots = 1, .slot_bytes = 4096};
    uint32_t count = 0;
    while (count < wanted && lh_sdr_qp_create(context, &none, &small, &qps[count]) == 0)
        count++;
    return count;
}

static void measure(FILE *json, uint32_t wanted)
{
    static struct sdr_qp *qps[QPS];
    struct sdr_dev_attr attr = {.num_channels = 2, .log_max_qps = QPS_LOG};
    struct sdr_context *context = sdr_context_create("udp:[::1]", &attr);
    if (!context)
        abort();
    uint32_t count = create_all(context, qps, wanted) & ~1u;
    for (uint32_t i = 0; i < count; i += 2) {
        connect_to(qps[i], qps[i + 1]);
        connect_to(qps[i + 1], qps[i]);
    }
    pause_for(SETTLE_S);
    double before = cpu_seconds();
    pause_for(SPAN_S);
    double share = 100 * (cpu_seconds() - before) / SPAN_S;
    char name[64];
    snprintf(name, sizeof name, "idle_connections_%u_cpu", wanted);
    printf("%-32s %8.2f %% of a core (%u QPs)\n", name, share, count);
    report_line(json, name, share, "%", "of a core", 1, 1);
    for (uint32_t i = 0; i < count; i++)
        sdr_qp_destroy(qps[i]);
    sdr_context_destroy(context);
}

int main(int argc, char **argv)
{
    FILE *json = report_open(argc, argv);
    measure(json, 100);
    measure(json, 1000);
    measure(json, QPS);
    if (json)
        fclose(json);
    return 0;
}
