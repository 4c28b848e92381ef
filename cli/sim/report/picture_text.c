/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/report/picture_text.h"

#include <stdio.h>
#include <string.h>

void cli_picture_title(const struct cli_sim_results *results, unsigned shown, char *out)
{
    unsigned points = cli_sim_points(results);
    if (shown < points)
        snprintf(out, CLI_PICTURE_TITLE_MAX, "%s (the first %u of %u)", results->title, shown, points);
    else
        snprintf(out, CLI_PICTURE_TITLE_MAX, "%s", results->title);
    size_t used = strlen(out);
    if (results->plan->seeds > 1)
        snprintf(out + used, CLI_PICTURE_TITLE_MAX - used, " (seed %u, the first of %u)",
                 results->plan->seed, results->plan->seeds);
}

void cli_picture_path(const struct cli_folder *folder, const struct cli_sim_run *run, char *out,
                      size_t size)
{
    size_t length = strlen(folder->path);
    bool same = !strcmp(folder->path, run->folder.path);
    snprintf(out, size, "%s%s", same ? "" : run->folder.path + length + 1, same ? "" : "/");
}
