/*
 * distribute.h - longhaul distribute: one file to all ranks of a group.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_DISTRIBUTE_DISTRIBUTE_H
#define LH_CLI_DISTRIBUTE_DISTRIBUTE_H

int cli_distribute(int argc, char **argv);

#endif
