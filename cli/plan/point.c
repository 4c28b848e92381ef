/*
 * point.c - one size and one loss: what the planner chooses there, and schemes beside it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/plan/point.h"

#include "cli/plan/choice.h"
#include "cli/plan/deadline.h"
#include "cli/plan/worst_loss.h"
#include "cli/terminal/diagnostic.h"

#include <longhaul/error.h>

#include <string.h>

/* The schemes to compare unless some are given: those of the model's table. */
static unsigned list_common(const char *out[static CLI_TEXTS_MAX])
{
    unsigned count = 0;
    for (const struct lh_model_entry *const *e = lh_model_schemes(); *e && count < CLI_TEXTS_MAX; e++)
        if ((*e)->compared)
            out[count++] = (*e)->compared;
    return count;
}

static void add_times(struct lh_model_times *sum, const struct lh_model_times *times, double share)
{
    sum->ideal_s += share * times->ideal_s;
    sum->mean_s += share * times->mean_s;
    sum->p50_s += share * times->p50_s;
    sum->p99_s += share * times->p99_s;
    sum->p999_s += share * times->p999_s;
    sum->paper_mean_s += share * times->paper_mean_s;
    sum->p_fallback += share * times->p_fallback;
    sum->wire_bytes += share * times->wire_bytes;
    sum->overhead_bytes += share * times->overhead_bytes;
    sum->encode_core_s += share * times->encode_core_s;
    sum->encode_cores += share * times->encode_cores;
}

/* 0 or an error of the library. */
static int fill_row(const struct lh_plan_question *question, const struct lh_model_scheme *scheme,
                    uint64_t chunk_bytes, struct cli_plan_row *row)
{
    double weights = 0;
    struct lh_model_path path = question->link;
    memset(row, 0, sizeof *row);
    int code = lh_plan_weigh(question, scheme, chunk_bytes, &row->choice);
    path.chunk_bytes = chunk_bytes;
    for (unsigned i = 0; i < question->sizes_count; i++)
        weights += question->sizes[i].weight;
    for (unsigned i = 0; !code && i < question->sizes_count; i++) {
        struct lh_model_times times;
        path.message_bytes = question->sizes[i].message_bytes;
        code = lh_model_predict(&path, &row->choice.scheme, &times);
        if (!code)
            add_times(&row->times, &times, question->sizes[i].weight / weights);
    }
    lh_model_scheme_format(&row->choice.scheme, row->scheme, sizeof row->scheme);
    return code;
}

/* Adds a row unless the scheme is there; marks it when it is the planner's. */
static int add_row(struct cli_plan_point *point, const struct lh_model_scheme *scheme, bool best)
{
    struct cli_plan_row *row = &point->rows[point->rows_count];
    if (fill_row(&point->question, scheme, cli_plan_choice(point)->chunk_bytes, row))
        return cli_misused("%s", lh_last_error());
    for (unsigned i = 0; i < point->rows_count; i++)
        if (!strcmp(point->rows[i].scheme, row->scheme)) {
            point->rows[i].best |= best;
            return CLI_PROCEED;
        }
    row->best = best;
    point->rows_count++;
    return CLI_PROCEED;
}

int cli_plan_point(const struct cli_plan_order *order, unsigned size, unsigned loss,
                   struct cli_plan_point *point)
{
    struct lh_plan_question *question = &point->question;
    const struct cli_texts *given = &order->schemes;
    const char *common[CLI_TEXTS_MAX];
    unsigned count = given->count ? given->count : list_common(common);
    cli_plan_question(order, size, loss, question);
    if (lh_plan_make(question, &point->plan))
        return cli_misused("%s", lh_last_error());
    point->rows_count = 0;
    int status = CLI_PROCEED;
    for (unsigned i = 0; i < count && status == CLI_PROCEED; i++) {
        const char *text = given->count ? given->text[i] : common[i];
        struct lh_model_scheme scheme = cli_plan_choice(point)->scheme;
        if (strcmp(text, CLI_PLAN_AUTO) != 0 && lh_model_scheme_parse(text, &scheme))
            return cli_misused("--reliability: %s", lh_last_error());
        status = add_row(point, &scheme, false);
    }
    if (status == CLI_PROCEED && point->plan.best != LH_PLAN_NONE)
        status = add_row(point, &point->plan.choices[point->plan.best].scheme, true);
    if (status == CLI_PROCEED && point->plan.runner_up != LH_PLAN_NONE && !given->count)
        status = add_row(point, &point->plan.choices[point->plan.runner_up].scheme, false);
    if (status == CLI_PROCEED)
        status = cli_plan_worst(order, point);
    return status == CLI_PROCEED ? cli_plan_deadline(order, point) : status;
}
