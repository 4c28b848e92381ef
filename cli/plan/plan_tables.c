/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/plan/plan_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <longhaul/units.h>

#include "cli/results/json.h"
#include "cli/results/result_file.h"
#include "cli/terminal/terminal.h"

/* ---- table ----------------------------------------------------------------------------------------- */

/*
 * What longhaul plan prints: the schemes at one point and a verdict, or a row for each of
 * several points.
 */

#define INDENT "  "
/* Sentences end here. */
#define WIDTH 98

/* A larger difference is not rounding. */
#define MEANS_DIFFER 0.005

static struct cli_table make_table(const struct cli_column *columns)
{
    return (struct cli_table){columns, stdout, INDENT, cli_terminal_colours(STDOUT_FILENO)};
}

/* ---- cells ------------------------------------------------------------------------------------------- */

static void put_time(struct cli_cell *cell, double seconds)
{
    lh_format_time(seconds, cell->text, sizeof cell->text);
}

static void put_percent(struct cli_cell *cell, double share)
{
    snprintf(cell->text, sizeof cell->text, share < 10 ? "%.1f %%" : "%.0f %%", 100 * share);
}

static void put_times_ideal(struct cli_cell *cell, double ratio)
{
    snprintf(cell->text, sizeof cell->text, ratio < 100 ? "%.2f" : "%.0f", ratio);
    cell->colour = ratio < 1.1 ? CLI_GREEN : ratio < 2 ? CLI_PLAIN : ratio < 4 ? CLI_YELLOW : CLI_RED;
}

static void put_size(struct cli_cell *cell, uint64_t bytes)
{
    lh_format_size(bytes, cell->text, sizeof cell->text);
}

/* ---- above the table --------------------------------------------------------------------------------- */

static void print_link(const struct cli_plan_order *order)
{
    const struct lh_model_path *link = &order->question.link;
    char rate[LH_FORMAT_MAX], rtt[LH_FORMAT_MAX], in_flight[LH_FORMAT_MAX];
    lh_format_rate(link->bandwidth_bps, rate, sizeof rate);
    lh_format_time(link->rtt_s, rtt, sizeof rtt);
    lh_format_size((uint64_t)fmin(link->bandwidth_bps * link->rtt_s / 8, 1e18), in_flight,
                   sizeof in_flight);
    printf("\n" INDENT "link     %s, round trip %s: BDP %s; packets of %u bytes\n", rate, rtt, in_flight,
           link->mtu_bytes);
}

static void print_loss(const struct cli_plan_order *order, const struct lh_model_path *link)
{
    printf(INDENT "loss     %g of the %s", link->loss, link->loss_of_chunk ? "chunks" : "packets");
    if (!isnan(order->loss_low) && order->measured)
        printf(", the upper bound; measured %g", order->loss_low);
    else if (!isnan(order->loss_low))
        printf(", the highest of %g to %g", order->loss_low, link->loss);
    if (link->burst_packets > 1)
        printf(", in bursts of %g packets", link->burst_packets);
    putchar('\n');
}

static void print_messages(const struct cli_plan_order *order, const struct cli_plan_point *point)
{
    char size[LH_FORMAT_MAX], chunk[LH_FORMAT_MAX], ideal[LH_FORMAT_MAX];
    const struct lh_plan_question *question = &point->question;
    printf(INDENT "message  ");
    for (unsigned i = 0; i < question->sizes_count; i++) {
        printf("%s%s", i ? ", " : "", lh_format_size(question->sizes[i].message_bytes, size, sizeof size));
        if (order->mix)
            printf(" (weight %g)", question->sizes[i].weight);
    }
    printf(", in chunks of %s; ideal %s%s\n",
           lh_format_size(cli_plan_choice(point)->chunk_bytes, chunk, sizeof chunk),
           order->mix ? "in the mean " : "",
           lh_format_time(point->rows[0].times.ideal_s, ideal, sizeof ideal));
}

/* ---- one point --------------------------------------------------------------------------------------- */

static const struct cli_column scheme_columns[] = {
    {"", 1, true},          {"scheme", 18, true},   {"formula", 7, false}, {"mean", 7, false},
    {"p50", 7, false},      {"p99", 7, false},      {"p99.9", 7, false},   {"× ideal", 7, false},
    {"overhead", 8, false}, {"fallback", 8, false}, {"cores", 5, false},   {NULL, 0, false},
};

