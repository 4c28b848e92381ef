/*
 * paper_figure_list.c - what the figures of the SDR-RDMA paper show.
 *
 * 400 Gbit/s, 3750 km = 25 ms (the paper's; in glass it is 37.5 ms), chunks of one packet of 4 KiB, loss of
 * packets, unless a figure says otherwise (section 5.2). Erasure codes fall back as in the paper. It leaves
 * open which of 10b and 10c is a percentile, and the loss of figure 12: 10b is the mean, 10c the 99.9th
 * percentile, and the loss 1e-5.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/plan/paper_figure_list.h"

#define KIB 1024.0
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

#define PATH(bytes, share)                                                                                 \
    {                                                                                                      \
        .message_bytes = (uint64_t)(bytes), .chunk_bytes = 4096, .mtu_bytes = 4096,                        \
        .bandwidth_bps = 400e9, .rtt_s = 0.025, .loss = (share)                                            \
    }

#define MDS(m) "ec:mds,k=32,m=" m ",fallback=sr"
#define XOR    "ec:xor,k=32,m=8,fallback=sr"

#define BY_MEAN LH_PLAN_BY_MEAN
#define BY_P999 LH_PLAN_BY_P999

/* Four points a decade, two an octave of distance. */
#define QUARTER_DECADE 1.7782794100389228
#define HALF_OCTAVE    1.4142135623730951

#define SR_AND_EC                                                                                          \
    {                                                                                                      \
        {.name = "SR", .scheme = "sr-rto"}, {.name = "EC MDS(32, 8)", .scheme = MDS("8")},                 \
            {.name = "ideal", .scheme = "ideal"},                                                          \
    }

#define FOUR(measure)                                                                                      \
    {                                                                                                      \
        {.name = "SR RTO", .scheme = "sr-rto", .by = measure},                                             \
            {.name = "SR NACK", .scheme = "sr-nack", .by = measure},                                       \
            {.name = "EC MDS(32, 8)", .scheme = MDS("8"), .by = measure},                                  \
            {.name = "EC XOR(32, 8)", .scheme = XOR, .by = measure},                                       \
    }

