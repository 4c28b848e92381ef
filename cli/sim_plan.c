/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_plan.h"

#include "folder.h"
#include "say.h"
#include "sim_find.h"
#include "sim_variant.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SWEEP "sweep."
/* Of a file that a key names. */
#define FILE_BYTES_MAX ((size_t)1 << 30)

bool cli_sim_plan_is_sweep(const struct cli_setting *setting)
{
    return !strncmp(setting->key, SWEEP, strlen(SWEEP));
}

bool cli_sim_plan_is_plain(const struct cli_setting *setting)
{
    return !cli_sim_plan_is_sweep(setting) && !cli_sim_key_is_ours(setting->key) &&
           !cli_sim_variant_key(setting);
}

const char *cli_sim_plan_place(const struct cli_sim_plan *plan, const struct cli_setting *setting,
                               char *out)
{
    if (setting->line)
        snprintf(out, CLI_PLACE_MAX, "%s:%u", plan->scenario.path, setting->line);
    else
        snprintf(out, CLI_PLACE_MAX, "--%s", cli_sim_plan_is_sweep(setting) ? "sweep" : "set");
    return out;
}

/* What a setting says is wrong. */
static int wrong_setting(const struct cli_sim_plan *plan, const struct cli_setting *setting,
                         const char *why)
{
    char place[CLI_PLACE_MAX];
    return cli_misused("%s: %s", cli_sim_plan_place(plan, setting, place), why);
}

/* ---- axes ----------------------------------------------------------------------------------------- */

/* "a, b, c", or "a | b | c": blanks around the values do not count. */
static int read_axis(const struct cli_sim_plan *plan, struct cli_sim_axis *axis)
{
    const char *list = axis->setting->value, *separator = strchr(list, '|') ? "|" : ",";
    char why[CLI_SETTING_KEY_MAX + CLI_AXIS_VALUE_MAX + 128];
    for (bool more = true; more;) {
        size_t length = strcspn(list, separator), next = length;
        more = list[length] != 0;
        for (; length && *list == ' '; list++, length--, next--)
            ;
        while (length && list[length - 1] == ' ')
            length--;
        bool fits = axis->count < CLI_AXIS_VALUES_MAX && length < CLI_AXIS_VALUE_MAX;
        if (!length || !fits) {
            snprintf(why, sizeof why, "%s: %s", axis->setting->key,
                     fits ? "a value is missing; write a,b,c"
                          : "these are too many values, or too long ones");
            return wrong_setting(plan, axis->setting, why);
        }
        snprintf(axis->values[axis->count], CLI_AXIS_VALUE_MAX, "%.*s", (int)length, list);
        for (unsigned i = 0; i < axis->count; i++)
            if (!strcmp(axis->values[i], axis->values[axis->count])) {
                snprintf(why, sizeof why, "%s: %s is there twice; keep one", axis->setting->key,
                         axis->values[i]);
                return wrong_setting(plan, axis->setting, why);
            }
        axis->count++;
        list += next + more;
    }
    return CLI_PROCEED;
}

static bool is_of_kind(const char *name, const char *kind)
{
    size_t count = 0;
    const struct lh_netsim_key *keys = lh_netsim_keys(&count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(keys[i].name, name))
            return !strcmp(keys[i].kind, kind);
    return false;
}

/* loss=1e-4,burst=8 is one link, and would be read as two; loss=1e-4,loss=1e-3 is two. */
static int check_commas(const struct cli_sim_plan *plan, const struct cli_sim_axis *axis)
{
    const char *first = NULL;
    if (strchr(axis->setting->value, '|') || !is_of_kind(axis->key, "link"))
        return CLI_PROCEED;
    for (unsigned i = 0; i < axis->count; i++) {
        size_t length = strcspn(axis->values[i], "=");
        if (axis->values[i][length] && !first)
            first = axis->values[i];
        if (axis->values[i][length] && strncmp(first, axis->values[i], length + 1) != 0) {
            char why[CLI_SETTING_KEY_MAX + CLI_AXIS_VALUE_MAX + 128];
            snprintf(why, sizeof why,
                     "%s: whether %s is a link of its own is not clear; write | between links", axis->key,
                     axis->values[i]);
            return wrong_setting(plan, axis->setting, why);
        }
    }
    return CLI_PROCEED;
}

