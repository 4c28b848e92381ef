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

#include "collective/operation_progress.h"
#include "group/agreement.h"
#include "group/group_link.h"
#include "group/group_operation.h"
#include "group/group_paths.h"

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

/* ---- create ---------------------------------------------------------------------------------------- */

/*
 * Makes a group, in the steps between which its ranks exchange blobs: for lh_group_create(), and
 * for tests that have all ranks in one thread.
 */

#define CREATE_CARD_BYTES (20 + LH_GROUP_SITE_MAX)

/* A group without links, and its card for all others: CREATE_CARD_BYTES. */
int create_group(const struct lh_group_attr *attr, struct lh_group **group, uint8_t *card);
/* Opens links, by the cards of all ranks. *blob_bytes: the longest blob for a peer. */
int create_links(struct lh_group *group, const struct lh_group_attr *attr, const uint8_t *cards,
                 uint32_t *blob_bytes);
/* Writes the blobs for all ranks, one every `stride` bytes, with their lengths ahead (4 bytes). */
int create_blobs(struct lh_group *group, uint8_t *blobs, size_t stride);
/* Attaches the links: all ranks' blobs, rank by rank, and begins. */
int create_attach(struct lh_group *group, const uint8_t *all, size_t stride);
/* Ends a group, and, with the last of a mesh, closes the links. */
void create_undo(struct lh_group *group);

/* ---- subgroup -------------------------------------------------------------------------------------- */

/*
 * The two ends of lh_group_shrink() and of lh_group_split(), between which the ranks agree: for
 * tests that have all ranks in one thread.
 */

/* Under the lock of the mesh. */
void subgroup_begin_shrink(struct lh_group *group);
/* When agreement_is_reached(). Likewise. -LH_ENOMEM, -LH_ERANGE. */
int subgroup_finish_shrink(struct lh_group *group, struct lh_group **smaller);

/* What each rank gathers of all. */
struct subgroup_choice {
    uint32_t color;
    uint32_t key;
    uint32_t next_group;
    uint32_t measured; /* of what it knows of paths */
};

struct subgroup_split {
    struct subgroup_choice mine;
    struct subgroup_choice *all; /* by rank */
    struct lh_collective *op;
};

/* What lh_allgather() returns. */
int subgroup_begin_split(struct lh_group *group, uint32_t color, uint32_t key,
                         struct subgroup_split *split);
/* When split->op is done, or lh_collective_wait() has come to `waited`, which then is returned. Ends the
 * split. The error of split->op; -LH_ENOMEM, -LH_ERANGE. */
int subgroup_finish_split(struct lh_group *group, struct subgroup_split *split, int waited,
                          struct lh_group **part);

/* ---- gather ---------------------------------------------------------------------------------------- */

/* An all-gather among the ranks of a group, for what the group itself needs. */

/* Copies the `bytes` of each rank's `mine` to all[rank * bytes]. Waits, so the engine has workers. What
 * lh_allgather() and its operation return. */
int group_gather(struct lh_group *group, const void *mine, size_t bytes, void *all);
/* Begins one: every byte arrives, whatever the hops. */
int gather_begin(struct lh_group *group, const void *mine, size_t bytes, void *all,
                 struct lh_collective **op);
/* Its end: lh_collective_wait() has come to `waited`. Frees the operation. That error, or the operation's. */
int gather_end(struct lh_collective *op, int waited);

#endif
