/*
 * json.c - the results of longhaul plan as JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/plan/json.h"

#include "cli/plan/choice.h"
#include "cli/plan/commands.h"
#include "cli/plan/deadline.h"
#include "cli/plan/point.h"
#include "cli/plan/worst_loss.h"
#include "cli/results/json.h"
#include "cli/results/result_file.h"
#include "cli/terminal/diagnostic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
