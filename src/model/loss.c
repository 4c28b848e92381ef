/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/loss.h"

#include <assert.h>
#include <math.h>

/* 1 - (1 - p)^n, also when p is tiny. */
static double any_of(double p, double n)
{
    return -expm1(n * log1p(-p));
}

struct model_loss model_loss_of_packets(double packet, double burst, double chunk_packets)
{
    assert(packet >= 0 && packet < 1 && chunk_packets >= 1);
    struct model_loss loss = {.packet = packet, .chunk_packets = chunk_packets, .bursty = burst > 0};
    if (!loss.bursty) {
        loss.burst = 1 / (1 - packet);
        loss.enter = packet;
        loss.chunk = any_of(packet, chunk_packets);
        loss.leaves = 1 - loss.chunk;
        return loss;
    }
    loss.burst = burst;
    loss.enter = fmin(1, packet / (burst * (1 - packet)));
    double passes = (1 - packet) * exp((chunk_packets - 1) * log1p(-loss.enter));
    loss.chunk = packet + (1 - packet) * any_of(loss.enter, chunk_packets - 1);
    /* P(this one passes, the one before it was lost), over P(lost). */
    loss.leaves = loss.chunk > 0 ? fmin(1, passes * any_of(loss.enter, chunk_packets) / loss.chunk) : 1;
    assert(loss.chunk >= packet && loss.chunk <= 1);
    return loss;
}

#define HALVINGS 200 /* of a bisection: the first thousand bits of a double's range */

struct model_loss model_loss_of_chunks(double chunk, double burst, double chunk_packets)
{
    assert(chunk >= 0 && chunk < 1);
    if (burst <= 0 || chunk_packets <= 1) {
        struct model_loss loss =
            model_loss_of_packets(-expm1(log1p(-chunk) / chunk_packets), burst, chunk_packets);
        loss.chunk = chunk; /* not rounded twice */
        loss.leaves = loss.bursty ? loss.leaves : 1 - chunk;
        return loss;
    }
    double low = 0;
    double high = chunk;
    for (int i = 0; i < HALVINGS && high - low > 1e-15 * high; i++) {
        double middle = (low + high) / 2;
        bool too_much = middle > burst / (burst + 1) ||
                        model_loss_of_packets(middle, burst, chunk_packets).chunk > chunk;
        *(too_much ? &high : &low) = middle;
    }
    return model_loss_of_packets(low, burst, chunk_packets);
}

double model_loss_after(const struct model_loss *loss, bool after_lost, double steps)
{
    assert(steps >= 1);
    double memory = 1 - loss->enter - 1 / loss->burst;
    double fades = memory == 0 ? 0 : pow(memory, steps);
    return after_lost ? loss->packet + (1 - loss->packet) * fades : loss->packet * (1 - fades);
}
