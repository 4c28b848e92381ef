/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/scenario/plan.h"

#include "cli/results/read_text.h"
#include "cli/sim/scenario/ready_scenarios.h"
#include "cli/sim/scenario/variant.h"
#include "cli/terminal/diagnostic.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a file that a key names. */
#define FILE_BYTES_MAX ((size_t)1 << 30)

bool cli_sim_plan_is_plain(const struct cli_setting *setting)
{
    return !cli_sim_plan_is_sweep(setting) && !cli_sim_key_is_ours(setting->key) &&
           !cli_sim_variant_key(setting);
}

const char *cli_sim_plan_text(const struct cli_sim_plan *plan, unsigned point, const char *key)
{
    size_t count = 0;
    const struct lh_netsim_key *keys = lh_netsim_keys(&count);
    const struct cli_setting *setting = cli_scenario_find(&plan->scenario, key);
    for (unsigned i = 0; i < plan->axes_count; i++)
        if (!strcmp(plan->axes[i].key, key))
            return cli_sim_plan_value(plan, point, i);
    const struct cli_setting *variant = cli_sim_variant_find(plan, point, key);
    if (variant)
        return variant->value;
    if (setting)
        return setting->value;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(keys[i].name, key))
            return keys[i].default_value;
    return "";
}

/* ---- the configuration ---------------------------------------------------------------------------- */

/* Names in a scenario are relative to its folder, those of the command line to where we are. Distributions
 * that come with Longhaul have names of their own. */
static void find_path(const struct cli_sim_plan *plan, const struct cli_setting *setting, const char *key,
                      const char *value, char *out, size_t size)
{
    const char *scenario = plan->scenario.path, *slash = strrchr(scenario, '/');
    if (*value == '/' || !setting->line || !slash)
        snprintf(out, size, "%s", value);
    else
        snprintf(out, size, "%.*s/%s", (int)(slash - scenario), scenario, value);
    char ready[PATH_MAX + NAME_MAX + 96];
    if (!strcmp(key, "workload.sizes") && access(out, F_OK) && cli_sizes_path(value, ready, sizeof ready))
        snprintf(out, size, "%s", ready);
}

static int no_file(const char *what, const char *key, const char *path)
{
    bool flows = strcmp(key, "workload.flows") == 0;
    return cli_failed("%s%s: %s (the key names a file%s)", what, path, strerror(errno),
                      flows ? " with one flow a line; number of flows: workload.senders, workload.rounds, "
                              "workload.load"
                            : "");
}

static int apply_file(const struct cli_sim_plan *plan, const struct cli_setting *setting, const char *key,
                      const char *value, struct lh_netsim_config *config)
{
    char path[PATH_MAX + CLI_SETTING_VALUE_MAX + 2], place[CLI_PLACE_MAX];
    char what[CLI_PLACE_MAX + CLI_SETTING_KEY_MAX + 8];
    size_t bytes = 0;
    find_path(plan, setting, key, value, path, sizeof path);
    snprintf(what, sizeof what, "%s: %s: ", cli_sim_plan_place(plan, setting, place), key);
    if (access(path, F_OK))
        return no_file(what, key, path);
    char *text = cli_read_text(what, path, FILE_BYTES_MAX, &bytes);
    if (!text)
        return CLI_EXIT_FAILED;
    int code = lh_netsim_config_text(config, key, path, text, bytes);
    free(text);
    return code ? cli_sim_wrong_setting(plan, setting, lh_last_error()) : CLI_PROCEED;
}

static int apply(const struct cli_sim_plan *plan, const struct cli_setting *setting, const char *key,
                 const char *value, struct lh_netsim_config *config)
{
    if (cli_sim_key_is_of_kind(key, "file"))
        return apply_file(plan, setting, key, value, config);
    if (lh_netsim_config_set(config, key, value))
        return cli_sim_wrong_setting(plan, setting, lh_last_error());
    return CLI_PROCEED;
}

