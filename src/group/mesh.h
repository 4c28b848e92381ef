/*
 * mesh.h - the mesh of links that a group shares with its splits: takes what they bring, and runs the
 * operations of its groups.
 *
 * All under the lock of the mesh.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_MESH_H
#define LH_GROUP_MESH_H

#include <pthread.h>

#include <longhaul/collective.h>
#include <longhaul/group.h>

#include "group/agreement.h"
#include "group/group_link.h"
#include "group/group_paths.h"
#include "group/operation_state.h"
#include "keys/pair_keys.h"

struct mesh {
    pthread_mutex_t lock;   /* of all of it, its groups and operations; taken before any of a connection */
    pthread_cond_t changed; /* an operation is done, a link has news, nobody polls any more */
    struct lh_engine *engine;
    bool own_engine;
    struct lh_completion_queue *queue;
    uint32_t rank;                       /* this rank's place */
    uint32_t size;                       /* places, also of peers that are gone */
    struct link *links;                  /* by place, MESH_PLACES_MAX; that of this rank is not used */
    uint32_t number;                     /* of this rank, as links have them */
    uint32_t next_number;                /* above all that are known here */
    uint8_t identity[KEYS_DIGEST_BYTES]; /* the same at all members, and at no other's; zero: of one rank */
    bool growing;                        /* a group is to have newcomers */
    uint32_t closed_links;
    uint32_t groups; /* that use it */
    struct lh_group *first_group;
    uint32_t next_group; /* id: above all that this rank has used */
    struct ahead_store ahead;
    size_t block_bytes;
    enum lh_encryption encryption;
    uint32_t payload_max; /* of packets that the interfaces of all ranks send whole; 0: not known */
    bool bounded[2];      /* reliability inside a site, across */
    lh_time timeout_ns;
    lh_time peer_timeout_ns;
    bool polling;           /* a thread waits at the queue */
    bool woken;             /* and has been told to look */
    lh_time polls_until_ns; /* when it looks anyway */
    bool threaded;
    bool ending;
    pthread_t thread;
};

/* Peers that there are, and as many that are gone while groups still name them. */
#define MESH_PLACES_MAX (2 * LH_GROUP_RANKS_MAX)
/* The id of a group until the ranks know which it has: of no tag. */
#define MESH_NO_GROUP UINT32_MAX

struct lh_group {
    struct lh_group *next; /* of the mesh's */
    struct mesh *mesh;
    struct pair_keys *pairs;             /* while links get their keys; NULL: none, or they have them */
    bool grows;                          /* some of its ranks, not all perhaps, had a group before */
    bool kept;                           /* this one had */
    uint32_t payload_before;             /* the mesh's, before this one began to grow */
    lh_time timeout_before;              /* the same */
    uint8_t identity[KEYS_DIGEST_BYTES]; /* of what all exchanged, so far */
    struct notice refused;               /* error: a rank is not in it; 0: none has refused */
    struct members members;
    char (*sites)[LH_GROUP_SITE_MAX];
    uint32_t next_operation;
    struct lh_collective *first_op; /* not freed, newest first */
    struct op_context operations;
    struct agreement agreement;
    struct group_paths paths;
};

lh_time mesh_now(const struct mesh *mesh);
/* Takes all that is there without waiting, and runs all operations. Returns the number of entries. */
uint32_t mesh_poll(struct mesh *mesh);
/* The next deadline of an operation; LH_TIME_NEVER: none. */
lh_time mesh_next_deadline(const struct mesh *mesh);
/* Begins an operation; it has its number, and is in the list of its group. */
void mesh_begin(struct lh_collective *op);
/* The rank that it waits for: one that has not begun, else one whose blocks are missing; LH_NO_RANK: none. */
uint32_t mesh_awaited(const struct lh_collective *op);
/* Ends an operation, if it is running, at all ranks. */
void mesh_abort(struct lh_collective *op, int error, uint32_t rank, const char *text);
/* Tells the others, once, that a rank of the mesh has failed for this one, which calls nothing with it any
 * more: who does not know, as it told this rank alone, may wait for that. */
void mesh_announce_failed(struct mesh *mesh, uint32_t rank);
/* Members that others have reported to have failed count as failed here, too, while they agree. */
void mesh_take_reports(struct lh_group *group);
/* Takes reports of members that had the group before this rank. */
void mesh_take_early_reports(struct lh_group *group);
/* The link to a member by its number; NULL: there is none. */
struct link *mesh_find_number(struct mesh *mesh, uint32_t number);
/* An id is in use, also where this rank has no group of it. At the end of the range none is left. */
void mesh_use_id(struct mesh *mesh, uint32_t id);
/* This rank is not in a group: tells those who may be. */
void mesh_refuse(struct lh_group *group, int error, const char *text);
/* A rank counts as failed, which is the others' decision, too. */
void mesh_exclude(struct mesh *mesh, uint32_t rank);
/* Closes failed links that no group needs any more; mesh_poll() frees them. */
void mesh_close_unused(struct mesh *mesh);
/* Drops what has arrived for an operation, and was not needed. */
void mesh_forget(const struct lh_collective *op);

/* ---- waiting --------------------------------------------------------------------------------------- */

/*
 * Threads that wait for something in a mesh: one of them polls its queue for all, the thread of
 * the mesh or a caller.
 */

/* -LH_ENOMEM: lock and condition. */
int waiting_init(struct mesh *mesh);
void waiting_free(struct mesh *mesh);
/* Waits under the mesh's lock until is(what) holds. -LH_ETIMEDOUT. The engine has workers. */
int wait_until(struct mesh *mesh, bool (*is)(const void *what), const void *what, lh_time timeout_ns);
/* Has whoever polls compute anew how long it may. Under the lock. */
void waiting_wake(struct mesh *mesh);
/* The same, unless that will be by then anyway. */
void waiting_wake_before(struct mesh *mesh, lh_time at_ns);
/* Starts and ends the thread of a mesh; the second without the lock. -LH_ESYSTEM. */
int waiting_start_thread(struct mesh *mesh);
void waiting_end_thread(struct mesh *mesh);

#endif
