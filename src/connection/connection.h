/*
 * connection.h - a connection from the inside: what its files share.
 *
 *   connection.c   open, attach, close, and what can be asked
 *   requests.c     waiting, testing, canceling, freeing
 *   memory.c       buffers, as the SDR layer knows them
 *   step.c         what is done in each round of the control worker; messages dealt out
 *   sender.c       messages to send; clearing.c: cut into segments as clear-to-sends come
 *   tell.c         messages to the peer
 *   injector.c     what a sender's machine wants done: chunks into the SDR QP, messages behind them
 *   coder.c        what is to be computed, parity and lost chunks; parity.c: memory for it
 *   auto_scheme.c  which scheme a message comes by, when nobody named one
 *   receiver.c     buffers to fill, cut into segments that are posted as slots are free
 *   arrivals.c     segments that fill up, driven by a receiver's machine
 *   done.c         telling the sender what has arrived
 *   verdict.c      messages that end early: REFUSE, CANCEL, FORGET
 *   liveness.c     is the peer there; data_path.c: does data pass at all
 *
 * A *message* is one lh_send and the lh_recv that takes it; a *segment* is one SDR message of up to
 * slot_bytes of it. Where the scheme codes, the SDR message right after it takes its parity, and a place of
 * its own in both rings. Everything is under the lock of the request table; the step holds it too.
 *
 * Timers, all multiples of the round trip that the SDR layer measures:
 *   machines'  next_ns of each scheme machine
 *   told       lengths of an unfinished segment are told again when nothing told them for overdue_ns
 *   done       DONE is repeated rtt / 64 after the last segment arrived, then twice after rtt / 8
 *   verdict    REFUSE and CANCEL are repeated after overdue_ns, doubling, until they are answered
 *   silence    attr.peer_timeout_ns without a word from the peer while something is pending
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONNECTION_CONNECTION_H
#define LH_CONNECTION_CONNECTION_H

#include <sdr.h>
#include <sdr_mr.h>

#include <longhaul/connection.h>
#include <longhaul/sdr_ext.h>

#include "base/earlier.h"
#include "connection/coder.h"
#include "connection/data_path.h"
#include "connection/parity.h"
#include "connection/queue_delay.h"
#include "connection/requests.h"
#include "connection/scheme_choice.h"
#include "reliability/arrival_watch.h"
#include "wire/transfer.h"

#define MESSAGES_MAX ((uint32_t)LH_REQUESTS_MAX) /* not over yet, in each direction; a power of two */
#define HELD_MAX     64u                         /* machine messages that wait behind chunks */

struct auto_scheme;

struct lh_memory {
    struct lh_connection *connection;
    struct sdr_mr *mr;
    uint32_t lkey;
    uint8_t *address;
    size_t bytes;
    struct lh_memory *next;
    struct lh_memory **link; /* what points to this one */
};

/* How a message's buffer is known to the SDR layer. */
struct message_memory {
    struct sdr_mr *own; /* registered for this message only, or NULL */
    uint32_t lkey;
};

/* ---- sending ----------------------------------------------------------------------------------------- */

enum send_state {
    SEND_EMPTY,     /* no lh_send yet; error: refused ahead of it */
    SEND_OPEN,      /* pending */
    SEND_CANCELING, /* given up; the receiver is told until it answers */
    SEND_OVER,
};

struct send_message {
    enum send_state state;
    uint32_t number;
    struct lh_request *request; /* while SEND_OPEN */
    const uint8_t *buffer;
    uint64_t bytes;
    struct message_memory memory;
    uint64_t segment_bytes; /* of each but the last; 0 before the first clear-to-send, which decides that */
    uint32_t segments;      /* it has; at least 1 */
    uint32_t started;
    uint32_t done;
    bool injected; /* its first chunk was */
    int error;     /* why it is canceled, or was refused: a positive lh_error */
    lh_time tell_at;
    uint32_t told; /* times; backs off */
};

/* What a segment has besides, when its scheme codes. */
struct coded_send {
    struct sdr_send_handle *handle; /* of the parity; NULL until it is cleared to be sent */
    struct parity_buffer *buffer;   /* NULL: nothing to be coded */
    struct lh_coding coding;
    uint32_t extra_chunks;
    uint32_t asked;   /* LH_ACTION_ENCODEs */
    uint32_t encoded; /* of those, without a gap */
    uint64_t ran;     /* bit i: encoded + i is done, too */
};

/* One place of the ring of segments, at sequence % slots. */
struct send_segment {
    bool active;
    bool touched; /* something happened since its machine ran */
    bool hungry;  /* its machine used up the budget it had */
    uint32_t sequence;
    uint32_t message;
    const struct lh_scheme *scheme; /* NULL: no chunks to inject, its lengths are told until it ends */
    struct sdr_send_handle *handle;
    void *machine;
    const uint8_t *payload;
    uint32_t bytes;
    uint32_t chunks;
    uint32_t lkey;
    uint32_t in_flight_chunks;
    lh_time next_ns;
    lh_time tell_at;
    struct coded_send coded;
};

