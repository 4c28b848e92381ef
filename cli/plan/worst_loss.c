/*
 * worst_loss.c - a plan for the highest of several losses: what it takes where less is lost, and what a plan
 * for that alone would take.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/plan/worst_loss.h"

#include "cli/terminal/diagnostic.h"

#include <longhaul/error.h>
#include <longhaul/units.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_same(const struct lh_plan_choice *a, const struct lh_plan_choice *b)
{
    const struct lh_model_scheme *one = &a->scheme, *other = &b->scheme;
    return one->kind == other->kind && one->k == other->k && one->m == other->m &&
           one->spread == other->spread && one->rto_rtts == other->rto_rtts &&
           a->chunk_bytes == b->chunk_bytes;
}

int cli_plan_worst(const struct cli_plan_order *order, struct cli_plan_point *point)
{
    struct cli_plan_worst *worst = &point->worst;
    struct lh_plan_question low = point->question;
    *worst = (struct cli_plan_worst){.any = !isnan(order->loss_low) && point->plan.best != LH_PLAN_NONE};
    if (!worst->any)
        return CLI_PROCEED;
    const struct lh_plan_choice *best = &point->plan.choices[point->plan.best];
    struct lh_plan *plan = malloc(sizeof *plan);
    if (!plan)
        return cli_failed("out of memory");
    low.link.loss = order->loss_low;
    int code = lh_plan_weigh(&low, &best->scheme, best->chunk_bytes, &worst->at_low);
    if (!code)
        code = lh_plan_make(&low, plan);
    if (!code && plan->best != LH_PLAN_NONE) {
        worst->low_best = plan->choices[plan->best];
        worst->other = !is_same(&worst->low_best, best);
        /* It may be that it brings nothing there. */
        if (lh_plan_weigh(&point->question, &worst->low_best.scheme, worst->low_best.chunk_bytes,
                          &worst->low_best_here))
            worst->low_best_here.seconds = INFINITY;
    }
    free(plan);
    return code ? cli_misused("%s", lh_last_error()) : CLI_PROCEED;
}

char *cli_plan_worst_format(const struct cli_plan_order *order, const struct cli_plan_point *point,
                            char out[static CLI_PLAN_WORST_MAX])
{
    const struct cli_plan_worst *worst = &point->worst;
    char scheme[LH_MODEL_SCHEME_TEXT_MAX], chunk[LH_FORMAT_MAX], time[LH_FORMAT_MAX], here[LH_FORMAT_MAX];
    double loss = point->question.link.loss;
    int used =
        snprintf(out, CLI_PLAN_WORST_MAX,
                 "Planned for a loss of %g, %s. At a loss of %g%s it takes %s, %.2f times the ideal.\n",
                 loss, order->measured ? "the upper bound of the measurement" : "the highest given",
                 order->loss_low, order->measured ? " as measured" : "",
                 lh_format_time(worst->at_low.seconds, time, sizeof time), worst->at_low.times_ideal);
    if (!worst->other)
        return out;
    used += snprintf(out + used, CLI_PLAN_WORST_MAX - (size_t)used,
                     "A plan for %g alone would use %s with chunks of %s: %s at that loss", order->loss_low,
                     lh_model_scheme_format(&worst->low_best.scheme, scheme, sizeof scheme),
                     lh_format_size(worst->low_best.chunk_bytes, chunk, sizeof chunk),
                     lh_format_time(worst->low_best.seconds, time, sizeof time));
    if (isfinite(worst->low_best_here.seconds))
        snprintf(out + used, CLI_PLAN_WORST_MAX - (size_t)used, ", %s at %g.\n",
                 lh_format_time(worst->low_best_here.seconds, here, sizeof here), loss);
    else
        snprintf(out + used, CLI_PLAN_WORST_MAX - (size_t)used, ", unbounded at %g.\n", loss);
    return out;
}
