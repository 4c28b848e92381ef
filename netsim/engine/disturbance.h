/*
 * disturbance.h - disturbances of the observed traffic (pausing hosts, bursts of others, cable flaps), and
 * detection of deadlocks.
 *
 * Three processes, each with times between two beginnings that are exponentially distributed:
 *   - a straggler, one of a share of the hosts, sends nothing for some time. What arrives is taken;
 *   - a burst: a host, drawn, sends packets of no flow to another one, as fast as its cable takes them;
 *   - a flap: what is sent on a cable between two switches, drawn, is lost for some time, both ways.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_DISTURBANCE_H
#define LH_NETSIM_ENGINE_DISTURBANCE_H

#include "netsim/engine/network.h"

struct netsim_disturbance {
    struct netsim_network *network;
    struct netsim_disturb_config config;
    uint32_t frame_bytes; /* of a full packet */
    uint8_t priority;     /* of data */
    uint32_t stragglers;
    uint32_t *hosts;  /* all; the stragglers are the first ones */
    uint32_t *cables; /* between switches */
    uint32_t cables_count;
    uint32_t first_event; /* of each straggler, then of bursts, then of flaps */
    struct lh_prng pauses;
    struct lh_prng bursts;
    struct lh_prng flaps;
};

/* What is to be done. */
struct netsim_disturbed {
    uint32_t kick;    /* this port, which sends again; NETSIM_NO_PORT */
    uint32_t packets; /* netsim_disturbance_packet() of source, each to be queued at its port; 0: none */
    uint32_t source;
    uint32_t destination;
    uint32_t entropy;
    netsim_time until_ps; /* something is stopped until then; 0: nothing is */
};

void netsim_disturbance_init(struct netsim_disturbance *disturbance, struct netsim_network *network,
                             const struct netsim_config *config, const struct lh_prng *prng,
                             struct netsim_arena *arena);
/* Numbers its events from `first` on; the first number behind them. */
uint32_t netsim_disturbance_number_events(struct netsim_disturbance *disturbance, uint32_t first);
/* Schedules the first event of each process. */
void netsim_disturbance_begin(struct netsim_disturbance *disturbance);
struct netsim_disturbed netsim_disturbance_on_event(struct netsim_disturbance *disturbance, uint32_t event);
/* A packet of a burst. NETSIM_NO_PACKET: none is left, and the run ends. */
uint32_t netsim_disturbance_packet(struct netsim_disturbance *disturbance,
                                   const struct netsim_disturbed *burst);

/* -LH_EINVAL: flows for whose end nobody cares would never end. */
int netsim_disturbance_check(const struct netsim_config *config);

/* ---- deadlock -------------------------------------------------------------------------------------- */

/*
 * Finds that no packet will ever move again, though timers go on.
 *
 * Without signals that are refreshed a deadlock ends the run by itself: no event is left. A pause that is
 * refreshed for ever, or a timeout that recurs behind a port that is paused for ever, goes on. So it is a
 * deadlock when for very many events no port sent a packet of a flow, none is on a wire, and no event is
 * pending that could change that.
 */

struct netsim_deadlock {
    uint32_t first_event; /* while one of these events is pending packets may move again */
    uint32_t end_event;
    netsim_time mute_until_ps; /* nor before this */
    netsim_time since_ps;      /* when that was */
    uint64_t events;           /* number of events when a packet of a flow was last seen to have moved */
    uint64_t moves;            /* number of packets that had moved until then */
};

/* To be asked after every few thousand events. */
bool netsim_deadlock_found(struct netsim_deadlock *deadlock, const struct netsim_network *network);

#endif
