/*
 * run_ranks.h - the ranks of a job: their environment, local and remote start, output lines, and end; the
 * command that starts them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RUN_RUN_RANKS_H
#define LH_CLI_RUN_RUN_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- variables ------------------------------------------------------------------------------------- */

/*
 * The environment of a rank that is started: that of torchrun, and this library's
 * own.
 */

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
/* Sets the variables of that rank in this process. */
void cli_run_set_variables(const struct cli_run_job *job, uint32_t rank);

/* ---- ranks ----------------------------------------------------------------------------------------- */

/* Runs them; sets port and secret of the job. When one fails, or a signal comes, the others are ended:
 * SIGTERM, or that signal, and SIGKILL CLI_RUN_GRACE_S later. Returns the exit status: that of the first rank
 * that failed, or as of the signal. One that a signal ends up to CLI_RUN_CAUSE_NS later is the first. */
int cli_run_ranks(struct cli_run_job *job, char **command, bool label);

/* ---- lines ----------------------------------------------------------------------------------------- */

/* What a rank writes, cut into whole lines, so that lines of several ranks do not mix. */

/* A longer line comes in parts. */
#define CLI_LINE_MAX 65536u

struct cli_lines {
    int rank; /* lines begin with "[rank] "; -1: as they are */
    FILE *out;
    size_t held;
    bool inside; /* the part before belongs to the same line */
    char line[CLI_LINE_MAX];
};

/* Takes what a rank wrote; prints lines that are whole now. */
void cli_lines_take(struct cli_lines *lines, const char *text, size_t bytes);
/* Nothing follows: prints a last line without its end. */
void cli_lines_end(struct cli_lines *lines);

/* ---- remote ---------------------------------------------------------------------------------------- */

/* A rank on another machine, which a remote shell such as ssh starts. */

/* Writes this machine's address, of packets to a host, "[USER@]HOST", in numbers; family: AF_INET, AF_INET6.
 * NULL, or why there is none; *unknown: the host's name has no address. */
const char *cli_remote_address(const char *host, int family, char address[CLI_RUN_ADDRESS_MAX],
                               bool *unknown);

/* ---- run ------------------------------------------------------------------------------------------- */

/* longhaul run: starts a group of processes, on this machine or on the hosts of a list. */

int cli_run(int argc, char **argv);

/* ---- hosts ----------------------------------------------------------------------------------------- */

/* Runs a command of this program as a group: rank 0 here, the others on other machines. */

/* Rank r runs on hosts[r - 1], "[USER@]HOST", by the remote shell: NULL, or with arguments, "ssh -p 2222".
 * words: those behind "longhaul", "distribute" the first; NULL ends them. There, too, the program is found
 * as here: by PATH, or in the same place. MASTER_ADDR, where it is set, is this machine's address for all of
 * them. Returns the exit status. */
int cli_run_on_hosts(const char *shell, const char *const *hosts, uint32_t count, char **words);

#endif
