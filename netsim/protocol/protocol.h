/*
 * protocol.h - the real protocol as the transport of a simulation's hosts: flows are messages of connections
 * (longhaul/connection.h) whose packets cross the simulated network.
 *
 * Connections are opened for pairs of hosts that have flows, when the first of these starts. Each host has a
 * scheme by which it receives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_PROTOCOL_PROTOCOL_H
#define LH_NETSIM_PROTOCOL_PROTOCOL_H

#include <stdint.h>

#include "netsim/base/config.h"

/* On the wire, of each packet: Ethernet 14, IPv6 40, UDP 8, BTH 12, RETH 16, ImmDt 4, ICRC 4, FCS 4; and of a
 * control message: what an acknowledgement takes, about. */
#define PROTOCOL_HEADER_BYTES  102u
#define PROTOCOL_CONTROL_BYTES 128u

struct netsim;
struct protocol;

/* What the keys say that the protocol cannot do: 0, -LH_EINVAL or -LH_ERANGE. */
int protocol_check(const struct netsim_config *config);
/* For a network that has not run; it stays as long as the protocol. `schemes` as transport.schemes.
 * -LH_ERANGE: too many hosts or flows, or too large ones; -LH_ENOMEM. */
int protocol_create(struct netsim *net, const char *schemes, uint64_t seed, struct protocol **protocol);
void protocol_destroy(struct protocol *protocol); /* NULL is allowed */
/* As lh_netsim_run(). */
int protocol_run(struct protocol *protocol, uint64_t until_ps, uint64_t events_max);

#endif
