/*
 * state.h - what the files of this folder share: the ranks of a life, and their calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_GROUP_STATE_H
#define LH_TESTS_WORLD_GROUP_STATE_H

#include <longhaul/engine.h>
#include <longhaul/group.h>

#include "group/group.h"
#include "world/group/call.h"
#include "world/group/ranks.h"

enum rank_state {
    RANK_JOINS,    /* not attached yet */
    RANK_MEASURES, /* the paths, at the begin of its epoch */
    RANK_CALLS,    /* what its epoch has */
    RANK_AGREES,   /* on who is left */
    RANK_SPLITS,
    RANK_OVER, /* it has nothing to do, but to answer */
    RANK_DEAD,
};

/* A collective at one rank. */
struct call {
    struct lh_collective *op; /* NULL: not started, or freed */
    bool started;
    bool done;
    bool odd; /* it calls another than the others */
    const struct team *team;
    uint32_t rank; /* in it */
    struct call_plan plan;
    uint8_t *in; /* between guards */
    uint8_t *out;
    size_t in_bytes;
    size_t out_bytes;
    uint64_t left;      /* what the buffers came to at the end */
    lh_time started_ns; /* the world's time */
};

struct rank {
    enum rank_state state;
    struct lh_engine *engine;
    struct lh_group *first; /* through which progress is made */
    struct lh_group *group; /* of its epoch */
    struct team *team;      /* its members */
    uint32_t epoch;
    uint32_t next; /* event to look at */
    uint32_t pending;
    bool broken; /* a member has failed: another group is needed */
    struct subgroup_split split;
    struct group_measure measure;
    lh_time due_ns;   /* of progress, the world's time */
    lh_time since_ns; /* the state */
    lh_time died_ns;
    const struct plan_event *last;             /* it dies while it agrees; NULL: it does not */
    const struct plan_event *last_measured;    /* likewise while ranks learn what all have measured */
    lh_time dies_ns;                           /* then; 0: it has not begun to agree */
    struct call *calls;                        /* by event */
    struct lh_group *made[2 * PLAN_HOSTS_MAX]; /* all of its groups */
    uint32_t made_count;
};

struct ranks {
    struct rank of[PLAN_HOSTS_MAX]; /* by host */
    uint8_t *blobs;
    size_t stride;
    uint64_t same[PLAN_EVENTS_MAX]; /* hash of an output that all have; 0: none yet */
    uint64_t same_team[PLAN_EVENTS_MAX];
};

#endif
