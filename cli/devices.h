/*
 * devices.h - longhaul devices.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_DEVICES_H
#define LH_CLI_DEVICES_H

/* The command, with its own argc and argv; returns the exit status. */
int cli_devices(int argc, char **argv);

#endif
