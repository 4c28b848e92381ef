/*
 * scenario.h - scenarios: text, keys, sweeps and variants, the plan of runs, the ready scenarios.
 *
 *   [switch]
 *   pfc = on            # a setting: "switch.pfc", "on"
 *
 * A comment starts with # or ; at the beginning of a line or after a blank. Nothing in here knows which
 * keys there are, nor opens files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_SCENARIO_H
#define LH_CLI_SIM_SCENARIO_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/netsim.h>

/* A longer scenario file is none. */
#define CLI_SCENARIO_BYTES_MAX 1048576

#define CLI_SETTINGS_MAX 256
/* Bytes, with the final zero. A line of the file is shorter. */
#define CLI_SETTING_KEY_MAX   104
#define CLI_SETTING_VALUE_MAX 512

struct cli_setting {
    char key[CLI_SETTING_KEY_MAX]; /* "section.name" */
    char value[CLI_SETTING_VALUE_MAX];
    unsigned line; /* of the file; 0: from the command line */
};

struct cli_scenario {
    const char *path;
    unsigned count;
    struct cli_setting settings[CLI_SETTINGS_MAX];
    char wrong[CLI_SETTING_VALUE_MAX + 256]; /* after a failure: what, with path and line */
};

/* Reads the text of the file called path, which must stay. The scenario is empty before. 0, or -1 with
 * scenario->wrong. */
int cli_scenario_parse(struct cli_scenario *scenario, const char *path, const char *text, size_t bytes);

/* "key=value", from the command line: overrides the file. 0, or -1 with scenario->wrong. */
int cli_scenario_set(struct cli_scenario *scenario, const char *option, const char *key_value);

/* NULL: not set. */
const struct cli_setting *cli_scenario_find(const struct cli_scenario *scenario, const char *key);

/* The first sentence of the comment that a text begins with, into out[size]; "" when it
 * begins with none. */
void cli_scenario_about(const char *text, size_t bytes, char *out, size_t size);

/* ---- figure ---------------------------------------------------------------------------------------- */

/* What is measured of a simulation: names, titles and units. */

enum cli_figure {
    CLI_FIGURE_FLOWS,
    CLI_FIGURE_DONE,
    CLI_FIGURE_FAILED,   /* gave up, see transport.retries */
    CLI_FIGURE_STUCK,    /* neither, and nothing is left to happen: stopped for ever */
    CLI_FIGURE_FCT_MEAN, /* flow completion time: from a flow's start to its last acknowledgement */
    CLI_FIGURE_FCT_P50,
    CLI_FIGURE_FCT_P99,
    CLI_FIGURE_FCT_MAX,
    CLI_FIGURE_RECEIVED_MEAN, /* from its start to when its receiver has the last byte */
    CLI_FIGURE_RECEIVED_P99,
    CLI_FIGURE_ACROSS_MEAN, /* completion time of flows between sites; and as their receivers see it */
    CLI_FIGURE_ACROSS_P99,
    CLI_FIGURE_ACROSS_RECEIVED_MEAN,
    CLI_FIGURE_ACROSS_RECEIVED_P99,
    CLI_FIGURE_OPERATION_MEAN, /* of operations of a collective, of all seeds together */
    CLI_FIGURE_OPERATION_P50,
    CLI_FIGURE_OPERATION_P99,
    CLI_FIGURE_OPERATION_MAX,
    CLI_FIGURE_SLOWDOWN_MEAN, /* completion time over that of the same flow in an empty network */
    CLI_FIGURE_SLOWDOWN_P50,
    CLI_FIGURE_SLOWDOWN_P99,
    CLI_FIGURE_SLOWDOWN_MAX,
    CLI_FIGURE_MAKESPAN,  /* from the start of the first flow to the end of the last */
    CLI_FIGURE_GOODPUT,   /* payload that arrived, over the makespan */
    CLI_FIGURE_DELIVERED, /* of the payload of the flows that are done; less than all with a deadline */
    CLI_FIGURE_DROPPED,
    CLI_FIGURE_LOST,
    CLI_FIGURE_MARKED,
    CLI_FIGURE_PAUSES,
    CLI_FIGURE_PAUSED, /* all links together */
    CLI_FIGURE_SIGNALS_LOST,
    CLI_FIGURE_REPEATED,
    CLI_FIGURE_TIMEOUTS,
    CLI_FIGURE_QUEUE_MAX,
    CLI_FIGURE_JAIN, /* this one and the next three: between output.from and output.to */
    CLI_FIGURE_SHARE,
    CLI_FIGURE_QUEUE_MEAN, /* of the links of output.queues, each period */
    CLI_FIGURE_QUEUE_P99,
    CLI_FIGURE_VIRTUAL,
    CLI_FIGURE_HOPS,
    CLI_FIGURE_HOPS_RATE, /* this one and all below depend on the machine */
    CLI_FIGURE_WALL,
    CLI_FIGURE_MEMORY,
    CLI_FIGURES
};

