/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/scenario/sweep.h"

#include "cli/terminal/diagnostic.h"

#include <stdio.h>
#include <string.h>

#define SWEEP "sweep."

bool cli_sim_plan_is_sweep(const struct cli_setting *setting)
{
    return !strncmp(setting->key, SWEEP, strlen(SWEEP));
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

int cli_sim_wrong_setting(const struct cli_sim_plan *plan, const struct cli_setting *setting,
                          const char *why)
{
    char place[CLI_PLACE_MAX];
    return cli_misused("%s: %s", cli_sim_plan_place(plan, setting, place), why);
}

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
                     fits ? "missing value (example: a,b,c)" : "too many values, or a value too long");
            return cli_sim_wrong_setting(plan, axis->setting, why);
        }
        snprintf(axis->values[axis->count], CLI_AXIS_VALUE_MAX, "%.*s", (int)length, list);
        for (unsigned i = 0; i < axis->count; i++)
            if (!strcmp(axis->values[i], axis->values[axis->count])) {
                snprintf(why, sizeof why, "%s: %s given twice", axis->setting->key, axis->values[i]);
                return cli_sim_wrong_setting(plan, axis->setting, why);
            }
        axis->count++;
        list += next + more;
    }
    return CLI_PROCEED;
}

/* loss=1e-4,burst=8 is one link, and would be read as two; loss=1e-4,loss=1e-3 is two. */
static int check_commas(const struct cli_sim_plan *plan, const struct cli_sim_axis *axis)
{
    const char *first = NULL;
    if (strchr(axis->setting->value, '|') || !cli_sim_key_is_of_kind(axis->key, "link"))
        return CLI_PROCEED;
    for (unsigned i = 0; i < axis->count; i++) {
        size_t length = strcspn(axis->values[i], "=");
        if (axis->values[i][length] && !first)
            first = axis->values[i];
        if (axis->values[i][length] && strncmp(first, axis->values[i], length + 1) != 0) {
            char why[CLI_SETTING_KEY_MAX + CLI_AXIS_VALUE_MAX + 128];
            snprintf(why, sizeof why, "%s: %s: ambiguous list of links (separate links by |)", axis->key,
                     axis->values[i]);
            return cli_sim_wrong_setting(plan, axis->setting, why);
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

int cli_sim_sweep_find(struct cli_sim_plan *plan)
{
    const struct cli_scenario *scenario = &plan->scenario;
    plan->points = 1;
    for (unsigned i = 0; i < scenario->count; i++) {
        const struct cli_setting *setting = &scenario->settings[i];
        if (!cli_sim_plan_is_sweep(setting) || is_overruled(scenario, setting))
            continue;
        const char *key = setting->key + strlen(SWEEP);
        if (cli_sim_key_is_ours(key) && strcmp(key, CLI_SIM_VARIANT_KEY) != 0)
            return cli_sim_wrong_setting(plan, setting, "key cannot be swept (see longhaul sim --keys)");
        if (plan->axes_count == CLI_AXES_MAX)
            return cli_sim_wrong_setting(plan, setting, "more than two swept keys");
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
