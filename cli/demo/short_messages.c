/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/demo/short_messages.h"

#include "cli/demo/report.h"
#include "cli/options/deadline.h"
#include "cli/options/loss_list.h"
#include "cli/terminal/terminal.h"

#include <longhaul/units.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct cli_column columns[] = {
    {"loss", 6, true},    {"scheme", 14, true},   {"mean", 10, false},    {"× ideal", 7, false},
    {"worst", 12, false}, {"× ideal", 10, false}, {"arrived", 13, false}, {.title = NULL},
};

static struct cli_table make_table(void)
{
    return (struct cli_table){columns, stdout, "  ", cli_terminal_colours(STDOUT_FILENO)};
}

void cli_demo_short_start(struct cli_demo_short *table)
{
    char size[LH_FORMAT_MAX], ideal[LH_FORMAT_MAX];
    struct cli_table titles = make_table();
    double ideal_s = cli_demo_ideal_s(&table->link, table->bytes, 1);
    lh_format_size(table->bytes, size, sizeof size);
    printf("  The same link, short messages: %u of %s in sequence", table->messages, size);
    if (isfinite(ideal_s))
        printf("; ideal time %s each", lh_format_time(ideal_s, ideal, sizeof ideal));
    fputs(".\n\n", stdout);
    cli_table_titles(&titles);
    cli_table_rule(&titles);
}

static void put_times(struct cli_cell *time, struct cli_cell *times, double seconds, double ideal_s)
{
    snprintf(time->text, CLI_CELL_MAX, "%.1f ms", 1e3 * seconds);
    bool known = isfinite(ideal_s); /* not on a link of unlimited rate */
    if (known)
        snprintf(times->text, CLI_CELL_MAX, "%.2f", seconds / ideal_s);
    else
        snprintf(times->text, CLI_CELL_MAX, "-");
    times->colour = known ? cli_demo_colour(seconds / ideal_s) : CLI_PLAIN;
}

static void update(struct cli_demo_short *table, const struct cli_demo_run *run,
                   const struct cli_demo_outcome *outcome)
{
    table->rows++;
    table->whole += outcome->whole;
    bool lossier = run->link.loss > table->best_loss;
    /* What may lack something is not compared. */
    if (!outcome->whole || cli_has_deadline(run->scheme) ||
        (!lossier && outcome->worst_s >= table->best_worst_s))
        return;
    table->best_loss = run->link.loss;
    table->best_mean_s = outcome->completion_s;
    table->best_worst_s = outcome->worst_s;
    snprintf(table->best_scheme, sizeof table->best_scheme, "%s", run->scheme);
}

void cli_demo_short_row(struct cli_demo_short *table, const struct cli_demo_run *run,
                        const struct cli_demo_outcome *outcome)
{
    struct cli_table rows = make_table();
    struct cli_cell cells[sizeof columns / sizeof columns[0]] = {0};
    double ideal_s = cli_demo_ideal_s(&run->link, run->bytes, 1);
    if (!table->rows || run->link.loss != table->last_loss)
        cli_loss_format(run->link.loss, cells[0].text, CLI_CELL_MAX);
    table->last_loss = run->link.loss;
    snprintf(cells[1].text, CLI_CELL_MAX, "%.40s", run->scheme);
    if (outcome->whole) {
        put_times(&cells[2], &cells[3], outcome->completion_s, ideal_s);
        put_times(&cells[4], &cells[5], outcome->worst_s, ideal_s);
    }
    cli_demo_fill_state(&cells[6], run, outcome);
    if (isatty(STDOUT_FILENO))
        fputs("\r\033[K", stdout);
    cli_table_row(&rows, cells);
    if (!outcome->whole && !outcome->late && *outcome->error)
        printf("          %.88s\n", outcome->error);
    update(table, run, outcome);
}

void cli_demo_short_end(const struct cli_demo_short *table)
{
    char mean[LH_FORMAT_MAX], worst[LH_FORMAT_MAX], rtt[LH_FORMAT_MAX];
    struct cli_table rule = make_table();
    cli_table_rule(&rule);
    if (table->best_worst_s > 0)
        printf("\n  With one packet in %.0f lost, %s took %s in the mean and %s at worst.\n",
               1 / table->best_loss, table->best_scheme,
               lh_format_time(table->best_mean_s, mean, sizeof mean),
               lh_format_time(table->best_worst_s, worst, sizeof worst));
    double rtt_s = 2 * (double)table->link.delay_ns / (double)LH_NS_PER_S;
    printf("  Selective repeat (sr) retransmits lost packets: %s each, hidden only in long "
           "messages.\n"
           "  Erasure codes (ec) send parity in advance: 25 %% more bytes, no retransmission.\n"
           "  Bounded completion (bounded) retransmits nothing: what is lost is missing.\n\n",
           lh_format_time(rtt_s, rtt, sizeof rtt));
}
