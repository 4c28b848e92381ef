/*
 * address.h - the IPv6 addresses of simulated hosts: host h is fd77::h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FABRIC_ADDRESS_H
#define LH_NETSIM_FABRIC_ADDRESS_H

#include "netsim/fabric/sim.h"

void sim_address_of(uint32_t host, uint8_t address[16]);
/* SIM_HOSTS_MAX when the address belongs to no simulated host. */
uint32_t sim_host_of(const uint8_t address[16]);

#endif
