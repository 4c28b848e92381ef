/*
 * sweep.h - keys whose values are tried one after the other, and the points that they make.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_SCENARIO_SWEEP_H
#define LH_CLI_SIM_SCENARIO_SWEEP_H

#include "cli/sim/scenario/keys.h"
#include "cli/sim/scenario/scenario.h"

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

#endif
