/*
 * sweep.h - a group of all ranks, and a collective at each size.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_COLLECTIVE_SWEEP_H
#define LH_CLI_COLLECTIVE_SWEEP_H

#include "cli/collective/kind.h"
#include "cli/group/options.h"

struct cli_sweep {
    const struct cli_kind *kind;
    const char *schedule; /* NULL: chosen */
    const char *json;     /* NULL: none; "-": standard output */
    enum lh_type type;
    enum lh_reduction reduction;
    uint64_t begin_bytes, end_bytes;
    uint32_t factor, iterations, warmup;
    uint32_t root; /* LH_NO_RANK: not given */
    bool measure;  /* the paths, first */
    struct cli_group *group;
};

/* The exit status: CLI_EXIT_FAILED also when a result was wrong. */
int cli_sweep(const struct cli_sweep *sweep);

#endif
