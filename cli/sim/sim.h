/*
 * sim.h - longhaul sim.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_SIM_H
#define LH_CLI_SIM_SIM_H

/* The command, with its own argc and argv; returns the exit status. */
int cli_sim(int argc, char **argv);

#endif
