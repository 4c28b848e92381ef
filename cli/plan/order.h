/*
 * order.h - longhaul plan: what is asked, and what is compared at one point of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_ORDER_H
#define LH_CLI_PLAN_ORDER_H

#include "cli/options/loss_list.h"
#include "cli/options/options.h"
#include "cli/options/size_list.h"

#include <longhaul/plan.h>

/* Rows of the table: schemes given, or the usual ones, and the planner's. */
#define CLI_PLAN_ROWS_MAX (CLI_TEXTS_MAX + 1)

/* The axes of the paper's figure 9. */
#define CLI_PLAN_MAP_SIZES  "128KiB,512KiB,2MiB,8MiB,32MiB,128MiB,1GiB,8GiB"
#define CLI_PLAN_MAP_LOSSES "1e-8..1e-1"

/* In the place of a scheme: what recv and perf choose by themselves, which is the planner's choice. */
#define CLI_PLAN_AUTO "auto"

struct cli_plan_order {
    struct lh_plan_question question; /* with a mix its sizes; else one, set for each point */
    bool mix;
    struct cli_size_list sizes;
    struct cli_loss_list losses;
    /* One plan for the highest loss; this is the lowest that was given or the one that was measured. NaN:
     * there is no other. */
    double loss_low;
    bool measured;     /* out of a link file, and losses holds the upper bound */
    double allow_loss; /* share of a message that may be missing; NaN: none */
    struct cli_texts schemes;
    const char *by;     /* "p99.9" */
    const char *json;   /* NULL: not asked for */
    const char *output; /* of --map: a picture; NULL: none */
    bool map;
};

/* One scheme at one point. */
struct cli_plan_row {
    char scheme[LH_MODEL_SCHEME_TEXT_MAX];
    struct lh_plan_choice choice;
    struct lh_model_times times; /* in a mix: weighted means */
    bool best;                   /* what the planner chose */
};

/* Where less is lost than is planned for. */
struct cli_plan_worst {
    bool any;                            /* there is such a loss, and a plan */
    bool other;                          /* a plan for it alone would choose differently */
    struct lh_plan_choice at_low;        /* what was chosen, there */
    struct lh_plan_choice low_best;      /* what that plan would choose, there */
    struct lh_plan_choice low_best_here; /* and where as much is lost as is planned for; seconds may be
                                            infinite */
};

struct cli_plan_point {
    struct lh_plan_question question; /* of one size, or the mix, and one loss */
    struct lh_plan plan;
    struct cli_plan_worst worst;
    struct lh_plan_deadline deadline; /* where some may be missing */
    struct cli_plan_row rows[CLI_PLAN_ROWS_MAX];
    unsigned rows_count;
};

#endif
