/*
 * plan_parts.h - the parts of `longhaul plan`: settings, points and choices, and their output as tables,
 * JSON, maps and figures.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_PLAN_PARTS_H
#define LH_CLI_PLAN_PLAN_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include <longhaul/plan.h>
#include <longhaul/types.h>

#include "cli/options/cli_options.h"
#include "cli/options/option_values.h"

/* ---- order ----------------------------------------------------------------------------------------- */

/* Longhaul plan: what is asked, and what is compared at one point of it. */

/* Rows of the table: schemes given, or the usual ones, and the planner's. */
#define CLI_PLAN_ROWS_MAX (CLI_TEXTS_MAX + 1)

/* The axes of the paper's figure 9. */
#define CLI_PLAN_MAP_SIZES  "128KiB,512KiB,2MiB,8MiB,32MiB,128MiB,1GiB,8GiB"
#define CLI_PLAN_MAP_LOSSES "1e-8..1e-1"

/* In the place of a scheme: what recv and perf choose by themselves, which is the planner's choice. */
#define CLI_PLAN_AUTO "auto"

struct cli_plan_order {
    struct lh_plan_question question; /* with a mix its sizes; else one, set for each point */
    bool mix;
    struct cli_size_list sizes;
    struct cli_loss_list losses;
    /* One plan for the highest loss; this is the lowest that was given or the one that was measured. NaN:
     * there is no other. */
    double loss_low;
    bool measured;     /* out of a link file, and losses holds the upper bound */
    double allow_loss; /* share of a message that may be missing; NaN: none */
    struct cli_texts schemes;
    const char *by;     /* "p99.9" */
    const char *json;   /* NULL: not asked for */
    const char *output; /* of --map: a picture; NULL: none */
    bool map;
};

/* One scheme at one point. */
struct cli_plan_row {
    char scheme[LH_MODEL_SCHEME_TEXT_MAX];
    struct lh_plan_choice choice;
    struct lh_model_times times; /* in a mix: weighted means */
    bool best;                   /* what the planner chose */
};

/* Where less is lost than is planned for. */
struct cli_plan_worst {
    bool any;                            /* there is such a loss, and a plan */
    bool other;                          /* a plan for it alone would choose differently */
    struct lh_plan_choice at_low;        /* what was chosen, there */
    struct lh_plan_choice low_best;      /* what that plan would choose, there */
    struct lh_plan_choice low_best_here; /* and where as much is lost as is planned for; seconds may be
                                            infinite */
};

struct cli_plan_point {
    struct lh_plan_question question; /* of one size, or the mix, and one loss */
    struct lh_plan plan;
    struct cli_plan_worst worst;
    struct lh_plan_deadline deadline; /* where some may be missing */
    struct cli_plan_row rows[CLI_PLAN_ROWS_MAX];
    unsigned rows_count;
};

/* ---- point ----------------------------------------------------------------------------------------- */

/* Plans for a size and a loss of the lists, and compares the schemes there. CLI_PROCEED, or reports the
 * cause. */
int cli_plan_point(const struct cli_plan_order *order, unsigned size, unsigned loss,
                   struct cli_plan_point *point);

/* ---- choice ---------------------------------------------------------------------------------------- */

/* The question at one point, and what the planner chose there. */

/* The question for a size and a loss of the lists. */
void cli_plan_question(const struct cli_plan_order *order, unsigned size, unsigned loss,
                       struct lh_plan_question *question);
/* The planner's choice, or what it would be without limits. */
const struct lh_plan_choice *cli_plan_choice(const struct cli_plan_point *point);

/* Above this loss of chunks, retransmissions take time of the link that the model ignores. */
#define CLI_PLAN_CHUNK_LOSS_SURE 0.1
#define CLI_PLAN_CHUNK_LOSS_NOTE                                                                           \
    "chunk loss above 10 %: the model ignores the time of retransmissions on the link, so times are too "  \
    "short"
