/*
 * paths.h - what is known of the paths between ranks, as a network of flow_time.h. What is not known counts
 * as in the planner's question.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_CHOOSE_PATHS_H
#define LH_COLLECTIVE_CHOOSE_PATHS_H

#include <stdint.h>

#include "collective/choose/flow_time.h"

#define PATHS_RATE_BPS        10e9
#define PATHS_MESSAGE_S       10e-6 /* of a rank for each message */
#define PATHS_SUM_BYTES_PER_S 10e9
#define PATHS_LOSS_UNIT       1e-9

struct path_figures {
    uint64_t rtt_ns;
    uint64_t rate_bps;     /* 0: unknown */
    uint32_t loss;         /* of packets, in PATHS_LOSS_UNIT */
    uint32_t packet_bytes; /* 0: none is lost */
};

/* Lowers the rate, raises loss and round trip to those of `other`, where these are known. */
void paths_worsen(struct path_figures *figures, const struct path_figures *other);
/* inside: between ranks of a site; across: of two. message_bytes: maximum of a message. A lost packet delays
 * its block by a round trip. The same on every processor: it has no functions but the four operations. */
struct flow_network paths_network(const struct path_figures *inside, const struct path_figures *across,
                                  double message_bytes);
/* One path of a network's `pairs`. */
struct flow_pair paths_pair(const struct path_figures *path);

#endif
