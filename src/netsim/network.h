/*
 * network.h - the whole of one simulation: everything that moves, and the order in which it does.
 *
 * Parts: network.c sets up and turns the wheel; transmit.c sends from queues onto wires; switch.c takes
 * what arrives at a switch, host.c at a host; sender.c and receiver.c are the hosts' transport, pace.c how
 * fast it goes; ideal.c knows how long a flow would take alone; stall.c when nothing will move again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_NETWORK_H
#define LH_NETSIM_NETWORK_H

#include <longhaul/flowcontrol.h>
#include <longhaul/netsim.h>

#include "base/prng.h"
#include "congestion/dcqcn.h"
#include "netsim/config.h"
#include "netsim/event_queue.h"
#include "netsim/flow.h"
#include "netsim/flow_list.h"
#include "netsim/graph.h"
#include "netsim/packet.h"
#include "netsim/port.h"

#define NETSIM_NO_PORT UINT32_MAX

/* One generator a component; where there are many, the link's or switch's number is in the upper half. */
enum netsim_component {
    NETSIM_COMPONENT_WORKLOAD = 1,
    NETSIM_COMPONENT_ENTROPY,
    NETSIM_COMPONENT_SWITCH,  /* one a switch: hash seed and spraying */
    NETSIM_COMPONENT_MARKING, /* one a link */
    NETSIM_COMPONENT_FAULTS,  /* one a link */
    NETSIM_COMPONENT_SIGNALS, /* one a link */
};

struct netsim_switch {
    struct netsim_route route;
    uint64_t group_reciprocal; /* ceil(2^32 / hosts_per_group) */
    uint64_t used_bytes;       /* of the shared buffer; what has room of its own is not in it */
    uint32_t first_port;
    uint32_t hash_seed;
    struct lh_prng spray;
};

/* What runs at the far end of a link under Bifrost, or of one to a relay. */
struct netsim_long_link {
    struct lh_bifrost bifrost;
    struct lh_swing swing;
    uint64_t received_bytes; /* data, since the last slot */
    netsim_time slot_ps;
    uint32_t port;
    /* Bifrost, at the near end of the link. */
    bool paused;          /* by the last frame */
    bool silent;          /* by its guard */
    bool rests;           /* no frames are sent, and none is missed */
    netsim_time guard_ps; /* from a frame on; 0: no guard */
    uint32_t left_quanta; /* of a pause in several frames, for the next */
};

/* Events of a long link. */
enum { NETSIM_LONG_SLOT, NETSIM_LONG_PART, NETSIM_LONG_PAUSE_END, NETSIM_LONG_GUARD, NETSIM_LONG_EVENTS };

struct netsim_credits {
    struct lh_cbfc_sender sender;     /* at the near end of the link */
    struct lh_cbfc_receiver receiver; /* at its far end */
};

struct netsim_host {
    uint32_t port;       /* its link out */
    uint32_t ring_first; /* flows that may send, round robin */
    uint32_t ring_last;
};

struct netsim {
    struct netsim_event_queue events;
    struct netsim_packet_pool pool;
    struct netsim_port *ports;
    struct netsim_port_more *more;
    struct netsim_switch *switches;
    struct netsim_host *hosts;
    struct netsim_flow *flows;
    netsim_time now_ps;
    uint32_t hosts_count;
    uint32_t ports_count;
    uint32_t flows_count;
    uint32_t next_flow; /* the first that has not started */
    uint32_t first_timer_event;
    uint32_t first_pace_event; /* exists only with a pace */
    uint32_t start_event;
    uint32_t reserved_packets; /* which raw ones leave to pauses and resumes */
    bool out_of_packets;
    bool runs_on;     /* raw packets may come at any time: when all flows have ended, it is not over */
    uint8_t lossless; /* bit p: priority p is under flow control, where there is any */
    struct netsim_long_link *long_links;
    struct netsim_credits *credits;    /* of each link; NULL: there are none */
    struct lh_flow_refresh *refreshes; /* of each link; NULL: nothing is said anew */
    bool refreshing;
    uint32_t *cable_links; /* cable: its link from end a to end b */
    uint32_t long_links_count;
    uint32_t first_slot_event;    /* NETSIM_LONG_EVENTS of each long link */
    uint32_t first_refresh_event; /* two of each link, see control_refresh.c; only with a refresh */
    uint32_t frame_bytes;         /* a full packet on the wire */
    bool paced;                   /* by transport.rate or congestion control */
    struct dcqcn *rates;          /* of each flow; NULL: no congestion control */
    struct dcqcn_config dcqcn;
    uint64_t pace_ps_per_byte_q16; /* of transport.rate; 0: none */
    uint32_t delivered_first;      /* raw packets that arrived */
    uint32_t delivered_last;
    struct lh_netsim_totals totals;
    uint64_t urgent_packets; /* pauses and resumes that have left */
    lh_netsim_watcher *watcher;
    void *watcher_context;
    struct netsim_switch_config switch_config;
    struct netsim_transport_config transport;
    const struct netsim_graph *graph;
    struct lh_link_state *faults;       /* of the links that have any */
    struct netsim_signal_loss *signals; /* of the links that lose any */
    netsim_time mute_until_ps;
    struct netsim_stall {
        netsim_time since_ps; /* when that was */
        uint64_t events;      /* when the last packet of a flow was seen to have moved */
        uint64_t moves;       /* how many had, until then */
    } stall;
};