static void print_row(const struct cli_table *table, const struct cli_plan_row *row)
{
    struct cli_cell cells[sizeof scheme_columns / sizeof scheme_columns[0]] = {0};
    const struct lh_model_times *times = &row->times;
    bool codes = lh_model_scheme_codes(&row->choice.scheme);
    snprintf(cells[0].text, CLI_CELL_MAX, "%s", row->best ? "→" : "");
    snprintf(cells[1].text, CLI_CELL_MAX, "%.*s", CLI_CELL_MAX - 1, row->scheme);
    cells[1].colour = row->best ? CLI_BOLD : CLI_PLAIN;
    put_time(&cells[2], times->paper_mean_s);
    put_time(&cells[3], times->mean_s);
    put_time(&cells[4], times->p50_s);
    put_time(&cells[5], times->p99_s);
    put_time(&cells[6], times->p999_s);
    put_times_ideal(&cells[7], row->choice.times_ideal);
    put_percent(&cells[8], row->choice.overhead);
    snprintf(cells[9].text, CLI_CELL_MAX, codes ? "%.1e" : "-", times->p_fallback);
    snprintf(cells[10].text, CLI_CELL_MAX, codes ? "%.1f" : "-", row->choice.cores);
    if (row->choice.breaks & LH_PLAN_LIMIT_OVERHEAD)
        cells[8].colour = CLI_RED;
    if (row->choice.breaks & LH_PLAN_LIMIT_CORES)
        cells[10].colour = CLI_RED;
    cli_table_row(table, cells);
}

/* Its messages may be incomplete: its row is marked. */
static void print_deadline(const struct cli_table *table, const struct cli_plan_order *order,
                           const struct cli_plan_point *point)
{
    struct cli_cell cells[sizeof scheme_columns / sizeof scheme_columns[0]] = {0};
    const struct lh_plan_deadline *deadline = &point->deadline;
    snprintf(cells[1].text, CLI_CELL_MAX, "bounded *");
    for (unsigned i = 2; i <= 10; i++)
        snprintf(cells[i].text, CLI_CELL_MAX, "-");
    static const unsigned columns[] = {
        [LH_PLAN_BY_MEAN] = 3, [LH_PLAN_BY_P50] = 4, [LH_PLAN_BY_P99] = 5, [LH_PLAN_BY_P999] = 6};
    if (!cli_plan_deadline_found(point)) {
        cli_table_row(table, cells);
        return;
    }
    put_time(&cells[columns[order->question.by]], deadline->seconds);
    put_times_ideal(&cells[7], deadline->times_ideal);
    put_percent(&cells[8], deadline->overhead);
    cli_table_row(table, cells);
}

/* Sentences, broken between words; each line of the text begins a new one. */
static void print_sentences(const char *text)
{
    size_t column = 0;
    while (*text) {
        size_t word = strcspn(text, " \n");
        bool first = column == 0;
        if (!first && column + 1 + word > WIDTH) {
            putchar('\n');
            first = true;
            column = 0;
        }
        column += (size_t)printf("%s%.*s", first ? INDENT : " ", (int)word, text);
        text += word;
        if (*text == '\n') {
            putchar('\n');
            column = 0;
        }
        text += *text != 0;
    }
}

static bool means_differ(const struct cli_plan_point *point)
{
    for (unsigned i = 0; i < point->rows_count; i++) {
        const struct lh_model_times *times = &point->rows[i].times;
        if (fabs(times->paper_mean_s - times->mean_s) > MEANS_DIFFER * times->mean_s)
            return true;
    }
    return false;
}

static void print_commands(const struct cli_plan_point *point)
{
    struct cli_plan_commands commands;
    char words[CLI_PLAN_COMMAND_MAX];
    print_sentences(cli_plan_window_format(point, words));
    if (!cli_plan_commands(point, &commands))
        return;
    printf("\n" INDENT "Commands:\n" INDENT INDENT "%s\n" INDENT INDENT "%s\n", commands.recv,
           commands.send);
}

