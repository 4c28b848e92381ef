/*
 * facts.c - numbers of the paper that need no scheme.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/model.h>

#include <math.h>

#include "base/error.h"
#include "model/loss.h"

int lh_model_chunk_loss(double packet_loss, double burst_packets, uint32_t packets, double *chunk_loss)
{
    if (!(packet_loss >= 0) || !(packet_loss < 1))
        return lh_fail(LH_ERANGE, "loss %g: out of range (0 to below 1)", packet_loss);
    if (packets == 0)
        return lh_fail(LH_EINVAL, "chunk of 0 packets: out of range (at least 1)");
    double burst = burst_packets > 1 ? burst_packets : 0;
    if (!(burst_packets >= 0) || !(burst_packets <= 1e9) ||
        (burst > 0 && packet_loss > burst / (burst + 1)))
        return lh_fail(
            LH_ERANGE,
            "bursts of %g packets with a loss of %g: out of range (at most 10^9 packets, and one arrives "
            "between two bursts)",
            burst_packets, packet_loss);
    *chunk_loss = model_loss_of_packets(packet_loss, burst, packets).chunk;
    return 0;
}

int lh_model_wraparound(double bandwidth_bps, uint64_t message_bytes, uint32_t id_bits, double *seconds)
{
    if (!(bandwidth_bps > 0) || !isfinite(bandwidth_bps))
        return lh_fail(LH_ERANGE, "bandwidth %g bit/s: out of range (above 0)", bandwidth_bps);
    if (message_bytes == 0 || message_bytes >> 63)
        return lh_fail(LH_ERANGE, "message of %llu bytes: out of range (1 to below 2^63)",
                       (unsigned long long)message_bytes);
    if (id_bits < 1 || id_bits > 32)
        return lh_fail(LH_ERANGE, "message ID of %u bits: out of range (1 to 32)", id_bits);
    *seconds = ldexp((double)message_bytes * 8 / bandwidth_bps, (int)id_bits);
    return 0;
}
