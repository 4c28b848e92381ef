/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/scenario/unused_keys.h"

#include "cli/sim/scenario/plan.h"
#include "cli/terminal/diagnostic.h"

#include <string.h>

/* For each setting and axis the key because of which nothing reads it; NULL: some point does. */
struct unused {
    const char *settings[CLI_SETTINGS_MAX];
    const char *axes[CLI_AXES_MAX];
};

/* After the first point, only what no point before has read is still of interest. */
static void look_at_point(struct unused *unused, const struct cli_sim_plan *plan,
                          const struct lh_netsim_config *config, bool first)
{
    for (unsigned i = 0; i < plan->scenario.count; i++)
        if (cli_sim_plan_is_plain(&plan->scenario.settings[i]) && (first || unused->settings[i]))
            unused->settings[i] = lh_netsim_config_unread(config, plan->scenario.settings[i].key);
    for (unsigned i = 0; i < plan->axes_count; i++)
        if (first || unused->axes[i])
            unused->axes[i] = lh_netsim_config_unread(config, plan->axes[i].key);
}

/* Of a swept key only the place of its sweep is reported. */
static bool is_swept(const struct cli_sim_plan *plan, const char *key)
{
    for (unsigned i = 0; i < plan->axes_count; i++)
        if (!strcmp(plan->axes[i].key, key))
            return true;
    return false;
}

/* A file may keep thresholds of what it, or the command line, switches off: flow control, marks. */
static bool is_kept(const struct cli_setting *setting, const char *because)
{
    return setting->line && strncmp(because, "topology.", 9) != 0 && strncmp(because, "workload.", 9) != 0;
}

static int report(const struct unused *unused, const struct cli_sim_plan *plan)
{
    char place[CLI_PLACE_MAX];
    for (unsigned i = 0; i < plan->axes_count; i++)
        if (unused->axes[i])
            return cli_misused("%s: %s is unused with %s=%s: all points would be the same%s",
                               cli_sim_plan_place(plan, plan->axes[i].setting, place), plan->axes[i].key,
                               unused->axes[i], cli_sim_plan_text(plan, 0, unused->axes[i]),
                               plan->axes[i].setting->line ? " (--no-sweep ignores the sweep)" : "");
    for (unsigned i = 0; i < plan->scenario.count; i++) {
        const struct cli_setting *setting = &plan->scenario.settings[i];
        if (unused->settings[i] && !is_swept(plan, setting->key) && !is_kept(setting, unused->settings[i]))
            cli_note("%s: %s is unused with %s=%s", cli_sim_plan_place(plan, setting, place), setting->key,
                     unused->settings[i], cli_sim_plan_text(plan, 0, unused->settings[i]));
    }
    return CLI_PROCEED;
}

int cli_sim_check_unused(const struct cli_sim_plan *plan)
{
    struct unused unused = {0};
    for (unsigned point = 0; point < plan->points; point++) {
        struct lh_netsim_config *config = NULL;
        int status = cli_sim_plan_config(plan, point, &config);
        if (status != CLI_PROCEED)
            return status;
        look_at_point(&unused, plan, config, point == 0);
        lh_netsim_config_destroy(config);
    }
    return report(&unused, plan);
}
