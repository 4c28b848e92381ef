/*
 * rx.h - the receiving part of a connection: its state. What its files do with it:
 *
 *   receiver.c     set-up, the step
 *   lengths.c      TO_RECEIVER: lengths, and messages of the sender's machine
 *   data_path.c    do packets of data pass at all?
 *   posting.c      buffers cut into segments, which are posted as places are free
 *   arrivals.c     segments that fill up, driven by a receiver's machine
 *   refuse.c       REFUSE, CANCEL and FORGET: messages that end early
 *   decoding.c     segments that have arrived: whole, or to be decoded
 *   done.c         DONE: what has arrived, for the sender
 *   messages.c     messages to receive: added, ended, retired
 *   waiting.c      receives that wait for a message of their tag
 *   partial.c      which packets of a message with a deadline have come
 *   deadline.c     deadlines: whose counts, and messages that end by theirs
 *   auto_scheme.c  which scheme a message comes by, when nobody named one
 *
 * Events come in with `now`; packets go down to the SDR QP in the order of the calls; what is for the engine
 * is in `effects` when a call returns.
 *
 * Timers:
 *   segment.next_ns        the one that its machine asked for
 *   segment.watch.mark_at  with `auto`: a gap counts as lost
 *   done.refresh_at        DONE is sent again: rtt / 64 after the last segment arrived, then twice after
 *                          rtt / 8
 *   rx.active_at           the deadline of the first pending message
 *   message.notice         REFUSE is sent again until it is answered (control/abort.h)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_RX_H
#define LH_MESSAGE_RX_RX_H

#include <longhaul/connection.h>
#include <longhaul/sdr_ext.h>

#include "message/buffer/buffer.h"
#include "message/coding/coder.h"
#include "message/coding/parity.h"
#include "message/control/abort.h"
#include "message/control/effects.h"
#include "message/rx/auto_deadline.h"
#include "message/rx/data_path.h"
#include "message/scheme/scheme_choice.h"
#include "model/arrival_watch.h"
#include "store/ring.h"
#include "wire/eager.h"
#include "wire/transfer.h"

#define MESSAGE_BYTES_UNKNOWN UINT64_MAX

struct auto_scheme;

enum rx_state {
    RX_EMPTY,   /* no lh_recv yet; notice.error: canceled ahead of it */
    RX_OPEN,    /* pending */
    RX_REFUSED, /* over; REFUSE is sent until the sender answers */
    RX_OVER,
};

struct rx_message {
    enum rx_state state;
    uint32_t number;
    struct message_request *request; /* while RX_OPEN */
    struct message_buffer buffer;
    uint64_t capacity;
    uint64_t bytes;              /* MESSAGE_BYTES_UNKNOWN: not announced yet */
    uint64_t tag;                /* announced with them */
    struct scheme_choice choice; /* final when the first segment is posted, and so is how it is cut */
    uint64_t segment_bytes;      /* of each but the last */
    uint64_t *arrived;           /* of a message with a deadline, once it is posted: a bit a packet */
    enum lh_end end;             /* likewise: how it ended */
    bool guessed;                /* likewise: its length was not announced, and is that of the buffer */
    bool cut;                    /* likewise: it ended before the sender could know that it is over */
    uint32_t segments;           /* that the buffer has, later that the message has; at least 1 */
    uint32_t posted;
    uint32_t done;
    bool forgotten; /* the sender has received the refusal */
    bool small;     /* it comes without a clear-to-send, by carriers (wire/eager.h), */
    uint8_t units;  /* of which these units have come, a bit each */
    bool is_long;   /* it does not: the sender announced it */
    struct abort_notice notice;
};

enum rx_segment_state {
    SEGMENT_FREE,
    SEGMENT_OPEN,
    SEGMENT_PARITY,   /* takes the parity of the open segment before it */
    SEGMENT_DONE,     /* arrived; or can be decoded, which goes on while coded.jobs > 0 */
    SEGMENT_UNNEEDED, /* the message turned out shorter */
    SEGMENT_FAILED,   /* its message was refused; kept until the sender has received that */
};

/* What a segment has besides, when the scheme codes. */
struct coded_rx {
    struct sdr_recv_handle *handle; /* of the parity; NULL: not posted, or over */
    const uint8_t *bitmap;
    uint32_t extra_chunks;        /* 0: it needs none */
    uint32_t arrived;             /* of those */
    struct parity_buffer *buffer; /* or NULL */
    struct lh_coding coding;      /* while it is decoded */
    uint32_t jobs;                /* of the coder that are not done */
};

