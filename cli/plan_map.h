/*
 * plan_map.h - sizes over losses: the speed-up of erasure codes over selective repeat, and what to use.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_PLAN_MAP_H
#define CLI_PLAN_MAP_H

#include "plan_order.h"

struct cli_plan_cell {
    double speedup;                     /* of ec:mds (32, 8) over sr-rto, by what was asked for */
    struct lh_model_scheme scheme;      /* what to use; an ideal one where nothing keeps to the limits */
    char use[LH_MODEL_SCHEME_TEXT_MAX]; /* the same as text, short: "mds 32+8", "sr-nack", "-" */
};

/* Rows are sizes, columns losses; largest size last. */
struct cli_plan_cells {
    unsigned sizes, losses;
    struct cli_plan_cell *cell; /* [size * losses + loss] */
};

/* plan_picture.c: a heat map by gnuplot; its script, with the data in it, is left beside it. CLI_PROCEED, or
 * says what failed. */
int cli_plan_picture(const struct cli_plan_order *order, const struct cli_plan_cells *cells);
/* Whether the name of the picture says what it is to be: CLI_PROCEED or CLI_EXIT_USAGE. */
int cli_plan_picture_check(const char *path);

#endif
