/*
 * onesided_operations.h - one-sided operations (longhaul/onesided.h): between their headers
 * (wire/eager_packets.h) and the
 * two parts.
 *
 * They have an *inner* connection to the same peer, with a queue pair of its own, whose messages the library
 * sends and receives itself: so no receive of the user's is in the way of an operation, and none is taken by
 * it. The outer connection exchanges the blobs, and ends the inner one with itself.
 *
 * Small messages of the inner connection arrive without a receive (eager_rx.h). The next one in order is a
 * header, unless a header before says that it is the bytes of an operation; for those the library posts a
 * receive, into the range that the key grants.
 *
 * onesided_operations.c: headers and bytes; requests.c: messages that the library sends and receives itself;
 * connection_step.c: the exchange of blobs; remote_memory.c: the calls of longhaul/onesided.h.
 *
 * Locks: that of the outer connection before that of the inner one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_ONESIDED_OPERATIONS_H
#define LH_MESSAGE_ONESIDED_OPERATIONS_H

#include <longhaul/onesided.h>

#include "base/prng.h"
#include "control/message_control.h"
#include "message/message_memory.h"
#include "message/rx_state.h"
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

/* Of an outer connection. */
struct onesided_parent {
    struct lh_connection *sub; /* NULL: not opened yet */
    struct exchange exchange;
    uint8_t *peer_blob; /* that came before this side had opened its own; or NULL */
    uint32_t peer_blob_bytes;
};

/* Of an inner connection. */
struct onesided {
    struct lh_connection *parent; /* NULL: this is none */
    struct lh_prng keys;
    struct regions *regions;         /* NULL: none was exposed yet */
    struct onesided_list waiting;    /* operations of the user, not started */
    struct onesided_list asked;      /* reads that have no answer yet */
    uint32_t operations;             /* of the user, ever */
    struct onesided_remote *remotes; /* operations of the peer in progress */
    uint32_t reads;                  /* of those */
    bool broken;                     /* the peer broke the protocol: the next step ends the connection */
};

/* Whether the connection has an inner one that waits for an answer of the peer. */
bool onesided_waits(const struct lh_connection *c);

/* ---- under the lock of an outer connection ----------------------------------------------------------- */

/* Attaches the inner connection. Else the blob is none for it, and counted: a negative lh_error. */
int onesided_attach(struct lh_connection *c, const uint8_t *blob, uint32_t bytes);
/* A packet of ONESIDED_KIND. */
void onesided_on_exchange(struct lh_connection *c, const uint8_t *data, size_t bytes, lh_time now);
/* Sends what is due; lowers *next. */
void onesided_exchange_step(struct lh_connection *c, lh_time now, lh_time *next);
/* What it keeps besides its inner connection. */
void onesided_free_parent(struct lh_connection *c);

/* ---- under the lock of an inner connection ----------------------------------------------------------- */

/* What the user wants. */
struct onesided_wanted {
    struct onesided_header header;
    struct message_buffer buffer;
};

/* Starts an operation, or lets it wait. */
void onesided_start(struct lh_connection *c, struct onesided_operation *operation,
                    struct lh_request *request, const struct onesided_wanted *wanted, lh_time now);
/* Operations of the peer in this region end, with -LH_EKEY. */
void onesided_end_region(struct lh_connection *c, const struct lh_region *region, lh_time now);
/* Takes headers that have arrived, and starts what waits; lowers *next. */
void onesided_step(struct lh_connection *c, lh_time now, lh_time *next);
/* Regions that were not revoked. The connection is closed: takes no lock. */
void onesided_free_sub(struct lh_connection *c);
/* One that is not in use any more. */
void region_free(struct lh_region *region);

#endif
