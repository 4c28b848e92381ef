/*
 * designs.h - what a transport costs a NIC: state, queue pairs in a memory, nodes, time between failures.
 *
 * The inputs are the numbers of the OptiNIC paper (tables 4 and 5) and the Celeris paper (tables I and II);
 * what follows from them is computed, and stands beside what the papers print.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_NIC_DESIGNS_H
#define LH_CLI_PLAN_NIC_DESIGNS_H

#include <stdint.h>

#define CLI_NIC_DESIGNS 6

/* The papers' budget, "4 MB": of the two readings the one that gives most of the printed numbers. */
#define CLI_NIC_SRAM_DEFAULT ((uint64_t)4 << 20)

struct cli_nic_printed {
    double queue_pairs, nodes, mtbf_hours;
};

struct cli_nic_design {
    const char *name;
    uint32_t state_bytes;          /* per queue pair (OptiNIC, table 4) */
    uint32_t connections_per_peer; /* (OptiNIC, section 5.3.4) */
    double bram;                   /* blocks of 36 Kbit, with 10,000 queue pairs */
    const char *bram_source;
    struct cli_nic_printed printed; /* OptiNIC, tables 4 and 5 */
};

/* What follows: for the budget; the time between failures is that of the papers' 15,000 nodes. */
struct cli_nic_derived {
    uint64_t queue_pairs, nodes;
    double mtbf_hours;
};

extern const struct cli_nic_design cli_nic_designs[CLI_NIC_DESIGNS];

/* sram_bytes: at least the state of one queue pair, or there are none. */
struct cli_nic_derived cli_nic_derive(const struct cli_nic_design *design, uint64_t sram_bytes);
/* Relative difference of a computed value from a printed one. */
double cli_nic_off(double computed, double printed);
/* Hours between failures by the constants that the papers state (a failure in 10^11 hours and bit, a tenth
 * of the bits matter): of the block memory alone. */
double cli_nic_mtbf_stated_hours(const struct cli_nic_design *design);

#endif