/* ---- life ---- */

/* Lays the simulation out in the arena; graph and flows stay as they are as long as it is used. */
void netsim_setup(struct netsim *net, const struct netsim_config *config, const struct netsim_graph *graph,
                  const struct netsim_flow_list *flows, const struct lh_prng *prng,
                  struct netsim_arena *arena);
/* See lh_netsim_run(): 1, 0 or -LH_ENOMEM. */
int netsim_run(struct netsim *net, netsim_time until_ps, uint64_t events_max);

/* The clock moves on to at_ps, at which moment nothing is due: so raw packets can be sent then. */
void netsim_settle(struct netsim *net, netsim_time at_ps);

/* ---- raw packets, for whoever uses the network as a wire ---- */

struct netsim_raw {
    netsim_time arrive_ps;
    uint64_t cookie;
    uint32_t source;
    uint32_t destination;
    uint32_t wire_bytes;
    uint32_t corrupt_bit; /* when corrupted: one bit flipped, this one modulo the packet's */
    bool corrupted;
};

/* Queues a packet at its source's port. It ends exactly once: links that duplicate spare raw packets.
 * False: no packet is left in the pool, but for the pauses and resumes of switches. */
bool netsim_raw_send(struct netsim *net, const struct netsim_raw *raw, uint32_t entropy, uint8_t priority);
/* The next one that has arrived (in order of arrival). A packet that was dropped shows up, too, with
 * destination NETSIM_DROPPED, so that the owner of the cookie hears of its end. False: none. */
bool netsim_raw_take(struct netsim *net, struct netsim_raw *raw);
#define NETSIM_DROPPED UINT32_MAX

/* ---- between the parts ---- */

/* stall.c: timers are left, and nothing will move again. Asked after every few thousand events. */
bool netsim_is_stalled(struct netsim *net);

/* wire.c: a packet sets out, with its arrive_ps; later than all others on the wire, or at any time. */
void netsim_wire_append(struct netsim *net, uint32_t port, uint32_t packet);
void netsim_wire_insert(struct netsim *net, uint32_t port, uint32_t packet);
void netsim_on_wire_end(struct netsim *net, uint32_t port);

/* transmit.c: puts a packet into the queue of a port and starts the transmitter when it is idle. */
void netsim_enqueue(struct netsim *net, uint32_t port, uint32_t packet);
/* A pause or resume frame: goes before all else. */
void netsim_enqueue_urgent(struct netsim *net, uint32_t port, uint32_t packet);
/* Something to send may have turned up. */
void netsim_kick(struct netsim *net, uint32_t port);
void netsim_on_port_free(struct netsim *net, uint32_t port);
/* The far end of the link has sent a pause (or resume) for that priority. */
void netsim_on_pause(struct netsim *net, uint32_t port, uint8_t priority, bool pause);
/* The priority waits, or goes on, for another reason. */
void netsim_stop(struct netsim *net, uint32_t port, uint8_t priority);
void netsim_go(struct netsim *net, uint32_t port, uint8_t priority);

/* control_setup.c: gives each link its rule. The configuration has passed netsim_control_check(). */
void netsim_control_setup(struct netsim *net, const struct netsim_config *config,
                          const struct netsim_graph *graph, struct netsim_arena *arena);
/* signal_setup.c: which links lose signals. Behind netsim_control_setup(). */
void netsim_signal_setup(struct netsim *net, const struct netsim_config *config,
                         const struct netsim_graph *graph, const struct lh_prng *prng,
                         struct netsim_arena *arena);
/* control.c: a packet of the data's priority has come by the link and is in the switch, or has left it. */
void netsim_control_on_arrival(struct netsim *net, uint32_t link, const struct netsim_packet *packet);
void netsim_control_on_departure(struct netsim *net, uint32_t link, const struct netsim_packet *packet);
/* A pause, resume or credit came by the link; the packet is given back. */
void netsim_control_on_frame(struct netsim *net, uint32_t link, uint32_t packet);
/* Sends a frame of that kind to who sends on the link. */
void netsim_control_tell(struct netsim *net, uint32_t link, enum lh_netsim_kind kind, uint64_t value);
/* A pause of this port has ended by itself. */
void netsim_control_on_pause_over(struct netsim *net, uint32_t port);

/* control_bifrost.c: what control.c hands to a link under Bifrost, and its timers (first_slot_event). */
void netsim_bifrost_on_arrival(struct netsim *net, uint32_t machine, uint32_t bytes);
void netsim_bifrost_on_frame(struct netsim *net, uint32_t port, const struct netsim_packet *frame);
void netsim_bifrost_on_event(struct netsim *net, uint32_t event);

