/*
 * processors.h - a processor for the path, the others for what runs at its ends.
 *
 * A path that keeps its times spins while packets are due, for as long as a message takes. What the
 * scheduler puts on that processor meanwhile does not run, and what is measured is that.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PATH_PROCESSORS_H
#define LH_CLI_PATH_PROCESSORS_H

#include <sched.h>
#include <stdbool.h>

/* Divides processors: the first for the path, the others for its ends. False: there are fewer than two; both
 * sets are empty then. */
bool path_processors_divide(const cpu_set_t *all, cpu_set_t *path, cpu_set_t *ends);
/* Divides those of this process, and moves it to the path's. False: it stays where it was, and `ends` is
 * empty: there is only one, or the system does not allow it. */
bool path_processors_take(cpu_set_t *ends);
/* In a process that is started for an end: moves it to those processors, if there are any. */
void path_processors_give(const cpu_set_t *ends);

#endif
