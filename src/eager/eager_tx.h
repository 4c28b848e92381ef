/*
 * eager_tx.h - small messages to be sent: which entries the next carrier takes, what is retransmitted, and
 * what has been delivered. Pure: the caller gives the memory of the ring.
 *
 * Every message of the connection is in the ring, in order: a long one is there to be announced, or only to
 * be passed. Messages are sent in order, within the window and the receiver's places. Where the receives of
 * the peer choose messages (`matched`), all long ones are announced, and each message takes a place until it
 * has a receive.
 *
 * Timers:
 *   lost       a message that was reordered by a carrier which arrived: a round trip and the reorder window
 *              after it was sent
 *   copy       where packets get lost, or little is known of that yet, and the round trip is long: a message
 *              is sent a second time 1/16 of a round trip later, unless much is in flight
 *   overdue    the oldest message of which nothing is known: an overdue round trip after it was sent,
 *              doubling
 *   probe      messages are held for their receives: has the report of their delivery been lost? Or the
 *              next one waits for a place of the receiver, and nothing is in flight: is there one now?
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_EAGER_EAGER_TX_H
#define LH_EAGER_EAGER_TX_H

#include <longhaul/types.h>

#include "wire/eager_packets.h"

enum outgoing_state {
    OUTGOING_OVER, /* or never added */
    OUTGOING_LONG, /* not to be announced */
    OUTGOING_NEW,  /* not all of it was sent */
    OUTGOING_MISSING,
    OUTGOING_HELD,
    OUTGOING_DELIVERED, /* until the caller ends it */
    OUTGOING_SETTLED,   /* an announcement that arrived, or refused: another message says more */
    OUTGOING_STOPPED,   /* the caller aborted it; the receiver may still hold it */
};

struct outgoing_message {
    enum outgoing_state state;
    bool is_long;
    uint8_t units;  /* to be sent, a bit each */
    uint8_t copies; /* still to be sent ahead of any loss, */
    bool burst;     /* in a row, for it may meet a burst */
    uint8_t cost;   /* with `matched`: cells of the receiver that it takes */
    uint32_t carrier;
    const uint8_t *payload;
    uint64_t bytes;
    uint64_t tag;
    lh_time sent_ns;
    lh_time copy_at;
};

struct outgoing {
    bool matched; /* the receives of the peer choose messages by their tags; set before the first message */
    struct outgoing_message *ring; /* at number % capacity */
    uint8_t *costs;                /* of each from `posted` on, at number % EAGER_CELLS; behind the ring */
    uint32_t capacity;             /* a power of two; 0: no memory yet */
    uint32_t oldest;               /* message that is not over */
    uint32_t unsent;               /* the first that was not sent whole */
    uint32_t next;                 /* to be added */
    bool used;                     /* a message was added, ever: the numbers above are valid */
    uint32_t posted;               /* messages before have a receive */
    uint32_t cells;                /* of the receiver, taken by messages from there on */
    uint32_t carrier;              /* number of the next one */
    bool acknowledged;             /* a carrier was */
    uint32_t newest;               /* of those */
    uint32_t missing;              /* messages */
    uint32_t held;
    uint32_t delivered; /* that the caller did not end yet */
    uint32_t resending; /* of the missing: units are to be sent */
    uint64_t in_flight_bytes;
    bool blocked;   /* the next message to be sent has no place */
    bool probe;     /* the next carrier asks for an acknowledgement */
    uint8_t bursts; /* not 0: losses took a message and its copies, not long ago */
    uint32_t backoff;
    lh_time waited_ns; /* by the last overdue timer; 0: nothing was overdue since something arrived */
    lh_time silent_ns; /* waited for acknowledgements since the last one */
    lh_time probe_from_ns;
    lh_time due_ns;        /* when outgoing_poll() has something to do */
    uint32_t loss_carrier; /* where the present measurement of losses began */
    uint32_t loss_received;
    double loss; /* as far as is known */
};

/* The path, as it is now. */
struct outgoing_path {
    lh_time rtt_ns;
    lh_time rtt_minimum_ns;
    lh_time overdue_ns; /* not 0 */
    lh_time reorder_window_ns;
    uint64_t window_bytes;
};

/* A copy of the ring with twice the capacity is needed before the next message is added. */
bool outgoing_is_full(const struct outgoing *outgoing);
/* Memory of a ring. 0 for a capacity of 0. */
size_t outgoing_ring_bytes(uint32_t capacity);
/* Nothing is known of any message that a ring without memory would forget. */
bool outgoing_is_empty(const struct outgoing *outgoing);
/* Moves to a ring of another capacity, a power of two that holds what is there: `memory` has its bytes,
 * zeroed; or 0 and NULL, when it is empty. Returns the memory of the former one. */
void *outgoing_move(struct outgoing *outgoing, void *memory, uint32_t capacity);

/* What is to be sent. */
struct outgoing_content {
    const uint8_t *payload; /* valid until outgoing_forget() */
    uint64_t bytes;         /* at most EAGER_MAX of a small message */
    uint64_t tag;
    bool is_long; /* it is only announced, if at all */
};

/* The next message. */
void outgoing_add(struct outgoing *outgoing, uint32_t number, const struct outgoing_content *content);
/* The receiver is to learn of a long message that was added. */
void outgoing_announce(struct outgoing *outgoing, uint32_t number);
/* The message has a receive, as all before it have: something else than an acknowledgement shows it. A long
 * one need not be announced any more. */
void outgoing_on_receive(struct outgoing *outgoing, uint32_t number);
/* The caller aborted the message: nothing of it is sent any more. It is forgotten when the receiver answered.
 */
void outgoing_stop(struct outgoing *outgoing, uint32_t number);
/* The message is over for the sender, however. */
void outgoing_forget(struct outgoing *outgoing, uint32_t number);

/* -1: it cannot be. */
int outgoing_on_ack(struct outgoing *outgoing, const struct eager_ack *ack, lh_time now);
/* The first message from *number on that was delivered, until it is forgotten; false: there is none. */
bool outgoing_next_delivered(const struct outgoing *outgoing, uint32_t *number);

/* Decides what is to be retransmitted. */
void outgoing_poll(struct outgoing *outgoing, const struct outgoing_path *path, lh_time now);
/* Bytes that are to be sent of the next message, if that has several units; else 0. */
uint64_t outgoing_several_units(const struct outgoing *outgoing);
/* Writes what may be sent now behind what is in the packet, as far as it fits. False: nothing was written,
 * the packet's number is not used. */
bool outgoing_fill(struct outgoing *outgoing, const struct outgoing_path *path, lh_time now,
                   struct eager_writer *writer);

#endif
