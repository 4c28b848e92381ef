/*
 * flow_file.h - a list of flows from a text: "SOURCE DESTINATION BYTES START" in each line, like "0 5 8MB
 * 10us". COUNT behind it repeats the flow that often; GAP behind that, one every such interval.
 *
 * Hosts are numbers, or names where the word is no number. Lines need not be in the order of start.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_FLOW_FILE_H
#define LH_NETSIM_WORKLOAD_FLOW_FILE_H

#include "netsim/workload/kind.h"

int netsim_workload_flow_file(const struct netsim_workload *workload);

#endif
