/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/scenario/figure.h"

#include <longhaul/units.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct cli_figure_info cli_figure_infos[CLI_FIGURES] = {
    [CLI_FIGURE_FLOWS] = {"flows", "flows", "flows", CLI_UNIT_NONE},
    [CLI_FIGURE_DONE] = {"done", "done", "flows done", CLI_UNIT_NONE},
    [CLI_FIGURE_FAILED] = {"failed", "failed", "flows failed", CLI_UNIT_NONE},
    [CLI_FIGURE_STUCK] = {"stuck", "stuck", "flows stuck", CLI_UNIT_NONE},
    [CLI_FIGURE_FCT_MEAN] = {"fct_mean", "fct_mean_s", "completion time, mean", CLI_UNIT_SECONDS},
    [CLI_FIGURE_FCT_P50] = {"fct_p50", "fct_p50_s", "completion time, median", CLI_UNIT_SECONDS},
    [CLI_FIGURE_FCT_P99] = {"fct_p99", "fct_p99_s", "completion time, 99th percentile", CLI_UNIT_SECONDS},
    [CLI_FIGURE_FCT_MAX] = {"fct_max", "fct_max_s", "completion time, longest", CLI_UNIT_SECONDS},
    [CLI_FIGURE_RECEIVED_MEAN] = {"received_mean", "received_mean_s", "time to the last byte, mean",
                                  CLI_UNIT_SECONDS},
    [CLI_FIGURE_RECEIVED_P99] = {"received_p99", "received_p99_s", "time to the last byte, 99th percentile",
                                 CLI_UNIT_SECONDS},
    [CLI_FIGURE_ACROSS_MEAN] = {"across_mean", "across_mean_s", "completion between sites, mean",
                                CLI_UNIT_SECONDS},
    [CLI_FIGURE_ACROSS_P99] = {"across_p99", "across_p99_s", "completion between sites, 99th p.",
                               CLI_UNIT_SECONDS},
    [CLI_FIGURE_ACROSS_RECEIVED_MEAN] = {"across_received_mean", "across_received_mean_s",
                                         "last byte between sites, mean", CLI_UNIT_SECONDS},
    [CLI_FIGURE_ACROSS_RECEIVED_P99] = {"across_received_p99", "across_received_p99_s",
                                        "last byte between sites, 99th p.", CLI_UNIT_SECONDS},
    [CLI_FIGURE_OPERATION_MEAN] = {"operation_mean", "operation_mean_s", "operation, mean",
                                   CLI_UNIT_SECONDS},
    [CLI_FIGURE_OPERATION_P50] = {"operation_p50", "operation_p50_s", "operation, median",
                                  CLI_UNIT_SECONDS},
    [CLI_FIGURE_OPERATION_P99] = {"operation_p99", "operation_p99_s", "operation, 99th percentile",
                                  CLI_UNIT_SECONDS},
    [CLI_FIGURE_OPERATION_MAX] = {"operation_max", "operation_max_s", "operation, longest",
                                  CLI_UNIT_SECONDS},
    [CLI_FIGURE_SLOWDOWN_MEAN] = {"slowdown_mean", "slowdown_mean", "slowdown, mean", CLI_UNIT_RATIO},
    [CLI_FIGURE_SLOWDOWN_P50] = {"slowdown_p50", "slowdown_p50", "slowdown, median", CLI_UNIT_RATIO},
    [CLI_FIGURE_SLOWDOWN_P99] = {"slowdown_p99", "slowdown_p99", "slowdown, 99th percentile",
                                 CLI_UNIT_RATIO},
    [CLI_FIGURE_SLOWDOWN_MAX] = {"slowdown_max", "slowdown_max", "slowdown, largest", CLI_UNIT_RATIO},
    [CLI_FIGURE_MAKESPAN] = {"makespan", "makespan_s", "makespan", CLI_UNIT_SECONDS},
    [CLI_FIGURE_GOODPUT] = {"goodput", "goodput_bps", "goodput", CLI_UNIT_BPS},
    [CLI_FIGURE_DELIVERED] = {"delivered", "delivered_share", "payload delivered, share", CLI_UNIT_SHARE},
    [CLI_FIGURE_DROPPED] = {"dropped", "dropped_packets", "packets dropped by switches", CLI_UNIT_NONE},
    [CLI_FIGURE_LOST] = {"lost", "lost_packets", "packets lost or corrupted on links", CLI_UNIT_NONE},
    [CLI_FIGURE_MARKED] = {"marked", "marked_packets", "packets marked", CLI_UNIT_NONE},
    [CLI_FIGURE_PAUSES] = {"pauses", "pauses", "pause frames", CLI_UNIT_NONE},
    [CLI_FIGURE_PAUSED] = {"paused", "paused_s", "time that links were paused", CLI_UNIT_SECONDS},
    [CLI_FIGURE_SIGNALS_LOST] = {"signals_lost", "signals_lost", "pauses, resumes and credits lost",
                                 CLI_UNIT_NONE},
    [CLI_FIGURE_REPEATED] = {"repeated", "repeated_packets", "packets retransmitted", CLI_UNIT_NONE},
    [CLI_FIGURE_TIMEOUTS] = {"timeouts", "timeouts", "timeouts", CLI_UNIT_NONE},
    [CLI_FIGURE_QUEUE_MAX] = {"queue_max", "queue_max_bytes", "longest queue of a switch", CLI_UNIT_BYTES},
    [CLI_FIGURE_JAIN] = {"jain", "jain", "Jain's index of fairness", CLI_UNIT_RATIO},
    [CLI_FIGURE_SHARE] = {"share", "share", "payload, share of the rate", CLI_UNIT_RATIO},
    [CLI_FIGURE_QUEUE_MEAN] = {"queue_mean", "queue_mean_bytes", "queue, mean", CLI_UNIT_BYTES},
    [CLI_FIGURE_QUEUE_P99] = {"queue_p99", "queue_p99_bytes", "queue, 99th percentile", CLI_UNIT_BYTES},
    [CLI_FIGURE_VIRTUAL] = {"virtual", "virtual_s", "virtual time", CLI_UNIT_SECONDS},
    [CLI_FIGURE_HOPS] = {"hops", "hops", "packets over links", CLI_UNIT_NONE},
    [CLI_FIGURE_HOPS_RATE] = {"hops_rate", "hops_per_s", "packets over links, a second", CLI_UNIT_PER_S},
    [CLI_FIGURE_WALL] = {"wall", "wall_s", "run time", CLI_UNIT_SECONDS},
    [CLI_FIGURE_MEMORY] = {"memory", "memory_bytes", "memory", CLI_UNIT_BYTES},
};

