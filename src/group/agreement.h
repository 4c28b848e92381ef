/*
 * agreement.h - the members of a group agree on which of them have failed, so that the others can go on.
 *
 * Each reports the members that it knows to have failed to all others, and again whenever it learns of one
 * more. Who has the same report of all that are left has agreed, and its report is *final*: who reports
 * something else afterwards, since one more has failed meanwhile, is answered with it, and takes it over. So
 * all that live agree on the same; who failed meanwhile is a member, and fails what is called next.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_AGREEMENT_H
#define LH_GROUP_AGREEMENT_H

#include <longhaul/group.h>

#include "group/group_link.h"

#define AGREEMENT_SET_BYTES (LH_GROUP_RANKS_MAX / 8)
/* next_group, round, final, measured: 4 each; the failed */
#define AGREEMENT_BYTES (16 + AGREEMENT_SET_BYTES)

struct agreement_set {
    uint8_t bits[AGREEMENT_SET_BYTES]; /* by rank of the group */
};

struct agreement_report {
    uint32_t round;      /* number of the agreement; 0: none has come */
    uint32_t next_group; /* id that its sender has not used */
    bool final;
    uint32_t measured; /* what its sender knows of paths; 0: nothing that all do */
    struct agreement_set failed;
};

struct agreement {
    const struct members *members;
    uint32_t round;                   /* number of agreements that this rank has begun */
    bool active;                      /* the last of them is not reached */
    bool open;                        /* its result has not been taken by agreement_end() */
    bool taken;                       /* its result is another's, which the others are not told yet */
    struct agreement_report *reports; /* by rank, the last of each, and that of this rank */
    uint32_t next_group;              /* when it is reached: the highest of those that are left */
    uint32_t measured;                /* likewise: what all of these know; 0: they differ */
};

/* Of a group; its members stay where they are. -LH_ENOMEM. */
int agreement_init(struct agreement *agreement, const struct members *members);
void agreement_free(struct agreement *agreement);
/* Begins a round: reports, with an id of a group that this rank has not used, and what it has measured. While
 * the last one is open it goes on: the others may be in it, or have its result, though this rank has given
 * up. */
void agreement_begin(struct agreement *agreement, uint32_t next_group, uint32_t measured);
/* The result, which is reached, has been taken. */
void agreement_end(struct agreement *agreement);
/* A link has failed: reports again, while no agreement is reached. */
void agreement_on_link_failed(struct agreement *agreement);
/* A report of a rank. Anything may be in `in`. False: it is none. */
bool agreement_on_report(struct agreement *agreement, uint32_t rank, const uint8_t *in, size_t bytes);
/* Answers that report, where the agreement is reached and it differs. */
void agreement_answer(struct agreement *agreement, uint32_t rank);
/* The next member, from *rank on, that others have reported in this round, and that has not failed here: it
 * counts as failed. False: there are no more. */
bool agreement_next_failed(const struct agreement *agreement, uint32_t *rank);
bool agreement_has(const struct agreement_set *set, uint32_t rank);
/* A member that keeps this rank from agreeing; LH_GROUP_RANKS_MAX: none. */
uint32_t agreement_missing(const struct agreement *agreement);
/* Whether all that were left have reported the same; then what this rank reports does not change any more. */
bool agreement_is_reached(const struct agreement *agreement);
/* Who has failed, by this rank's report. */
const struct agreement_set *agreement_failed(const struct agreement *agreement);

#endif
