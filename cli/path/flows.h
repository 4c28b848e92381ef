/*
 * flows.h - what each flow of a path got, over time. Flows are told apart by the last byte of the left
 * end's address.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PATH_FLOWS_H
#define LH_CLI_PATH_FLOWS_H

#include <stdint.h>

#define PATH_FLOWS          256
#define PATH_INTERVAL_NS    100000000
#define PATH_INTERVALS      1200 /* what comes after is not counted */
#define PATH_FLOW_FIRST     11   /* addresses 10.99.0.11 …, and as many at 10.99.0.131 … */
#define PATH_FLOW_FAR_FIRST 131
#define PATH_FLOW_FAR       128 /* from here on flows have the longer delay */
#define PATH_FLOWS_MAX      32

struct path_flows {
    int64_t started_ns;
    unsigned intervals; /* that anything was counted in, and those before */
    uint64_t bytes[PATH_INTERVALS][PATH_FLOWS];
};

void path_flows_add(struct path_flows *flows, int64_t now_ns, uint8_t flow, uint32_t bytes);

#endif
