/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/demo/report.h"

#include "cli/options/deadline.h"
#include "cli/options/loss_list.h"
#include "cli/terminal/output.h"
#include "cli/terminal/terminal.h"

#include <longhaul/units.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Completion times up to that many times the ideal count as good, and as fair. */
#define GOOD_FACTOR 1.25
#define FAIR_FACTOR 2.0

/* From that share on, what others do with the CPUs is worth a line. */
#define OTHERS_SHARE 0.15

/* Light in glass: 5 us a kilometre, there and back. */
#define KM_PER_RTT_S 100000.0

static const struct cli_column columns[] = {
    {"loss", 6, true},      {"scheme", 14, true},    {"completion", 10, false}, {"× ideal", 7, false},
    {"goodput", 12, false}, {"overhead", 10, false}, {"arrived", 13, false},    {.title = NULL},
};

static struct cli_table make_table(void)
{
    return (struct cli_table){columns, stdout, "  ", cli_terminal_colours(STDOUT_FILENO)};
}

double cli_demo_ideal_s(const struct lh_link_spec *link, uint64_t bytes, double wire_share)
{
    double round_trip = 2 * (double)link->delay_ns / (double)LH_NS_PER_S;
    return link->rate_bps ? 8 * (double)bytes * wire_share / (double)link->rate_bps + round_trip : NAN;
}

static void print_label(const char *label)
{
    bool colours = cli_terminal_colours(STDOUT_FILENO);
    printf("  %s%-8s%s", cli_colour(CLI_DIM, colours), label, cli_colour(CLI_PLAIN, colours));
}

static void print_link(const struct lh_link_spec *link)
{
    char rate[LH_FORMAT_MAX] = "unlimited rate", round_trip[LH_FORMAT_MAX];
    double seconds = 2 * (double)link->delay_ns / (double)LH_NS_PER_S;
    if (link->rate_bps)
        lh_format_rate((double)link->rate_bps, rate, sizeof rate);
    lh_format_time(seconds, round_trip, sizeof round_trip);
    print_label("link");
    printf("%s, round trip %s (%.0f km of fibre); emulated between two local processes\n", rate, round_trip,
           seconds * KM_PER_RTT_S);
}

void cli_demo_report_start(struct cli_demo_report *report)
{
    char size[LH_FORMAT_MAX], ideal[LH_FORMAT_MAX];
    bool colours = cli_terminal_colours(STDOUT_FILENO);
    double ideal_s = cli_demo_ideal_s(&report->link, report->bytes, 1);
    struct cli_table table = make_table();
    lh_format_size(report->bytes, size, sizeof size);
    printf("\n  %sLonghaul%s moves %s over a lossy ocean link.\n\n", cli_colour(CLI_BOLD, colours),
           cli_colour(CLI_PLAIN, colours), size);
    print_link(&report->link);
    print_label("data");
    printf("%.50s, sent as one message over a new connection each time\n", report->data);
    if (isfinite(ideal_s)) {
        print_label("ideal");
        printf("payload at link rate plus one round trip: %s, and headers\n",
               lh_format_time(ideal_s, ideal, sizeof ideal));
    }
    putchar('\n');
    cli_table_titles(&table);
    cli_table_rule(&table);
    cli_cpu_mark(&report->started);
}

void cli_demo_report_running(const struct cli_demo_run *run)
{
    char loss[CLI_CELL_MAX];
    if (!isatty(STDOUT_FILENO))
        return;
    cli_loss_format(run->link.loss, loss, sizeof loss);
    printf("  %-6s  %-14s  ...", loss, run->scheme);
    cli_output_flush();
}

enum cli_colour cli_demo_colour(double factor)
{
    if (factor <= GOOD_FACTOR)
        return CLI_GREEN;
    return factor <= FAIR_FACTOR ? CLI_YELLOW : CLI_RED;
}

static void put_rate(double bps, char *out, size_t size)
{
    /* With fixed digits where most of them are, so that they stand below each other. */
    if (bps >= 1e8)
        snprintf(out, size, "%.2f Gbit/s", bps / 1e9);
    else
        lh_format_rate(bps, out, size);
}

static void fill_measures(struct cli_cell *cells, const struct cli_demo_run *run,
                          const struct cli_demo_outcome *outcome, double factor)
{
    const struct lh_stats *stats = &outcome->stats;
    /* Of a message that is cut off less is sent than it has. */
    double overhead = fmax(0, ((double)stats->tx_bytes - (double)run->bytes) / (double)run->bytes);
    snprintf(cells[2].text, CLI_CELL_MAX, "%.3f s", outcome->completion_s);
    if (isfinite(factor))
        snprintf(cells[3].text, CLI_CELL_MAX, "%.2f", factor);
    else
        snprintf(cells[3].text, CLI_CELL_MAX, "-");
    cells[3].colour = isfinite(factor) ? cli_demo_colour(factor) : CLI_PLAIN;
    put_rate(8 * (double)(run->bytes - outcome->missing_bytes) / outcome->completion_s, cells[4].text,
             CLI_CELL_MAX);
    snprintf(cells[5].text, CLI_CELL_MAX, "%.3f %%", 100 * overhead);
}

void cli_demo_fill_state(struct cli_cell *cell, const struct cli_demo_run *run,
                         const struct cli_demo_outcome *outcome)
{
    const char *state = "failed";
    if (outcome->whole)
        state = run->messages > 1 ? "digests ok" : "digest ok";
    else if (outcome->late)
        state = "timeout";
    else if (!*outcome->error)
        state = "BAD DIGEST";
    double missing = (double)outcome->missing_bytes / ((double)run->bytes * run->messages);
    /* Never rounded up to all. */
    if (outcome->whole && cli_has_deadline(run->scheme))
        snprintf(cell->text, CLI_CELL_MAX, "%.3f %% ok", (1e5 - ceil(1e5 * missing)) / 1e3);
    else
        snprintf(cell->text, CLI_CELL_MAX, "%s", state);
    cell->colour = outcome->whole ? CLI_GREEN : CLI_RED;
}

