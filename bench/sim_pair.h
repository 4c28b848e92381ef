/*
 * sim_pair.h - two connected ends in a simulated world, and one message after the other between them.
 *
 * Hosts look at their network every `grain_ns`, as a host that polls does, not at each packet: at 400 Gbit/s
 * one comes every 82 ns, and a turn of both ends costs more than the packet. The link stays full, for its
 * queue holds far more than a grain; an answer is late by a grain at most.
 *
 * What fails ends the program with the reason.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BENCH_SIM_PAIR_H
#define LH_BENCH_SIM_PAIR_H

#include <longhaul/longhaul.h>

#include "burst_loss.h"
#include "netsim/fabric/sim_packets.h"

struct sim_pair_plan {
    const char *scheme;
    const char *link;         /* from the sender to the receiver */
    const char *link_back;    /* and back; NULL: the same */
    struct burst_loss *burst; /* beside the link; NULL: none */
    uint64_t seed;
    uint32_t chunk_bytes; /* 0: one packet */
    uint64_t slot_bytes;
    uint32_t slots;
    uint64_t window_bytes; /* receive queues hold twice that */
    lh_time grain_ns;
};

struct sim_pair {
    struct sim_world *world;
    struct lh_connection *sender;
    struct lh_connection *receiver;
    lh_time grain_ns;
};

/* Some round trips pass, so that the path is measured as on any connection that is not brand-new. */
void sim_pair_open(struct sim_pair *pair, const struct sim_pair_plan *plan);
void sim_pair_close(struct sim_pair *pair);
/* Moves one message and returns its completion time in seconds. */
double sim_pair_message(struct sim_pair *pair, const uint8_t *from, uint8_t *to, size_t bytes);

#endif