enum cli_unit {
    CLI_UNIT_NONE,
    CLI_UNIT_SECONDS,
    CLI_UNIT_BPS,
    CLI_UNIT_BYTES,
    CLI_UNIT_RATIO,
    CLI_UNIT_SHARE,
    CLI_UNIT_PER_S
};

struct cli_figure_info {
    const char *name; /* "fct_p99" */
    const char *json; /* "fct_p99_s": with its unit */
    const char *title;
    enum cli_unit unit;
};
extern const struct cli_figure_info cli_figure_infos[CLI_FIGURES];

/* By its name, with its unit or without. CLI_FIGURES: there is none of that name. */
unsigned cli_figure_find(const char *name);
/* The value for people, into out[CLI_CELL_MAX]; "-" when it is NaN. */
void cli_figure_format(unsigned figure, double value, char *out, size_t size);

/* ---- link list ------------------------------------------------------------------------------------- */

/* Links of a simulation that match patterns such as "leaf0>host*,spine*>leaf0". */

/* More lines are in no picture, and more columns in no table. */
#define CLI_LINK_LIST_MAX 64

struct cli_link_list {
    unsigned count;
    bool more; /* than fit */
    uint32_t numbers[CLI_LINK_LIST_MAX];
};

/* Whether a link of these ends is meant. */
bool cli_link_matches(const char *patterns, const char *from, const char *to);
/* In the order of their numbers. */
void cli_link_list_find(struct cli_link_list *list, const struct lh_netsim *simulation,
                        const char *patterns);

/* ---- scenario keys --------------------------------------------------------------------------------- */

/*
 * The keys of a scenario that the command itself reads: what to write down, how often, until
 * when.
 */

#define CLI_CLASSES_MAX 8 /* of sizes */
#define CLI_SITES_MAX   8 /* distinguished, for classes of flows by site; the last is of all others */
#define CLI_PANELS_MAX  3
/* Patterns of links, as text. */
#define CLI_LINKS_MAX 256
#define CLI_TITLE_MAX 96

/* Names the section whose settings hold, too. */
#define CLI_SIM_VARIANT_KEY "run.variant"

#define CLI_NO_END UINT64_MAX

struct cli_sim_output {
    uint64_t until_ps; /* CLI_NO_END: until nothing is left to happen */
    uint64_t period_ps;
    uint64_t from_ps, to_ps;    /* CLI_NO_END as from: nothing is observed; as to: until the run's end */
    char queues[CLI_LINKS_MAX]; /* "": none */
    char rates[CLI_LINKS_MAX];
    char pcap[CLI_LINKS_MAX];
    uint32_t packets;  /* most in the capture */
    bool full_packets; /* with their payload */
    char title[CLI_TITLE_MAX];
    unsigned edges_count; /* classes of flow sizes: below edge 0, from edge 0 to below edge 1, … */
    uint64_t edges[CLI_CLASSES_MAX - 1];
    bool by_sites;                   /* classes are pairs of sites instead; there are no edges */
    unsigned panels_count;           /* of the picture of a sweep */
    unsigned panels[CLI_PANELS_MAX]; /* figures, see scenario.h */
};

/* Everything at its default. */
void cli_sim_output_init(struct cli_sim_output *output);
/* Whether the key is, or looks like, one of the command's: not the library's business. */
int cli_sim_key_is_ours(const char *key);
/* Whether the library has such a key, and its values are of that kind. */
bool cli_sim_key_is_of_kind(const char *name, const char *kind);
/* 0, or -1 with what is wrong in wrong[size]. */
int cli_sim_key_set(struct cli_sim_output *output, const char *key, const char *value, char *wrong,
                    size_t size);

/* Prints all keys there are, ours and the library's. Returns the exit status. */
int cli_sim_keys_print(void);

/* ---- sweep ----------------------------------------------------------------------------------------- */

/* Keys whose values are tried one after the other, and the points that they make. */

