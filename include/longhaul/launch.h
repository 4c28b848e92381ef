/*
 * launch.h - groups of processes that a launcher has started: longhaul run, torchrun, mpirun, srun, flux run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_LAUNCH_H
#define LONGHAUL_LAUNCH_H

#include <longhaul/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a group as lh_group_create() does, of all processes that this one's launcher has started: rank,
 * size, site and address are those of the environment (lh_group_create_env(3) lists the variables). They meet
 * over TCP at rank 0, which listens until all are there.
 *
 * attr: may be NULL. Its rank, size, exchange and exchange_context do not count; its site and device,
 * when set, count in place of the environment's. attr->timeout_ns: until all have joined, and again until all
 * are connected. Errors: those of lh_group_create(); -LH_ESTATE: no launcher has started this process;
 * -LH_EINVAL: a variable is wrong or missing; -LH_EADDR: rank 0 cannot listen; -LH_EHANDSHAKE: another
 * secret, another number of ranks, or a rank twice; -LH_ETIMEDOUT: ranks that are missing, which the message
 * names. */
LH_API int lh_group_create_env(const struct lh_group_attr *attr, struct lh_group **group);

/* Rank and number of ranks that the launcher has given this process, before there is a group. -LH_ESTATE,
 * -LH_EINVAL: as above. */
LH_API int lh_group_rank_env(uint32_t *rank, uint32_t *size);

#ifdef __cplusplus
}
#endif
#endif
