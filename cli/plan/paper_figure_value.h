/*
 * paper_figure_value.h - one value of a figure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_PAPER_FIGURE_VALUE_H
#define LH_CLI_PLAN_PAPER_FIGURE_VALUE_H

#include "cli/plan/paper_figure_list.h"

/* A curve's value at x into *value. 0, or an error of the library. */
int cli_paper_figure_value(const struct cli_paper_figure *figure, const struct cli_paper_curve *curve,
                           double x, double *value);

#endif
