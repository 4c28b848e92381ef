/*
 * deadline.c - messages that may be incomplete: what bounded completion brings, beside the plan for
 * whole ones.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/plan/deadline.h"

#include "cli/plan/choice.h"
#include "cli/terminal/diagnostic.h"

#include <longhaul/error.h>
#include <longhaul/units.h>

#include <math.h>
#include <stdio.h>

/* Fewer whole messages are as good as none. */
#define HARDLY 1e-3

int cli_plan_deadline(const struct cli_plan_order *order, struct cli_plan_point *point)
{
    if (isnan(order->allow_loss))
        return CLI_PROCEED;
    int failed = lh_plan_deadline(&point->question, order->allow_loss, &point->deadline);
    if (failed && failed != -LH_ERANGE)
        return cli_misused("--allow-loss: %s", lh_last_error());
    if (failed) /* the plan was made, so what is out of range is the share */
        point->deadline = (struct lh_plan_deadline){.chunk_bytes = 0};
    return CLI_PROCEED;
}

bool cli_plan_deadline_found(const struct cli_plan_point *point)
{
    return point->deadline.chunk_bytes > 0;
}

/* Beside what the planner chose for whole messages. */
static void compare(const struct cli_plan_point *point, char *out, size_t size)
{
    double times_as_long = cli_plan_choice(point)->times_ideal / point->deadline.times_ideal;
    if (point->plan.best == LH_PLAN_NONE)
        out[0] = '\0';
    else if (times_as_long >= 1 + LH_PLAN_TIE)
        snprintf(out, size, "; the plan takes %.3g times as long", times_as_long);
    else
        snprintf(out, size, "%s", times_as_long > 1 - LH_PLAN_TIE ? ", as the plan" : "");
}

char *cli_plan_deadline_format(const struct cli_plan_order *order, const struct cli_plan_point *point,
                               char out[static CLI_PLAN_DEADLINE_MAX])
{
    const struct lh_plan_deadline *deadline = &point->deadline;
    char chunk[LH_FORMAT_MAX], time[LH_FORMAT_MAX], wait[LH_FORMAT_MAX], gained[64];
    char scheme[LH_MODEL_SCHEME_TEXT_MAX], rare[64] = "", whole[32];
    if (!cli_plan_deadline_found(point)) {
        snprintf(out, CLI_PLAN_DEADLINE_MAX,
                 "* bounded would leave more than %.3g %% missing, with each code within the limits.\n",
                 100 * order->allow_loss);
        return out;
    }
    if (!isnan(deadline->missing_p999))
        snprintf(rare, sizeof rare, ", at most %.2g %% in 999 messages of 1000",
                 100 * deadline->missing_p999);
    if (deadline->whole < HARDLY)
        snprintf(whole, sizeof whole, "almost no message");
    else
        snprintf(whole, sizeof whole, "%.3g %% of the messages", 100 * deadline->whole);
    compare(point, gained, sizeof gained);
    snprintf(out, CLI_PLAN_DEADLINE_MAX,
             "* With %.3g %% of a message allowed to be missing: %s with chunks of %s, %s, %.2f times the "
             "ideal%s. Its deadline is %s after the ideal time.\n"
             "Missing: %.2g %% in the mean%s; complete: %s.\n",
             100 * order->allow_loss, lh_model_scheme_format(&deadline->scheme, scheme, sizeof scheme),
             lh_format_size(deadline->chunk_bytes, chunk, sizeof chunk),
             lh_format_time(deadline->seconds, time, sizeof time), deadline->times_ideal, gained,
             lh_format_time(deadline->wait_s, wait, sizeof wait), 100 * deadline->missing, rare, whole);
    return out;
}
