/*
 * paper_figures.h - figures of the SDR-RDMA paper, by the model: data, scripts for gnuplot, pictures.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_PAPER_FIGURES_H
#define LH_CLI_PLAN_PAPER_FIGURES_H

/* Writes all of them, and the map of figure 9, into the folder, which is made. CLI_PROCEED, or reports the
 * cause. */
int cli_paper_figures_draw(const char *folder);

#endif
