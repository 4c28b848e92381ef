/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/scenario.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/netsim.h>
#include <longhaul/units.h>

#include "cli/options/cli_options.h"
#include "cli/terminal/terminal.h"

/* ---- keys ------------------------------------------------------------------------------------------ */

#define PS_PER_NS 1000

static const struct lh_netsim_key keys[] = {
    {"run.until", "time", "none", "virtual end time of the run; none: when no event remains"},
    {"run.variant", "name", "", "the section [variant NAME] that applies; may be swept"},
    {"output.title", "text", "", "title of the pictures; default: name of the file"},
    {"output.period", "time", "10us", "interval between samples of queues and rates"},
    {"output.from", "time", "none",
     "start time of jain, share, queue_mean and queue_p99; none: no such figures"},
    {"output.to", "time", "none", "end time of these figures; none: the end of the run"},
    {"output.queues", "links", "none", "links whose queue is sampled: leaf0>host*,spine*>leaf0, or all"},
    {"output.rates", "links", "none", "links whose rate is sampled"},
    {"output.pcap", "links", "none", "links whose packets are captured in capture.pcap"},
    {"output.packets", "count", "20000", "limit on packets in capture.pcap"},
    {"output.snap", "full|headers", "full",
     "capture.pcap with payload (zeros, which Wireshark expects) or headers only"},
    {"output.classes", "sizes", "10kB,100kB,1MB,10MB",
     "bounds of the classes of flow sizes; none: one class; sites: one class for each pair of sites"},
    {"output.figures", "names", "fct_mean,fct_p99",
     "up to three figures for the picture of a sweep; names are listed below"},
};

#define KEYS (sizeof keys / sizeof keys[0])

int cli_sim_key_is_ours(const char *key)
{
    for (size_t i = 0; i < KEYS; i++)
        if (!strcmp(key, keys[i].name))
            return 1;
    return !strncmp(key, "output.", 7);
}

bool cli_sim_key_is_of_kind(const char *name, const char *kind)
{
    size_t count = 0;
    const struct lh_netsim_key *library = lh_netsim_keys(&count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(library[i].name, name))
            return !strcmp(library[i].kind, kind);
    return false;
}

static int unknown(const char *key, char *wrong, size_t size)
{
    for (size_t i = 0; i < KEYS; i++)
        if (cli_is_close(key, keys[i].name)) {
            snprintf(wrong, size, "%.80s: unknown key (did you mean %s?)", key, keys[i].name);
            return -1;
        }
    snprintf(wrong, size, "%.80s: unknown key (see longhaul sim --keys)", key);
    return -1;
}

static int refuse(const char *key, const char *value, const char *why, char *wrong, size_t size)
{
    snprintf(wrong, size, "%s = %.80s: %s", key, value, why);
    return -1;
}

static int set_time(uint64_t *ps, const char *key, const char *value, char *wrong, size_t size)
{
    lh_time ns = 0;
    if (lh_parse_time(value, &ns) || !ns || ns > UINT64_MAX / 2 / PS_PER_NS)
        return refuse(key, value, "out of range (1ns to 106 days; example: 10us)", wrong, size);
    *ps = (uint64_t)ns * PS_PER_NS;
    return 0;
}

static int set_end(uint64_t *ps, const char *key, const char *value, char *wrong, size_t size)
{
    *ps = CLI_NO_END;
    return strcmp(value, "none") ? set_time(ps, key, value, wrong, size) : 0;
}

static int set_links(char *links, const char *key, const char *value, char *wrong, size_t size)
{
    bool none = !strcmp(value, "none");
    if (!none && strcmp(value, "all") != 0 && !strchr(value, '>'))
        return refuse(key, value, "invalid links (from>to, all or none; examples: leaf0>host3, *>host3)",
                      wrong, size);
    if (strlen(value) >= CLI_LINKS_MAX)
        return refuse(key, value, "too long (* matches any characters)", wrong, size);
    snprintf(links, CLI_LINKS_MAX, "%s", none ? "" : !strcmp(value, "all") ? "*>*" : value);
    return 0;
}

static int set_packets(uint32_t *packets, const char *key, const char *value, char *wrong, size_t size)
{
    char *end;
    unsigned long long count = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || !count || count > 1000000000)
        return refuse(key, value, "out of range (1 to 1000000000)", wrong, size);
    *packets = (uint32_t)count;
    return 0;
}

static int set_snap(bool *full, const char *key, const char *value, char *wrong, size_t size)
{
    *full = !strcmp(value, "full");
    if (!*full && strcmp(value, "headers") != 0)
        return refuse(key, value, "unknown value (full or headers)", wrong, size);
    return 0;
}

/* Copies the next part of "a,b,c" into out; what follows it, or NULL when it was the last. */
static const char *next_part(const char *list, char *out, size_t size)
{
    size_t length = strcspn(list, ",");
    while (length && *list == ' ')
        list++, length--;
    snprintf(out, size, "%.*s", (int)length, list);
    while (*out && out[strlen(out) - 1] == ' ')
        out[strlen(out) - 1] = 0;
    return list[length] ? list + length + 1 : NULL;
}

static int set_classes(struct cli_sim_output *output, const char *key, const char *value, char *wrong,
                       size_t size)
{
    char part[64];
    unsigned count = 0;
    uint64_t edges[CLI_CLASSES_MAX - 1];
    bool sites = !strcmp(value, "sites");
    for (const char *at = sites || !strcmp(value, "none") ? NULL : value; at;) {
        at = next_part(at, part, sizeof part);
        if (count == CLI_CLASSES_MAX - 1)
            return refuse(key, value, "more than 7 bounds", wrong, size);
        if (lh_parse_size(part, &edges[count]) || !edges[count] ||
            (count && edges[count] <= edges[count - 1]))
            return refuse(key, value, "invalid bounds (ascending sizes, none or sites; example: 10kB,1MB)",
                          wrong, size);
        count++;
    }
    memcpy(output->edges, edges, sizeof edges);
    output->edges_count = count;
    output->by_sites = sites;
    return 0;
}

