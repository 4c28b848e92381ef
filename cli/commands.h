/*
 * commands.h - the subcommands; each takes its own argc and argv, and returns the exit status.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

int cli_send(int argc, char **argv);
int cli_recv(int argc, char **argv);
int cli_perf(int argc, char **argv);
int cli_probe(int argc, char **argv);
int cli_demo(int argc, char **argv);
int cli_sim(int argc, char **argv);
int cli_plan(int argc, char **argv);
int cli_devices(int argc, char **argv);

#endif
