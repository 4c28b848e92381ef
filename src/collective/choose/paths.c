/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/choose/paths.h"

static struct flow_hop hop_of(const struct path_figures *path)
{
    double lost = (double)path->loss * PATHS_LOSS_UNIT;
    return (struct flow_hop){
        .latency_s = (double)path->rtt_ns * 1e-9 / 2,
        .byte_s = 8 / (path->rate_bps > 0 ? (double)path->rate_bps : PATHS_RATE_BPS),
        .message_s = PATHS_MESSAGE_S,
        .loss_byte = path->packet_bytes > 0 ? lost / path->packet_bytes : 0,
    };
}

struct flow_network paths_network(const struct path_figures *inside, const struct path_figures *across,
                                  double message_bytes)
{
    return (struct flow_network){.inside = hop_of(inside),
                                 .across = hop_of(across),
                                 .message_bytes = message_bytes,
                                 .sum_byte_s = 1 / PATHS_SUM_BYTES_PER_S};
}
