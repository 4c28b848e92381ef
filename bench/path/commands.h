/*
 * commands.h - commands that run at the two ends of a path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BENCH_PATH_COMMANDS_H
#define LH_BENCH_PATH_COMMANDS_H

#include "cli/path/path_packets.h"

#include <sched.h>
#include <sys/types.h>

/* Starts a command at that end, on those processors (none: any); it is killed with us. Returns its process,
 * or -1. */
pid_t path_command_start(const struct path_end *end, const cpu_set_t *processors, char **argv);
/* Whether anything at that end listens for TCP connections. */
bool path_command_listens(const struct path_end *end);
/* Ends it and what it has started: politely, and after a second by force. Harmless when it has ended
 * or never began. */
void path_command_end(pid_t process);

#endif
