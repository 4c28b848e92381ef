/*
 * variables.h - the environment of a rank that 'longhaul run' starts: that of torchrun, and this library's
 * own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RUN_VARIABLES_H
#define LH_CLI_RUN_VARIABLES_H

#include <stdint.h>

#define CLI_RUN_SECRET_MAX 256

struct cli_run_job {
    uint32_t ranks, sites;
    uint16_t port;    /* where rank 0 listens, on 127.0.0.1 */
    const char *link; /* emulated between sites; NULL: none */
    char secret[CLI_RUN_SECRET_MAX];
};

/* The site of a rank, 0 and on: ranks in blocks, whose sizes differ by one at most. */
uint32_t cli_run_site(const struct cli_run_job *job, uint32_t rank);
/* Sets the variables of that rank in this process. */
void cli_run_set_variables(const struct cli_run_job *job, uint32_t rank);

#endif