/* One place of the ring of segments, at sequence % slots. */
struct rx_segment {
    enum rx_segment_state state;
    bool needs_step;
    uint32_t sequence;
    uint32_t message;
    uint32_t index;        /* of the message */
    uint32_t posted_bytes; /* capacity */
    uint32_t bytes;        /* capacity, later length */
    uint8_t *payload;      /* where its packets are placed; NULL: no bytes */
    struct parity_buffer
        *copied; /* of a message in several parts: copied from here when it has arrived; or NULL */
    struct sdr_recv_handle *handle;
    const uint8_t *bitmap;
    const struct lh_scheme *scheme;
    void *machine; /* kept for the next segment of this place */
    uint32_t machine_bytes;
    uint32_t arrived;
    lh_time last_arrival_ns;
    lh_time later_seen_ns;
    lh_time later_arrival_ns;
    lh_time next_ns;
    struct coded_rx coded;
    struct arrival_watch watch; /* with `auto` */
    bool preempted;             /* a later message has begun to arrive */
    bool overtaken;             /* it was polled since a later segment began to arrive */
};

/* What was announced last of what has arrived. */
struct done_state {
    bool wanted;      /* something arrived in this step */
    bool any;         /* or ever */
    uint32_t segment; /* that arrived last */
    uint32_t refreshes_left;
    lh_time refresh_at;
};

struct rx {
    struct sdr_qp *qp;
    const struct lh_attr *attr;
    const struct lh_sdr_path *path; /* the engine refreshes it */
    struct coder *coder;
    struct parity_pool *parity;
    struct lh_stats *stats;        /* of the connection, as the next */
    struct effects *effects;       /* of the parts */
    struct scheme_choice choice;   /* of the next message */
    struct auto_scheme *automatic; /* where the path is measured, once there was a receive; or NULL */
    struct store *store;
    struct ring messages;        /* of struct rx_message, from the oldest on: MESSAGES_MAX at most */
    uint32_t ahead;              /* one past the last that was canceled ahead of its lh_recv */
    uint32_t oldest;             /* message that is not over */
    uint32_t next;               /* message number of the next lh_recv */
    uint32_t posting;            /* message whose segments are posted next; all before it are posted */
    struct rx_segment *segments; /* attr.slots; NULL: no message is there */
    uint32_t segment_oldest;     /* all before it are over */
    uint32_t segment_next;       /* sequence of the next one to be posted */
    bool parity_due;             /* the parity of the newest segment is to be posted next */
    uint32_t newest_seen;        /* something of this segment, but of no later one, was seen */
    bool post_refused;           /* the SDR layer takes no more receives for now, or has no memory */
    lh_time caught_up_ns;        /* what arrived before this has been polled */
    uint32_t refusing;           /* messages that are RX_REFUSED */
    struct done_state done;
    uint32_t active;         /* with a deadline: no message before it waits, and its deadline counts */
    lh_time active_since_ns; /* when that was so; but no earlier than its post */
    lh_time active_at;       /* its deadline; 0: not set yet */
    uint64_t active_bytes;   /* once it has ended: that came of it; MESSAGE_BYTES_UNKNOWN: with an error */
    struct auto_deadline automatic_deadline;
    struct data_path data_path;
    uint16_t peer_announced; /* schemes that not every peer can send by (scheme_table_announced()) */
    bool eager;              /* the peer sends small messages without a clear-to-send */
    bool matched;            /* receives choose messages by their tags: numbers are those of the sends */
    bool placed_first;       /* the sender hears of a segment once it is decoded, not once it can be */
};

/* One from the oldest on to the next, or one that rx_message_known() knows. */
static inline struct rx_message *rx_message_at(const struct rx *rx, uint32_t number)
{
    return ring_at(&rx->messages, number);
}

/* Whether a number, of the peer, has a place. */
static inline bool rx_message_known(const struct rx *rx, uint32_t number)
{
    return number - rx->oldest < rx->messages.size;
}

/* While there are segments. */
static inline struct rx_segment *rx_segment_at(const struct rx *rx, uint32_t sequence)
{
    return &rx->segments[sequence & (rx->attr->slots - 1)];
}

/* Number of chunks of a segment; before its length is known, of its part of the buffer. */
static inline uint32_t rx_segment_chunks(const struct rx *rx, const struct rx_segment *segment)
{
    return (segment->bytes + rx->attr->chunk_bytes - 1) / rx->attr->chunk_bytes;
}

/* Whether it comes by carriers, without a clear-to-send: it is small, or its buffer is. */
static inline bool rx_is_carried(const struct rx *rx, const struct rx_message *message)
{
    return message->small || (rx->eager && message->capacity <= eager_small_max(rx->attr->mtu_bytes));
}

/* Number of segments that a message of that many bytes is cut into. */
static inline uint32_t rx_segments_of(const struct rx_message *message, uint64_t bytes)
{
    return bytes == 0 ? 1 : (uint32_t)((bytes - 1) / message->segment_bytes + 1);
}

#endif
