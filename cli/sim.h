/*
 * sim.h - what the parts of longhaul sim agree on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_SIM_H
#define CLI_SIM_H

/* A longer scenario file is none. */
#define CLI_SCENARIO_BYTES_MAX 1048576

/* Runs of one command, and seeds of one point. */
#define CLI_SIM_RUNS_MAX 100000

#endif
