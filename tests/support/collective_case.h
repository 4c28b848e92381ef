/*
 * collective_case.h - one collective on all ranks of a group_world, with inputs by rank and position, and the
 * check of each element of each output, for tests.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_COLLECTIVE_CASE_H
#define LH_TESTS_SUPPORT_COLLECTIVE_CASE_H

#include "collective/schedule.h"
#include "support/group_world.h"

struct collective_case {
    enum collective collective;
    enum lh_type type;
    enum lh_reduction reduction;
    size_t count;
    uint32_t root;
    bool in_place;
    bool uneven; /* the v-variant */
    struct lh_collective_options options;
    uint32_t size; /* of the group; 0: set by the first start, which then is no other thread's */
    /* set by start */
    uint8_t *in[SIM_ENGINES_MAX], *out[SIM_ENGINES_MAX], *kept[SIM_ENGINES_MAX];
    struct lh_collective *ops[SIM_ENGINES_MAX];
};

/* Starts it at one rank, or at all. */
void collective_case_start_at(struct collective_case *c, struct lh_group *group);
void collective_case_start(struct collective_case *c, struct group_world *world);
/* Checks results and inputs of a rank; all are done without error. */
void collective_case_check(const struct collective_case *c, uint32_t rank);
/* The input of a rank is what it was. */
void collective_case_check_input(const struct collective_case *c, uint32_t rank);
void collective_case_free(struct collective_case *c);
/* Starts all at once, waits for each at most that long, checks every rank, and frees them. */
void collective_cases_run(struct group_world *world, struct collective_case *cases, uint32_t count,
                          lh_time limit_ns);

#endif
