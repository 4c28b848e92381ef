/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_find.h"

#include "folder.h"
#include "options.h"
#include "say.h"
#include "scenario.h"
#include "sim.h"
#include "suggest.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDING ".ini"
#define SIZES  ".cdf"

/* Beside the program where it is installed, and where it was built. */
static const char *const places[] = {"../share/longhaul/scenarios", "../scenarios"};

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

static int unknown(const char *name, const char *folder)
{
    struct dirent **names = NULL;
    char meant[NAME_MAX + 1] = "";
    int count = *folder ? read_names(folder, is_scenario, &names) : 0;
    for (int i = 0; i < count; i++) {
        names[i]->d_name[strlen(names[i]->d_name) - strlen(ENDING)] = 0;
        if (!*meant && cli_is_close(name, names[i]->d_name))
            snprintf(meant, sizeof meant, "%s", names[i]->d_name);
        free(names[i]);
    }
    free(names);
    if (*meant)
        return cli_misused("there is no file %s; did you mean the scenario %s?", name, meant);
    return cli_misused(
        "there is no file %s, and no ready scenario of that name; --list tells what there is", name);
}

int cli_sim_find(const char *name, char *path, size_t size)
{
    char folder[PATH_MAX + 64] = "";
    struct stat found;
    snprintf(path, size, "%s", name);
    bool there = !stat(name, &found);
    /* Results of a ready scenario may lie in a folder of its name. */
    if (there && !S_ISDIR(found.st_mode))
        return CLI_PROCEED;
    bool plain = !strchr(name, '/') && find_folder(folder, sizeof folder);
    if (plain) {
        snprintf(path, size, "%s/%.*s%s", folder, NAME_MAX, name, ends_with(name, ENDING) ? "" : ENDING);
        if (!access(path, F_OK))
            return CLI_PROCEED;
    }
    if (there) {
        snprintf(path, size, "%s", name);
        return CLI_PROCEED; /* who reads it says what is wrong with it */
    }
    return unknown(name, plain ? folder : "");
}

static void find_workloads(const char *folder, char *out, size_t size)
{
    snprintf(out, size, "%s/workloads", folder);
}

bool cli_sim_find_sizes(const char *name, char *path, size_t size)
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

static void print_scenario(const char *folder, const char *name)
{
    char path[PATH_MAX + NAME_MAX + 68], about[160];
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *text = cli_read_text("", path, CLI_SCENARIO_BYTES_MAX, &bytes);
    if (!text)
        return;
    cli_scenario_about(text, bytes, about, sizeof about);
    printf("  %-28.*s%s\n", (int)(strlen(name) - strlen(ENDING)), name, about);
    free(text);
}

int cli_sim_list(void)
{
    char folder[PATH_MAX + 64] = "";
    struct dirent **names = NULL;
    int count = find_folder(folder, sizeof folder) ? read_names(folder, is_scenario, &names) : 0;
    if (!count)
        return cli_failed("there are no ready scenarios beside this program");
    printf("scenarios in %s:\n", folder);
    for (int i = 0; i < count; i++) {
        print_scenario(folder, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    print_sizes(folder);
    return CLI_EXIT_OK;
}
