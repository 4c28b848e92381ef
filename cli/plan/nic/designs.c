/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/plan/nic/designs.h"

#define NODES        15000.0
#define BITS_OF_BRAM 36864.0

/* Failures per hour of all nodes: the four points of Celeris, table II, lie on this line within 0.2 %. */
#define FAILURES_BASE     0.00613
#define FAILURES_PER_BRAM 1.188e-5

/* As stated (Celeris, section IV.C). */
#define STATED_RATE_PER_BIT 1e-11
#define STATED_ESSENTIAL    0.1

#define CELERIS "Celeris, table II"
#define OPTINIC "OptiNIC, table 5, rounded"

const struct cli_nic_design cli_nic_designs[CLI_NIC_DESIGNS] = {
    {"RoCE", 407, 2, 1450.5, CELERIS, {10e3, 5e3, 42.8}},
    {"IRN", 596, 2, 2200, OPTINIC, {8e3, 4e3, 30.9}},
    {"SRNIC", 242, 2, 939.5, CELERIS, {20e3, 10e3, 57.8}},
    {"Falcon", 350, 2, 1600, OPTINIC, {12e3, 6e3, 40.5}},
    {"UCCL", 407, 256, 1450.5, "RoCE's hardware", {10e3, 256, 42.8}},
    {"OptiNIC", 52, 2, 529.5, CELERIS, {80e3, 40e3, 80.5}},
};

struct cli_nic_derived cli_nic_derive(const struct cli_nic_design *design, uint64_t sram_bytes)
{
    uint64_t queue_pairs = sram_bytes / design->state_bytes;
    return (struct cli_nic_derived){
        .queue_pairs = queue_pairs,
        .nodes = queue_pairs / design->connections_per_peer,
        .mtbf_hours = 1 / (FAILURES_BASE + FAILURES_PER_BRAM * design->bram),
    };
}

double cli_nic_off(double computed, double printed)
{
    return computed / printed - 1;
}

double cli_nic_mtbf_stated_hours(const struct cli_nic_design *design)
{
    return 1 / (design->bram * BITS_OF_BRAM * STATED_RATE_PER_BIT * STATED_ESSENTIAL * NODES);
}
