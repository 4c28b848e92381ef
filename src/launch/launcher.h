/*
 * launcher.h - what launchers tell a process by its environment: rank, number of ranks, hosts, interfaces;
 * and this library's own variables. Pure: the caller reads the variables.
 *
 * Rank and size are those of the first launcher in the table of launcher.c whose rank is set. Where rank 0
 * listens is MASTER_ADDR and MASTER_PORT. Without MASTER_ADDR: this host, when the launcher announces that
 * all ranks are on it; or the first host of SLURM's list. Without MASTER_PORT: a port made from the job's
 * number, else LAUNCHER_PORT. Where torchrun's agent listens at MASTER_PORT itself: the port above.
 *
 * The name of a job, the same for all its ranks and of no other job's, keeps jobs apart that use one
 * MASTER_PORT: the first variable of job_names in launcher.c that is set. A long value counts by its hash.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_LAUNCHER_H
#define LH_LAUNCH_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

#include <longhaul/group.h>
#include <longhaul/link.h>

#define LAUNCHER_PORT_FIRST 20000u /* made from the job's number; below those that systems give out */
#define LAUNCHER_PORTS      10000u
#define LAUNCHER_HOST_MAX   256u
#define LAUNCHER_WHERE_MAX  (LAUNCHER_HOST_MAX + 8u)
#define LAUNCHER_SITE_MAX   64u
#define LAUNCHER_TEXT_MAX   256u
#define LAUNCHER_PATH_MAX   4096u
#define LAUNCHER_JOB_MAX    64u

struct launcher_settings {
    const char *launcher; /* for people: "Open MPI" */
    uint32_t rank, size;
    char where[LAUNCHER_WHERE_MAX];   /* of rank 0: "HOST:PORT" */
    char listen[LAUNCHER_WHERE_MAX];  /* where rank 0 listens: there, on a loopback address; else ":PORT" */
    char site[LAUNCHER_SITE_MAX];     /* LONGHAUL_SITE, or "" */
    char secret[LAUNCHER_TEXT_MAX];   /* LONGHAUL_SECRET, or "": none */
    char key_file[LAUNCHER_PATH_MAX]; /* LONGHAUL_KEY_FILE, or "": none */
    bool loopback_only;               /* lh_security.loopback_only, without a key; not of the environment */
    char job[LAUNCHER_JOB_MAX];       /* what the launcher calls this job, "SLURM_JOB_ID=17.0"; or "" */
    char interfaces[LAUNCHER_TEXT_MAX]; /* LONGHAUL_SOCKET_IFNAME, or "": not chosen */
    struct lh_link_spec link;           /* LONGHAUL_LINK: emulated between sites; or none */
};

/* The value of a variable, which stays as long as the call that asked; NULL: not set. */
typedef const char *launcher_get(void *context, const char *name);

/* -LH_ESTATE: no launcher started this process; -LH_EINVAL: a variable is wrong or missing, with its name and
 * value. */
int launcher_read(launcher_get *get, void *context, struct launcher_settings *settings);

/* ---- host list ------------------------------------------------------------------------------------- */

/* The first host of a list as SLURM writes it: "node[003-010,12],gpu1". */

/* Writes the first host into host[size]: of each bracket its first number, as it is written there. False: not
 * such a list, or longer than `size`. */
bool host_list_first(const char *list, char *host, size_t size);

/* ---- interface filter ------------------------------------------------------------------------------ */

/*
 * Which network interfaces to use, in the grammar of NCCL_SOCKET_IFNAME: "eth,ib" names
 * prefixes, "=eth0,eth1" whole names; "^docker,lo" and "^=docker0" take all others.
 */

/* Whether it names at least one interface, and none that is empty. */
bool interface_filter_valid(const char *filter);
/* Place of the interface in the filter's order, from 0; -1: it does not match. Those that an exclusion leaves
 * are all at 0. The filter is valid. */
int interface_filter_match(const char *filter, const char *interface);

#endif
