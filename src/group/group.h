/*
 * group.h - a group from its creation to its end, as steps: creation, split and shrink, measurement of paths,
 * gather.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_GROUP_H
#define LH_GROUP_GROUP_H

#include "group/group_growth.h"
#include "group/group_security.h"
#include "group/mesh.h"

/* ---- create ---------------------------------------------------------------------------------------- */

/*
 * Makes a group, in the steps between which its ranks exchange blobs: for lh_group_create(), and
 * for tests that have all ranks in one thread.
 */

#define CREATE_CARD_BYTES (20 + LH_GROUP_SITE_MAX + SECURITY_CARD_BYTES + GROWTH_CARD_BYTES)

/* As lh_group_create(), whatever the attributes say of security: with LH_ENCRYPTION_FULL packets are
 * encrypted, by that key, which stays the caller's. */
int group_create(const struct lh_group_attr *attr, enum lh_encryption encryption,
                 const struct key_group *key, struct lh_group **group);

/* A group without links, and its card for all others: CREATE_CARD_BYTES. */
int create_group(const struct lh_group_attr *attr, struct lh_group **group, uint8_t *card);
/* Behind create_group(): all packets of its links are encrypted. Completes the card. Errors as of
 * security_begin(). */
int create_secure(struct lh_group *group, const struct key_group *key, uint8_t *card);
/* Opens links, by the cards of all ranks. *blob_bytes: the longest blob for a peer. */
int create_links(struct lh_group *group, const struct lh_group_attr *attr, const uint8_t *cards,
                 uint32_t *blob_bytes);
/* Writes the blobs for all ranks, one every `stride` bytes, with their lengths ahead (4 bytes). */
int create_blobs(struct lh_group *group, uint8_t *blobs, size_t stride);
/* Attaches the links: all ranks' blobs, rank by rank, and begins. */
int create_attach(struct lh_group *group, const uint8_t *all, size_t stride);
/* Ends a group, and, with the last of a mesh, closes the links. */
void create_undo(struct lh_group *group);

/* ---- grow ------------------------------------------------------------------------------------------ */

/*
 * The two ends of lh_group_grow(), at a member: in between come create_links() to create_attach(), and a
 * gather of the identities. Newcomers do what creates a group.
 */

/* A group without links to newcomers, and its card. key: of an encrypted group; it stays the caller's; NULL:
 * none. */
int grow_group(struct lh_group *old, const struct lh_group_attr *attr, const struct key_group *key,
               struct lh_group **group, uint8_t *card);
/* It is made, or, with an error, it is not, and ends; returns that error, or that another rank is not in
 * it. */
int grow_end(struct lh_group *group, int error);

/* ---- groups of a mesh ------------------------------------------------------------------------------ */

/* A group of a mesh, with places for its members; NULL: no memory. Under the lock of the mesh, once others
 * know it. */
struct lh_group *group_add(struct mesh *mesh, uint32_t size);
/* Its end; under that lock. */
void group_remove(struct lh_group *group);

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

/* ---- measure --------------------------------------------------------------------------------------- */

/*
 * lh_group_measure(), as steps: all ranks do the same operations in the same order, whatever a pair of them
 * finds, so that each has its number everywhere.
 *
 * In each round (collective/choose/schedule_choice.h) two ranks exchange bursts of blocks, each four
 * times the one before, as long as a burst is short beside their round trip. Ahead of each they exchange
 * what they know of the one before, so that both begin it, and both decide the same.
 */

#define MEASURE_BURSTS 3u

/* What a rank knows of a burst that came to it. */
struct measure_record {
    uint64_t rtt_ns;
    uint64_t span_ns; /* from its first block to its last; 0: unknown */
};

struct group_measure {
    struct lh_group *group;
    struct lh_collective *op; /* pending; NULL: it is over */
    size_t burst_bytes;       /* of the first */
    uint32_t round;
    uint32_t step;    /* of the round */
    uint32_t partner; /* LH_NO_RANK: none */
    bool enough;      /* nothing more to exchange with it */
    bool known;       /* its rate is that of a burst that lasted for a while */
    struct measure_record own, other;
    size_t *counts;      /* by rank */
    uint64_t *rates_bps; /* by rank */
    uint8_t *out, *in;   /* of a burst */
    uint8_t *rows;
};

/* Begins. first_bytes: of the first burst. -LH_ENOMEM, and what lh_allgather() returns. */
int measure_begin(struct lh_group *group, size_t first_bytes, struct group_measure *measure);
/* measure->op is done, or lh_collective_wait() has come to `waited`: goes on. The error of the operation;
 * -LH_ENOMEM. */
int measure_go_on(struct group_measure *measure, int waited);
/* Frees all; a pending operation is canceled at all ranks. */
void measure_end(struct group_measure *measure);

#endif
