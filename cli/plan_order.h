/*
 * plan_order.h - longhaul plan: what is asked, and what is compared at one point of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_PLAN_ORDER_H
#define CLI_PLAN_ORDER_H

#include "loss_list.h"
#include "options.h"
#include "size_list.h"

#include <longhaul/plan.h>

/* Rows of the table: schemes given, or the usual ones, and the planner's. */
#define CLI_PLAN_ROWS_MAX (CLI_TEXTS_MAX + 1)

/* The axes of the paper's figure 9. */
#define CLI_PLAN_MAP_SIZES  "128KiB,512KiB,2MiB,8MiB,32MiB,128MiB,1GiB,8GiB"
#define CLI_PLAN_MAP_LOSSES "1e-8..1e-1"

struct cli_plan_order {
    struct lh_plan_question question; /* with a mix its sizes; else one, set for each point */
    bool mix;
    struct cli_size_list sizes;
    struct cli_loss_list losses;
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

struct cli_plan_point {
    struct lh_plan_question question; /* of one size, or the mix, and one loss */
    struct lh_plan plan;
    struct cli_plan_row rows[CLI_PLAN_ROWS_MAX];
    unsigned rows_count;
};

/* plan_point.c: the question for a size and a loss of the lists. */
void cli_plan_question(const struct cli_plan_order *order, unsigned size, unsigned loss,
                       struct lh_plan_question *question);
/* Plans for a size and a loss of the lists, and compares the schemes there. CLI_PROCEED, or
 * says why it cannot be. */
int cli_plan_point(const struct cli_plan_order *order, unsigned size, unsigned loss,
                   struct cli_plan_point *point);
/* The planner's choice, or what it would be without limits. */
const struct lh_plan_choice *cli_plan_choice(const struct cli_plan_point *point);

/* plan_table.c: one point with all its schemes, and several with a row each. */
void cli_plan_table(const struct cli_plan_order *order, const struct cli_plan_point *point);
int cli_plan_sweep(const struct cli_plan_order *order);

/* plan_json.c: CLI_PROCEED, or says what failed. */
int cli_plan_json(const struct cli_plan_order *order);

/* plan_map.c: sizes over losses, on the terminal and as a picture. */
int cli_plan_map(const struct cli_plan_order *order);

#endif
