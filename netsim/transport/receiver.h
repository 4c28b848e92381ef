/*
 * receiver.h - the receiving end of a flow: notes what arrived, acknowledges each packet.
 *
 * An acknowledgement reports up to where everything has arrived, and which packet it answers (so the sender
 * learns of each one that arrived out of order, as IRN does: Mittal et al. 2018, section 3.1).
 *
 * With go-back-N a packet that comes before its turn is not taken. The first one behind a gap is answered
 * with a negative acknowledgement, the others with nothing, as RoCE's responders do it (transport.nack
 * repeats it). One that comes again is acknowledged again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_RECEIVER_H
#define LH_NETSIM_TRANSPORT_RECEIVER_H

#include "netsim/transport/transport.h"

/* Takes a data packet; turns it into its acknowledgement, to be sent, or returns false. */
bool netsim_receiver_on_data(struct netsim_transport *transport, struct netsim_packet *packet);

#endif
