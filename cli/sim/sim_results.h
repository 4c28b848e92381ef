/*
 * sim_results.h - what runs of a simulation measure: series, operations, figures, CSV and pcap files. Counted
 * between output.from and output.to.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_SIM_RESULTS_H
#define LH_CLI_SIM_SIM_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <longhaul/netsim.h>

#include "cli/results/result_file.h"
#include "cli/sim/scenario.h"

struct cli_observation {
    struct cli_link_list links; /* of output.queues */
    uint64_t from_ps, to_ps;    /* CLI_NO_END as from: nothing is observed */
    uint64_t began_ps, ended_ps;
    bool begun;
    size_t count, room; /* samples of queues */
    double *queues;     /* bytes, each link at each sample */
    uint64_t *before;   /* of each flow: delivered when it began */
    uint64_t *after;    /* and at the last sample */
};

void cli_observation_open(struct cli_observation *observation, const struct cli_sim_output *output,
                          const struct lh_netsim *simulation);
/* Whether samples are wanted now or later. */
bool cli_observation_goes_on(const struct cli_observation *observation);
/* Looks at flows and queues, if it is time. 0, or -LH_ENOMEM. */
int cli_observation_sample(struct cli_observation *observation, const struct lh_netsim *simulation,
                           uint64_t now_ps);
/* CLI_FIGURE_JAIN, _SHARE, _QUEUE_MEAN and _QUEUE_P99; NaN: not observed. */
void cli_observation_collect(struct cli_observation *observation, const struct lh_netsim *simulation,
                             double *value);
void cli_observation_close(struct cli_observation *observation);

/* ---- operations ------------------------------------------------------------------------------------ */

/* How long each operation of workload.kind = collective took. */

/* Durations of the operations that all of their flows have ended: from the end of the one before at all
 * hosts, or the first start if that is later, to the end at all hosts. */
struct cli_operations {
    double *seconds; /* NULL: none */
    size_t count;
};

/* 0, or -LH_ENOMEM. */
int cli_operations_collect(struct cli_operations *operations, const struct lh_netsim *simulation);
/* The figures OPERATION of values[CLI_FIGURES], of durations that it sorts; NaN when there are none. */
void cli_operations_sum_up(const struct cli_operations *operations, double *values);
void cli_operations_free(struct cli_operations *operations);

/* ---- figures --------------------------------------------------------------------------------------- */

/* The figures of a simulation. */

#define CLI_GROUPS_MAX (CLI_SITES_MAX * CLI_SITES_MAX)

/* Flows of one range of sizes, or of one pair of sites; those that are done. */
struct cli_class {
    uint64_t from_bytes, to_bytes; /* to: excluded; UINT64_MAX: no end */
    bool by_sites;
    unsigned from_site, to_site; /* those from CLI_SITES_MAX - 1 on are one */
    uint64_t done;
    double fct_mean, fct_p50, fct_p99, fct_max;
    double slowdown_mean, slowdown_p50, slowdown_p99, slowdown_max;
    /* Sorted; of done flows. The owner is struct cli_figures. NULL when they were given back. */
    double *fct, *slowdown;
};

struct cli_figures {
    double value[CLI_FIGURES]; /* NaN: not known */
    unsigned classes_count;
    struct cli_class classes[CLI_GROUPS_MAX];
    struct cli_class all;
    double *memory; /* of all samples */
    struct cli_operations operations;
};

/* Collects the figures of a simulation. over: no event is left. 0, or -LH_ENOMEM. */
int cli_figures_collect(struct cli_figures *figures, const struct lh_netsim *simulation,
                        const struct cli_sim_output *output, double wall_s, bool over);
/* Gives the samples of flows back; the numbers stay. */
void cli_figures_free_samples(struct cli_figures *figures);

/* "10kB … 100kB", "a > b" */
void cli_class_format(const struct cli_class *group, char *out, size_t size);

/* ---- sim series ------------------------------------------------------------------------------------ */

