/*
 * own_messages.h - messages of an inner connection that the library sends and receives itself for one-sided
 * operations (onesided.h): what waits for them, and what becomes of it when they are done. Under the lock of
 * the connection.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_OWN_MESSAGES_H
#define LH_MESSAGE_OWN_MESSAGES_H

#include "message/onesided.h"

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
struct onesided_operation *onesided_new(struct lh_connection *c);
/* It is not wanted, and was not started. */
void onesided_discard(struct lh_connection *c, struct onesided_operation *operation);
/* It was started, and its answer is here, or none is awaited: it ends with its header. */
void onesided_on_answered(struct lh_connection *c, struct onesided_operation *operation);
/* It is over for the user, if it was not. error: negative. */
void onesided_finish_user(struct lh_connection *c, struct onesided_operation *operation, int error,
                          lh_time now);
/* Those that wait, or await their answer, oldest first. */
void onesided_push(struct onesided_list *list, struct onesided_operation *operation);
struct onesided_operation *onesided_pop(struct onesided_list *list);

/* ---- operations of the peer -------------------------------------------------------------------------- */

/* NULL: no memory. */
struct onesided_remote *onesided_add_remote(struct lh_connection *c, enum own_kind kind);
void onesided_remove_remote(struct lh_connection *c, struct onesided_remote *remote);

/* ---- what ends ---------------------------------------------------------------------------------------- */

/* Messages are done: keeps those of the library, and returns the others. */
struct message_request *onesided_on_done(struct lh_connection *c, struct message_request *done);
/* The user cancels an operation that is not a message yet. */
void onesided_cancel(struct lh_connection *c, struct onesided_operation *operation, lh_time now);
/* Ends those with this error (negative). */
void onesided_end_all(struct lh_connection *c, int error, lh_time now);

#endif
