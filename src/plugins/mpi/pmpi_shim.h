/*
 * pmpi_shim.h - the parts of the shim for MPI (docs/mpi.md): the job and the groups of its communicators
 * (pmpi_job.c), the collectives (pmpi_calls.c). Compiled once for each MPI: their handles differ.
 *
 * A collective goes to Longhaul by what is equal at all ranks of the communicator: the bytes that its
 * arguments describe, the type and the operation of a reduction, the ranks of the communicator and their
 * sites.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PLUGINS_PMPI_SHIM_H
#define LH_PLUGINS_PMPI_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include <longhaul/collective.h>
#include <longhaul/longhaul.h>

/* Functions that stand before those of MPI. */
#define PMPI_EXPORT __attribute__((visibility("default")))

/* Whether collectives of that many bytes go to Longhaul, in communicators of several sites. */
bool pmpi_takes(size_t bytes);
/* Gets the group of a communicator, and creates it at the first call, which is a collective call. MPI_SUCCESS
 * with *group NULL: MPI's own collectives serve the communicator. Else the communicator's error handler has
 * been called with the result. */
int pmpi_group(MPI_Comm comm, struct lh_group **group);
/* Of a communicator that has several ranks at a site: its first rank there leads it. */
struct pmpi_levels {
    MPI_Comm site;            /* the ranks of this rank's site; its rank 0 leads */
    struct lh_group *leaders; /* of all sites; NULL at other ranks */
    int is_failed;            /* of an all-reduce; MPI may store it after a failed wait */
};
/* Returns the levels of a communicator with a group; NULL: each of its ranks is alone at its site. */
struct pmpi_levels *pmpi_levels(MPI_Comm comm);
/* Calls the communicator's error handler with an error of that text; returns its code. */
int pmpi_raise(MPI_Comm comm, const char *text);

#endif
