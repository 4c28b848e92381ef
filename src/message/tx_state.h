/*
 * tx_state.h - the sending part of a connection: its state. What its files do with it:
 *
 *   tx_sender.c       set-up, the step, messages of the receiver's machine, DONE
 *   tx_sender.c          clear-to-sends: each starts a segment, or opens the way for parity
 *   tx_messages.c       CANCEL and REFUSE: messages that end early
 *   memory.c       memory of segments: parity, copies
 *   tx_messages.c     messages to send: added, ended, retired
 *   tx_injector.c     what a segment's machine wants done: chunks into the SDR QP
 *   tx_injector.c  TO_RECEIVER: lengths and machine messages, behind the chunks injected before
 *   tx_state.c  how long chunks wait in the injection queue
 *   tx_injector.c      data that is still to be injected
 *   tx_state.c         what there is to wait for when nothing is injected
 *
 * Events come in with `now`; packets go down to the SDR QP in the order of the calls; what is for the engine
 * is in `effects` when a call returns.
 *
 * Timers:
 *   segment.next_ns     the one that its machine asked for; nobody is woken for it while it only moves on
 *                       with the wait of what is in the queue
 *   segment.lengths_at  its lengths are announced again, when nothing did for an overdue round trip
 *   message.notice      CANCEL is sent again until it is answered (message_control.h)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_TX_STATE_H
#define LH_MESSAGE_TX_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include <longhaul/connection.h>
#include <longhaul/sdr_ext.h>
#include <longhaul/types.h>

#include "control/message_control.h"
#include "eager/eager_tx.h"
#include "message/parity_coding.h"
#include "message/receive_buffer.h"
#include "store/store.h"
#include "wire/control_messages.h"

/* ---- queue delay ----------------------------------------------------------------------------------- */

/*
 * How long chunks wait in the injection queue before they leave. Pure.
 *
 * A machine starts its timers when it asks for a chunk to be injected. Behind a slow link, or a pace, the
 * chunk may then wait for many round trips; if its timer did not allow for that, it would be retransmitted
 * before it was sent at all. So the delay is added to the overdue time that machines see.
 */

#define QUEUE_DELAY_MARKS 16u /* a power of two */

struct queue_delay_mark {
    uint64_t posted; /* bytes that had ever been posted, */
    lh_time at_ns;   /* at this time at the earliest */
};

/* All zero is an empty queue. */
struct queue_delay {
    struct queue_delay_mark *marks; /* QUEUE_DELAY_MARKS, the owner's; NULL: nothing waits */
    uint32_t head;
    uint32_t tail;
    lh_time delay_ns; /* as of since_ns; it decays after hold_ns more */
    lh_time since_ns;
    lh_time hold_ns; /* the owner's: how long what left may take to be acknowledged */
};

/* That many bytes have ever been posted. */
void queue_delay_on_posted(struct queue_delay *delay, uint64_t posted, lh_time now);
/* That many of them have left, the last of them at left_ns, which may be long ago. */
void queue_delay_on_left(struct queue_delay *delay, uint64_t left, lh_time left_ns);
/* The longest that recently posted bytes wait, about; never less than what still waits has waited. */
lh_time queue_delay_now(const struct queue_delay *delay, lh_time now);
/* Whether a timer that ends then, with the delay as it is now, moves on as time passes until the oldest that
 * waits has left: from when that has waited longer than the timer allows for, the delay grows with time. */
bool queue_delay_moves(const struct queue_delay *delay, lh_time expiry_ns, lh_time now);
/* Whether the oldest that waits has left, when that many bytes have; not yet noted. */
bool queue_delay_ends(const struct queue_delay *delay, uint64_t left);
/* All that was posted has left long ago, or never will: the marks are not read any more. */
static inline void queue_delay_pause(struct queue_delay *delay)
{
    delay->tail = delay->head;
    delay->marks = NULL;
}
/* The number of the oldest that waits; another one from when it has left. */
static inline uint32_t queue_delay_oldest(const struct queue_delay *delay)
{
    return delay->tail;
}

/* ---- wait ------------------------------------------------------------------------------------------ */

