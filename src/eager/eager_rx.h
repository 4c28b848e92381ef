/*
 * eager_rx.h - small messages that arrive: carriers and acknowledgements, and messages held before their
 * receive is posted. Pure: the caller gives the memory when it is first needed, and takes it back when
 * nothing is held.
 *
 * A peer may send messages from `posted` on, the first without a receive, as long as they take EAGER_CELLS
 * cells at most, and a message takes one at least. What exceeds that is refused. Where receives choose their
 * messages, any may wait, whatever its number.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_EAGER_EAGER_RX_H
#define LH_EAGER_EAGER_RX_H

#include <longhaul/types.h>

#include "wire/eager_packets.h"

enum early_state {
    EARLY_NOTHING, /* nothing of it has arrived */
    EARLY_PARTIAL, /* some of its units */
    EARLY_WHOLE,
    EARLY_LONG, /* announced; it comes another way */
};

struct early_message {
    enum early_state state;
    uint32_t number;
    uint64_t bytes;
    uint64_t tag;
    uint16_t cell; /* the first of its cells */
    uint8_t units; /* a bit for each unit that is here; of a long one, the first */
};

/* Some 80 KiB. */
struct early_memory {
    struct early_message
        messages[EAGER_CELLS];  /* at number % EAGER_CELLS, or the next place that is free */
    uint16_t next[EAGER_CELLS]; /* the cell after this one, of its message or of the free ones */
    uint8_t cells[EAGER_CELLS][EAGER_CELL_BYTES];
};

struct early {
    struct early_memory *memory; /* NULL: nothing is held */
    uint32_t held;               /* messages, announced ones too */
    uint16_t free_cell;          /* first of the free cells */
    uint32_t free_cells;
};

enum early_put {
    EARLY_KEPT,
    EARLY_DUPLICATE,
    EARLY_REFUSED, /* it contradicts what came before, or the peer had no places left */
};

/* memory: not initialised, valid until early_take_memory(). Nothing may be held. */
void early_give_memory(struct early *early, struct early_memory *memory);
/* Gives the memory back when nothing is held; else NULL. */
struct early_memory *early_take_memory(struct early *early);

/* An entry of a message from `posted` on. The memory must be there. */
enum early_put early_put(struct early *early, uint32_t posted, const struct eager_entry *entry);
/* The same, of any message. */
enum early_put early_put_any(struct early *early, const struct eager_entry *entry);
/* Any message. */
enum early_state early_state(const struct early *early, uint32_t number);
/* What is held of a message, or NULL. */
const struct early_message *early_find(const struct early *early, uint32_t number);
/* Copies the units that are here to `out`, which holds the message's bytes. */
void early_copy(const struct early *early, const struct early_message *message, uint8_t *out);
/* The receive of this message was posted: what is held of it is given back. */
void early_forget(struct early *early, uint32_t number);

/* ---- inbound --------------------------------------------------------------------------------------- */

/*
 * What of carriers has arrived, and when it is acknowledged. Pure.
 *
 * Timer:
 *   ack_at   after a carrier: 1/4 of the shortest round trip, at most 20 us, so that an answer of the
 *            program takes the acknowledgement along; at once when the sender asks
 */

struct inbound {
    bool any;           /* a carrier arrived, ever */
    uint32_t newest;    /* of those */
    uint32_t received;  /* how many */
    bool seen;          /* something of a message, ever */
    uint32_t seen_next; /* after the newest of those */
    bool ack_wanted;
    lh_time ack_at; /* if it is */
};

/* A carrier, or a probe. */
void inbound_on_carrier(struct inbound *inbound, const struct eager_packet *packet, lh_time rtt_minimum_ns,
                        lh_time now);
/* Something of this message arrived. */
void inbound_on_message(struct inbound *inbound, uint32_t number);
/* There is something to report. */
void inbound_want_ack(struct inbound *inbound, lh_time rtt_minimum_ns, lh_time now);
/* An acknowledgement was made. */
void inbound_on_acknowledged(struct inbound *inbound);

#endif
