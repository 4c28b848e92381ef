/*
 * burst_loss.h - Gilbert-Elliott loss that lasts in time, as a tap of a simulated world.
 *
 * burst= of a link counts packets: on a path that falls silent a burst goes on until enough packets were
 * sent, so the few that end a message are lost one by one over many round trips, which measures the model
 * and no scheme. Here a burst lasts as long as its packets would take at the rate of the link, whether they
 * are sent or not. The bad state loses every packet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BENCH_BURST_LOSS_H
#define LH_BENCH_BURST_LOSS_H

#include "base/prng.h"
#include "netsim/fabric/sim_packets.h"

struct burst_loss {
    struct lh_prng prng;
    uint32_t from;   /* the host whose packets it loses */
    double packet_s; /* what one takes at the rate of the link */
    double loss;     /* average */
    double leave;    /* chance that a burst ends with a packet: 1 / its mean length */
    double now_s;    /* up to when the state was drawn */
    bool bad;
};

void burst_loss_init(struct burst_loss *burst, uint64_t seed, double loss, double packets);
/* A sim_tap. */
bool burst_loss_passes(void *context, struct sim_datagram *datagram);

#endif
