/*
 * controlled.h - what flows under a congestion controller have besides: its state, what is in flight, and
 * what their receivers report of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_CONTROLLED_H
#define LH_NETSIM_TRANSPORT_CONTROLLED_H

#include "congestion/congestion_table.h"
#include "congestion/flight.h"
#include "netsim/base/time.h"

/* Of one flow. */
struct netsim_controlled {
    struct flight flight; /* a packet's key is the number of its transmission */
    struct lh_congestion_decision decision;
    netsim_time timer_ps;         /* when its event is due, while it is pending */
    netsim_time paced_ps;         /* the last packet left, or would have, by the pace before it; and */
    uint32_t paced_bytes;         /* its payload */
    struct flight_report arrived; /* by now, at the receiver */
};

struct netsim_controllers {
    struct congestion_choice choice; /* without a controller: there are none */
    struct netsim_controlled *flows;
    unsigned char *states;    /* of each flow: the sender's half, */
    unsigned char *receivers; /* and the receiver's */
    size_t state_bytes;
    size_t receiver_bytes;         /* 0: it has none */
    struct flight_report *reports; /* of each packet that is an acknowledgement */
    uint32_t first_event;          /* of each flow: its controller's timer, */
    uint32_t first_credit_event;   /* and that of its receiver's half, if there is one */
};

#endif
