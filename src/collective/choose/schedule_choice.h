/*
 * schedule_choice.h - choice of schedule and block size for a collective by its predicted time on measured
 * paths.
 *
 * A function of the question alone. Ranks that see different paths, or compute on different processors, take
 * one rank's choice.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_CHOOSE_SCHEDULE_CHOICE_H
#define LH_COLLECTIVE_CHOOSE_SCHEDULE_CHOICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/prng.h"
#include "collective/schedule.h"

/* ---- flow time ------------------------------------------------------------------------------------- */

/*
 * How long a schedule takes: its transfers in virtual time, block by block.
 *
 * A block leaves when its sender has it and the sender's port is free; inside a site the receiver's port
 * carries a block at a time, too, and between sites the link from the one to the other, which all their ranks
 * share. Ranks do not wait between steps. What a rank sends inside its site and what it sends across take
 * turns at its port, so that neither waits for the other to be there. What repairs of losses add to a block's
 * time delays no others. Ranks of one machine share its processors, too: what all of them do for a block, at
 * a port and to sum, is work, and no block arrives before the processors together can have done that of all
 * before it.
 */

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

/* ---- choose ---------------------------------------------------------------------------------------- */

#define CHOOSE_MAX 64u /* candidates */

struct choose_question {
    enum collective collective;
    uint32_t ranks;
    uint32_t root;
    const struct site_map *map; /* as of a shape */
    /* Of the collective's data: of an all-gather, scatter and the like of all parts together, of an
     * all-to-all of what a rank has for all. Of a barrier without effect. */
    uint64_t bytes;
    uint64_t unit_bytes;      /* of an element: blocks are at least one */
    uint64_t block_bytes_max; /* of a message */
    uint64_t block_bytes_min; /* smaller ones are not considered */
    const struct flow_network *network;
    const struct schedule *only; /* NULL: any of the table */
};

struct choice {
    const struct schedule *schedule;
    uint32_t blocks; /* of the shape */
    double block_bytes;
    double seconds; /* predicted, with mean repairs */
};

/* -LH_EINVAL: a number is out of range. */
int choose_check(const struct choose_question *question);
/* Bytes of memory that choose() needs, aligned for double. */
size_t choose_memory(const struct choose_question *question);
/* The candidates, the best first, the others by their times; returns their number, at least 1. The question
 * has been checked. */
uint32_t choose(const struct choose_question *question, void *memory, struct choice choices[CHOOSE_MAX]);
/* The shape of a choice. */
struct schedule_shape choose_shape(const struct choose_question *question, const struct choice *choice);

/* ---- paths ----------------------------------------------------------------------------------------- */

/*
 * What is known of the paths between ranks, as a network of flow_time.h. What is not known counts
 * as in the planner's question.
 */

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

/* ---- rounds ---------------------------------------------------------------------------------------- */

/*
 * Which ranks measure the path between them, round by round, so that no pair disturbs another: a
 * rank is in one pair at a time, and so is the link between two sites.
 *
 * Inside a site each measures with each. Across, each rank measures with one at least of each other site:
 * that takes, of sites of one size, as many rounds as ranks and not their square, and rounds_fill() infers
 * the rest.
 */

#define ROUNDS_NONE UINT32_MAX

/* All rounds; the first rounds_inside() are inside sites. */
uint32_t rounds_count(const struct site_map *map);
uint32_t rounds_inside(const struct site_map *map);
/* The rank that a rank measures with in a round; ROUNDS_NONE: none. */
uint32_t rounds_partner(const struct site_map *map, uint32_t rank, uint32_t round);
/* Sets the rates that are 0 between ranks of different sites: as fast as each of the two was with the other's
 * site, at most. pairs: by sender * ranks + receiver. */
void rounds_fill(const struct site_map *map, struct path_figures *pairs);

#endif
