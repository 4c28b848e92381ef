/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/run/progress.h"

#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/wait.h"

#include <longhaul/units.h>

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define DRAW_EVERY_NS (100 * LH_NS_PER_MS)
#define PS_PER_S      1e12
#define LABEL_COLUMNS 32
/* Columns right of the bar, and the brackets with their blanks. */
#define RIGHT_COLUMNS 54
/* Below that share of the work the duration is unknown. */
#define GUESS_FROM 0.01

void cli_sim_progress_start(struct cli_sim_progress *progress, const char *label)
{
    *progress = (struct cli_sim_progress){
        .label = label, .shown = isatty(STDERR_FILENO) != 0, .started_ns = cli_now()};
}

/* What is nearer: the last flow, or the end of time. */
static double share_done(const struct lh_netsim_totals *totals, uint64_t until_ps)
{
    double flows = totals->flows ? (double)totals->flows_done / (double)totals->flows : 1;
    double time = until_ps != UINT64_MAX ? (double)totals->now_ps / (double)until_ps : 0;
    double share = flows > time ? flows : time;
    return share < 1 ? share : 1;
}

void cli_sim_progress_line(const char *label, const struct lh_netsim_totals *totals, uint64_t until_ps,
                           double elapsed_s, unsigned columns, char *out, size_t size)
{
    char time[LH_FORMAT_MAX], left[LH_FORMAT_MAX] = "", bar[CLI_BAR_MAX] = "", right[4 * LH_FORMAT_MAX];
    double share = share_done(totals, until_ps);
    double hops_per_s = elapsed_s > 0 ? (double)totals->hops / elapsed_s : 0;
    if (share >= GUESS_FROM)
        cli_progress_left(elapsed_s * (1 - share) / share, left, sizeof left);
    lh_format_time((double)totals->now_ps / PS_PER_S, time, sizeof time);
    snprintf(right, sizeof right, "%3d %%  at %-7s  %5.1f M hops/s  %s", (int)(share * 100), time,
             hops_per_s / 1e6, left);
    unsigned room = columns > RIGHT_COLUMNS ? columns - RIGHT_COLUMNS : 0;
    unsigned label_columns = cli_text_columns(label);
    if (label_columns > LABEL_COLUMNS)
        label_columns = LABEL_COLUMNS;
    room -= room > label_columns ? label_columns : room;
    if (room >= 10)
        cli_progress_bar(share, room < CLI_BAR_COLUMNS_MAX ? room : CLI_BAR_COLUMNS_MAX, bar);
    snprintf(out, size < columns ? size : columns, "%.*s%s%s%s%s", (int)label_columns, label,
             label_columns ? "  " : "", bar, *bar ? "  " : "", right);
}

void cli_sim_progress_show(struct cli_sim_progress *progress, const struct lh_netsim_totals *totals,
                           uint64_t until_ps)
{
    char line[256];
    lh_time now = cli_now();
    if (!progress->shown || now - progress->drawn_ns < DRAW_EVERY_NS)
        return;
    progress->drawn_ns = now;
    cli_sim_progress_line(progress->label, totals, until_ps, cli_seconds(now - progress->started_ns),
                          cli_terminal_columns(STDERR_FILENO), line, sizeof line);
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
}

void cli_sim_progress_clear(struct cli_sim_progress *progress)
{
    if (progress->shown && progress->drawn_ns) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    progress->drawn_ns = 0;
}