/* What keeps the sending part from giving the SDR layer more, and for how long. Pure. */

struct tx;

enum tx_wait {
    TX_WAIT_MESSAGE,         /* for lh_send() */
    TX_WAIT_SDR,             /* for nothing: the SDR layer has chunks to send */
    TX_WAIT_ACKNOWLEDGEMENT, /* all was sent; or a clear-to-send may be on the path */
    TX_WAIT_WINDOW,          /* attr.window_bytes are in flight */
    TX_WAIT_BUFFER,          /* what the peer's sockets hold, on a short path */
    TX_WAIT_SLOTS,           /* all of them are taken */
    TX_WAIT_RECEIVE,         /* for a clear-to-send, longer than a round trip: no receive is posted */
    TX_WAITS,
};

/* All zero: nothing noted yet. */
struct tx_waits {
    enum tx_wait now;
    lh_time since_ns; /* 0: before the first message */
    lh_time cts_ns;   /* a clear-to-send is waited for since then; 0: none is */
    lh_time ns[TX_WAITS];
};

/* Notes what it is from now on; to be called in each round. Time before the first message does not count. */
void tx_wait_note(struct tx *tx, lh_time now);

/* ---- tx -------------------------------------------------------------------------------------------- */

#define HELD_MAX 64u /* machine messages that wait behind chunks; a power of two */

enum tx_state {
    TX_EMPTY,     /* no lh_send yet; notice.error: refused ahead of it */
    TX_OPEN,      /* pending */
    TX_SENT,      /* by a scheme with a deadline: the request is done, the receiver has not finished yet */
    TX_CANCELING, /* aborted; CANCEL is sent until the receiver answers */
    TX_OVER,
};

/* What is to be sent. */
struct tx_content {
    struct message_buffer buffer; /* stays until the request is finished */
    uint64_t bytes;
    uint64_t tag; /* of the user, for the receiver; 0: none */
};

struct tx_message {
    enum tx_state state;
    uint32_t number;
    struct message_request *request; /* while TX_OPEN */
    struct message_buffer buffer;
    uint64_t bytes;
    uint64_t tag;
    uint64_t unstarted_bytes; /* for which no segment was begun */
    uint64_t segment_bytes; /* of each but the last; 0 before the first clear-to-send, which decides that */
    uint32_t segments;      /* it has; at least 1 */
    uint32_t started;
    uint32_t done;
    uint32_t sent; /* of those started: that have left, or are done */
    bool refused;  /* before lh_send: notice.error says why, 0: by its deadline */
    bool injected; /* its first chunk was */
    bool small;    /* sent without a clear-to-send: by `outgoing` */
    struct abort_notice notice;
};

/* What a segment has besides, when its scheme codes. */
struct coded_tx {
    struct sdr_send_handle *handle; /* of the parity; NULL until it is cleared to be sent */
    struct parity_buffer *buffer;   /* NULL: nothing to be coded */
    struct lh_coding coding;
    uint32_t extra_chunks;
    uint32_t asked;   /* LH_ACTION_ENCODEs */
    uint32_t encoded; /* of those, without a gap */
    uint64_t ran;     /* bit i: encoded + i is done, too */
    bool ended;       /* nothing is added to its send */
};

/* One place of the ring of segments, at sequence % slots. */
struct tx_segment {
    bool active;
    bool needs_step;     /* something happened since its machine ran */
    bool budget_limited; /* its machine used up the budget it had */
    bool leaving;        /* all of it was injected, and has not left yet */
    bool ended;          /* nothing is added to its send */
    bool sent;           /* it has left */
    bool withdrawn;      /* nothing more of it is injected */
    bool moves;          /* next_ns, until the oldest that waited when its machine ran has left: */
    uint32_t sequence;
    uint32_t message;
    const struct lh_scheme *scheme; /* NULL: no chunks to inject, only lengths are announced */
    struct sdr_send_handle *handle;
    void *machine; /* kept for the next segment of this place */
    uint32_t machine_bytes;
    const uint8_t *payload; /* in one place; NULL: in pieces, or no bytes */
    uint32_t bytes;
    uint32_t chunks;
    uint32_t unsent;               /* of those, never injected */
    uint32_t lkey;                 /* of the payload */
    struct parity_buffer *copied;  /* memory of what is copied, of a message in several parts; or NULL */
    struct segment_pieces *pieces; /* in its notes */
    uint32_t in_flight_chunks;
    uint32_t behind; /* the number of that */
    lh_time next_ns;
    lh_time rtt_ns; /* of the path when its machine ran last */
    lh_time lengths_at;
    lh_time lengths_sent_ns;
    lh_time began_ns;       /* when they were sent first */
    uint64_t lengths_after; /* so many bytes had left then, of all segments */
    struct coded_tx coded;
};

