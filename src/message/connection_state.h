/*
 * connection_state.h - a connection from the inside: what routes between its parts, and alone sees all.
 *
 *   connection.c           open, attach, close, and what can be asked
 *   connection_step.c      each round of the control worker: the peer's messages, arrivals, timers
 *   connection_state.c     memory of the parts, their effects, the blob that lh_attach() takes
 *   engine.c               what connections share, and what is remembered of the path
 *   messages.c             lh_send, lh_recv, lh_cancel, early ends
 *   requests.c             waiting, testing; completion_queue.c: the calls of longhaul/queue.h
 *   small_messages.c       messages without a clear-to-send; matching.c: receives that choose by tags
 *   onesided_connection.c  one-sided operations; onesided_operations.c: their messages
 *   remote_memory.c        the calls of longhaul/onesided.h
 *   tx_*.c, rx_*.c         the sending and the receiving part (tx_state.h, rx_state.h)
 *   src/eager, src/onesided, src/control: machines of small messages, of one-sided operations, and control
 *   messages to the peer
 *
 * A *message* is one lh_send and the lh_recv that takes it; a *segment* is one SDR message of up to
 * slot_bytes of it. Where the scheme codes, the SDR message right after it takes its parity, and a place of
 * its own in both rings. Everything is under the lock of the request table; the step holds it too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_CONNECTION_STATE_H
#define LH_MESSAGE_CONNECTION_STATE_H

#include <longhaul/types.h>
#include <sdr.h>

#include "control/message_control.h"
#include "message/engine.h"
#include "message/onesided_operations.h"
#include "message/parity_coding.h"
#include "message/requests.h"
#include "message/rx_state.h"
#include "message/small_messages.h"
#include "message/tx_state.h"
#include "sdr/sdr_driver.h"
#include "store/store.h"

/* ---- storage --------------------------------------------------------------------------------------- */

/*
 * When a connection takes memory, and gives it back: for each message with lh_send and lh_recv,
 * and after a second without any.
 */

struct lh_connection;

/* Whether messages wait for memory that does not come. Timer: look_at. */
struct storage_stall {
    lh_time look_at;   /* LH_TIME_NEVER: none was refused since the last look */
    uint64_t refusals; /* as of the last look, as the next */
    uint64_t yields;   /* of other connections */
    uint64_t moved;    /* of what this connection has to send and to receive */
};

/* All under the connection's lock. */

/* For that many messages more. -LH_ENOMEM. */
int storage_hold_send(struct lh_connection *connection, uint32_t count);
int storage_hold_recv(struct lh_connection *connection, uint32_t count);
/* A request is freed at once after this: its memory is not in use any more. */
void storage_on_request_free(struct lh_connection *connection);
/* In each step: gives back what is idle, and ends the connection with -LH_ENOMEM when nothing moved for its
 * peer's timeout for lack of memory: where all wait for what others hold, one has to give way. Returns when
 * it looks again. */
lh_time storage_step(struct lh_connection *connection, lh_time now);
/* The same of a connection that has ended, and is not closed yet. */
lh_time storage_step_ended(struct lh_connection *connection, lh_time now);

/* ---- connection ------------------------------------------------------------------------------------ */

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
    struct idle idle; /* of its memory */
    struct coder *coder;
    struct parity_pool parity;
    struct tx tx;
    struct rx rx;
    struct small_messages small;
    struct onesided_parent onesided_parent;
    struct lh_connection *parent; /* of a sub-connection, as the next; else NULL */
    struct onesided *onesided;
    uint8_t *last; /* CONNECTION_LAST_MAX: what had arrived when it ended; set with `error`; or NULL */
    size_t last_bytes;
    struct keepalive keepalive;
    uint8_t seen_family; /* of the control connection's host; 0: not known */
    uint8_t seen_address[16];
    char peer_name[PEER_NAME_MAX];
    bool punched;    /* this side is behind NAT */
    bool encrypted;  /* its packets are; so will be those of its sub-connection, by the next */
    bool connecting; /* this side connected */
    uint8_t sub_secret[SDR_SECRET_BYTES];
    struct blob_key *key;            /* of lh_open()'s security; or NULL */
    bool loopback_only;              /* so, without a key */
    uint16_t peer_flags;             /* of its blob */
    char *warning;                   /* WARNING_MAX; the last that was asked for; or NULL */
    struct path_memory *path_memory; /* with attr.path_file; or NULL */
};

