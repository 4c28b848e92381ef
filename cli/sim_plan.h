/*
 * sim_plan.h - what is to be simulated: a scenario, and for each value that it sweeps a point.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_SIM_PLAN_H
#define CLI_SIM_PLAN_H

#include "options.h"
#include "scenario.h"
#include "sim_keys.h"

#include <longhaul/netsim.h>

#include <limits.h>
#include <stdbool.h>

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

/* After the scenario is complete: reads what is the command's, and what is swept. CLI_PROCEED, or says
 * what is wrong. */
int cli_sim_plan_make(struct cli_sim_plan *plan);

/* The simulation of one point, to be destroyed by the caller. CLI_PROCEED, or says what is wrong. */
int cli_sim_plan_create(const struct cli_sim_plan *plan, unsigned point, uint64_t seed,
                        struct lh_netsim **simulation);

/* The configuration of one point, with the files it names, to be destroyed by the caller. CLI_PROCEED, or
 * says what is wrong. */
int cli_sim_plan_config(const struct cli_sim_plan *plan, unsigned point, struct lh_netsim_config **config);

/* Where a setting was said, "a.ini:12" or "--set", into out[CLI_PLACE_MAX]. Returns out. */
const char *cli_sim_plan_place(const struct cli_sim_plan *plan, const struct cli_setting *setting,
                               char *out);
/* Whether it asks for a sweep. */
bool cli_sim_plan_is_sweep(const struct cli_setting *setting);
/* Whether it sets a key of the library, at all points. */
bool cli_sim_plan_is_plain(const struct cli_setting *setting);

/* The value of an axis at a point. */
const char *cli_sim_plan_value(const struct cli_sim_plan *plan, unsigned point, unsigned axis);
/* What a key of the library is at a point: by the sweep, the scenario, or by default. "" when there is
 * no such key, or no value. */
const char *cli_sim_plan_text(const struct cli_sim_plan *plan, unsigned point, const char *key);
/* A key without its section. */
const char *cli_sim_plan_short(const char *key);
/* "routing=ecmp, load=30%"; "" without a sweep. */
char *cli_sim_plan_label(const struct cli_sim_plan *plan, unsigned point, char *out, size_t size);

#endif
