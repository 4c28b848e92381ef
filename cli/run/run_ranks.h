/*
 * variables.h - the environment of a rank that is started: that of torchrun, and this library's
 * own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RUN_VARIABLES_H
#define LH_CLI_RUN_VARIABLES_H

#include <stdint.h>

#define CLI_RUN_RANKS_MAX   256
#define CLI_RUN_SECRET_MAX  256
#define CLI_RUN_ADDRESS_MAX 64

/* A rank on another machine. */
struct cli_run_remote {
    const char *host;                 /* NULL: the rank is here */
    char master[CLI_RUN_ADDRESS_MAX]; /* address of rank 0 on the way from there */
};

struct cli_run_job {
    uint32_t ranks, sites;
    uint16_t port;                  /* where rank 0 listens */
    const char *master;             /* at which address; NULL: 127.0.0.1 */
    const char *shell;              /* the remote one, "ssh -p 2222" */
    struct cli_run_remote *remotes; /* by rank; NULL: all are here, and their output goes through here */
    const char *link;               /* emulated between sites; NULL: none */
    char secret[CLI_RUN_SECRET_MAX];
};

/* The site of a rank, 0 and on: ranks in blocks, whose sizes differ by one at most. */
uint32_t cli_run_site(const struct cli_run_job *job, uint32_t rank);
/* The machine of a rank; NULL: this one. */
const char *cli_run_host(const struct cli_run_job *job, uint32_t rank);
/* Sets the variables of that rank in this process. */
void cli_run_set_variables(const struct cli_run_job *job, uint32_t rank);

#endif
