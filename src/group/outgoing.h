/*
 * outgoing.h - messages that were sent and are not acknowledged: lists of those that somebody waits for, and
 * the memory of those that were copied.
 *
 * Memory for a block is kept for the next: fresh pages cost more than the copy.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_OUTGOING_H
#define LH_GROUP_OUTGOING_H

#include <longhaul/connection.h>

struct link;
struct outgoing_list;

struct outgoing {
    struct link *link;
    struct outgoing *next; /* in the list of who waits, or of the spare ones */
    struct outgoing *previous;
    struct lh_request *request;  /* NULL: it was copied */
    struct outgoing_list *owner; /* NULL: nobody waits */
    uint32_t lane;
    size_t copied_bytes;
    size_t capacity; /* of data */
    uint8_t data[];
};

/* What somebody's memory is sent in. */
struct outgoing_list {
    struct outgoing *first;
    uint32_t count;
};

/* Memory of copies. */
struct outgoing_store {
    size_t block_bytes; /* maximum of a copy */
    uint32_t most;      /* that are kept */
    struct outgoing *spare;
    uint32_t count;
};

/* One with memory for a copy of so many bytes, the rest of it zero. NULL: no memory. */
struct outgoing *outgoing_take(struct outgoing_store *store, size_t bytes);
void outgoing_give(struct outgoing_store *store, struct outgoing *outgoing);
void outgoing_store_end(struct outgoing_store *store);

void outgoing_add(struct outgoing_list *list, struct outgoing *outgoing);
void outgoing_remove(struct outgoing *outgoing);
/* Cancels all of a list: from now on its memory is not read, and nobody waits. */
void outgoing_cancel(struct outgoing_list *list);

#endif
