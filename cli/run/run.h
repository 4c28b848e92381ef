/*
 * run.h - longhaul run: starts a group of processes on this machine.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RUN_RUN_H
#define LH_CLI_RUN_RUN_H

int cli_run(int argc, char **argv);

#endif
