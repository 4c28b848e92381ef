/* SPDX-License-Identifier: BSD-3-Clause */
#include "burst_loss.h"

#include <math.h>

void burst_loss_init(struct burst_loss *burst, uint64_t seed, double loss, double packets)
{
    burst->loss = loss;
    burst->leave = 1 / packets;
    burst->now_s = 0;
    lh_prng_seed(&burst->prng, seed);
    burst->bad = lh_prng_double(&burst->prng) < loss;
}

/* The state so many packets later: a chain of two states forgets by the same factor with each. */
static void draw(struct burst_loss *burst, double packets)
{
    double enter = burst->leave * burst->loss / (1 - burst->loss);
    double kept = pow(1 - enter - burst->leave, packets);
    double bad = burst->loss * (1 - kept) + (burst->bad ? kept : 0);
    burst->bad = lh_prng_double(&burst->prng) < bad;
}

bool burst_loss_passes(void *context, struct sim_datagram *datagram)
{
    struct burst_loss *burst = context;
    if (datagram->from != burst->from)
        return true;
    /* Packets are handed over ahead of the time at which the link carries them. */
    double silent = floor(((double)datagram->at_ns / 1e9 - burst->now_s) / burst->packet_s);
    double packets = silent > 1 ? silent : 1;
    burst->now_s += packets * burst->packet_s;
    draw(burst, packets);
    return !burst->bad;
}