void cli_plan_table(const struct cli_plan_order *order, const struct cli_plan_point *point)
{
    struct cli_table table = make_table(scheme_columns);
    char verdict[LH_PLAN_VERDICT_MAX], worst[CLI_PLAN_WORST_MAX], deadline[CLI_PLAN_DEADLINE_MAX];
    print_link(order);
    print_loss(order, &point->question.link);
    print_messages(order, point);
    putchar('\n');
    cli_table_titles(&table);
    cli_table_rule(&table);
    for (unsigned i = 0; i < point->rows_count; i++)
        print_row(&table, &point->rows[i]);
    if (!isnan(order->allow_loss))
        print_deadline(&table, order, point);
    cli_table_rule(&table);
    printf(INDENT "%s ideal: by %s%s.\n", cli_terminal_utf8() ? "×" : "x", order->by,
           order->mix ? ", the weighted mean; so are all times" : "");
    if (means_differ(point))
        print_sentences(
            point->question.timing == LH_MODEL_TIMING_PAPER
                ? "formula: the mean by the SDR-RDMA paper, which retransmits a failed submessage "
                  "completely. Other columns: "
                  "the paper's timing with Longhaul's repair.\n"
                : "formula: the mean by the SDR-RDMA paper. Other columns: the protocol as implemented.\n");
    putchar('\n');
    print_sentences(lh_plan_verdict(&point->question, &point->plan, verdict, sizeof verdict));
    if (cli_plan_loses_much(point))
        print_sentences("Note: " CLI_PLAN_CHUNK_LOSS_NOTE ".\n");
    if (point->worst.any)
        print_sentences(cli_plan_worst_format(order, point, worst));
    if (!isnan(order->allow_loss))
        print_sentences(cli_plan_deadline_format(order, point, deadline));
    print_commands(point);
}

/* ---- several points ---------------------------------------------------------------------------------- */

static const struct cli_column point_columns[] = {
    {"loss", 7, true},  {"message", 7, false}, {"use", 16, true},      {"chunk", 6, false},
    {"time", 7, false}, {"× ideal", 7, false}, {"overhead", 8, false}, {"cores", 5, false},
    {"next", 16, true}, {"time", 7, false},    {NULL, 0, false},
};

static void put_scheme(struct cli_cell *cell, const struct lh_plan_choice *choice)
{
    char text[LH_MODEL_SCHEME_TEXT_MAX];
    lh_model_scheme_format(&choice->scheme, text, sizeof text);
    snprintf(cell->text, sizeof cell->text, "%.*s", CLI_CELL_MAX - 1, text);
}

static void print_point(const struct cli_table *table, const struct cli_plan_point *point)
{
    struct cli_cell cells[sizeof point_columns / sizeof point_columns[0]] = {0};
    const struct lh_plan *plan = &point->plan;
    snprintf(cells[0].text, CLI_CELL_MAX, "%g", point->question.link.loss);
    put_size(&cells[1], point->question.sizes[0].message_bytes);
    snprintf(cells[2].text, CLI_CELL_MAX, "none");
    if (plan->best != LH_PLAN_NONE) {
        const struct lh_plan_choice *best = &plan->choices[plan->best];
        put_scheme(&cells[2], best);
        put_size(&cells[3], best->chunk_bytes);
        put_time(&cells[4], best->seconds);
        put_times_ideal(&cells[5], best->times_ideal);
        put_percent(&cells[6], best->overhead);
        snprintf(cells[7].text, CLI_CELL_MAX, best->cores > 0 ? "%.1f" : "-", best->cores);
    }
    if (plan->runner_up != LH_PLAN_NONE) {
        put_scheme(&cells[8], &plan->choices[plan->runner_up]);
        put_time(&cells[9], plan->choices[plan->runner_up].seconds);
    }
    cli_table_row(table, cells);
}

int cli_plan_sweep(const struct cli_plan_order *order)
{
    struct cli_table table = make_table(point_columns);
    struct cli_plan_point *point = malloc(sizeof *point);
    if (!point)
        return cli_failed("out of memory");
    print_link(order);
    printf("\n");
    cli_table_titles(&table);
    cli_table_rule(&table);
    int status = CLI_PROCEED;
    bool note = false;
    for (unsigned loss = 0; loss < order->losses.count; loss++)
        for (unsigned size = 0; size < (order->mix ? 1 : order->sizes.count) && status == CLI_PROCEED;
             size++) {
            status = cli_plan_point(order, size, loss, point);
            if (status == CLI_PROCEED) {
                print_point(&table, point);
                note |= cli_plan_loses_much(point);
            }
        }
    if (status == CLI_PROCEED) {
        cli_table_rule(&table);
        printf(INDENT "Times: %s. A single size and loss shows all schemes and the reason.\n", order->by);
        if (!isnan(order->loss_low))
            printf(INDENT "Planned for the highest loss%s.\n",
                   order->measured ? ", the upper bound of the measurement" : "");
        if (note)
            print_sentences("Note: in some rows " CLI_PLAN_CHUNK_LOSS_NOTE ".\n");
    }
    free(point);
    return status;
}

