/*
 * flow_control.h - longhaul plan --flow-control: what buffer each way of flow control needs for a link.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_FLOW_CONTROL_H
#define LH_CLI_PLAN_FLOW_CONTROL_H

#include <longhaul/flowcontrol.h>

/* The command, from its arguments on. Returns the exit status. */
int cli_plan_flow(int argc, char **argv);

#endif
