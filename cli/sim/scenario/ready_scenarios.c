/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/scenario/ready_scenarios.h"

#include "cli/options/suggest.h"
#include "cli/results/read_text.h"
#include "cli/sim/scenario/scenario.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/terminal.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

bool cli_sizes_path(const char *name, char *path, size_t size)
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