/* control_credits.c: what control.c hands to a link under credits. */
void netsim_credits_on_arrival(struct netsim *net, uint32_t link, const struct netsim_packet *packet);
void netsim_credits_on_departure(struct netsim *net, uint32_t link, const struct netsim_packet *packet);
void netsim_credits_on_limit(struct netsim *net, uint32_t port, uint64_t limit);
/* A packet leaves for such a link; or it was lost there, and its credit comes back. */
void netsim_credits_on_sent(struct netsim *net, uint32_t port, const struct netsim_packet *packet);
void netsim_credits_on_lost(struct netsim *net, uint32_t link, const struct netsim_packet *packet);

/* control_refresh.c: the quanta of pauses on that link; NETSIM_HOLD: they last until the resume. */
uint64_t netsim_refresh_quanta(const struct netsim *net, uint32_t link);
/* It was said, and is to be said anew from now on; or not any more. */
void netsim_refresh_begin(struct netsim *net, uint32_t link);
void netsim_refresh_end(struct netsim *net, uint32_t link);
/* A pause of so many quanta came, or a resume (0): the pause before it is over. */
void netsim_refresh_on_heard(struct netsim *net, uint32_t port, uint64_t quanta);
void netsim_on_refresh_event(struct netsim *net, uint32_t event);

/* How long a pause of so many quanta, of one frame, holds at that port. */
static inline netsim_time netsim_quanta_ps(const struct netsim_port *port, uint64_t quanta)
{
    assert(quanta <= LH_PFC_QUANTA_MAX); /* with the rest 39 bits */
    return port->ps_per_byte_q16 * (quanta * LH_PFC_QUANTUM_BYTES) >> 16;
}

static inline bool netsim_is_control(const struct netsim_packet *packet)
{
    return packet->kind == LH_NETSIM_PAUSE || packet->kind == LH_NETSIM_RESUME ||
           packet->kind == LH_NETSIM_CREDIT;
}

/* switch.c */
void netsim_on_switch_arrival(struct netsim *net, uint32_t node, uint32_t link, uint32_t packet);
/* A packet leaves the switch that owns the port: its room is free again. May mark it. */
void netsim_on_switch_departure(struct netsim *net, uint32_t port, struct netsim_packet *packet);
/* The port of that switch for a packet; NETSIM_NO_PORT: none. */
uint32_t netsim_switch_port(struct netsim *net, struct netsim_switch *node, uint32_t destination,
                            uint32_t entropy);

/* host.c */
void netsim_on_host_arrival(struct netsim *net, uint32_t host, uint32_t packet);
/* The packet that the host's flows send now; NETSIM_NO_PACKET. */
uint32_t netsim_host_packet(struct netsim *net, uint32_t host);
void netsim_host_add_flow(struct netsim *net, uint32_t host, uint32_t flow);
void netsim_on_flows_start(struct netsim *net);
/* A raw packet reached its end. */
void netsim_raw_end(struct netsim *net, uint32_t packet, bool arrived);

/* pace.c: the flow may send from sender.pace_ps on. */
void netsim_pace_start(struct netsim *net, uint32_t flow);
void netsim_pace_on_sent(struct netsim *net, uint32_t flow, uint32_t wire_bytes);
void netsim_pace_on_cnp(struct netsim *net, uint32_t flow);

/* sender.c */
bool netsim_sender_may_send(struct netsim *net, struct netsim_sender *sender);
/* Fills in the packet that goes next. */
void netsim_sender_fill(struct netsim *net, uint32_t flow, struct netsim_packet *packet);
void netsim_sender_on_ack(struct netsim *net, const struct netsim_packet *ack);
void netsim_sender_on_timer_expired(struct netsim *net, uint32_t flow);
void netsim_sender_start(struct netsim *net, uint32_t flow);

/* receiver.c: takes a data packet; turns it into its acknowledgement, to be sent, or returns false. */
bool netsim_receiver_on_data(struct netsim *net, struct netsim_packet *packet);

/* ideal.c */
void netsim_flow_ideal(struct netsim *net, uint32_t flow, netsim_time *ideal_ps, netsim_time *base_rtt_ps,
                       netsim_time *slowest_ps);

/* Drops a packet, whatever kind it is. */
static inline void netsim_packet_free(struct netsim *net, uint32_t packet)
{
    if (net->pool.packets[packet].kind == LH_NETSIM_RAW)
        netsim_raw_end(net, packet, false);
    else
        netsim_packet_put(&net->pool, packet);
}

/* A packet for the network's own use. NETSIM_NO_PACKET: the run ends with -LH_ENOMEM. */
static inline uint32_t netsim_packet_new(struct netsim *net)
{
    uint32_t packet = netsim_packet_get(&net->pool);
    if (packet == NETSIM_NO_PACKET)
        net->out_of_packets = true;
    return packet;
}

#endif