static int set_panels(struct cli_sim_output *output, const char *key, const char *value, char *wrong,
                      size_t size)
{
    char part[64];
    unsigned count = 0, panels[CLI_PANELS_MAX];
    for (const char *at = value; at;) {
        at = next_part(at, part, sizeof part);
        if (count == CLI_PANELS_MAX)
            return refuse(key, value, "more than three figures", wrong, size);
        panels[count] = cli_figure_find(part);
        if (panels[count++] < CLI_FIGURES)
            continue;
        for (unsigned i = 0; i < CLI_FIGURES; i++)
            if (cli_is_close(part, cli_figure_infos[i].name)) {
                snprintf(wrong, size, "%s: unknown figure %s (did you mean %s?)", key, part,
                         cli_figure_infos[i].name);
                return -1;
            }
        return refuse(key, value, "unknown figure (example: fct_mean,goodput; see longhaul sim --keys)",
                      wrong, size);
    }
    memcpy(output->panels, panels, sizeof panels);
    output->panels_count = count;
    return 0;
}

int cli_sim_key_set(struct cli_sim_output *output, const char *key, const char *value, char *wrong,
                    size_t size)
{
    if (!strcmp(key, "run.variant"))
        return 0; /* the plan looks for its section */
    if (!strcmp(key, "run.until"))
        return set_end(&output->until_ps, key, value, wrong, size);
    if (!strcmp(key, "output.from"))
        return set_end(&output->from_ps, key, value, wrong, size);
    if (!strcmp(key, "output.to"))
        return set_end(&output->to_ps, key, value, wrong, size);
    if (!strcmp(key, "output.period"))
        return set_time(&output->period_ps, key, value, wrong, size);
    if (!strcmp(key, "output.queues"))
        return set_links(output->queues, key, value, wrong, size);
    if (!strcmp(key, "output.rates"))
        return set_links(output->rates, key, value, wrong, size);
    if (!strcmp(key, "output.pcap"))
        return set_links(output->pcap, key, value, wrong, size);
    if (!strcmp(key, "output.packets"))
        return set_packets(&output->packets, key, value, wrong, size);
    if (!strcmp(key, "output.classes"))
        return set_classes(output, key, value, wrong, size);
    if (!strcmp(key, "output.figures"))
        return set_panels(output, key, value, wrong, size);
    if (!strcmp(key, "output.snap"))
        return set_snap(&output->full_packets, key, value, wrong, size);
    if (strcmp(key, "output.title") != 0)
        return unknown(key, wrong, size);
    snprintf(output->title, sizeof output->title, "%s", value);
    return 0;
}

void cli_sim_output_init(struct cli_sim_output *output)
{
    char wrong[128] = "";
    *output = (struct cli_sim_output){0};
    for (size_t i = 0; i < KEYS; i++)
        cli_sim_key_set(output, keys[i].name, keys[i].default_value, wrong, sizeof wrong);
}

/* ---- the help ------------------------------------------------------------------------------------- */

static void print_key(const struct lh_netsim_key *key)
{
    const char *name = strchr(key->name, '.') + 1;
    bool narrow = strlen(key->kind) < 14;
    printf("  %-16s%-14s%-12s %s\n", name, narrow ? key->kind : "one of", key->default_value, key->help);
    if (!narrow)
        printf("  %-16s%s\n", "", key->kind);
}

/* Keys of one table, with a title above each section; *section goes on from table to table. */
static void print_keys(const struct lh_netsim_key *table, size_t count, const char **section)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(table[i].name, ".");
        if (strncmp(*section, table[i].name, length + 1) != 0)
            printf("\n[%.*s]\n", (int)length, table[i].name);
        *section = table[i].name;
        print_key(&table[i]);
    }
}

/* The names, in lines of four. */
static void print_figures(void)
{
    puts("\nfigures, for output.figures and as columns of sweep.csv:");
    for (unsigned figure = 0; figure < CLI_FIGURES; figure++)
        printf("%s%-22s%s", figure % 4 ? "" : "  ", cli_figure_infos[figure].name,
               figure % 4 == 3 || figure + 1 == CLI_FIGURES ? "\n" : "");
}

int cli_sim_keys_print(void)
{
    size_t count = 0;
    const char *section = "";
    puts("  key             value         default      meaning");
    const struct lh_netsim_key *table = lh_netsim_keys(&count);
    print_keys(table, count, &section);
    print_keys(keys, KEYS, &section);
    puts("\n[variant NAME]\n  any key of topology, switch, transport, long, workload, as section.key: "
         "applies where "
         "run.variant is NAME.");
    puts("\n[sweep]\n  any key of topology, switch, transport, long, workload, with a list of values: "
         "a,b,c;\n  a | b | c for values with "
         "commas. One or two such keys: one simulation for each value or pair.");
    print_figures();
    return CLI_EXIT_OK;
}

/* ---- sweep ----------------------------------------------------------------------------------------- */

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

/* ---- variant --------------------------------------------------------------------------------------- */

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

/* Whether the setting is in the section that applies at a point. */
static bool cli_sim_variant_holds(const struct cli_sim_plan *plan, unsigned point,
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
