/*
 * report.h - what has passed a path, as JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BENCH_PATH_REPORT_H
#define LH_BENCH_PATH_REPORT_H

#include "cli/path/path_loop.h"

#include <stdio.h>

/* One object: the time since started_ns, and one for each direction. */
void path_report(FILE *out, const struct path *path, const struct path_end end[PATH_ENDS],
                 int64_t started_ns);

#endif
