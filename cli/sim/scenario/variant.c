/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/scenario/variant.h"

#include "cli/terminal/diagnostic.h"

#include <string.h>

#define SECTION "variant "

const char *cli_sim_variant_key(const struct cli_setting *setting)
{
    const char *dot = strchr(setting->key, '.');
    if (strncmp(setting->key, SECTION, strlen(SECTION)) != 0 || !dot)
        return NULL;
    return dot + 1;
}

static bool is_in_section(const struct cli_setting *setting, const char *name)
{
    const char *key = cli_sim_variant_key(setting);
    const char *start = setting->key + strlen(SECTION);
    size_t length = strlen(name);
    return key && (size_t)(key - 1 - start) == length && !strncmp(start, name, length);
}

/* The variant at a point; "": none. */
static const char *chosen(const struct cli_sim_plan *plan, unsigned point)
{
    const struct cli_setting *setting = cli_scenario_find(&plan->scenario, CLI_SIM_VARIANT_KEY);
    for (unsigned i = 0; i < plan->axes_count; i++)
        if (!strcmp(plan->axes[i].key, CLI_SIM_VARIANT_KEY))
            return cli_sim_plan_value(plan, point, i);
    return setting ? setting->value : "";
}

bool cli_sim_variant_holds(const struct cli_sim_plan *plan, unsigned point,
                           const struct cli_setting *setting)
{
    return is_in_section(setting, chosen(plan, point));
}

const struct cli_setting *cli_sim_variant_find(const struct cli_sim_plan *plan, unsigned point,
                                               const char *key)
{
    const struct cli_setting *set = cli_scenario_find(&plan->scenario, key);
    if (!strcmp(key, CLI_SIM_VARIANT_KEY) || (set && !set->line))
        return NULL;
    for (unsigned i = 0; i < plan->scenario.count; i++) {
        const struct cli_setting *setting = &plan->scenario.settings[i];
        const char *about = cli_sim_variant_key(setting);
        if (about && !strcmp(about, key) && cli_sim_variant_holds(plan, point, setting))
            return setting;
    }
    return NULL;
}

static bool has_section(const struct cli_scenario *scenario, const char *name)
{
    for (unsigned i = 0; i < scenario->count; i++)
        if (is_in_section(&scenario->settings[i], name))
            return true;
    return false;
}

static int check_section(const struct cli_sim_plan *plan, const struct cli_setting *setting)
{
    char place[CLI_PLACE_MAX];
    const char *key = cli_sim_variant_key(setting);
    if (!key || (!cli_sim_key_is_ours(key) && strncmp(key, "sweep.", 6) != 0))
        return CLI_PROCEED;
    return cli_misused("%s: %s: not allowed in a variant (set it for all)",
                       cli_sim_plan_place(plan, setting, place), key);
}

int cli_sim_variant_check(const struct cli_sim_plan *plan)
{
    for (unsigned i = 0; i < plan->scenario.count; i++) {
        int status = check_section(plan, &plan->scenario.settings[i]);
        if (status != CLI_PROCEED)
            return status;
    }
    for (unsigned point = 0; point < plan->points; point++) {
        const char *name = chosen(plan, point);
        if (*name && !has_section(&plan->scenario, name))
            return cli_misused("%s: %s = %s: missing section [" SECTION "%s]", plan->scenario.path,
                               CLI_SIM_VARIANT_KEY, name, name);
    }
    return CLI_PROCEED;
}
