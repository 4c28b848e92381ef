/*
 * topology_file.h - the graph of a topology file, with tables for routes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TOPOLOGY_TOPOLOGY_FILE_H
#define LH_NETSIM_TOPOLOGY_TOPOLOGY_FILE_H

#include "netsim/base/config.h"
#include "netsim/engine/graph.h"

/* As netsim_topology_build(), which has checked the keys of all kinds. */
int netsim_topology_file_build(const struct netsim_topology_config *config, struct netsim_arena *arena,
                               struct netsim_graph *graph);

#endif
