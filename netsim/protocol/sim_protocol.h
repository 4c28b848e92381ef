/*
 * sim_protocol.h - the real protocol as the transport of a simulation's hosts: flows are messages of
 * connections (longhaul/connection.h) whose packets cross the simulated network.
 *
 * Connections are opened for pairs of hosts that have flows, when the first of these starts. Each host has a
 * scheme by which it receives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_PROTOCOL_SIM_PROTOCOL_H
#define LH_NETSIM_PROTOCOL_SIM_PROTOCOL_H

#include <stdint.h>

#include <longhaul/connection.h>

#include "netsim/base/netsim_config.h"
#include "netsim/run/simulation_run.h"

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

/* ---- schemes --------------------------------------------------------------------------------------- */

/*
 * Transport.schemes: the schemes of hosts, a space between two of them.
 *
 * Host h receives by number h modulo their count.
 */

#define SCHEMES_MAX 8u

/* ---- path ------------------------------------------------------------------------------------------- */

/*
 * From one host to another: two connections of the real protocol, and the messages between them.
 *
 * A message is a flow of the workload. The receiving end chooses the scheme. What the sending end sends is a
 * pattern that begins elsewhere in each message; each byte that was received is compared with it.
 * A scheme with a deadline may deliver less; a receive is posted when its message is sent, so its deadline
 * counts from there. Others of a collective have receives that are posted ahead, as those of groups: the next
 * message takes the next one, whichever flow it is of.
 */

struct message {
    struct lh_request *receive; /* NULL: over, as is the other */
    struct lh_request *send;
    uint8_t *buffer;
    uint32_t flow;
    struct message *next; /* of the way, in the order of their start */
};

#endif
