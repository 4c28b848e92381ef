/*
 * sent.h - messages that were sent and are not acknowledged: lists of those that somebody waits for, and
 * the memory of those that were copied.
 *
 * Memory for a block is kept for the next: fresh pages cost more than the copy.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_SENT_H
#define LH_GROUP_SENT_H

#include <longhaul/connection.h>

struct link;
struct sent_list;

struct sent {
    struct link *link;
    struct sent *next; /* in the list of who waits, or of the spare ones */
    struct sent *previous;
    struct lh_request *request; /* NULL: it was copied, and leaves */
    struct sent_list *owner;    /* NULL: nobody waits */
    lh_time until;              /* of the link's list: nothing of it leaves after that */
    uint32_t group;             /* likewise: what it is of */
    uint32_t operation;
    uint32_t lane;
    size_t copied_bytes;
    size_t capacity; /* of data */
    uint8_t data[];
};

/* What somebody's memory is sent in. */
struct sent_list {
    struct sent *first;
    uint32_t count;
};

/* Memory of copies. */
struct sent_store {
    size_t block_bytes; /* maximum of a copy */
    uint32_t most;      /* that are kept */
    struct sent *spare;
    uint32_t count;
};

/* One with memory for a copy of so many bytes, the rest of it zero. NULL: no memory. */
struct sent *sent_take(struct sent_store *store, size_t bytes);
void sent_give(struct sent_store *store, struct sent *sent);
void sent_store_end(struct sent_store *store);

void sent_add(struct sent_list *list, struct sent *sent);
void sent_remove(struct sent *sent);
/* Cancels all of a list: from now on its memory is not read, and nobody waits. */
void sent_cancel(struct sent_list *list);

#endif