/* ---- json ------------------------------------------------------------------------------------------ */

/* The results of longhaul plan as JSON. */

static void put_row(struct cli_json *json, const struct cli_plan_row *row)
{
    const struct lh_model_times *times = &row->times;
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "scheme", row->scheme);
    cli_json_count(json, "chunk_bytes", row->choice.chunk_bytes);
    cli_json_number(json, "mean_s", times->paper_mean_s);
    cli_json_number(json, "longhaul_mean_s", times->mean_s);
    cli_json_number(json, "p50_s", times->p50_s);
    cli_json_number(json, "p99_s", times->p99_s);
    cli_json_number(json, "p999_s", times->p999_s);
    cli_json_number(json, "ideal_s", times->ideal_s);
    cli_json_number(json, "times_ideal", row->choice.times_ideal);
    cli_json_number(json, "wire_bytes", times->wire_bytes);
    cli_json_number(json, "overhead_bytes", times->overhead_bytes);
    cli_json_number(json, "p_fallback", times->p_fallback);
    cli_json_number(json, "encode_core_s", times->encode_core_s);
    cli_json_number(json, "encode_cores", row->choice.cores);
    cli_json_close(json, '}');
}

/* null when there is none. */
static void put_choice(struct cli_json *json, const char *name, const struct lh_plan_choice *choice)
{
    char scheme[LH_MODEL_SCHEME_TEXT_MAX];
    if (!choice) {
        cli_json_number(json, name, NAN);
        return;
    }
    cli_json_open(json, name, '{');
    cli_json_text(json, "scheme", lh_model_scheme_format(&choice->scheme, scheme, sizeof scheme));
    cli_json_count(json, "chunk_bytes", choice->chunk_bytes);
    cli_json_number(json, "seconds", choice->seconds);
    cli_json_number(json, "times_ideal", choice->times_ideal);
    cli_json_number(json, "overhead", choice->overhead);
    cli_json_number(json, "encode_cores", choice->cores);
    cli_json_number(json, "p_fallback", choice->p_fallback);
    cli_json_close(json, '}');
}

static void put_place(struct cli_json *json, const char *name, const struct lh_plan *plan, uint32_t place)
{
    put_choice(json, name, place == LH_PLAN_NONE ? NULL : &plan->choices[place]);
}

static void put_worst(struct cli_json *json, const struct cli_plan_order *order,
                      const struct cli_plan_point *point)
{
    char words[CLI_PLAN_WORST_MAX];
    const struct cli_plan_worst *worst = &point->worst;
    put_choice(json, "at_loss_low", worst->any ? &worst->at_low : NULL);
    put_choice(json, "for_loss_low", worst->other ? &worst->low_best : NULL);
    if (worst->any)
        cli_json_text(json, "verdict_loss_low", cli_plan_worst_format(order, point, words));
}

static void put_deadline(struct cli_json *json, const struct cli_plan_order *order,
                         const struct cli_plan_point *point)
{
    char words[CLI_PLAN_DEADLINE_MAX];
    const struct lh_plan_deadline *deadline = &point->deadline;
    char scheme[LH_MODEL_SCHEME_TEXT_MAX];
    bool found = cli_plan_deadline_found(point);
    cli_json_open(json, "deadline", '{');
    cli_json_count(json, "available", found);
    cli_json_number(json, "allow_loss", order->allow_loss);
    if (found) {
        cli_json_text(json, "scheme", lh_model_scheme_format(&deadline->scheme, scheme, sizeof scheme));
        cli_json_count(json, "chunk_bytes", deadline->chunk_bytes);
        cli_json_number(json, "deadline_s", deadline->scheme.deadline_s);
        cli_json_number(json, "seconds", deadline->seconds);
        cli_json_number(json, "times_ideal", deadline->times_ideal);
        cli_json_number(json, "wait_s", deadline->wait_s);
        cli_json_number(json, "delivered_share", 1 - deadline->missing);
        cli_json_number(json, "missing", deadline->missing);
        cli_json_number(json, "missing_p999", deadline->missing_p999);
        cli_json_number(json, "whole", deadline->whole);
        cli_json_number(json, "overhead", deadline->overhead);
    }
    cli_json_text(json, "verdict", cli_plan_deadline_format(order, point, words));
    cli_json_close(json, '}');
}