/* Queues.csv and rates.csv: chosen links, looked at every period of virtual time. */

/* What pictures need to know. */
struct cli_series_shape {
    unsigned columns; /* links; 0: there is no file */
    uint32_t rows;
    double max;       /* bytes or bits a second */
    unsigned longest; /* characters of a link's name */
    uint64_t names;   /* the same for the same links in the same order */
};

struct cli_series {
    const struct cli_folder *folder;
    const char *name; /* of the file */
    FILE *file;       /* NULL: nothing is sampled */
    struct cli_link_list links;
    uint64_t sent_bytes[CLI_LINK_LIST_MAX]; /* when it was looked at last */
    uint64_t sent_payload_bytes[CLI_LINK_LIST_MAX];
    uint64_t last_ps;
    struct cli_series_shape shape;
    bool rates; /* else queues */
};

/* Opens the file when links are asked for; they are there. CLI_PROCEED, or reports the cause. */
int cli_series_open(struct cli_series *series, const struct cli_folder *folder, bool rates,
                    const struct lh_netsim *simulation, const char *patterns);
/* Looks at the links: a row with the time in seconds, then for each link the bytes that wait, or the bits a
 * second since the row before: on the wire, and behind these columns those of payload. */
void cli_series_sample(struct cli_series *series, const struct lh_netsim *simulation, uint64_t now_ps);
/* Whether there is more to be written. */
bool cli_series_goes_on(const struct cli_series *series);
/* The file is there if status is CLI_PROCEED, and else dropped. Returns the status, or reports that writing
 * failed. The shape stays. */
int cli_series_close(struct cli_series *series, int status);

/* ---- csv ------------------------------------------------------------------------------------------- */

/* Flows.csv and links.csv: the result of each flow and each link. */

/* CLI_PROCEED, or reports the cause. */
int cli_csv_flows(const struct cli_folder *folder, const struct lh_netsim *simulation);
int cli_csv_links(const struct cli_folder *folder, const struct lh_netsim *simulation);

/* ---- sim pcap -------------------------------------------------------------------------------------- */

/*
 * Simulated packets as a capture file: nanosecond pcap, Ethernet, as RoCEv2 would look on that
 * wire.
 *
 * Headers are made up from what the simulator knows; payload is zeros, or left out (the original length
 * stays). Host n has the address 10.0.0.0 + n + 1; a flow is a queue pair: its number + 256 is the
 * destination QP, and its lower 14 bits are in the UDP source port. Data packets are RDMA writes of one
 * packet each on a reliable connection. An acknowledgement has the number of the last packet before which
 * none is missing; it is a NAK (sequence error) as long as the very first one is.
 */

/* Bytes of the file's header, of a record's, and of a packet without its payload. */
#define CLI_PCAP_FILE_HEADER   24
#define CLI_PCAP_RECORD_HEADER 16
#define CLI_PCAP_SNAP          74

/* Writes the file's header. */
void cli_pcap_start(FILE *file);
/* Writes one packet with its record header. header_bytes: transport.header, so that the payload's length is
 * known. full: with the payload, which Wireshark wants to see before it calls a packet well-formed. */
void cli_pcap_packet(FILE *file, const struct lh_netsim_packet *packet, uint32_t header_bytes, bool full);

/* ---- sim run --------------------------------------------------------------------------------------- */

/* One simulation from its start to its end, and the files about it. */

struct cli_sim_run {
    unsigned point;
    uint64_t seed;
    struct cli_folder folder; /* for its files; "": none */
    struct cli_figures figures;
    struct cli_series_shape queues, rates;
    uint64_t captured, uncaptured; /* packets in capture.pcap, and those that came when it was full */
};

/* Runs it; label is what the progress bar calls it. CLI_PROCEED with the figures, which the caller
 * frees; or reports the cause. */
int cli_sim_run(const struct cli_sim_plan *plan, struct cli_sim_run *run, const char *label);

#endif
