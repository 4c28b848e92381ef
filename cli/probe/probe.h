/*
 * probe.h - longhaul probe.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PROBE_PROBE_H
#define LH_CLI_PROBE_PROBE_H

/* The command, with its own argc and argv; returns the exit status. */
int cli_probe(int argc, char **argv);

#endif
