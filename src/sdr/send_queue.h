/*
 * send_queue.h - what a QP has to inject: sends, cut into packets and striped over channels; clear-to-sends.
 * Pure.
 *
 * A send is posted as a range of packets. Each channel has a queue of ranges and injects those packets of
 * each that travel on it (fabric_channel_of). One thread at a time posts; each channel's consumer runs in
 * parallel with the poster and with the others.
 *
 * A range passes through two hands: it is taken when the fabric has all its packets, and released when the
 * fabric reads none of their payload any more. For a fabric that copies, that is the same moment.
 *
 * The user's immediate travels in fragments, one a packet; a message with fewer packets than fragments is
 * followed by empty packets that carry the rest (an empty write touches no memory).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_SEND_QUEUE_H
#define LH_SDR_SEND_QUEUE_H

#include <stdatomic.h>

#include <longhaul/types.h>

#include "fabric/fabric.h"
#include "sdr/message_table.h"
#include "store/store.h"
#include "wire/control_messages.h"

#define SEND_RANGES_MAX 512u /* waiting a channel; a power of two */

struct send_message;

struct send_range {
    struct send_message *message;
    const uint8_t *payload; /* of packet `first` */
    uint64_t bytes;         /* of payload */
    uint32_t lkey;
    uint32_t first;
    uint32_t count;
    uint64_t before;    /* payload of the QP's ranges that were posted before it */
    uint64_t taken_end; /* once taken: writes that the channel had taken by then */
};

/* One send in progress: where it goes, and what of it still waits. */
struct send_message {
    uint32_t slot; /* the receiver's */
    uint32_t rkey;
    uint64_t base;
    uint32_t length_bytes; /* buffer size at the receiver */
    uint32_t user_immediate;
    uint8_t generation;
    bool has_immediate;
    bool in_use;
    bool streaming;
    bool ended;                   /* no more ranges will come */
    _Atomic bool aborted;         /* what still waits is dropped */
    _Atomic uint32_t ranges;      /* queued and not released, over all channels */
    struct message_extent extent; /* of what was posted: the receiver takes nothing else */
    uint32_t fragments;           /* bit i: a packet that carries fragment i of the immediate was posted */
};

/* Of a packet, in all payload that the QP has posted, on any channel. Both wrap: the difference of two places
 * says which is earlier. */
struct send_place {
    uint64_t begin;
    uint64_t end;
};

struct send_channel {
    struct ring ring;      /* of struct send_range, from the tail on */
    _Atomic uint32_t head; /* next to write; moved by the poster */
    _Atomic uint32_t tail; /* next to be released; moved by the consumer */
    _Atomic uint32_t next; /* next to inject; moved by the consumer */
    uint32_t cursor;       /* packets of that range that were looked at */
    uint64_t taken;        /* writes, ever */
    uint64_t taken_bytes;  /* their payload */
};

struct send_shape {
    struct immediate_split split;
    uint32_t mtu_bytes;
    uint32_t channels;
    uint32_t stripe_packets;
};

void send_channel_init(struct send_channel *channel);
/* Whether a channel may have that number of further ranges. */
bool send_channel_has_room(const struct send_channel *channel, uint32_t ranges);
/* Ranges that are not released; the oldest is at the tail. */
uint32_t send_channel_ranges(const struct send_channel *channel);
/* Whether any packet of the range travels on this channel. */
bool send_range_touches(const struct send_range *range, const struct send_shape *shape, uint32_t index);
/* Queues a range that touches the channel. The ring holds its place, and message->ranges
 * counts it already. */
void send_channel_post(struct send_channel *channel, const struct send_range *range);
/* The next packets of this channel, at most `room`, without taking them; none of an aborted send, nor of
 * what waits behind one; with `until` only those that end there or before. Another channel may abort a send
 * between this and take: it is taken all the same. */
uint32_t send_channel_peek(struct send_channel *channel, const struct send_shape *shape, uint32_t index,
                           const uint64_t *until, struct fabric_write *writes, uint32_t room);
/* The place of this channel's next packet. False: nothing waits, or an aborted send does. */
bool send_channel_front(const struct send_channel *channel, const struct send_shape *shape, uint32_t index,
                        struct send_place *place);
/* Not beside the poster: whether anything waits, and the payload that the QP had posted before that. */
bool send_channel_waits(const struct send_channel *channel, uint64_t *before);
/* Takes the first `count` of those that peek gave. Returns their payload bytes. They are still to be
 * released. */
uint64_t send_channel_take(struct send_channel *channel, const struct send_shape *shape, uint32_t index,
                           uint32_t count);
/* Drops the ranges of aborted sends at the front; returns the payload bytes that were dropped. */
uint64_t send_channel_drop_aborted(struct send_channel *channel, const struct send_shape *shape,
                                   uint32_t index);
/* Aborts every send that waits in this channel and drops its ranges; returns the payload bytes that were
 * dropped. */
uint64_t send_channel_abort_all(struct send_channel *channel, const struct send_shape *shape,
                                uint32_t index);