/* The share of chunks that is lost with the planner's choice is above that. */
bool cli_plan_loses_much(const struct cli_plan_point *point);

/* ---- commands -------------------------------------------------------------------------------------- */

/* The commands that carry out a plan. */

/* The commands that do what was planned, to be typed as they stand. False: there is no plan,
 * or only the model can do it. */
#define CLI_PLAN_COMMAND_MAX 256
struct cli_plan_commands {
    char recv[CLI_PLAN_COMMAND_MAX];
    char send[CLI_PLAN_COMMAND_MAX];
};
bool cli_plan_commands(const struct cli_plan_point *point, struct cli_plan_commands *commands);
/* A sentence where that is more than the default window, else ""; returns out. */
char *cli_plan_window_format(const struct cli_plan_point *point, char out[static CLI_PLAN_COMMAND_MAX]);

/* ---- deadline -------------------------------------------------------------------------------------- */

/* Messages that may be incomplete: what bounded completion brings. */

/* False: more than that would be missing. */
bool cli_plan_deadline_found(const struct cli_plan_point *point);
#define CLI_PLAN_DEADLINE_MAX 768
/* The same in sentences, a line each; returns out. */
char *cli_plan_deadline_format(const struct cli_plan_order *order, const struct cli_plan_point *point,
                               char out[static CLI_PLAN_DEADLINE_MAX]);

/* ---- worst loss ------------------------------------------------------------------------------------ */

/* A plan for the highest of several losses: what it brings at the lowest. */

/* Fills in point->worst. CLI_PROCEED, or reports the cause. */
int cli_plan_worst(const struct cli_plan_order *order, struct cli_plan_point *point);
#define CLI_PLAN_WORST_MAX 512
/* The same in sentences, a line each; returns out. */
char *cli_plan_worst_format(const struct cli_plan_order *order, const struct cli_plan_point *point,
                            char out[static CLI_PLAN_WORST_MAX]);

/* ---- plan settings --------------------------------------------------------------------------------- */

/* The options of longhaul plan as typed, and the order they make. */

/* ---- link file ------------------------------------------------------------------------------------- */

/*
 * What was measured of a link, out of a JSON file such as a measurement leaves.
 *
 * An object with some of the numbers bandwidth_bps, rtt_s, loss (of packets), loss_high (what it may be at
 * most, no less), burst_packets and mtu_bytes (payload of a packet; 0: none fits the path). null, and that 0,
 * are as if they were not there; other members are passed over, whatever they hold.
 */

/* A number that is not there is NaN. */
struct cli_link_file {
    double bandwidth_bps, rtt_s, loss, loss_high, burst_packets, mtu_bytes;
};

#define CLI_LINK_FILE_WRONG_MAX 160

/* 0, or -1 with the reason in wrong[CLI_LINK_FILE_WRONG_MAX]; the link is set only on success. */
int cli_link_file_parse(const char *text, size_t bytes, struct cli_link_file *link, char *wrong);

/* ---- settings -------------------------------------------------------------------------------------- */

/* No number of cores was given. */
#define CLI_PLAN_ANY_CORES UINT32_MAX

#define CLI_PLAN_SCHEMES_HELP_MAX 320

/* As they are typed; NULL: not given. */
struct cli_plan_settings {
    uint64_t bandwidth_bps;
    lh_time rtt_ns;
    uint64_t chunk_bytes, encode_bytes_per_s;
    uint32_t mtu_bytes, cores;
    const char *figures, *link_file, *distance, *loss, *size, *mix, *by, *loss_of, *burst, *max_overhead,
        *allow_loss, *timing, *collective;
    bool worst, flow_control, nic;
    struct cli_link_file file; /* values of the link file, NaN where it has no value */
    struct cli_plan_order order;
    char schemes_help[CLI_PLAN_SCHEMES_HELP_MAX];
};

