/*
 * collective.h - longhaul collective: measures collectives, and checks their results.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_COLLECTIVE_COLLECTIVE_H
#define LH_CLI_COLLECTIVE_COLLECTIVE_H

int cli_collective(int argc, char **argv);

#endif
