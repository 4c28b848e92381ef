/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/scenario.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <longhaul/netsim.h>

#include "cli/options/cli_options.h"
#include "cli/results/result_file.h"
#include "cli/terminal/terminal.h"

/* ---- ready scenarios ------------------------------------------------------------------------------- */

#define ENDING ".ini"
#define SIZES  ".cdf"

/* Beside the program where it is installed, and where it was built. */
static const char *const places[] = {"../share/longhaul/scenarios", "../netsim/scenarios"};

/* The folder with the ready scenarios; false: there is none. */
static bool find_folder(char *out, size_t size)
{
    char program[PATH_MAX], path[PATH_MAX + 64], real[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) {
        program[length] = 0;
        char *slash = strrchr(program, '/');
        for (size_t i = 0; slash && i < sizeof places / sizeof places[0]; i++) {
            snprintf(path, sizeof path, "%.*s/%s", (int)(slash - program), program, places[i]);
            if (access(path, R_OK | X_OK) || !realpath(path, real))
                continue;
            snprintf(out, size, "%s", real);
            return true;
        }
    }
    return false;
}

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), end = strlen(ending);
    return length > end && !strcmp(name + length - end, ending);
}

static int is_scenario(const struct dirent *entry)
{
    return ends_with(entry->d_name, ENDING);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int is_sizes(const struct dirent *entry)
{
    return ends_with(entry->d_name, SIZES);
}

/* The names in the folder, to be freed one by one; 0 when there are none. */
static int read_names(const char *folder, int (*is_ours)(const struct dirent *), struct dirent ***names)
{
    int count = scandir(folder, names, is_ours, alphasort);
    return count > 0 ? count : 0;
}

/* A scenario as it is named: "incast", or "bifrost/fig9a" in a folder of its own. */
typedef void visit_scenario(void *context, const char *name);

static unsigned visit_inside(const char *folder, const char *inside, visit_scenario *visit, void *context)
{
    char path[PATH_MAX + NAME_MAX + 66], name[2 * NAME_MAX + 2];
    struct dirent **names = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, inside);
    int count = read_names(path, is_scenario, &names);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s%s%.*s", inside, *inside ? "/" : "",
                 (int)(strlen(names[i]->d_name) - strlen(ENDING)), names[i]->d_name);
        visit(context, name);
        free(names[i]);
    }
    free(names);
    return (unsigned)count;
}

/* Those in the folder, then those in the folders in it; returns how many there are. */
static unsigned visit_all(const char *folder, visit_scenario *visit, void *context)
{
    struct dirent **names = NULL;
    unsigned found = visit_inside(folder, "", visit, context);
    int count = read_names(folder, is_visible, &names);
    for (int i = 0; i < count; i++) {
        found += visit_inside(folder, names[i]->d_name, visit, context);
        free(names[i]);
    }
    free(names);
    return found;
}

/* What was typed, and the scenario that is closest to it, with or without its folder; "": none is close. */
struct meaning {
    const char *typed;
    unsigned distance;
    char name[2 * NAME_MAX + 2];
};

static void compare(void *context, const char *name)
{
    struct meaning *meaning = context;
    const char *slash = strrchr(name, '/');
    const char *spellings[] = {name, slash ? slash + 1 : name};
    for (unsigned i = 0; i < 2; i++) {
        unsigned distance = cli_distance(meaning->typed, spellings[i]);
        if (!cli_is_close(meaning->typed, spellings[i]) ||
            (*meaning->name && distance >= meaning->distance))
            continue;
        meaning->distance = distance;
        snprintf(meaning->name, sizeof meaning->name, "%s", name);
    }
}

static int unknown(const char *name, const char *folder)
{
    struct meaning meaning = {.typed = name};
    if (*folder)
        visit_all(folder, compare, &meaning);
    if (*meaning.name)
        return cli_misused("%s: no such file or scenario (did you mean %s?)", name, meaning.name);
    return cli_misused("%s: no such file or scenario (see longhaul sim --list)", name);
}

/* Nothing outside of the folder. */
static bool is_name(const char *name)
{
    return *name != '/' && !strstr(name, "..");
}

int cli_scenario_path(const char *name, char *path, size_t size)
{
    char folder[PATH_MAX + 64] = "";
    struct stat found;
    snprintf(path, size, "%s", name);
    bool there = !stat(name, &found);
    /* Results of a ready scenario may lie in a folder of its name. */
    if (there && !S_ISDIR(found.st_mode))
        return CLI_PROCEED;
    bool plain = is_name(name) && find_folder(folder, sizeof folder);
    if (plain) {
        snprintf(path, size, "%s/%.*s%s", folder, 2 * NAME_MAX, name,
                 ends_with(name, ENDING) ? "" : ENDING);
        if (!access(path, F_OK))
            return CLI_PROCEED;
    }
    if (there) {
        snprintf(path, size, "%s", name);
        return CLI_PROCEED; /* reading it reports the error */
    }
    return unknown(name, plain ? folder : "");
}

static void find_workloads(const char *folder, char *out, size_t size)
{
    snprintf(out, size, "%s/workloads", folder);
}

/* The path of a distribution of sizes that comes with Longhaul, by its name without a folder. false: there is
 * none. */
