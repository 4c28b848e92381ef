/*
 * deadline.c - messages that may be incomplete: what a deadline would bring, beside what there is.
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
    if (lh_plan_deadline(&point->question, order->allow_loss, &point->deadline))
        return cli_misused("--allow-loss: %s", lh_last_error());
    return CLI_PROCEED;
}

/* Beside what the planner chose. */
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
    char end[LH_FORMAT_MAX + 16] = "at", rare[64] = "", whole[32];
    if (deadline->wait_s > 0)
        snprintf(end, sizeof end, "%s after", lh_format_time(deadline->wait_s, wait, sizeof wait));
    if (!isnan(deadline->missing_p999))
        snprintf(rare, sizeof rare, ", at most %.2g %% in 999 messages of 1000",
                 100 * deadline->missing_p999);
    if (deadline->whole < HARDLY)
        snprintf(whole, sizeof whole, "almost no message");
    else
        snprintf(whole, sizeof whole, "%.3g %% of the messages", 100 * deadline->whole);
    compare(point, gained, sizeof gained);
    snprintf(out, CLI_PLAN_DEADLINE_MAX,
             "* Not implemented yet: with %.3g %% of a message allowed to be missing, sr-nack with chunks "
             "of %s could end "
             "%s the ideal time, complete or not. It would take %s, %.2f times the ideal%s.\n"
             "Missing: %.2g %% in the mean%s; complete: %s.\n",
             100 * order->allow_loss, lh_format_size(deadline->chunk_bytes, chunk, sizeof chunk), end,
             lh_format_time(deadline->seconds, time, sizeof time), deadline->times_ideal, gained,
             100 * deadline->missing, rare, whole);
    return out;
}
