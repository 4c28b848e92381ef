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

/* plan_point.c: the question for a size and a loss of the lists. */
void cli_plan_question(const struct cli_plan_order *order, unsigned size, unsigned loss,
                       struct lh_plan_question *question);
/* Plans for a size and a loss of the lists, and compares the schemes there. CLI_PROCEED, or
 * says why it cannot be. */
int cli_plan_point(const struct cli_plan_order *order, unsigned size, unsigned loss,
                   struct cli_plan_point *point);
/* The planner's choice, or what it would be without limits. */
const struct lh_plan_choice *cli_plan_choice(const struct cli_plan_point *point);

/* Above this loss of a chunk what is repeated keeps the link itself: the model leaves that time out. */
#define CLI_PLAN_CHUNK_LOSS_SURE 0.1
#define CLI_PLAN_CHUNK_LOSS_NOTE                                                                           \
    "more than 10 % of the chunks are lost: the model leaves out the time that repeats take of the link, " \
    "so the times are too short"
/* The share of chunks that is lost with the planner's choice is above that. */
bool cli_plan_loses_much(const struct cli_plan_point *point);

/* plan_worst.c: fills in point->worst. CLI_PROCEED, or says why it cannot be. */
int cli_plan_worst(const struct cli_plan_order *order, struct cli_plan_point *point);
#define CLI_PLAN_WORST_MAX 512
/* The same in sentences, a line each; returns out. */
char *cli_plan_worst_words(const struct cli_plan_order *order, const struct cli_plan_point *point,
                           char out[static CLI_PLAN_WORST_MAX]);

/* plan_deadline.c: fills in point->deadline where some may be missing. CLI_PROCEED, or says why it cannot
 * be. */
int cli_plan_deadline(const struct cli_plan_order *order, struct cli_plan_point *point);
#define CLI_PLAN_DEADLINE_MAX 768
/* The same in sentences, a line each; returns out. */
char *cli_plan_deadline_words(const struct cli_plan_order *order, const struct cli_plan_point *point,
                              char out[static CLI_PLAN_DEADLINE_MAX]);

/* plan_commands.c: the commands that do what was planned, to be typed as they stand. False: there is no plan,
 * or only the model can do it. */
#define CLI_PLAN_COMMAND_MAX 256
struct cli_plan_commands {
    char recv[CLI_PLAN_COMMAND_MAX];
    char send[CLI_PLAN_COMMAND_MAX];
};
bool cli_plan_commands(const struct cli_plan_point *point, struct cli_plan_commands *commands);
/* Bytes in flight that fill the link with that choice. */
uint64_t cli_plan_in_flight(const struct lh_plan_question *question, const struct lh_plan_choice *choice);
/* A sentence where that is more than the default window, else ""; returns out. */
char *cli_plan_window_words(const struct cli_plan_point *point, char out[static CLI_PLAN_COMMAND_MAX]);

/* plan_table.c: one point with all its schemes, and several with a row each. */
void cli_plan_table(const struct cli_plan_order *order, const struct cli_plan_point *point);
int cli_plan_sweep(const struct cli_plan_order *order);

/* plan_json.c: CLI_PROCEED, or says what failed. */
int cli_plan_json(const struct cli_plan_order *order);

/* plan_map.c: sizes over losses, on the terminal and as a picture. */
int cli_plan_map(const struct cli_plan_order *order);

#endif
