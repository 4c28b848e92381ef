/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/choose/paths.h"

static uint64_t lower_rate(uint64_t one, uint64_t other)
{
    return one == 0 || (other > 0 && other < one) ? other : one;
}

static uint32_t least_packet(uint32_t one, uint32_t other)
{
    return one == 0 || (other > 0 && other < one) ? other : one;
}

void paths_worsen(struct path_figures *figures, const struct path_figures *other)
{
    figures->rtt_ns = other->rtt_ns > figures->rtt_ns ? other->rtt_ns : figures->rtt_ns;
    figures->rate_bps = lower_rate(figures->rate_bps, other->rate_bps);
    figures->loss = other->loss > figures->loss ? other->loss : figures->loss;
    figures->packet_bytes = least_packet(figures->packet_bytes, other->packet_bytes);
}

struct flow_pair paths_pair(const struct path_figures *path)
{
    double lost = (double)path->loss * PATHS_LOSS_UNIT;
    return (struct flow_pair){
        .latency_s = (double)path->rtt_ns * 1e-9 / 2,
        .byte_s = 8 / (path->rate_bps > 0 ? (double)path->rate_bps : PATHS_RATE_BPS),
        .loss_byte = path->packet_bytes > 0 ? lost / path->packet_bytes : 0,
    };
}

static struct flow_hop hop_of(const struct path_figures *path)
{
    const struct flow_pair pair = paths_pair(path);
    return (struct flow_hop){.latency_s = pair.latency_s,
                             .byte_s = pair.byte_s,
                             .message_s = PATHS_MESSAGE_S,
                             .loss_byte = pair.loss_byte};
}

struct flow_network paths_network(const struct path_figures *inside, const struct path_figures *across,
                                  double message_bytes)
{
    return (struct flow_network){.inside = hop_of(inside),
                                 .across = hop_of(across),
                                 .message_bytes = message_bytes,
                                 .sum_byte_s = 1 / PATHS_SUM_BYTES_PER_S};
}
