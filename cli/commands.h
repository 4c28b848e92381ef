/*
 * commands.h - the commands that cli/main.c runs, and their parts that tests call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_COMMANDS_H
#define LH_CLI_COMMANDS_H

int cli_collective(int argc, char **argv);

/* ---- demo ------------------------------------------------------------------------------------------ */

/* Longhaul demo. */

/* The command, with its own argc and argv; returns the exit status. */
int cli_demo(int argc, char **argv);

/* ---- distribute ------------------------------------------------------------------------------------ */

/* Longhaul distribute: one file to all ranks of a group. */

int cli_distribute(int argc, char **argv);

/* ---- key ------------------------------------------------------------------------------------------- */

/* Longhaul key: makes key files, and names the keys in them. */

int cli_key(int argc, char **argv);

/* ---- plan command ---------------------------------------------------------------------------------- */

/* Longhaul plan. */

/* The command, with its own argc and argv; returns the exit status. */
int cli_plan(int argc, char **argv);

/* ---- probe command --------------------------------------------------------------------------------- */

/* Longhaul probe. */

/* The command, with its own argc and argv; returns the exit status. */
int cli_probe(int argc, char **argv);

/* ---- sim command ----------------------------------------------------------------------------------- */

/* Longhaul sim. */

/* The command, with its own argc and argv; returns the exit status. */
int cli_sim(int argc, char **argv);

#endif
