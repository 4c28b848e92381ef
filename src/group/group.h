/*
 * group.h - a group, and the mesh of links that it shares with its splits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_GROUP_H
#define LH_GROUP_GROUP_H

#include <pthread.h>

#include <longhaul/collective.h>
#include <longhaul/group.h>
#include <longhaul/timeout.h>

#include "collective/run/past.h"
#include "group/agreement.h"
#include "group/ahead.h"
#include "group/choosing.h"
#include "group/link.h"
#include "group/paths.h"

struct mesh {
    pthread_mutex_t lock;   /* of all of it, its groups and operations; taken before any of a connection */
    pthread_cond_t changed; /* an operation is done, a link has news, nobody polls any more */
    struct lh_engine *engine;
    bool own_engine;
    struct lh_completion_queue *queue;
    uint32_t rank;
    uint32_t size;
    struct link *links; /* by rank; that of this rank is not used */
    uint32_t groups;    /* that use it */
    struct lh_group *first_group;
    uint32_t next_group; /* id: above all that this rank has used */
    struct ahead_store ahead;
    size_t block_bytes;
    bool bounded[2]; /* reliability inside a site, across */
    lh_time timeout_ns;
    lh_time peer_timeout_ns;
    bool polling; /* a thread waits at the queue */
    bool woken;   /* and has been told to look */
    bool threaded;
    bool ending;
    pthread_t thread;
};

struct lh_group {
    struct lh_group *next; /* of the mesh's */
    struct mesh *mesh;
    uint32_t id;
    uint32_t rank;
    uint32_t size;
    uint32_t *members; /* ranks of the mesh */
    char (*sites)[LH_GROUP_SITE_MAX];
    uint32_t next_operation;
    struct lh_collective *first_op; /* not freed, newest first */
    uint8_t *work;                  /* memory of the last operation that needed some, for the next */
    size_t work_bytes;
    bool work_taken;
    struct past past;
    struct lh_timeout *timeouts[COLLECTIVES]; /* of operations whose deadline is learned; NULL: none yet */
    struct agreement agreement;
    struct choosing choosing;
    struct group_paths paths;
};

static inline struct link *group_link(const struct lh_group *group, uint32_t rank)
{
    return &group->mesh->links[group->members[rank]];
}

/* The member of a rank of the mesh; LH_NO_RANK: none. */
static inline uint32_t group_rank_of(const struct lh_group *group, uint32_t mesh_rank)
{
    for (uint32_t r = 0; r < group->size; r++)
        if (group->members[r] == mesh_rank)
            return r;
    return LH_NO_RANK;
}

#endif