/* A machine's message that must not overtake the chunks posted before it. */
struct held_message {
    uint64_t after; /* of the payload bytes that were ever posted, so many must have left */
    uint32_t bytes;
    uint8_t data[TRANSFER_BYTES_MAX];
};

/* A send that was aborted. The fabric may still read what it has taken of it: a NIC reads on its own. */
struct ending_send {
    struct sdr_send_handle *handle;
    struct parity_buffer *buffer; /* what it sent from, when that is ours; or NULL */
};

struct sender {
    struct send_message *messages; /* MESSAGES_MAX */
    uint32_t oldest;               /* message that is not over */
    uint32_t next;                 /* message number of the next lh_send */
    uint32_t current;              /* message whose segments are started next */
    struct send_segment *segments; /* attr.slots */
    uint32_t segment_oldest;       /* none before it is active */
    uint32_t segment_next;         /* sequence of the next clear-to-send */
    uint64_t in_flight_bytes;
    uint64_t posted_bytes;    /* ever */
    struct queue_delay delay; /* of those */
    uint64_t window_bytes;
    bool closed;  /* in this step: a segment wants more than there is room for, so later ones get nothing */
    bool starved; /* somebody waits for room in the window or in the injection queue */
    bool cts_wanted; /* a message, or parity, waits for a clear-to-send */
    struct lh_actions actions;
    uint32_t actions_at;          /* those before were carried out */
    struct send_segment *blocked; /* whose actions they are, when the injection queue was full; else NULL */
    struct held_message *held;    /* a ring of HELD_MAX */
    uint32_t held_head;
    uint32_t held_tail;
    struct ending_send *ending; /* not yet given back; attr.slots * 2 places */
    uint32_t ending_count;
    uint32_t telling; /* messages that are SEND_CANCELING */
    void *machines;
};

/* ---- receiving --------------------------------------------------------------------------------------- */

enum recv_state {
    RECV_EMPTY,   /* no lh_recv yet; error: canceled ahead of it */
    RECV_OPEN,    /* pending */
    RECV_REFUSED, /* over, and the sender is told until it has heard */
    RECV_OVER,
};

struct recv_message {
    enum recv_state state;
    uint32_t number;
    struct lh_request *request; /* while RECV_OPEN */
    uint8_t *buffer;
    uint64_t room;
    uint64_t bytes; /* UINT64_MAX: not told yet */
    struct message_memory memory;
    struct scheme_choice choice; /* final when the first segment is posted, and so is how it is cut */
    uint64_t segment_bytes;      /* of each but the last */
    uint32_t segments;           /* that the room has, later that the message has; at least 1 */
    uint32_t posted;
    uint32_t done;
    int error;      /* why it was refused, or canceled ahead: a positive lh_error */
    bool forgotten; /* the sender has heard of the refusal */
    lh_time tell_at;
    uint32_t told; /* times; backs off */
};

enum recv_segment_state {
    SEGMENT_FREE,
    SEGMENT_OPEN,
    SEGMENT_PARITY,   /* takes the parity of the open segment before it */
    SEGMENT_DONE,     /* arrived; or can be decoded, which goes on while coded.jobs > 0 */
    SEGMENT_UNNEEDED, /* the message turned out shorter */
    SEGMENT_FAILED,   /* its message was refused; kept until the sender has heard */
};

/* What a segment has besides, when the scheme codes. */
struct coded_recv {
    struct sdr_recv_handle *handle; /* of the parity; NULL: not posted, or over */
    const uint8_t *bitmap;
    uint32_t extra_chunks;        /* 0: it needs none */
    uint32_t arrived;             /* of those */
    struct parity_buffer *buffer; /* or NULL */
    struct lh_coding coding;      /* while it is decoded */
    uint32_t jobs;                /* of the coder that are not done */
};

/* One place of the ring of segments, at sequence % slots. */
struct recv_segment {
    enum recv_segment_state state;
    bool touched;
    uint32_t sequence;
    uint32_t message;
    uint32_t index;        /* of the message */
    uint32_t posted_bytes; /* room */
    uint32_t bytes;        /* room, later length */
    struct sdr_recv_handle *handle;
    const uint8_t *bitmap;
    const struct lh_scheme *scheme;
    void *machine;
    uint32_t arrived;
    lh_time last_arrival_ns;
    lh_time later_seen_ns;
    lh_time next_ns;
    struct coded_recv coded;
    struct arrival_watch watch; /* with `auto` */
    bool overtaken;             /* it was looked at since a later segment began to arrive */
};

