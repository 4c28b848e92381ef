/*
 * scenario.h - the text of a scenario file, taken apart into settings.
 *
 *   [switch]
 *   pfc = on            # a setting: "switch.pfc", "on"
 *
 * A comment starts with # or ; at the beginning of a line or after a blank. Nothing in here knows which
 * keys there are, nor opens files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_SCENARIO_SCENARIO_H
#define LH_CLI_SIM_SCENARIO_SCENARIO_H

#include <stddef.h>

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

#endif