/* Whether messages can be sent and received: -LH_ESTATE, or the error that ended it. */
int connection_check(const struct lh_connection *c);
/* Before lh_attach(): the host that the peer's control connection comes from, which is proven to be the
 * peer's. Where its blob names another, there may be NAT on the path: its packets may come from here. */
void connection_peer_seen_at(struct lh_connection *c, uint8_t family, const uint8_t address[16]);
/* Whether a control message of the peer has arrived; its address need not be proven. */
bool connection_peer_has_sent(struct lh_connection *c);
/* Opens the sub-connection of an attached connection, which serves its one-sided operations: with the same
 * attributes, on the same engine. Takes no lock. */
int connection_open_sub(struct lh_connection *parent, struct lh_connection **sub);
/* Before lh_attach(): data and control packets are encrypted, as of sdr_qp_secure(). */
int connection_encrypt(struct lh_connection *c, const uint8_t secret[SDR_SECRET_BYTES], bool connecting);
/* This side is behind NAT. */
void connection_punch(struct lh_connection *c);
/* Its control connection has something to report. Any thread. */
void connection_control_changed(struct lh_connection *c);
/* Hands a control connection over to an attached connection, which closes it when it closes itself. Takes the
 * lock. */
void connection_set_control_connection(struct lh_connection *c, const struct control_connection_ops *ops,
                                       void *control_connection, const char *peer_name);

/* ---- effects --------------------------------------------------------------------------------------- */

/*
 * Carries out what the parts want of the engine: requests that are done, the end of the
 * connection. Called after each call of a part that may leave effects. Under the lock.
 */

void effects_carry_out(struct lh_connection *c);
/* Writes what the peer is to learn when the connection ends: what has arrived. Returns the bytes. */
size_t effects_make_last(struct lh_connection *c, uint8_t last[CONNECTION_LAST_MAX]);
/* Ends the connection and everything that is pending. The first error stays. */
void connection_fail(struct lh_connection *c, enum lh_error error, const char *reason);
/* Ends everything that is pending. error: negative. */
void connection_end_all(struct lh_connection *c, int error);

/* The driver of the SDR layer's control worker (sdr/sdr_driver.h). Takes the lock. */
lh_time connection_step(void *connection, lh_time now);

/* ---- one-sided operations -------------------------------------------------------------------------- */

/* Below: under the lock of the connection that has the sub-connection. */

/* Whether it has one that waits for an answer of the peer. */
bool onesided_waits(const struct lh_connection *c);

/* Attaches the sub-connection. Else the blob is none for it, and counted: a negative lh_error. */
int onesided_attach(struct lh_connection *c, const uint8_t *blob, uint32_t bytes);
/* A packet of ONESIDED_KIND. */
void onesided_on_exchange(struct lh_connection *c, const uint8_t *data, size_t bytes, lh_time now);
/* Sends what is due; lowers *next. */
void onesided_exchange_step(struct lh_connection *c, lh_time now, lh_time *next);
/* What it keeps besides its sub-connection. */
void onesided_free_parent(struct lh_connection *c);

/* Below: under the lock of the sub-connection. */

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

/* ---- blob ------------------------------------------------------------------------------------------ */

/*
 * What an endpoint brings to its peer: magic 4 ("LHC1") | version 2 | flags 2 | the QP's info | with a key of
 * lh_open() BLOB_KEY_BYTES (keys/pair_keys.h).
 *
 * Flags say what the endpoint understands beyond version 1, whose readers skip them. Those of schemes are in
 * wire/wire_numbers.h (enum wire_announcement): 128.
 */

#define BLOB_TAGS      1u    /* TO_RECEIVER with a tag */
#define BLOB_EAGER     2u    /* small messages without a clear-to-send */
#define BLOB_MATCH     4u    /* peers whose receives choose messages by their tags */
#define BLOB_MATCHES   8u    /* its own receives do */
#define BLOB_ONESIDED  16u   /* one-sided operations, by a sub-connection */
#define BLOB_KEEPALIVE 32u   /* KEEPALIVE of one queue pair for others (control.h) */
#define BLOB_PARTS     64u   /* control messages of a connection in parts (control.h) */
#define BLOB_LONG      256u  /* control messages of a connection as long as a packet (control.h) */
#define BLOB_PIECES    512u  /* data packets in pieces, and probes of the path's MTU (control.h) */
#define BLOB_SECURED   1024u /* a key, without which there is no connection */
#define BLOB_LOCAL     2048u /* it refuses peers on other hosts */

#endif
