/*
 * map_picture.h - the map as a picture, by gnuplot.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_MAP_PICTURE_H
#define LH_CLI_PLAN_MAP_PICTURE_H

#include "cli/plan/map_cells.h"
#include "cli/plan/order.h"

/* A heat map by gnuplot; its script, with the data in it, is left beside it. CLI_PROCEED, or reports the
 * cause. */
int cli_plan_picture(const struct cli_plan_order *order, const struct cli_plan_cells *cells);
/* Whether the name of the picture has a known format, and its script is in nobody's way: CLI_PROCEED, or
 * reports the cause. */
int cli_plan_picture_check(const char *path);

#endif
