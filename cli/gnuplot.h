/*
 * gnuplot.h - scripts for gnuplot: how all pictures look, text in them, and running them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_GNUPLOT_H
#define CLI_GNUPLOT_H

#include "folder.h"

/* What every script begins with: a picture of that size called output, an SVG, or a PNG where the name ends
 * in ".png"; colours, axes, title. */
void cli_gnuplot_start(FILE *script, const char *output, unsigned width, unsigned height,
                       const char *title);
/* Text in quotes, whatever is in it. */
void cli_gnuplot_text(FILE *script, const char *text);

/* Lets gnuplot make the picture of a script; both lie in the folder. CLI_PROCEED; or CLI_EXIT_FAILED after
 * saying why there is no picture: only once where gnuplot is missing, and nothing when a signal stopped it.
 */
int cli_gnuplot_run(const struct cli_folder *folder, const char *script, const char *picture);

#endif
