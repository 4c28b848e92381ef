/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/distribute/site_progress.h"

#include "cli/group/options.h"
#include "cli/terminal/terminal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cli_site_bar *bar_of(struct cli_site_progress *progress, uint32_t rank)
{
    uint32_t site = cli_group_site(progress->group, rank), i = 0;
    while (i < progress->sites && progress->bars[i].site != site)
        i++;
    return i < progress->sites ? &progress->bars[i] : NULL;
}

static void start_bar(struct cli_site_bar *bar, struct lh_group *group, uint32_t rank, const char *name,
                      uint64_t size_bytes, uint64_t from_bytes)
{
    const char *site = lh_group_site(group, rank);
    if (cli_group_sites(group) == 1)
        snprintf(bar->label, sizeof bar->label, "%s", name);
    else if (*site)
        snprintf(bar->label, sizeof bar->label, "%s to %s", name, site);
    else
        snprintf(bar->label, sizeof bar->label, "%s to site %" PRIu32, name, bar->site);
    cli_text_clean(bar->label, strlen(bar->label));
    cli_progress_start(&bar->progress, bar->label, size_bytes, from_bytes);
}

void cli_site_progress_start(struct cli_site_progress *progress, struct lh_group *group, const char *name,
                             uint64_t size_bytes, uint64_t from_bytes)
{
    *progress = (struct cli_site_progress){.group = group};
    progress->bars = calloc(cli_group_sites(group), sizeof *progress->bars);
    for (uint32_t rank = 1; progress->bars && rank < lh_group_size(group); rank++) {
        if (bar_of(progress, rank))
            continue;
        struct cli_site_bar *bar = &progress->bars[progress->sites++];
        bar->site = cli_group_site(group, rank);
        start_bar(bar, group, rank, name, size_bytes, from_bytes);
    }
}

void cli_site_progress_show(struct cli_site_progress *progress, const int64_t *positions)
{
    for (uint32_t site = 0; site < progress->sites; site++)
        progress->bars[site].least_bytes = progress->bars[site].progress.total_bytes;
    for (uint32_t rank = 1; progress->sites > 0 && rank < lh_group_size(progress->group); rank++) {
        struct cli_site_bar *bar = bar_of(progress, rank);
        if ((uint64_t)positions[rank] < bar->least_bytes)
            bar->least_bytes = (uint64_t)positions[rank];
    }
    for (uint32_t site = 0; site < progress->sites; site++)
        cli_progress_show(&progress->bars[site].progress, progress->bars[site].least_bytes);
}

void cli_site_progress_clear(struct cli_site_progress *progress)
{
    for (uint32_t site = 0; site < progress->sites; site++)
        cli_progress_clear(&progress->bars[site].progress);
    free(progress->bars);
    *progress = (struct cli_site_progress){0};
}
