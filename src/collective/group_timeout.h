/*
 * group_timeout.h - the state behind <longhaul/timeout.h>. Its memory is the caller's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_GROUP_TIMEOUT_H
#define LH_COLLECTIVE_GROUP_TIMEOUT_H

#include <longhaul/timeout.h>

/* The newest proposal of a member. */
struct vote {
    uint32_t round; /* 0: none yet */
    float lost;
    double cost; /* ns per byte */
};

struct lh_timeout {
    struct lh_timeout_attr attr;
    struct lh_timeout_state state;
    double correction;  /* of the margin, by what was lost */
    lh_time timeout_ns; /* of the operation that runs */
    uint64_t bytes;     /* of it; 0: none runs */
    bool warm;
    bool voted;         /* a proposal came since the last median */
    struct vote *votes; /* one per member */
    double *scratch;    /* likewise */
};

#define GROUP_TIMEOUT_ALL 1000000u /* of lh_timeout_proposal.delivered */

/* Whether a proposal can be one, whoever sent it. */
static inline bool group_timeout_is_valid(const struct lh_timeout_proposal *proposal)
{
    return proposal->round != 0 && proposal->cost != 0 && proposal->delivered <= GROUP_TIMEOUT_ALL;
}

/* Of zeroed memory. votes and scratch have attr->members entries. */
void group_timeout_start(struct lh_timeout *timeout, const struct lh_timeout_attr *attr, struct vote *votes,
                         double *scratch);

#endif
