/*
 * datacenters.h - datacenters in a line, a long cable from each to the next.
 *
 * Each is a fat tree whose cores have one more port, to the one DCI switch of the site. A DCI switch in the
 * middle of the line has two long cables: what is for a site further on passes through it, and never through
 * the site's own cores. With relays, there is one at each end of each long cable, next to the DCI switch.
 *
 * Ports, in this order: of a DCI switch the cores, the cable to the site before, the cable to the site after;
 * of a relay its switch, the long cable.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TOPOLOGY_DATACENTERS_H
#define LH_NETSIM_TOPOLOGY_DATACENTERS_H

#include "netsim/topology/kind.h"

int netsim_datacenters_shape(const struct netsim_topology_config *config, struct netsim_shape *shape);
void netsim_datacenters_fill(struct netsim_graph_builder *builder);

#endif