/* Fills settings->order. CLI_PROCEED, or an exit status after reporting the cause. */
int cli_plan_settings_take(struct cli_plan_settings *settings);

/* ---- plan tables ----------------------------------------------------------------------------------- */

/* Plans on stdout. */

/* One point with all its schemes, and several with a row each. */
void cli_plan_table(const struct cli_plan_order *order, const struct cli_plan_point *point);
int cli_plan_sweep(const struct cli_plan_order *order);

/* ---- json ------------------------------------------------------------------------------------------ */

/* Plans as JSON. */

/* CLI_PROCEED, or reports the cause. */
int cli_plan_json(const struct cli_plan_order *order);

/* ---- plan map -------------------------------------------------------------------------------------- */

/* Sizes over losses, on the terminal and as a picture. */

/* Sizes over losses, on the terminal and as a picture. */
int cli_plan_map(const struct cli_plan_order *order);

/* ---- plan figures ---------------------------------------------------------------------------------- */

/* Figures of the SDR-RDMA paper, by the model: data, scripts for gnuplot, pictures. */

/* Writes all of them, and the map of figure 9, into the folder, which is made. CLI_PROCEED, or reports the
 * cause. */
int cli_paper_figures_draw(const char *folder);

/* ---- plan flow control ----------------------------------------------------------------------------- */

/* Longhaul plan --flow-control: what buffer each way of flow control needs for a link. */

/* The command, from its arguments on. Returns the exit status. */
int cli_plan_flow(int argc, char **argv);

/* ---- plan nic -------------------------------------------------------------------------------------- */

/* Longhaul plan --nic: what reliability costs a NIC. */

/* The command, from its arguments on. Returns the exit status. */
int cli_plan_nic(int argc, char **argv);

/* ---- designs --------------------------------------------------------------------------------------- */

/*
 * What a transport costs a NIC: state, queue pairs in a memory, nodes, time between failures.
 *
 * The inputs are the numbers of the OptiNIC paper (tables 4 and 5) and the Celeris paper (tables I and II);
 * what follows from them is computed, and stands beside what the papers print.
 */

#define CLI_NIC_DESIGNS 6

/* The papers' budget, "4 MB": of the two readings the one that gives most of the printed numbers. */
#define CLI_NIC_SRAM_DEFAULT ((uint64_t)4 << 20)

struct cli_nic_printed {
    double queue_pairs, nodes, mtbf_hours;
};

struct cli_nic_design {
    const char *name;
    uint32_t state_bytes;          /* per queue pair (OptiNIC, table 4) */
    uint32_t connections_per_peer; /* (OptiNIC, section 5.3.4) */
    double bram;                   /* blocks of 36 Kbit, with 10,000 queue pairs */
    const char *bram_source;
    struct cli_nic_printed printed; /* OptiNIC, tables 4 and 5 */
};

/* What follows: for the budget; the time between failures is that of the papers' 15,000 nodes. */
struct cli_nic_derived {
    uint64_t queue_pairs, nodes;
    double mtbf_hours;
};

extern const struct cli_nic_design cli_nic_designs[CLI_NIC_DESIGNS];

/* sram_bytes: at least the state of one queue pair, or there are none. */
struct cli_nic_derived cli_nic_derive(const struct cli_nic_design *design, uint64_t sram_bytes);
/* Relative difference of a computed value from a printed one. */
double cli_nic_off(double computed, double printed);
/* Hours between failures by the constants that the papers state (a failure in 10^11 hours and bit, a tenth
 * of the bits matter): of the block memory alone. */
double cli_nic_mtbf_stated_hours(const struct cli_nic_design *design);

/* ---- plan collective command ----------------------------------------------------------------------- */

/* Longhaul plan --collective: schedule, blocks and schemes that suit a collective. */

/* The command, from its arguments on. Returns the exit status. */
int cli_plan_collective(int argc, char **argv);

#endif
