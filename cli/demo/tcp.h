/*
 * tcp.h - rows of the demo for the kernel's TCP: its packets cross a path of ours, because the emulated
 * link is within Longhaul.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_DEMO_TCP_H
#define LH_CLI_DEMO_TCP_H

#include "cli/demo/run.h"

/* The kernel's congestion controls that have a row; NULL at the end. */
extern const char *const cli_demo_tcp_controls[];

/* Sends the data once over TCP with that congestion control. False: this machine or this link does not
 * let us, outcome->error says why. */
bool cli_demo_tcp_run(const struct cli_demo_run *run, const char *control,
                      struct cli_demo_outcome *outcome);

#endif
