/*
 * flow_time.h - how long a schedule takes: its transfers in virtual time, block by block.
 *
 * A block leaves when its sender has it and the sender's port is free; inside a site the receiver's port
 * carries a block at a time, too, and between sites the link from the one to the other, which all their ranks
 * share. Ranks do not wait between steps. What a rank sends inside its site and what it sends across take
 * turns at its port, so that neither waits for the other to be there. What repairs of losses add to a block's
 * time delays no others. Ranks of one machine share its processors, too: what all of them do for a block, at
 * a port and to sum, is work, and no block arrives before the processors together can have done that of all
 * before it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_CHOOSE_FLOW_TIME_H
#define LH_COLLECTIVE_CHOOSE_FLOW_TIME_H

#include <stddef.h>

#include "base/prng.h"
#include "collective/schedule/schedule.h"

/* What carries blocks: the port of a rank, or a link between two sites. */
struct flow_hop {
    double latency_s; /* from sender to receiver: half a round trip */
    double byte_s;
    double message_s; /* of a message, whatever its size; a port's */
    double repair_s;  /* mean that repairs add to a block */
    double loss_byte; /* chance, for each byte of a block, of a repair beside these: a round trip */
    /* The same as samples; repairs 0: there are none. */
    const double *samples_s;
    uint32_t samples;
};

/* The path between two ranks. */
struct flow_pair {
    double latency_s;
    double byte_s;
    double loss_byte;
};

struct flow_network {
    struct flow_hop inside, across;
    /* Of all ranks, by sender * ranks + receiver, in place of what the hops say of these; NULL: as they
     * say. */
    const struct flow_pair *pairs;
    double message_bytes; /* blocks of a transfer go in one message up to that; 0: each has its own */
    double sum_byte_s;    /* until a received byte is part of a sum */
    uint32_t processors;  /* of the machine that all ranks are on; 0: each rank has its own */
};

/* Bytes of memory that flow_time() needs, aligned for double. */
size_t flow_time_memory(const struct schedule_shape *shape);
/* Seconds until all ranks have what they should. bytes: of all blocks of the shape together (of an
 * all-to-all, of a rank's). prng: repairs are sampled; NULL: each block has the mean. */
double flow_time(const struct schedule *schedule, const struct schedule_shape *shape, double bytes,
                 const struct flow_network *network, struct lh_prng *prng, void *memory);

#endif