/* A machine's message that must not overtake the chunks posted before it. */
struct held_message {
    uint64_t after; /* payload bytes ever posted that must have left */
    uint32_t bytes;
    uint8_t data[TRANSFER_BYTES_MAX];
};

/* A send that was aborted. The fabric may still read what it has taken of it: a NIC reads on its own. */
struct ending_send {
    struct sdr_send_handle *handle;
    struct parity_buffer *buffer; /* what it sent from, when that is ours; or NULL */
};

struct tx {
    struct sdr_qp *qp;
    const struct lh_attr *attr;
    const struct lh_sdr_path *path; /* the engine refreshes it */
    struct coder *coder;
    struct parity_pool *parity;
    struct lh_stats *stats;  /* of the connection, as the next */
    struct effects *effects; /* of the parts */
    struct store *store;
    struct ring messages;        /* of struct tx_message, from the oldest on: MESSAGES_MAX at most */
    uint32_t ahead;              /* one past the last that was refused ahead of its lh_send */
    uint32_t oldest;             /* message that is not over */
    uint32_t next;               /* message number of the next lh_send */
    uint32_t current;            /* message whose segments are started next */
    struct tx_segment *segments; /* attr.slots; NULL: no message is there */
    uint32_t segment_oldest;     /* none before it is active */
    uint32_t segment_next;       /* sequence of the next clear-to-send */
    uint64_t in_flight_bytes;
    uint64_t unsent_chunks;   /* of active segments */
    uint64_t unstarted_bytes; /* of messages */
    bool parity_waits;        /* for data: a machine saw that there is some */
    bool start_waits;         /* the next segment could not be begun, though it was cleared to be sent */
    uint64_t posted_bytes;    /* ever */
    struct queue_delay delay; /* of those */
    uint64_t window_bytes;
    bool closed;         /* in this step: a segment wants more than the budget, so later ones get nothing */
    bool window_limited; /* some segment waits for capacity of the window or of the injection queue */
    bool window_full;    /* of these the window */
    bool timers_move;    /* some are over, but for the oldest in the queue that has not left */
    bool cts_wanted;     /* a message, or parity, waits for a clear-to-send */
    bool start_refused;  /* the SDR layer has no place, or no memory, for a send */
    bool end_refused;    /* nor for the end of one */
    struct lh_actions *actions; /* with segments */
    uint32_t actions_at;        /* those before were carried out */
    struct tx_segment *blocked; /* whose actions they are, when the injection queue was full; else NULL */
    struct ring held;           /* of struct held_message, from the tail on: HELD_MAX at most */
    uint32_t held_head;
    uint32_t held_tail;
    struct ending_send *ending; /* not yet given back; attr.slots * 2 places, with segments */
    uint32_t ending_count;
    uint32_t leaving;   /* segments that are */
    uint32_t canceling; /* messages that are TX_CANCELING */
    struct tx_waits waits;
    bool eager;               /* the peer receives small messages without a clear-to-send */
    struct outgoing outgoing; /* those; used if so */
};

/* One from the oldest on to the next. */
static inline struct tx_message *tx_message_at(const struct tx *tx, uint32_t number)
{
    return ring_at(&tx->messages, number);
}

/* While there are segments. */
static inline struct tx_segment *tx_segment_at(const struct tx *tx, uint32_t sequence)
{
    return &tx->segments[sequence & (tx->attr->slots - 1)];
}

#endif