static void put_question(struct cli_json *json, const struct cli_plan_order *order,
                         const struct lh_plan_question *question)
{
    const struct lh_model_path *link = &question->link;
    cli_json_open(json, "link", '{');
    cli_json_number(json, "bandwidth_bps", link->bandwidth_bps);
    cli_json_number(json, "rtt_s", link->rtt_s);
    cli_json_number(json, "loss", link->loss);
    cli_json_number(json, "loss_low", order->loss_low);
    cli_json_text(json, "loss_of", link->loss_of_chunk ? "chunk" : "packet");
    cli_json_number(json, "burst_packets", link->burst_packets);
    cli_json_count(json, "mtu_bytes", link->mtu_bytes);
    cli_json_close(json, '}');
    cli_json_open(json, "messages", '[');
    for (unsigned i = 0; i < question->sizes_count; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_count(json, "bytes", question->sizes[i].message_bytes);
        cli_json_number(json, "weight", question->sizes[i].weight);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_text(json, "by", order->by);
    cli_json_text(json, "timing", question->timing == LH_MODEL_TIMING_PAPER ? "paper" : "longhaul");
}

static void put_commands(struct cli_json *json, const struct cli_plan_point *point)
{
    struct cli_plan_commands commands;
    cli_json_open(json, "commands", '[');
    if (cli_plan_commands(point, &commands)) {
        cli_json_text(json, NULL, commands.recv);
        cli_json_text(json, NULL, commands.send);
    }
    cli_json_close(json, ']');
}

static void put_point(struct cli_json *json, const struct cli_plan_order *order,
                      const struct cli_plan_point *point)
{
    char verdict[LH_PLAN_VERDICT_MAX];
    const struct lh_plan *plan = &point->plan;
    put_question(json, order, &point->question);
    cli_json_open(json, "schemes", '[');
    for (unsigned i = 0; i < point->rows_count; i++)
        put_row(json, &point->rows[i]);
    cli_json_close(json, ']');
    if (!isnan(order->allow_loss))
        put_deadline(json, order, point);
    cli_json_open(json, "plan", '{');
    put_place(json, "best", plan, plan->best);
    put_place(json, "runner_up", plan, plan->runner_up);
    put_place(json, "without_limits", plan, plan->unlimited);
    put_worst(json, order, point);
    cli_json_count(json, "weighed", plan->count);
    if (cli_plan_loses_much(point))
        cli_json_text(json, "note", CLI_PLAN_CHUNK_LOSS_NOTE);
    cli_json_text(json, "verdict", lh_plan_verdict(&point->question, plan, verdict, sizeof verdict));
    put_commands(json, point);
    cli_json_close(json, '}');
}

static int put_points(struct cli_json *json, const struct cli_plan_order *order,
                      struct cli_plan_point *point)
{
    unsigned sizes = order->mix ? 1 : order->sizes.count;
    bool several = sizes * order->losses.count > 1;
    int status = CLI_PROCEED;
    if (several)
        cli_json_open(json, "points", '[');
    for (unsigned loss = 0; loss < order->losses.count; loss++)
        for (unsigned size = 0; size < sizes && status == CLI_PROCEED; size++) {
            status = cli_plan_point(order, size, loss, point);
            if (status != CLI_PROCEED)
                break;
            if (several)
                cli_json_open(json, NULL, '{');
            put_point(json, order, point);
            if (several)
                cli_json_close(json, '}');
        }
    if (several)
        cli_json_close(json, ']');
    return status;
}

/* Writes all of it, or nothing but what is wrong: a half is not JSON. */
static int put_all(const struct cli_plan_order *order, FILE *out)
{
    struct cli_json json = {.out = out};
    struct cli_plan_point *point = malloc(sizeof *point);
    if (!point)
        return cli_failed("out of memory");
    cli_json_open(&json, NULL, '{');
    int status = put_points(&json, order, point);
    cli_json_close(&json, '}');
    cli_json_end(&json);
    free(point);
    return status;
}

static int put_on_stdout(const struct cli_plan_order *order)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return cli_failed("out of memory");
    int status = put_all(order, out);
    fclose(out);
    if (status == CLI_PROCEED)
        fwrite(text, 1, bytes, stdout);
    free(text);
    return status;
}

int cli_plan_json(const struct cli_plan_order *order)
{
    if (!strcmp(order->json, "-"))
        return put_on_stdout(order);
    FILE *out = cli_result_open("--json ", order->json);
    if (!out)
        return CLI_EXIT_FAILED;
    int status = put_all(order, out);
    if (status == CLI_PROCEED)
        return cli_result_close("--json ", order->json, out);
    cli_result_drop(out);
    return status;
}
