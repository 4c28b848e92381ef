/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include "cli/results/json.h"

static void report_time(struct cli_json *json, const char *name, int64_t ns)
{
    cli_json_number(json, name, (double)ns * 1e-9);
}

static void report_counts(struct cli_json *json, const struct path_direction *direction)
{
    const struct path_line_counts *counts = &direction->line.counts;
    cli_json_count(json, "packets", counts->packets);
    cli_json_count(json, "bytes", counts->bytes);
    cli_json_count(json, "delivered_packets", counts->delivered_packets);
    cli_json_count(json, "delivered_bytes", counts->delivered_bytes);
    cli_json_count(json, "queue_dropped_packets", counts->queue_dropped_packets);
    cli_json_count(json, "queue_dropped_bytes", counts->queue_dropped_bytes);
    cli_json_count(json, "lost_packets", counts->lost_packets);
    cli_json_count(json, "lost_bytes", counts->lost_bytes);
    cli_json_count(json, "marked_packets", counts->marked_packets);
    cli_json_count(json, "filtered_packets", direction->filtered_packets);
    cli_json_count(json, "queue_peak_bytes", counts->queue_peak_bytes);
    cli_json_number(json, "queueing_delay_mean_s", path_histogram_mean_ns(&counts->queueing) * 1e-9);
    report_time(json, "queueing_delay_p50_s", path_histogram_quantile_ns(&counts->queueing, 0.5));
    report_time(json, "queueing_delay_p99_s", path_histogram_quantile_ns(&counts->queueing, 0.99));
    report_time(json, "queueing_delay_max_s", counts->queueing.max_ns);
}

/* What is not the path that was asked for. */
static void report_faults(struct cli_json *json, const struct path_direction *direction,
                          const struct path_end *end)
{
    report_time(json, "late_p50_s", path_histogram_quantile_ns(&direction->late, 0.5));
    report_time(json, "late_p99_s", path_histogram_quantile_ns(&direction->late, 0.99));
    report_time(json, "late_max_s", direction->late.max_ns);
    cli_json_count(json, "overrun_packets", path_end_overrun(end) + direction->full_packets);
    cli_json_count(json, "refused_packets", direction->refused_packets);
}

static void report_flow(struct cli_json *json, const struct path_flows *flows, unsigned flow)
{
    char name[16];
    snprintf(name, sizeof name, "%u", flow);
    cli_json_open(json, name, '[');
    for (unsigned i = 0; i < flows->intervals; i++)
        cli_json_count(json, NULL, flows->bytes[i][flow]);
    cli_json_close(json, ']');
}

/* Bytes that were delivered in each interval, of each address that had any. */
static void report_flows(struct cli_json *json, const struct path_flows *flows)
{
    report_time(json, "interval_s", PATH_INTERVAL_NS);
    cli_json_open(json, "flows", '{');
    for (unsigned flow = 0; flow < PATH_FLOWS; flow++) {
        uint64_t bytes = 0;
        for (unsigned i = 0; i < flows->intervals; i++)
            bytes += flows->bytes[i][flow];
        if (bytes)
            report_flow(json, flows, flow);
    }
    cli_json_close(json, '}');
}

void path_report(FILE *out, const struct path *path, const struct path_end end[PATH_ENDS],
                 int64_t started_ns)
{
    static const char *const names[PATH_ENDS] = {"left_to_right", "right_to_left"};
    struct cli_json json = {.out = out};
    cli_json_open(&json, NULL, '{');
    report_time(&json, "seconds", path_now() - started_ns);
    for (unsigned side = 0; side < PATH_ENDS; side++) {
        const struct path_direction *direction = &path->direction[side];
        const struct path_line_config *line = &direction->line.config;
        cli_json_open(&json, names[side], '{');
        cli_json_count(&json, "rate_bps", line->rate_bps);
        report_time(&json, "delay_s", line->delay_ns);
        if (line->queue_bytes != PATH_NO_LIMIT)
            cli_json_count(&json, "queue_bytes", line->queue_bytes);
        cli_json_number(&json, "loss", line->loss);
        report_counts(&json, direction);
        report_faults(&json, direction, &end[side]);
        if (direction->flows)
            report_flows(&json, direction->flows);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, '}');
    cli_json_end(&json);
    fflush(out);
}
