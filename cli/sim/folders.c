/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/folders.h"

#include "cli/terminal/diagnostic.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEED "seed-"

/* What is done with files: CLI_PROCEED, or the end of it. */
typedef int act_on(const struct cli_folder *folder, const char *name);

static int remove_one(const struct cli_folder *folder, const char *name)
{
    cli_folder_remove(folder, name);
    return CLI_PROCEED;
}

static int expect_none(const struct cli_folder *folder, const char *name)
{
    return cli_folder_is_marked(folder) ? CLI_PROCEED : cli_folder_vacant(folder, "--output ", name);
}

/* With each file that a run may write. */
static int each_file(const struct cli_folder *folder, act_on *act)
{
    static const char *const names[] = {
        "flows.csv",    "links.csv",  "queues.csv", "rates.csv", "capture.pcap", "fct.dat",
        "summary.json", "sweep.csv",  "sweep.dat",  "fct.gp",    "queues.gp",    "rates.gp",
        "sweep.gp",     "queues.svg", "rates.svg",  "fct.svg",   "sweep.svg",
    };
    int status = CLI_PROCEED;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && status == CLI_PROCEED; i++)
        status = act(folder, names[i]);
    return status;
}

static int is_of_seed(const struct dirent *entry)
{
    size_t digits =
        strncmp(entry->d_name, SEED, strlen(SEED)) ? 0 : strspn(entry->d_name + strlen(SEED), "0123456789");
    return digits && !entry->d_name[strlen(SEED) + digits];
}

/* Begins with a key that can be swept, without its section, and '='. */
static int is_of_point(const struct dirent *entry)
{
    size_t count = 0, length = strcspn(entry->d_name, "=");
    const struct lh_netsim_key *keys = lh_netsim_keys(&count);
    for (size_t i = 0; i < count && entry->d_name[length]; i++) {
        const char *key = cli_sim_plan_short(keys[i].name);
        if (strlen(key) == length && !memcmp(key, entry->d_name, length))
            return 1;
    }
    return 0;
}

/* What a folder in another is called; false: it is too long for one of ours. */
static bool find_inside(struct cli_folder *inside, const struct cli_folder *folder, const char *name)
{
    int length = snprintf(inside->path, sizeof inside->path, "%s/%s", folder->path, name);
    return length > 0 && (size_t)length < sizeof inside->path;
}

/* In the folders of that kind; those that are left empty go when it is done. */
static int each_inside(const struct cli_folder *folder, int (*is_ours)(const struct dirent *), act_on *act)
{
    struct dirent **entries = NULL;
    struct cli_folder inside;
    int count = scandir(folder->path, &entries, is_ours, NULL), status = CLI_PROCEED;
    for (int i = 0; i < count; i++) {
        if (status == CLI_PROCEED && find_inside(&inside, folder, entries[i]->d_name)) {
            if (is_ours == is_of_point)
                status = each_inside(&inside, is_of_seed, act);
            if (status == CLI_PROCEED)
                status = each_file(&inside, act);
            if (act == remove_one) {
                cli_folder_unmark(&inside);
                rmdir(inside.path);
            }
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

static int each_of_a_run(const struct cli_folder *top, act_on *act)
{
    int status = each_file(top, act);
    if (status == CLI_PROCEED)
        status = each_inside(top, is_of_point, act);
    return status == CLI_PROCEED ? each_inside(top, is_of_seed, act) : status;
}

int cli_sim_folders_check(const struct cli_folder *top)
{
    return !*top->path || cli_folder_is_marked(top) ? CLI_PROCEED : each_of_a_run(top, expect_none);
}

int cli_sim_folders_clear(const struct cli_folder *top)
{
    if (!*top->path)
        return CLI_PROCEED;
    int status = cli_folder_mark(top);
    return status == CLI_PROCEED ? each_of_a_run(top, remove_one) : status;
}

int cli_sim_folder_make(const struct cli_sim_plan *plan, const struct cli_folder *top,
                        struct cli_sim_run *run)
{
    char name[CLI_POINT_LABEL_MAX];
    run->folder = *top;
    if (!*top->path)
        return CLI_PROCEED;
    int status = CLI_PROCEED;
    if (plan->axes_count)
        status =
            cli_folder_make_in(&run->folder, top, cli_sim_plan_label(plan, run->point, name, sizeof name));
    if (plan->seeds > 1 && status == CLI_PROCEED) {
        struct cli_folder above = run->folder;
        snprintf(name, sizeof name, SEED "%llu", (unsigned long long)run->seed);
        status = cli_folder_make_in(&run->folder, &above, name);
    }
    return status;
}

void cli_sim_folder_drop(const struct cli_folder *top, const struct cli_sim_run *run)
{
    struct cli_folder folder = run->folder;
    while (strlen(folder.path) > strlen(top->path) && !rmdir(folder.path))
        *strrchr(folder.path, '/') = 0;
}