static void update(struct cli_demo_report *report, const struct cli_demo_run *run,
                   const struct cli_demo_outcome *outcome, double factor)
{
    report->transfers++;
    report->whole += outcome->whole;
    report->late += outcome->late;
    report->deadlines |= cli_has_deadline(run->scheme);
    if (!outcome->whole || !isfinite(factor))
        return;
    if (factor > report->worst_factor)
        report->worst_factor = factor;
    /* What may lack something is not compared. */
    if (cli_has_deadline(run->scheme))
        return;
    bool lossier = run->link.loss > report->best_loss;
    if (report->best_factor > 0 && !lossier &&
        (run->link.loss < report->best_loss || factor >= report->best_factor))
        return;
    report->best_loss = run->link.loss;
    report->best_factor = factor;
    report->best_completion_s = outcome->completion_s;
    report->best_scheme = run->scheme;
}

/* Prints the row; returns the completion time as a multiple of the ideal. */
static double put_row(const struct cli_demo_run *run, const struct cli_demo_outcome *outcome,
                      bool with_loss)
{
    struct cli_table table = make_table();
    struct cli_cell cells[sizeof columns / sizeof columns[0]] = {0};
    const struct lh_stats *stats = &outcome->stats;
    double wire_share = stats->tx_bytes ? (double)stats->tx_wire_bytes / (double)stats->tx_bytes : 1;
    double factor = outcome->completion_s / cli_demo_ideal_s(&run->link, run->bytes, wire_share);
    if (with_loss)
        cli_loss_format(run->link.loss, cells[0].text, CLI_CELL_MAX);
    snprintf(cells[1].text, CLI_CELL_MAX, "%.40s", run->scheme);
    if (outcome->whole)
        fill_measures(cells, run, outcome, factor);
    cli_demo_fill_state(&cells[6], run, outcome);
    if (isatty(STDOUT_FILENO))
        fputs("\r\033[K", stdout);
    cli_table_row(&table, cells);
    if (!outcome->whole && !outcome->late && *outcome->error)
        printf("          %.88s\n", outcome->error);
    return factor;
}

void cli_demo_report_row(struct cli_demo_report *report, const struct cli_demo_run *run,
                         const struct cli_demo_outcome *outcome)
{
    /* The loss is shown once for all its schemes. */
    bool with_loss = !report->transfers || run->link.loss != report->last_loss;
    report->last_loss = run->link.loss;
    update(report, run, outcome, put_row(run, outcome, with_loss));
}

void cli_demo_report_tcp_row(const struct cli_demo_run *run, const struct cli_demo_outcome *outcome)
{
    put_row(run, outcome, false);
}

/* Times of a machine that was doing something else are not those of the protocol. */
static void print_others(const struct cli_demo_report *report)
{
    struct cli_cpu_mark now;
    cli_cpu_mark(&now);
    double others = cli_cpu_others(&report->started, &now);
    if (others < OTHERS_SHARE || report->worst_factor < GOOD_FACTOR)
        return;
    print_label("note");
    printf("other programs used %.0f %% of the CPUs meanwhile; expect better times on an idle machine\n",
           100 * others);
}

static void print_deadlines(const struct cli_demo_report *report)
{
    if (!report->deadlines)
        return;
    print_label("% ok");
    printf("that share came by the deadline, byte for byte what was sent; the rest is missing\n");
}

/* Where the number that everybody looks for is from, or why it is not there, and how to get it. */
static void print_tcp(const struct cli_demo_report *report)
{
    print_label("TCP");
    if (report->no_tcp)
        printf("not in the table: %.78s.\n"
               "          As root, with /dev/net/tun, this demo makes a path that the kernel's TCP can "
               "cross.\n",
               report->no_tcp);
    else
        printf("the kernel's, through a path with a queue of one bandwidth-delay product; not tried at\n"
               "          a higher loss after a timeout\n");
}

void cli_demo_report_end(const struct cli_demo_report *report)
{
    char size[LH_FORMAT_MAX], completion[LH_FORMAT_MAX];
    struct cli_table table = make_table();
    cli_table_rule(&table);
    print_others(report);
    print_deadlines(report);
    print_tcp(report);
    putchar('\n');
    lh_format_size(report->bytes, size, sizeof size);
    lh_format_time(report->best_completion_s, completion, sizeof completion);
    if (report->best_factor > 0 && report->best_loss > 0)
        printf("  With one packet in %.0f lost, %s delivered %s in %s: %.2f times the ideal.\n",
               1 / report->best_loss, report->best_scheme, size, completion, report->best_factor);
    else if (report->best_factor > 0)
        printf("  Without loss, %s delivered %s in %s: %.2f times the ideal.\n", report->best_scheme, size,
               completion, report->best_factor);
    else if (!report->link.rate_bps)
        printf("  No ideal time on a link of unlimited rate.\n");
    if (report->whole == report->transfers)
        printf("  %s%u transfer%s verified, byte for byte.\n\n", report->transfers == 1 ? "" : "All ",
               report->transfers, cli_plural(report->transfers));
    else
        printf("  Of %u transfers %u verified, byte for byte; %u timed out and %u failed.\n\n",
               report->transfers, report->whole, report->late,
               report->transfers - report->whole - report->late);
}