struct receiver {
    struct recv_message *messages; /* MESSAGES_MAX */
    uint32_t oldest;               /* message that is not over */
    uint32_t next;                 /* message number of the next lh_recv */
    uint32_t posting;              /* message whose segments are posted next */
    struct recv_segment *segments; /* attr.slots */
    uint32_t segment_oldest;       /* all before it are over */
    uint32_t segment_next;         /* sequence of the next one to be posted */
    bool parity_due;               /* the parity of the newest segment is to be posted next */
    uint32_t newest_seen;          /* segments before this were overtaken */
    bool post_refused;             /* the SDR layer takes no more receives for now */
    struct lh_actions actions;
    uint32_t telling; /* messages that are RECV_REFUSED */
    void *machines;
};

/* What was told last of what has arrived. */
struct done_teller {
    bool wanted;      /* something arrived in this step */
    bool any;         /* or ever */
    uint32_t segment; /* that arrived last */
    uint32_t repeats_left;
    lh_time repeat_at;
};

/* ---- the connection ---------------------------------------------------------------------------------- */

/* The peer's process seen another way than by its packets (src/launch: the TCP socket of the rendezvous).
 */
struct lifeline_ops {
    /* 0: it lives; -LH_ECLOSED: it said goodbye, and its last message (*bytes of it, 0: none) is in `last`,
     * which holds TRANSFER_BYTES_MAX; -LH_EPATH: it refused; -LH_EPEER: it died. Cheap; never blocks. */
    int (*look)(void *lifeline, uint8_t *last, size_t *bytes);
    /* Tells the peer why this side ends the connection; its look() gives -LH_EPATH then. */
    void (*refuse)(void *lifeline, const char *reason);
    /* Says goodbye with a last message, and frees the lifeline. */
    void (*close)(void *lifeline, const uint8_t *last, size_t bytes);
};

struct liveness {
    lh_time
        since_ns; /* silence counts from here at the earliest: nothing was pending, or nobody listened */
    lh_time stepped_ns; /* the last step */
    lh_time silent_at;  /* look at the peer's silence then */
    lh_time lifeline_at;
    lh_time closed_at; /* it said goodbye: what it had acknowledged may still be on the way until then; 0:
                          it did not */
    const struct lifeline_ops *lifeline_ops; /* or NULL */
    void *lifeline;
};

#define CONNECTION_TEXT_MAX 128u

struct lh_connection {
    struct request_table *requests;
    struct sdr_context *context;
    struct sdr_qp *qp;
    struct lh_attr attr;
    char device[CONNECTION_TEXT_MAX];
    char reliability[CONNECTION_TEXT_MAX];
    struct scheme_choice choice;   /* of what this side receives */
    struct auto_scheme *automatic; /* or NULL */
    bool attached;
    int error; /* 0, or the negative lh_error that ended it */
    char reason[CONNECTION_TEXT_MAX * 2];
    struct lh_sdr_path path; /* as of the last busy step */
    lh_time caught_up_ns;    /* what arrived before this has been looked at */
    bool touched;            /* the user asked for something since the last step */
    lh_time due_ns;          /* of the earliest timer */
    struct lh_stats stats;
    struct lh_memory *memories;
    struct coder *coder;
    struct parity_buffer *unused_parity;
    uint32_t parity_in_use; /* buffers */
    struct sender sender;
    struct receiver receiver;
    struct done_teller done;
    struct transfer_message last_word; /* what had arrived when it ended; set with `error` */
    struct liveness liveness;
    struct data_path data_path;
    char peer_name[CONNECTION_TEXT_MAX];
};

static inline struct send_message *send_message_at(struct lh_connection *c, uint32_t number)
{
    return &c->sender.messages[number & (MESSAGES_MAX - 1)];
}

static inline struct send_segment *send_segment_at(struct lh_connection *c, uint32_t sequence)
{
    return &c->sender.segments[sequence & (c->attr.slots - 1)];
}

static inline struct recv_message *recv_message_at(struct lh_connection *c, uint32_t number)
{
    return &c->receiver.messages[number & (MESSAGES_MAX - 1)];
}

static inline struct recv_segment *recv_segment_at(struct lh_connection *c, uint32_t sequence)
{
    return &c->receiver.segments[sequence & (c->attr.slots - 1)];
}

/* All below under the lock, but for the last. */

/* Ends the connection and everything that is pending. The first error stays. */
void connection_fail(struct lh_connection *c, enum lh_error error, const char *reason);
void connection_cancel(struct lh_connection *c, struct lh_request *request);
/* The span after which an unanswered message is said again, when it was repeated so often before. */
lh_time connection_repeat_span(const struct lh_connection *c, uint32_t repeats);
struct lh_path_view connection_path_view(const struct lh_connection *c);
/* Hands a lifeline over to an attached connection, which closes it when it closes itself. */
void connection_set_lifeline(struct lh_connection *c, const struct lifeline_ops *ops, void *lifeline,
                             const char *peer_name);

/* memory.c: -LH_EINVAL, -LH_ENOMEM. */
int message_memory_get(struct lh_connection *c, const void *buffer, uint64_t bytes, struct lh_memory *given,
                       struct message_memory *memory);
void message_memory_put(struct message_memory *memory);
void memory_free_all(struct lh_connection *c);

#endif
