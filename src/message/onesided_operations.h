/*
 * onesided_operations.h - one-sided operations (longhaul/onesided.h): the messages that the library sends and
 * receives itself for them, and what becomes of those.
 *
 * A connection has a *sub-connection* to the same peer for them, with a queue pair of its own: so no receive
 * of the user delays an operation, and no operation takes one. The connection exchanges the blobs, and closes
 * its sub-connection with itself.
 *
 * Small messages of the sub-connection arrive without a receive (eager_rx.h). The next one in order is a
 * header (wire/eager_packets.h), unless a header before it announces it as the bytes of an operation; for
 * those the library posts a receive, into the range that the key grants.
 *
 * onesided_connection.c: headers and bytes; connection_step.c: the exchange of blobs; remote_memory.c: the
 * calls of longhaul/onesided.h.
 *
 * Locks: that of the connection before that of its sub-connection.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_ONESIDED_OPERATIONS_H
#define LH_MESSAGE_ONESIDED_OPERATIONS_H

#include <longhaul/onesided.h>

#include "base/prng.h"
#include "message/message_memory.h"
#include "message/requests.h"
#include "onesided/onesided_exchange.h"

struct onesided_operation;
struct onesided_remote;

struct lh_region {
    struct region part; /* first */
    struct lh_connection *sub;
    struct message_buffer buffer;
    struct message_memory memory;
    struct lh_completion_queue *queue; /* or NULL */
    uint64_t user;
};

struct onesided_list {
    struct onesided_operation *first; /* the oldest */
    struct onesided_operation *last;
    uint32_t count;
};

/* Of a connection that has a sub-connection. */
struct onesided_parent {
    struct lh_connection *sub; /* NULL: not opened yet */
    struct exchange exchange;
    uint8_t *peer_blob; /* that came before this side had opened its own; or NULL */
    uint32_t peer_blob_bytes;
};

/* Of a sub-connection. */
struct onesided {
    struct lh_connection *user; /* the connection that the user has, for entries of its queues */
    struct effects *effects;    /* of the sub-connection, as the next */
    struct store *store;
    struct lh_prng keys;
    struct regions *regions;         /* NULL: none was exposed yet */
    struct onesided_list waiting;    /* operations of the user, not started */
    struct onesided_list asked;      /* reads that have no answer yet */
    uint32_t operations;             /* of the user, ever */
    struct onesided_remote *remotes; /* operations of the peer in progress */
    uint32_t reads;                  /* of those */
    bool broken;                     /* the peer broke the protocol: the next step ends the connection */
};

/* Of the sub-connection of `user`. */
void onesided_init(struct onesided *o, struct lh_connection *user, struct effects *effects,
                   struct store *store);

/* ---- own messages ---------------------------------------------------------------------------------- */

/* All below under the lock of the sub-connection. */

enum own_kind {
    OWN_HEADER,  /* of an operation of the user: struct onesided_operation */
    OWN_ANSWER,  /* the header of an answer: struct own_answer */
    OWN_WRITTEN, /* bytes that the peer writes, or that nobody wants: struct onesided_remote */
    OWN_READ,    /* bytes that the peer reads: likewise */
};

struct own_message {
    struct message_request request; /* first */
    enum own_kind kind;
};

/* Of the user. */
struct onesided_operation {
    struct own_message header; /* first */
    struct onesided_operation *next;
    struct lh_request *request; /* NULL: it is over, or a message of its own */
    struct message_buffer buffer;
    uint64_t bytes;
    bool writes;
    bool started;
    bool header_done;
    bool answered; /* or none is awaited */
    uint32_t header_bytes;
    uint8_t data[ONESIDED_HEADER_MAX];
};

/* To a read of the peer. */
struct own_answer {
    struct own_message header; /* first */
    uint8_t data[ONESIDED_HEADER_MAX];
};

/* Bytes of an operation of the peer. */
struct onesided_remote {
    struct own_message bytes; /* first */
    struct onesided_remote *next;
    struct onesided_remote *previous;
    struct lh_region *region; /* NULL: refused */
    uint32_t number;          /* of the message */
    bool notify;              /* a place in the region's queue is reserved */
    uint64_t immediate;
};

void own_init(struct own_message *own, enum own_kind kind);

/* ---- operations of the user -------------------------------------------------------------------------- */

/* NULL: no memory. */
struct onesided_operation *onesided_new(struct onesided *o);
/* It is not wanted, and was not started. */
void onesided_discard(struct onesided *o, struct onesided_operation *operation);
/* It was started, and its answer is here, or none is awaited: it ends with its header. */
void onesided_on_answered(struct onesided *o, struct onesided_operation *operation);
/* It is over for the user, if it was not. error: negative. */
void onesided_finish_user(struct onesided *o, struct onesided_operation *operation, int error, lh_time now);
/* Those that wait, or await their answer, oldest first. */
void onesided_push(struct onesided_list *list, struct onesided_operation *operation);
struct onesided_operation *onesided_pop(struct onesided_list *list);

/* ---- operations of the peer -------------------------------------------------------------------------- */

/* NULL: no memory. */
struct onesided_remote *onesided_add_remote(struct onesided *o, enum own_kind kind);
void onesided_remove_remote(struct onesided *o, struct onesided_remote *remote);

/* ---- what ends ---------------------------------------------------------------------------------------- */

/* Messages are done: keeps those of the library, and returns the others. */
struct message_request *onesided_on_done(struct onesided *o, struct message_request *done);
/* The user cancels an operation that is not a message yet. */
void onesided_cancel(struct onesided *o, struct onesided_operation *operation, lh_time now);
/* Ends those with this error (negative). */
void onesided_end_all(struct onesided *o, int error, lh_time now);

/* A region that is not in use any more. */
void region_free(struct lh_region *region);

#endif
