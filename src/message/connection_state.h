/*
 * connection.h - a connection from the inside: what routes between its parts, and alone sees all.
 *
 *   engine.c         what connections share, and the calls of longhaul/engine.h
 *   connection.c     open, attach, close, and what can be asked
 *   blob.c           the blob that lh_attach() takes; attaching
 *   messages.c       lh_send, lh_recv, lh_cancel, early ends
 *   requests.c       waiting, testing
 *   completion_queue.c   the calls of longhaul/queue.h; completion_ring.c: entries, and who waits for them
 *   spin_wait.c      a thread that waits spins before it sleeps
 *   memory.c         buffers, as the SDR layer knows them
 *   path_memory.c    what is remembered of the path, and what is learned of it
 *   storage.c        memory of the parts
 *   step.c           each round of the control worker: messages of the peer, arrivals, timers
 *   small_messages.c messages without a clear-to-send: between the machines of eager/ and the two parts
 *   matching.c       what arrived of small messages, and receives that choose theirs by tags
 *   onesided.c       one-sided operations; also own_messages.c, inner.c, remote_memory.c (see onesided.h)
 *   effects.c        what the parts want done: requests that are done, the end of the connection
 *   attr.c           what was asked for; scheme/scheme_choice.c: the reliability scheme
 *   tx/              the sending part        (tx/tx.h)
 *   rx/              the receiving part      (rx/rx.h)
 *   eager/           machines of small messages
 *   control/         control messages to the peer, their retransmission, keepalive
 *   coding/          parity and lost chunks: computing, memory
 *
 * A *message* is one lh_send and the lh_recv that takes it; a *segment* is one SDR message of up to
 * slot_bytes of it. Where the scheme codes, the SDR message right after it takes its parity, and a place of
 * its own in both rings. Everything is under the lock of the request table; the step holds it too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_CONNECTION_H
#define LH_MESSAGE_CONNECTION_H

#include <sdr.h>

#include "message/coding/coder.h"
#include "message/coding/parity.h"
#include "message/control/keepalive.h"
#include "message/engine.h"
#include "message/matching.h"
#include "message/format/warning.h"
#include "message/onesided.h"
#include "message/path_memory.h"
#include "message/requests.h"
#include "message/rx/rx.h"
#include "message/small_messages.h"
#include "message/storage.h"
#include "message/tx/tx.h"
#include "sdr/driver.h"
#include "store/idle.h"
#include "store/store.h"

#define CONNECTION_TEXT_MAX 128u
#define CONNECTION_LAST_MAX (TRANSFER_DONE_BYTES + EAGER_ACK_MAX)
#define PEER_NAME_MAX       80u /* the longest address, with the scope of an interface, and a port */

struct lh_connection {
    struct request_table *requests;
    struct lh_engine *engine;
    struct sdr_context *context; /* the engine's */
    struct sdr_qp *qp;
    struct lh_attr attr;
    char *reliability; /* copies of what the user gave, as the next; or NULL */
    char *congestion;
    struct scheme_choice choice; /* of what this side receives */
    bool attached;
    int error;               /* 0, or the negative lh_error that ended it: effects.reason says why */
    struct lh_sdr_path path; /* as of the last busy step */
    bool needs_step;         /* the user asked for something since the last step */
    bool ended_small;        /* small messages that arrived ended requests, in this step */
    bool answers;            /* the last step returned when it had delivered those */
    sdr_driver_step *step;   /* connection_step() */
    lh_time due_ns;          /* of the earliest timer */
    struct lh_stats *stats;  /* of the queue pair */
    struct effects effects;  /* of the parts */
    struct store store;      /* a part of the engine's, */
    bool counted;            /* in which this struct is */
    struct storage_stall stall;
    struct idle idle; /* of its memory (storage.h) */
    struct coder *coder;
    struct parity_pool parity;
    struct tx tx;
    struct rx rx;
    struct small_messages small;
    struct matching matching;
    struct onesided_outer onesided_outer;
    struct lh_connection *outer; /* of an inner connection, as the next; else NULL */
    struct onesided *onesided;
    uint8_t *last; /* CONNECTION_LAST_MAX: what had arrived when it ended; set with `error`; or NULL */
    size_t last_bytes;
    struct keepalive keepalive;
    uint8_t seen_family; /* of the control connection's host; 0: not known */
    uint8_t seen_address[16];
    char peer_name[PEER_NAME_MAX];
    bool punched;                    /* this side is behind NAT */
    uint16_t peer_flags;             /* of its blob */
    char *warning;                   /* WARNING_MAX; the last that was asked for; or NULL */
    struct path_memory *path_memory; /* with attr.path_file; or NULL */
};

/* Whether messages can be sent and received: -LH_ESTATE, or the error that ended it. */
int connection_check(const struct lh_connection *c);
/* Before lh_attach(): the host that the peer's control connection comes from, which is proven to be the
 * peer's. Where its blob names another, there may be NAT on the path: its packets may come from here. */
void connection_peer_seen_at(struct lh_connection *c, uint8_t family, const uint8_t address[16]);
/* Opens the inner connection of one that is attached, which serves its one-sided operations: with the same
 * attributes, on the same engine. Takes no lock. */
int connection_open_inner(struct lh_connection *outer, struct lh_connection **inner);
/* This side is behind NAT. */
void connection_punch(struct lh_connection *c);
/* Its lifeline has something to report. Any thread. */
void connection_lifeline_changed(struct lh_connection *c);
/* Hands a lifeline over to an attached connection, which closes it when it closes itself. Takes the lock. */
void connection_set_lifeline(struct lh_connection *c, const struct lifeline_ops *ops, void *lifeline,
                             const char *peer_name);

#endif
