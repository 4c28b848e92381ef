/*
 * command.h - longhaul plan --nic: what reliability costs a NIC.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_NIC_COMMAND_H
#define LH_CLI_PLAN_NIC_COMMAND_H

/* The command, from its arguments on. Returns the exit status. */
int cli_plan_nic(int argc, char **argv);

#endif