static bool cli_sizes_path(const char *name, char *path, size_t size)
{
    char folder[PATH_MAX + 64], workloads[PATH_MAX + 80];
    if (strchr(name, '/') || !find_folder(folder, sizeof folder))
        return false;
    find_workloads(folder, workloads, sizeof workloads);
    snprintf(path, size, "%s/%.*s%s", workloads, NAME_MAX, name, ends_with(name, SIZES) ? "" : SIZES);
    return !access(path, F_OK);
}

static void print_sizes(const char *folder)
{
    char workloads[PATH_MAX + 80];
    struct dirent **names = NULL;
    find_workloads(folder, workloads, sizeof workloads);
    int count = read_names(workloads, is_sizes, &names);
    for (int i = 0; i < count; i++) {
        printf("%s%s", i ? ", " : "for workload.sizes: ", names[i]->d_name);
        free(names[i]);
    }
    if (count)
        putchar('\n');
    free(names);
}

static void print_scenario(void *context, const char *name)
{
    const char *folder = context;
    char path[PATH_MAX + 2 * NAME_MAX + 72], about[512], shown[512];
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s" ENDING, folder, name);
    char *text = cli_read_text("", path, CLI_SCENARIO_BYTES_MAX, &bytes);
    if (!text)
        return;
    cli_scenario_about(text, bytes, about, sizeof about);
    printf("  %-28s%s\n", name, cli_text_shown(about, shown, sizeof shown));
    free(text);
}

int cli_scenarios_list(void)
{
    char folder[PATH_MAX + 64] = "";
    bool found = find_folder(folder, sizeof folder);
    if (found)
        printf("scenarios in %s:\n", folder);
    if (!found || !visit_all(folder, print_scenario, folder))
        return cli_failed("no installed scenarios found");
    print_sizes(folder);
    return CLI_EXIT_OK;
}

/* ---- plan ------------------------------------------------------------------------------------------ */

/* Of a file that a key names. */
#define FILE_BYTES_MAX ((size_t)1 << 30)

/* Whether it sets a key of the library, at all points. */
static bool cli_sim_plan_is_plain(const struct cli_setting *setting)
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

/* The configuration of one point, with the files it names, to be destroyed by the caller. CLI_PROCEED, or
 * reports the cause. */
static int cli_sim_plan_config(const struct cli_sim_plan *plan, unsigned point,
                               struct lh_netsim_config **config)
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

/* ---- unused keys ----------------------------------------------------------------------------------- */

/* Keys that are set or swept, and that no simulation of the plan reads. */

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

/* Notes a key that is set and that nothing reads, at no point; refuses one that is swept so: all its points
 * would be the same. CLI_PROCEED, or reports the cause. */
static int cli_sim_check_unused(const struct cli_sim_plan *plan)
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

/* ---- dry run --------------------------------------------------------------------------------------- */

int cli_sim_check_links(const struct cli_sim_plan *plan, unsigned point, const struct lh_netsim *simulation)
{
    const struct {
        const char *key, *patterns;
    } asked[] = {
        {"output.queues", plan->output.queues},
        {"output.rates", plan->output.rates},
        {"output.pcap", plan->output.pcap},
    };
    char label[CLI_POINT_LABEL_MAX];
    struct cli_link_list found;
    struct lh_netsim_link first = {0}, last = {0};
    cli_sim_plan_label(plan, point, label, sizeof label);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        cli_link_list_find(&found, simulation, asked[i].patterns);
        if (!*asked[i].patterns || found.count)
            continue;
        uint32_t links = lh_netsim_links_count(simulation);
        lh_netsim_link(simulation, 0, &first);
        lh_netsim_link(simulation, links - 1, &last);
        return cli_misused("%s = %s: no such link%s%s (%s>%s to %s>%s, %u link%s)", asked[i].key,
                           asked[i].patterns, *label ? " with " : "", label, first.from, first.to,
                           last.from, last.to, links, cli_plural(links));
    }
    return CLI_PROCEED;
}

/* Values that differ only in characters that names of files cannot have, or far behind. */
static int check_folders(const struct cli_sim_plan *plan)
{
    char one[CLI_POINT_LABEL_MAX], other[CLI_POINT_LABEL_MAX];
    char folder[CLI_FOLDER_NAME_MAX], other_folder[CLI_FOLDER_NAME_MAX];
    for (unsigned i = 1; i < plan->points; i++) {
        cli_folder_name(cli_sim_plan_label(plan, i, one, sizeof one), folder);
        for (unsigned j = 0; j < i; j++) {
            cli_folder_name(cli_sim_plan_label(plan, j, other, sizeof other), other_folder);
            if (!strcmp(folder, other_folder))
                return cli_misused("%s, %s: same folder %s (change one of the values)", other, one, folder);
        }
    }
    return CLI_PROCEED;
}

int cli_sim_dry_run(const struct cli_sim_plan *plan)
{
    int status = check_folders(plan);
    for (unsigned point = 0; point < plan->points && status == CLI_PROCEED; point++) {
        struct lh_netsim *simulation = NULL;
        status = cli_sim_plan_create(plan, point, plan->seed, &simulation);
        if (status == CLI_PROCEED)
            status = cli_sim_check_links(plan, point, simulation);
        lh_netsim_destroy(simulation);
    }
    return status == CLI_PROCEED ? cli_sim_check_unused(plan) : status;
}
