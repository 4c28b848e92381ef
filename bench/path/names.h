/*
 * names.h - names under which `ip netns exec` finds the two ends of a path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BENCH_PATH_NAMES_H
#define LH_BENCH_PATH_NAMES_H

#include "cli/path/path_packets.h"

#define PATH_NAME_MAX 64

/* Names both ends NAME-left and NAME-right, until this process ends, however it ends: a process of its
 * own sees to that. Fails with a message where a name is in use or this user may not name any. */
bool path_names_open(const struct path_end end[PATH_ENDS], const char *name, char *reason, size_t size);
/* Removes them now. */
void path_names_close(void);

#endif