#define CLI_AXES_MAX        2
#define CLI_AXIS_VALUES_MAX 32
#define CLI_AXIS_VALUE_MAX  128
#define CLI_POINT_LABEL_MAX 320
#define CLI_PLACE_MAX       (PATH_MAX + 64)

/* A key whose values are tried one after the other. */
struct cli_sim_axis {
    const struct cli_setting *setting; /* where it is asked for */
    const char *key;
    unsigned count;
    char values[CLI_AXIS_VALUES_MAX][CLI_AXIS_VALUE_MAX];
};

struct cli_sim_plan {
    struct cli_scenario scenario;
    struct cli_sim_output output;
    unsigned axes_count;
    struct cli_sim_axis axes[CLI_AXES_MAX];
    unsigned points; /* at least 1; the last axis changes fastest */
    uint32_t seed, seeds;
};

/* The axes of the scenario, and how many points they make. CLI_PROCEED, or reports the cause. */
int cli_sim_sweep_find(struct cli_sim_plan *plan);

/* The place of a setting, "a.ini:12" or "--set", into out[CLI_PLACE_MAX]. Returns out. */
const char *cli_sim_plan_place(const struct cli_sim_plan *plan, const struct cli_setting *setting,
                               char *out);
/* Whether it asks for a sweep. */
bool cli_sim_plan_is_sweep(const struct cli_setting *setting);
/* Reports what is wrong with a setting: CLI_EXIT_USAGE. */
int cli_sim_wrong_setting(const struct cli_sim_plan *plan, const struct cli_setting *setting,
                          const char *why);

/* The value of an axis at a point. */
const char *cli_sim_plan_value(const struct cli_sim_plan *plan, unsigned point, unsigned axis);
/* A key without its section. */
const char *cli_sim_plan_short(const char *key);
/* "routing=ecmp, load=30%"; "" without a sweep. */
char *cli_sim_plan_label(const struct cli_sim_plan *plan, unsigned point, char *out, size_t size);

/* ---- variant --------------------------------------------------------------------------------------- */

/*
 * Sections [variant NAME] of a scenario: settings that hold together where run.variant is
 * NAME, so that what differs in several keys can be compared in one sweep.
 */

/* The key that a setting of such a section is about; NULL: it is in none. */
const char *cli_sim_variant_key(const struct cli_setting *setting);

/* The setting of a key in that section; NULL: none, or overridden by the command line. */
const struct cli_setting *cli_sim_variant_find(const struct cli_sim_plan *plan, unsigned point,
                                               const char *key);

/* With the axes known: each variant that is asked for has a section, and sections hold what may be in them.
 * CLI_PROCEED, or reports the cause. */
int cli_sim_variant_check(const struct cli_sim_plan *plan);

/* ---- scenario plan --------------------------------------------------------------------------------- */

/* What is to be simulated: a scenario, and for each value that it sweeps a point. */

/* After the scenario is complete: reads what is the command's, and what is swept. CLI_PROCEED, or reports
 * the cause. */
int cli_sim_plan_make(struct cli_sim_plan *plan);

/* The simulation of one point, to be destroyed by the caller. CLI_PROCEED, or reports the cause. */
int cli_sim_plan_create(const struct cli_sim_plan *plan, unsigned point, uint64_t seed,
                        struct lh_netsim **simulation);

/* What a key of the library is at a point: by the sweep, the scenario, or by default. "" when there is
 * no such key, or no value. */
const char *cli_sim_plan_text(const struct cli_sim_plan *plan, unsigned point, const char *key);

/* ---- ready scenarios ------------------------------------------------------------------------------- */

/* The ready scenarios: those that come with Longhaul. */

/* The path of the scenario that was named: a file as it is, or a ready one without its ending, as
 * cli_scenarios_list() prints it. CLI_PROCEED, or reports the cause. */
int cli_scenario_path(const char *name, char *path, size_t size);
/* Prints the ready ones, each with its first comment, and the distributions. Returns the exit status. */
int cli_scenarios_list(void);

/* ---- dry run --------------------------------------------------------------------------------------- */

/* Whether every run of a plan can begin, before the first one does. */

/* Makes the simulation of each point of a sweep, with its files, and looks for the links that are asked
 * for: what is wrong with the last point must not show after an hour of the others. CLI_PROCEED, or
 * reports the cause. */
int cli_sim_dry_run(const struct cli_sim_plan *plan);

/* Whether the links that are asked for are there. CLI_PROCEED, or reports the cause. */
int cli_sim_check_links(const struct cli_sim_plan *plan, unsigned point,
                        const struct lh_netsim *simulation);

#endif