/* So many of all writes that were ever taken are released. Returns whether a range is. */
bool send_channel_release(struct send_channel *channel, uint64_t released);
/* Ranges with this key whose payload may still be read: not of sends that were aborted before. Neither the
 * poster nor the consumer may run. */
uint32_t send_channel_uses(const struct send_channel *channel, uint32_t lkey);
/* Nothing waits to be injected. */
bool send_channel_empty(const struct send_channel *channel);

/* ---- clear to send --------------------------------------------------------------------------------- */

/*
 * Posted receives: announced by the receiver until acknowledged, consumed in order by the
 * sender. Pure. (SDR-RDMA paper, sections 3.1.3 and 3.2.3.)
 *
 * Timers: repeat_at, one for all announcements. Unacknowledged ones are retransmitted after the path's
 * overdue time (before the first round-trip sample: 1 ms) without a new acknowledgement; each
 * retransmission in vain doubles that, from the fourth on. An acknowledgement of some sets it to an overdue
 * time from when the oldest of the others was sent: in a stream of receives a lost one is missed as soon as
 * a single one. An acknowledgement of all stops it. On a long path that lost some not long ago they are
 * retransmitted 1/16 of that time apart for the first four: a burst of losses then costs no round trip, and
 * the receive no part of its deadline.
 */

/* The first retransmission when no round trip has been measured: the one time here that is not a multiple
 * of one. */
#define CTS_FIRST_REPEAT_NS LH_NS_PER_MS

/* The first waits of an overdue time, which are not doubled. */
#define CTS_PATIENT_WAITS 4u

/* Where announcements were lost, each of these is cut into so many; below a millisecond it is not missed. */
#define CTS_HASTE        16u
#define CTS_HASTE_MIN_NS LH_NS_PER_MS
/* So many acknowledgements after the last loss. */
#define CTS_HASTE_MEMORY 256u

struct cts_announcement {
    struct control_cts entry;
    lh_time sent_ns; /* the last time */
};

/* Receiver: the window of unacknowledged announcements. */
struct cts_announcer {
    struct ring
        ring; /* of struct cts_announcement, from `acked` on: the owner holds the places, and frees it */
    uint32_t size;      /* of the window, a power of two */
    uint32_t next;      /* sequence of the next receive */
    uint32_t announced; /* sequences before this were sent at least once */
    uint32_t acked;     /* the peer has acknowledged all before this */
    uint32_t waits;     /* since the last acknowledgement, with a round trip known */
    lh_time waited_ns;  /* for an acknowledgement, the last time; 0: one came since. Backs off */
    lh_time silent_ns;  /* all waits since then */
    uint32_t haste;     /* not 0: announcements were lost, not long ago; acknowledgements until it ends */
    lh_time repeat_at;  /* LH_TIME_NEVER when everything is acknowledged */
};

void cts_announcer_init(struct cts_announcer *announcer, uint32_t size);
/* False when the window is full. Sets entry->sequence. The ring holds its place. */
bool cts_announce(struct cts_announcer *announcer, struct control_cts *entry);
/* True when the window moved. An acknowledgement beyond the announced is ignored. overdue_ns 0: no sample
 * yet. */
bool cts_on_ack(struct cts_announcer *announcer, uint32_t next, lh_time now, lh_time overdue_ns);
/* What to send now: fresh announcements first, then those that are overdue. 0: nothing. *repeated: the
 * number of those sent before. Call until it gives 0. overdue_ns 0: no sample yet. */
uint32_t cts_collect(struct cts_announcer *announcer, lh_time now, lh_time overdue_ns,
                     struct control_cts *out, uint32_t room, uint32_t *repeated);
/* What the last cts_collect gave could not be sent: it will give it again. */
void cts_on_refused(struct cts_announcer *announcer, uint32_t count, uint32_t repeated, lh_time now);
/* When cts_collect has something to give. */
lh_time cts_announcer_next(const struct cts_announcer *announcer);

/* Sender: what was received, in order. */
struct cts_queue {
    struct ring ring;  /* likewise, from `next_use` on */
    uint64_t *present; /* a bit for each place of the window, owned by the caller */
    uint32_t size;     /* of the window, a power of two */
    uint32_t next_use; /* sequence of the next one to be used */
    uint32_t received; /* all before this have been received */
};

void cts_queue_init(struct cts_queue *queue, uint64_t *present, uint32_t size);
/* Places that the ring must hold for this entry: 0, it would be ignored. */
uint32_t cts_queue_places(const struct cts_queue *queue, uint32_t sequence);
/* A duplicate or one outside the window is ignored. The entry's fields were checked by the caller, and the
 * ring holds its place. */
void cts_queue_add(struct cts_queue *queue, const struct control_cts *entry);
/* The one that the next send uses, or NULL. */
const struct control_cts *cts_queue_peek(const struct cts_queue *queue);
void cts_queue_pop(struct cts_queue *queue);
/* No entry is present, in order or not. */
bool cts_queue_is_empty(const struct cts_queue *queue);

#endif
