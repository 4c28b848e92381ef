/*
 * link_setup.h - gives each link its flow control.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FLOWCONTROL_LINK_SETUP_H
#define LH_NETSIM_FLOWCONTROL_LINK_SETUP_H

#include "netsim/flowcontrol/flow_control.h"

/* The configuration has passed netsim_control_check() with the graph of the network. Takes the state of links
 * from the arena. */
void netsim_flow_control_init(struct netsim_flow_control *control, struct netsim_network *network,
                              const struct netsim_config *config, struct netsim_arena *arena);
/* Numbers the events of flow control from `first` on, and returns the first number behind them. */
uint32_t netsim_flow_control_number_events(struct netsim_flow_control *control, uint32_t first);

#endif