unsigned cli_figure_find(const char *name)
{
    unsigned figure = 0;
    while (figure < CLI_FIGURES && strcmp(cli_figure_infos[figure].name, name) != 0 &&
           strcmp(cli_figure_infos[figure].json, name) != 0)
        figure++;
    return figure;
}

void cli_figure_format(unsigned figure, double value, char *out, size_t size)
{
    static const char *const scales[] = {"", "k", "M", "G"};
    unsigned scale = 0;
    if (!isfinite(value)) {
        snprintf(out, size, "-");
        return;
    }
    switch (cli_figure_infos[figure].unit) {
    case CLI_UNIT_SECONDS:
        lh_format_time(value, out, size);
        break;
    case CLI_UNIT_BPS:
        lh_format_rate(value, out, size);
        break;
    case CLI_UNIT_BYTES:
        lh_format_size((uint64_t)value, out, size);
        break;
    case CLI_UNIT_RATIO:
        snprintf(out, size, value < 100 ? "%.2f" : "%.0f", value);
        break;
    case CLI_UNIT_SHARE:
        snprintf(out, size, "%.2f%%", 100 * value);
        break;
    case CLI_UNIT_PER_S:
        for (; value >= 1000 && scale < 3; scale++)
            value /= 1000;
        snprintf(out, size, "%.3g %s/s", value, scales[scale]);
        break;
    case CLI_UNIT_NONE:
        /* Counts are whole; means of counts may not be. */
        snprintf(out, size, value == floor(value) || value >= 100 ? "%.0f" : "%.1f", value);
        break;
    }
}