/* Settings of the file and the command line, overridden by those of the variant. */
static int apply_settings(const struct cli_sim_plan *plan, unsigned point, struct lh_netsim_config *config)
{
    int status = CLI_PROCEED;
    for (unsigned i = 0; i < plan->scenario.count && status == CLI_PROCEED; i++) {
        const struct cli_setting *setting = &plan->scenario.settings[i];
        const char *about = cli_sim_variant_key(setting);
        if (about && cli_sim_variant_find(plan, point, about) == setting)
            status = apply(plan, setting, about, setting->value, config);
        else if (cli_sim_plan_is_plain(setting) && !cli_sim_variant_find(plan, point, setting->key))
            status = apply(plan, setting, setting->key, setting->value, config);
    }
    return status;
}

int cli_sim_plan_config(const struct cli_sim_plan *plan, unsigned point, struct lh_netsim_config **config)
{
    struct lh_netsim_config *made = NULL;
    if (lh_netsim_config_create(&made))
        return cli_failed("%s", lh_last_error());
    int status = apply_settings(plan, point, made);
    for (unsigned i = 0; i < plan->axes_count && status == CLI_PROCEED; i++)
        if (strcmp(plan->axes[i].key, CLI_SIM_VARIANT_KEY) != 0)
            status = apply(plan, plan->axes[i].setting, plan->axes[i].key,
                           cli_sim_plan_value(plan, point, i), made);
    if (status == CLI_PROCEED)
        *config = made;
    else
        lh_netsim_config_destroy(made);
    return status;
}

/* What is ours. */
static int read_output(struct cli_sim_plan *plan)
{
    char wrong[512];
    cli_sim_output_init(&plan->output);
    for (unsigned i = 0; i < plan->scenario.count; i++) {
        const struct cli_setting *setting = &plan->scenario.settings[i];
        if (cli_sim_key_is_ours(setting->key) &&
            cli_sim_key_set(&plan->output, setting->key, setting->value, wrong, sizeof wrong))
            return cli_sim_wrong_setting(plan, setting, wrong);
    }
    return CLI_PROCEED;
}

int cli_sim_plan_make(struct cli_sim_plan *plan)
{
    int status = read_output(plan);
    if (status == CLI_PROCEED)
        status = cli_sim_sweep_find(plan);
    return status == CLI_PROCEED ? cli_sim_variant_check(plan) : status;
}

/* ---- the simulation ------------------------------------------------------------------------------- */

/* Whether a text names a key: topology.k is not in topology.kind. */
static bool names(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *at = strstr(text, key); at; at = strstr(at + 1, key))
        if (!isalnum((unsigned char)at[length]) && at[length] != '_')
            return true;
    return false;
}

/* The setting that an error is about: one whose key it names. NULL: none. */
static const struct cli_setting *blamed(const struct cli_sim_plan *plan, const char *error)
{
    for (unsigned i = 0; i < plan->axes_count; i++)
        if (names(error, plan->axes[i].key))
            return plan->axes[i].setting;
    for (unsigned i = 0; i < plan->scenario.count; i++)
        if (cli_sim_plan_is_plain(&plan->scenario.settings[i]) &&
            names(error, plan->scenario.settings[i].key))
            return &plan->scenario.settings[i];
    return NULL;
}

int cli_sim_plan_create(const struct cli_sim_plan *plan, unsigned point, uint64_t seed,
                        struct lh_netsim **simulation)
{
    char label[CLI_POINT_LABEL_MAX], place[CLI_PLACE_MAX];
    struct lh_netsim_config *config = NULL;
    int status = cli_sim_plan_config(plan, point, &config);
    if (status != CLI_PROCEED)
        return status;
    int code = lh_netsim_create(config, seed, simulation);
    lh_netsim_config_destroy(config);
    if (!code)
        return CLI_PROCEED;
    const struct cli_setting *setting = blamed(plan, lh_last_error());
    snprintf(place, sizeof place, "%s", plan->scenario.path);
    if (setting)
        cli_sim_plan_place(plan, setting, place);
    cli_sim_plan_label(plan, point, label, sizeof label);
    int (*fail)(const char *, ...) = code == -LH_ENOMEM ? cli_failed : cli_misused;
    return fail("%s: %s%s%s", place, label, *label ? ": " : "", lh_last_error());
}
