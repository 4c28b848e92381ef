/*
 * site_progress.h - how far the ranks are, at rank 0: a bar on the terminal for each site, of its slowest
 * rank; one bar where all ranks are in one site.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_DISTRIBUTE_SITE_PROGRESS_H
#define LH_CLI_DISTRIBUTE_SITE_PROGRESS_H

#include "cli/terminal/progress.h"

#include <longhaul/group.h>

#define CLI_SITE_LABEL_MAX (256 + LH_GROUP_SITE_MAX + 8) /* "model.bin to site2" */

struct cli_site_bar {
    uint32_t site;
    uint64_t least_bytes;
    char label[CLI_SITE_LABEL_MAX];
    struct cli_progress progress;
};

struct cli_site_progress {
    struct lh_group *group;
    uint32_t sites; /* with a receiver */
    struct cli_site_bar *bars;
};

/* name: of the file. Without memory there are no bars. */
void cli_site_progress_start(struct cli_site_progress *progress, struct lh_group *group, const char *name,
                             uint64_t size_bytes, uint64_t from_bytes);
/* positions: bytes that each rank has. */
void cli_site_progress_show(struct cli_site_progress *progress, const int64_t *positions);
/* Takes the bars away; also of {0}. */
void cli_site_progress_clear(struct cli_site_progress *progress);

#endif
