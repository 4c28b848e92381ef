/*
 * launch.h - groups of processes started by a launcher: longhaul run, torchrun, mpirun, srun, flux run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_LAUNCH_H
#define LONGHAUL_LAUNCH_H

#include <longhaul/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a group of all processes that the launcher has started, as lh_group_create() does. Rank, size, site
 * and address come from the environment (lh_group_create_env(3) lists the variables). The processes connect
 * to rank 0 over TCP, which listens until all have joined.
 *
 * attr: may be NULL. Its rank, size, exchange and exchange_context are ignored; its site and device, when
 * set, override the environment's. attr->timeout_ns: until all have joined, and again until all are
 * connected. Errors: as lh_group_create(); -LH_ESTATE: no launcher has started this process; -LH_EINVAL: a
 * variable is invalid or missing; -LH_EADDR: rank 0 cannot listen; -LH_EHANDSHAKE: secrets, keys,
 * encryption or numbers of ranks differ, or two processes have the same rank; -LH_ETIMEDOUT: ranks, named in
 * the message, are missing. */
LH_API int lh_group_create_env(const struct lh_group_attr *attr, struct lh_group **group);

/* Gets the rank and the number of ranks from the launcher's environment, before a group exists. -LH_ESTATE,
 * -LH_EINVAL: as lh_group_create_env(). */
LH_API int lh_group_rank_env(uint32_t *rank, uint32_t *size);

#ifdef __cplusplus
}
#endif
#endif
