/*
 * early_messages.h - messages that wait: for an operation that has not begun here, or, pieces, for their
 * sender's signature. By group, operation and sender, in the order in which they came; so each is found
 * in the time of a table's look-up, however many operations peers are ahead.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_EARLY_MESSAGES_H
#define LH_GROUP_EARLY_MESSAGES_H

#include "group/group_link.h"

struct ahead {
    struct ahead *next;
    struct tag tag;
    size_t bytes;
    struct bounce *bounce; /* that has it; NULL: `data` has */
    struct loss *loss;     /* what is missing of it; NULL: nothing */
    uint8_t data[];
};

/* Those of a rank of the mesh for an operation. */
struct ahead_queue {
    struct ahead_queue *next; /* of the bucket */
    struct link *link;
    uint32_t group;
    uint32_t operation;
    bool failed; /* at the peer, since: nothing else comes of it */
    bool lossy;  /* there was no room for all that may be lost */
    struct ahead *first;
    struct ahead **last;
};

#define AHEAD_BUCKETS 4096u

struct ahead_store {
    uint32_t queues;
    struct ahead_queue *buckets[AHEAD_BUCKETS];
};

/* NULL: none wait. */
struct ahead_queue *ahead_find(const struct ahead_store *store, const struct link *link, uint32_t group,
                               uint32_t operation);
/* Keeps a message in its buffer, or, without one, copied; and its loss. -LH_ENOMEM. */
int ahead_keep(struct ahead_store *store, struct link *link, const struct tag *tag, const uint8_t *data,
               size_t bytes, struct bounce *bounce, struct loss *loss);
/* What it costs, of link->kept_bytes. */
size_t ahead_cost(size_t bytes);

/* Takes a queue out: it is the caller's, who puts it back or discards it. NULL: there is none. */
struct ahead_queue *ahead_detach(struct ahead_store *store, const struct link *link, uint32_t group,
                                 uint32_t operation);
void ahead_attach(struct ahead_store *store, struct ahead_queue *queue);
/* Frees a message, *at, of a queue that was taken out; its buffer and loss are another's, or none. */
void ahead_remove(struct ahead_queue *queue, struct ahead **at);
/* Drops what is left of a queue that was taken out, and posts its buffers again. NULL is allowed. */
void ahead_discard(struct ahead_queue *queue);
/* Likewise all of a group. */
void ahead_discard_group(struct ahead_store *store, uint32_t group);
/* Frees all; the links are closed. */
void ahead_end(struct ahead_store *store);

#endif
