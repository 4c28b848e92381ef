/*
 * fuzz_cli_scenario.c - scenario files with anything in them, and every setting of one tried.
 *
 * Whatever it says: no more settings than there is room for, each of them clean text, and every refusal
 * has words.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/sim/scenario.h"
#include "cli/terminal/terminal.h"
#define refuse  refuse_key
#define unknown unknown_key
#include "cli/options/cli_options.h"

#include <string.h>
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct cli_scenario scenario;

static void try_setting(const struct cli_setting *setting, struct lh_netsim_config *config,
                        struct cli_sim_output *output)
{
    char wrong[512] = "";
    const char *key = setting->key, *value = setting->value;
    assert(*key && strlen(key) < CLI_SETTING_KEY_MAX && *value && setting->line);
    assert(cli_text_is_clean(key, 1) && cli_scenario_find(&scenario, key) == setting);
    if (!strncmp(key, "sweep.", 6))
        key += 6;
    if (cli_sim_key_is_ours(key))
        assert(!cli_sim_key_set(output, key, value, wrong, sizeof wrong) || *wrong);
    else
        assert(!lh_netsim_config_set(config, key, value) || *lh_last_error());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lh_netsim_config *config = NULL;
    struct cli_sim_output output;
    char about[40];
    memset(&scenario, 0, sizeof scenario);
    cli_scenario_about((const char *)data, size, about, sizeof about);
    assert(cli_text_is_clean(about, strlen(about)));
    if (cli_scenario_parse(&scenario, "x.ini", (const char *)data, size)) {
        assert(*scenario.wrong);
        return 0;
    }
    assert(scenario.count <= CLI_SETTINGS_MAX && !lh_netsim_config_create(&config));
    cli_sim_output_init(&output);
    for (unsigned i = 0; i < scenario.count; i++)
        try_setting(&scenario.settings[i], config, &output);
    assert(output.edges_count < CLI_CLASSES_MAX && output.panels_count <= CLI_PANELS_MAX);
    lh_netsim_config_destroy(config);
    return 0;
}
