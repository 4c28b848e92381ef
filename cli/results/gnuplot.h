/*
 * gnuplot.h - scripts for gnuplot: how all pictures look, text in them, and running them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RESULTS_GNUPLOT_H
#define LH_CLI_RESULTS_GNUPLOT_H

#include "cli/results/result_file.h"

#include <stdbool.h>

/* What every script begins with: a picture of that size called output, an SVG, or a PNG where the name ends
 * in ".png"; colours, axes, title. */
void cli_gnuplot_start(FILE *script, const char *output, unsigned width, unsigned height,
                       const char *title);
/* Whether a file begins like that, is empty, or does not exist: a script may take its place. */
bool cli_gnuplot_is_script(const char *path);
/* Text in quotes, whatever is in it. */
void cli_gnuplot_text(FILE *script, const char *text);

/* A positive number as axes show it: "10⁻⁵", "3·10⁻⁴", and from 1 on "12.5". */
#define CLI_GNUPLOT_NUMBER_MAX 48
char *cli_gnuplot_number(double value, char out[CLI_GNUPLOT_NUMBER_MAX]);
/* Tics at the powers of ten of a logarithmic axis, "x" or "y". */
void cli_gnuplot_decades(FILE *script, const char *axis, int from, int to);

/* A legend of that number of entries, the longest of `longest` characters, for that width of the frame;
 * gnuplot makes no legend wider than that. */
struct cli_gnuplot_legend {
    unsigned columns, height; /* 0 of both: one line needs no legend */
};
struct cli_gnuplot_legend cli_gnuplot_legend(unsigned frame_width, unsigned entries, unsigned longest);

/* Where the next plot is drawn, in points of the picture from its left and its top: the frame of its axes,
 * and the top of its legend; labels and tics are outside of the frame. */
struct cli_gnuplot_frame {
    unsigned width, height; /* of the picture */
    unsigned left, right, top, bottom;
};
void cli_gnuplot_frame(FILE *script, const struct cli_gnuplot_frame *frame);
void cli_gnuplot_key(FILE *script, const struct cli_gnuplot_frame *frame, struct cli_gnuplot_legend legend,
                     unsigned top);

/* Lets gnuplot make the picture of a script; both lie in the folder. CLI_PROCEED; or CLI_EXIT_FAILED after
 * reporting the cause: only once where gnuplot is missing, and not after a signal.
 */
int cli_gnuplot_run(const struct cli_folder *folder, const char *script, const char *picture);

#endif
