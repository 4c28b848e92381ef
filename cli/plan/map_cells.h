/*
 * map_cells.h - sizes over losses: the speed-up of erasure codes over selective repeat, and what to use.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_MAP_CELLS_H
#define LH_CLI_PLAN_MAP_CELLS_H

#include <longhaul/model.h>

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

#endif
