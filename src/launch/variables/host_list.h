/*
 * host_list.h - the first host of a list as SLURM writes it: "node[003-010,12],gpu1".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_VARIABLES_HOST_LIST_H
#define LH_LAUNCH_VARIABLES_HOST_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the first host into host[size]: of each bracket its first number, as it is written there. False: not
 * such a list, or longer than `size`. */
bool host_list_first(const char *list, char *host, size_t size);

#endif