const struct cli_paper_figure cli_paper_figures[] = {
    {"figure3a", "Completion time over message size: 400 Gbit/s, RTT 25 ms, loss 10⁻⁵", CLI_X_SIZE,
     128 * KIB, 1024 * GIB, 2, CLI_Y_SECONDS, PATH(0, 1e-5), SR_AND_EC},
    {"figure3b", "Completion time of 8 GiB over distance: 400 Gbit/s, loss 10⁻⁵", CLI_X_KM, 100, 13000,
     HALF_OCTAVE, CLI_Y_SECONDS, PATH(8 * GIB, 1e-5), SR_AND_EC},
    {"figure3c", "Completion time of 128 MiB over loss: 400 Gbit/s, RTT 25 ms", CLI_X_LOSS, 1e-8, 0.11,
     QUARTER_DECADE, CLI_Y_SECONDS, PATH(128 * MIB, 0), SR_AND_EC},
    {"figure10a",
     "Writes of many sizes: 400 Gbit/s, RTT 25 ms, loss 10⁻⁵, mean and p99.9",
     CLI_X_SIZE,
     128 * KIB,
     64 * GIB,
     2,
     CLI_Y_TIMES_IDEAL,
     PATH(0, 1e-5),
     {{.name = "SR RTO", .scheme = "sr-rto"},
      {.name = "SR NACK", .scheme = "sr-nack"},
      {.name = "EC MDS(32, 8)", .scheme = MDS("8")},
      {.name = "SR RTO, p99.9", .scheme = "sr-rto", .by = BY_P999},
      {.name = "SR NACK, p99.9", .scheme = "sr-nack", .by = BY_P999},
      {.name = "EC MDS(32, 8), p99.9", .scheme = MDS("8"), .by = BY_P999}}},
    {"figure10b", "A write of 128 MiB: 400 Gbit/s, RTT 25 ms, mean", CLI_X_LOSS, 1e-8, 0.11, QUARTER_DECADE,
     CLI_Y_TIMES_IDEAL, PATH(128 * MIB, 0), FOUR(BY_MEAN)},
    {"figure10c", "A write of 128 MiB: 400 Gbit/s, RTT 25 ms, 99.9th percentile", CLI_X_LOSS, 1e-8, 0.11,
     QUARTER_DECADE, CLI_Y_TIMES_IDEAL, PATH(128 * MIB, 0), FOUR(BY_P999)},
    {"figure10d",
     "A write of 128 MiB, splits of MDS: 400 Gbit/s, RTT 25 ms, mean",
     CLI_X_LOSS,
     1e-8,
     0.11,
     QUARTER_DECADE,
     CLI_Y_TIMES_IDEAL,
     PATH(128 * MIB, 0),
     {{.name = "MDS(32, 2)", .scheme = MDS("2")},
      {.name = "MDS(32, 4)", .scheme = MDS("4")},
      {.name = "MDS(32, 8)", .scheme = MDS("8")},
      {.name = "MDS(32, 16)", .scheme = MDS("16")},
      {.name = "MDS(32, 32)", .scheme = MDS("32")}}},
    {"figure12",
     "A write of 128 MiB over distance and bandwidth: loss 10⁻⁵, mean",
     CLI_X_KM,
     100,
     13000,
     HALF_OCTAVE,
     CLI_Y_TIMES_IDEAL,
     PATH(128 * MIB, 1e-5),
     {{.name = "SR RTO, 100 Gbit/s", .scheme = "sr-rto", .bandwidth_bps = 100e9},
      {.name = "SR RTO, 400 Gbit/s", .scheme = "sr-rto"},
      {.name = "SR RTO, 1.6 Tbit/s", .scheme = "sr-rto", .bandwidth_bps = 1600e9},
      {.name = "EC MDS(32, 8), 100 Gbit/s", .scheme = MDS("8"), .bandwidth_bps = 100e9},
      {.name = "EC MDS(32, 8), 400 Gbit/s", .scheme = MDS("8")},
      {.name = "EC MDS(32, 8), 1.6 Tbit/s", .scheme = MDS("8"), .bandwidth_bps = 1600e9}}},
    {"figure13-left",
     "Ring allreduce of 128 MiB, p99.9: 400 Gbit/s, RTT 25 ms",
     CLI_X_LOSS,
     1e-6,
     0.011,
     10,
     CLI_Y_ALLREDUCE,
     PATH(128 * MIB, 0),
     {{.name = "2 datacenters", .datacenters = 2},
      {.name = "4 datacenters", .datacenters = 4},
      {.name = "8 datacenters", .datacenters = 8},
      {.name = "16 datacenters", .datacenters = 16}}},
    {"figure13-right",
     "Ring allreduce between 4 datacenters, p99.9: 400 Gbit/s, RTT 25 ms",
     CLI_X_LOSS,
     1e-6,
     0.011,
     10,
     CLI_Y_ALLREDUCE,
     PATH(0, 0),
     {{.name = "buffer of 8 MiB", .datacenters = 4, .message_bytes = (uint64_t)(8 * MIB)},
      {.name = "buffer of 128 MiB", .datacenters = 4, .message_bytes = (uint64_t)(128 * MIB)},
      {.name = "buffer of 1 GiB", .datacenters = 4, .message_bytes = (uint64_t)(1 * GIB)},
      {.name = "buffer of 8 GiB", .datacenters = 4, .message_bytes = (uint64_t)(8 * GIB)}}},
    {"figure15",
     "Loss of a chunk whose packets are lost with 10⁻⁵",
     CLI_X_PACKETS,
     1,
     64,
     2,
     CLI_Y_CHUNK_LOSS,
     PATH(0, 1e-5),
     {{.name = "share of chunks"}}},
    {.name = NULL},
};
