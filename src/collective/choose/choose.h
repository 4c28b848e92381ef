/*
 * choose.h - which schedule, and blocks of which size, suit a collective: those of the table that take the
 * least time by flow_time.h.
 *
 * A function of the question alone. Ranks that see different paths, or compute on different processors, take
 * one rank's choice.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_CHOOSE_CHOOSE_H
#define LH_COLLECTIVE_CHOOSE_CHOOSE_H

#include "collective/choose/flow_time.h"

#define CHOOSE_MAX 64u  /* candidates */
#define CHOOSE_TIE 0.01 /* those slower by at most this share are as fast */

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

#endif