/* --sweep replaces the sweep of the file, and --set of a swept key ends that. */
static bool is_overruled(const struct cli_scenario *scenario, const struct cli_setting *sweep)
{
    const struct cli_setting *set = cli_scenario_find(scenario, sweep->key + strlen(SWEEP));
    if (!sweep->line)
        return false;
    if (set && !set->line)
        return true;
    for (unsigned i = 0; i < scenario->count; i++)
        if (cli_sim_plan_is_sweep(&scenario->settings[i]) && !scenario->settings[i].line)
            return true;
    return false;
}

static int find_axes(struct cli_sim_plan *plan)
{
    const struct cli_scenario *scenario = &plan->scenario;
    plan->points = 1;
    for (unsigned i = 0; i < scenario->count; i++) {
        const struct cli_setting *setting = &scenario->settings[i];
        if (!cli_sim_plan_is_sweep(setting) || is_overruled(scenario, setting))
            continue;
        const char *key = setting->key + strlen(SWEEP);
        if (cli_sim_key_is_ours(key) && strcmp(key, CLI_VARIANT_KEY) != 0)
            return wrong_setting(plan, setting,
                                 "this key cannot be swept; 'longhaul sim --keys' tells which");
        if (plan->axes_count == CLI_AXES_MAX)
            return wrong_setting(plan, setting, "at most two keys can be swept");
        struct cli_sim_axis *axis = &plan->axes[plan->axes_count++];
        *axis = (struct cli_sim_axis){.setting = setting, .key = key};
        int status = read_axis(plan, axis);
        if (status == CLI_PROCEED)
            status = check_commas(plan, axis);
        if (status != CLI_PROCEED)
            return status;
        plan->points *= axis->count;
    }
    return CLI_PROCEED;
}

const char *cli_sim_plan_value(const struct cli_sim_plan *plan, unsigned point, unsigned axis)
{
    unsigned faster = 1;
    for (unsigned i = axis + 1; i < plan->axes_count; i++)
        faster *= plan->axes[i].count;
    return plan->axes[axis].values[point / faster % plan->axes[axis].count];
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

const char *cli_sim_plan_short(const char *key)
{
    const char *dot = strchr(key, '.');
    return dot ? dot + 1 : key;
}

char *cli_sim_plan_label(const struct cli_sim_plan *plan, unsigned point, char *out, size_t size)
{
    size_t used = 0;
    *out = 0;
    for (unsigned i = 0; i < plan->axes_count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s=%s", i ? ", " : "",
                                 cli_sim_plan_short(plan->axes[i].key), cli_sim_plan_value(plan, point, i));
    return out;
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
    char ready[PATH_MAX + NAME_MAX + 80];
    if (!strcmp(key, "workload.sizes") && access(out, F_OK) &&
        cli_sim_find_sizes(value, ready, sizeof ready))
        snprintf(out, size, "%s", ready);
}

static int apply_file(const struct cli_sim_plan *plan, const struct cli_setting *setting, const char *key,
                      const char *value, struct lh_netsim_config *config)
{
    char path[PATH_MAX + CLI_SETTING_VALUE_MAX + 2], place[CLI_PLACE_MAX];
    char what[CLI_PLACE_MAX + CLI_SETTING_KEY_MAX + 8];
    size_t bytes = 0;
    find_path(plan, setting, key, value, path, sizeof path);
    snprintf(what, sizeof what, "%s: %s: ", cli_sim_plan_place(plan, setting, place), key);
    char *text = cli_read_text(what, path, FILE_BYTES_MAX, &bytes);
    if (!text)
        return CLI_EXIT_FAILED;
    int code = lh_netsim_config_text(config, key, path, text, bytes);
    free(text);
    return code ? wrong_setting(plan, setting, lh_last_error()) : CLI_PROCEED;
}

static int apply(const struct cli_sim_plan *plan, const struct cli_setting *setting, const char *key,
                 const char *value, struct lh_netsim_config *config)
{
    if (is_of_kind(key, "file"))
        return apply_file(plan, setting, key, value, config);
    if (lh_netsim_config_set(config, key, value))
        return wrong_setting(plan, setting, lh_last_error());
    return CLI_PROCEED;
}

/* What the file and the command line say; of what a variant says otherwise, that. */
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
        if (strcmp(plan->axes[i].key, CLI_VARIANT_KEY) != 0)
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
            return wrong_setting(plan, setting, wrong);
    }
    return CLI_PROCEED;
}

int cli_sim_plan_make(struct cli_sim_plan *plan)
{
    int status = read_output(plan);
    if (status == CLI_PROCEED)
        status = find_axes(plan);
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
