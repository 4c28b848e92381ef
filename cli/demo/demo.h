/*
 * demo.h - longhaul demo.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_DEMO_DEMO_H
#define LH_CLI_DEMO_DEMO_H

/* The command, with its own argc and argv; returns the exit status. */
int cli_demo(int argc, char **argv);

#endif
