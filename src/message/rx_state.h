/*
 * rx_state.h - the receiving part of a connection: its state. What its files do with it:
 *
 *   rx_receiver.c     set-up, the step
 *   rx_receiver.c      TO_RECEIVER: lengths, and messages of the sender's machine
 *   rx_state.c    do packets of data pass at all?
 *   rx_receiver.c      buffers cut into segments, which are posted as places are free
 *   rx_receiver.c     segments that fill up, driven by a receiver's machine
 *   rx_messages.c       REFUSE, CANCEL and FORGET: messages that end early
 *   rx_messages.c     segments that have arrived: whole, or to be decoded
 *   rx_messages.c         DONE: what has arrived, for the sender
 *   rx_messages.c     messages to receive: added, ended, retired
 *   rx_state.c      receives that wait for a message of their tag
 *   rx_messages.c      which packets of a message with a deadline have come
 *   rx_messages.c     deadlines: whose counts, and messages that end by theirs
 *   rx_state.c  which scheme a message comes by, when nobody named one
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
 *   message.notice         REFUSE is sent again until it is answered (message_control.h)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_STATE_H
#define LH_MESSAGE_RX_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include <longhaul/connection.h>
#include <longhaul/sdr_ext.h>
#include <longhaul/types.h>

#include "control/message_control.h"
#include "message/attributes.h"
#include "message/parity_coding.h"
#include "message/receive_buffer.h"
#include "model/arrival_model.h"
#include "schemes/auto_choice.h"
#include "sdr/worker_sleep.h"
#include "store/store.h"
#include "wire/eager_packets.h"

/* ---- data path ------------------------------------------------------------------------------------- */

/*
 * Do packets of data pass? Control and data go to different UDP ports, and a firewall may let
 * the first alone through; a link may take small packets only, and report nothing: the peer is there, and
 * what it sends never arrives. Pure.
 *
 * The receiving side decides. It knows what the peer has sent from the lengths that the peer announces for
 * each segment, and retransmits while nothing answers.
 */

/* Packets of one kind: announced since the last of them arrived. */
struct data_path_kind {
    bool passed;       /* some did arrive */
    uint32_t evidence; /* packets of segments whose lengths came since */
    double silent;     /* share of the silence that is needed, from the first of them on */
    lh_time last_ns;   /* the latest of them */
};

struct data_path {
    struct data_path_kind any;
    struct data_path_kind full; /* of the whole MTU */
    bool small;                 /* a lone one that was announced lately is smaller */
    uint64_t packets;           /* that had arrived at the last announcement */
};

/* An announcement, and what is known when it comes. */
struct data_path_view {
    uint32_t bytes;     /* of the segment, at least 1: its packets are sent */
    uint32_t mtu_bytes; /* of each but the last */
    uint64_t packets;   /* of data that arrived on this connection, so far */
    bool full;          /* one of the MTU did, since the last announcement */
    lh_time overdue_ns;
    lh_time timeout_ns; /* attr.peer_timeout_ns: of a path that worked before */
};

enum data_path_state {
    DATA_PATH_PASSES, /* or there is no proof yet that it does not */
    DATA_PATH_BLOCKED,
    DATA_PATH_TOO_SMALL, /* small packets arrive, full ones do not */
};

/* The peer announced a segment, and sends it. */
enum data_path_state data_path_on_announced(struct data_path *path, const struct data_path_view *view,
                                            lh_time now);
/* Evidence of the path's MTU from then on is of the path as it is. */
lh_time data_path_since(const struct data_path_view *view, lh_time now);
/* Formats cause and remedy of a path that does not pass, as one line; returns out. Truncates at size.
 * probed_bytes: the largest payload of packets as long as which probes of the peer have arrived since; 0:
 * none did. No other size is recommended. */
char *data_path_reason(const struct data_path *path, enum data_path_state state, uint32_t mtu_bytes,
                       uint32_t probed_bytes, char *out, size_t size);

/* ---- auto deadline --------------------------------------------------------------------------------- */

/*
 * Deadline=auto: from what the messages before took, by the byte that came (OptiNIC,
 * section 3.1.2, within one connection; nothing is exchanged).
 *
 * The first is a share of the peer timeout: nothing is known. Each message that got something gives a
 * cost, its time by the bytes that came: one that was cut off counts as slow, so that the deadline grows
 * again. It is smoothed, and the deadline is 1.25 times what it makes for the buffer, two round trips,
 * and 50 us.
 */

struct auto_deadline {
    double cost_ns;   /* of a byte; 0: nothing is known */
    uint32_t nothing; /* messages in a row of which nothing came */
};

/* For a message of so many bytes; between 1 us and limit_ns. */
lh_time auto_deadline_of(const struct auto_deadline *automatic, uint64_t bytes, lh_time rtt_ns,
                         lh_time limit_ns);
/* A message has ended: the time from when its deadline counted, and the bytes that came. */
void auto_deadline_on_end(struct auto_deadline *automatic, lh_time took_ns, uint64_t arrived_bytes);

/* ---- rx -------------------------------------------------------------------------------------------- */

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
    bool small;     /* it comes without a clear-to-send, by carriers (wire/eager_packets.h), */
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
    bool later_arrived;         /* it was polled since a later segment began to arrive */
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

/* ---- waiting --------------------------------------------------------------------------------------- */

/*
 * Receives that choose their message by its tag and have none yet, in the order in which they
 * were posted.
 */

/* What a receive takes. */
struct rx_receive {
    struct message_request *request;
    struct message_buffer buffer;
    uint64_t capacity;
    uint64_t tag;
    uint64_t ignore; /* bits of the tag that need not agree */
};

struct waiting_receive;

struct waiting {
    struct waiting_receive *first;
    struct waiting_receive **end;  /* where the next one is hung; NULL: at first */
    struct waiting_receive *spare; /* for the next one; or NULL */
    uint32_t count;
};

bool receive_fits(const struct rx_receive *receive, uint64_t tag);

/* Memory for one more. False: there is none. */
bool waiting_hold(struct waiting *waiting, struct store *store);
/* Gives that memory back. */
void waiting_give_back(struct waiting *waiting, struct store *store);

/* Memory is held. */
void waiting_add(struct waiting *waiting, const struct rx_receive *receive);
/* Takes the first out that a message of this tag fits. False: there is none. */
bool waiting_take(struct waiting *waiting, struct store *store, uint64_t tag, struct rx_receive *receive);
/* Takes this one out. False: it does not wait. */
bool waiting_remove(struct waiting *waiting, struct store *store, const struct message_request *request);
/* Takes the first out. False: none waits. */
bool waiting_pop(struct waiting *waiting, struct store *store, struct rx_receive *receive);

/* ---- auto scheme ----------------------------------------------------------------------------------- */

/*
 * `reliability = "auto"`: what this side receives shows what the path is like, and by that
 * each message gets its scheme when its first segment is posted.
 *
 * Everything here is nothing when the scheme was named and does not adapt to the path: rx.automatic is NULL
 * then. Of one that does (lh_scheme.measured) the path is measured, and nothing is planned. Until a chunk
 * is lost nothing is planned: messages come by the scheme that sends least, but short ones of a path that is
 * not known yet by a code. Planning takes time, which the engine measures: auto_scheme_plan() weighs one
 * candidate while auto_scheme_planning(). It takes memory, too, which is given back when the connection is
 * idle, but for what each size has.
 */

/* What the newest message came by, for the user. */
struct auto_named {
    const char *unplanned; /* name of a scheme with its defaults; NULL: a plan chose `scheme` */
    struct lh_model_scheme scheme, other; /* without other: .other_seconds 0 */
    double seconds, other_seconds;
};

struct auto_scheme {
    struct path_estimate estimate;
    struct auto_choice *choice; /* of the store; NULL: nothing was lost, or idle */
    struct auto_kept kept;      /* of the one before */
    struct auto_named named;
    uint32_t newest;    /* segment of which a chunk has arrived */
    bool any;           /* or none has */
    lh_time arrival_ns; /* the newest poll that found anything; LH_TIME_NEVER: none did */
    uint64_t rx_bytes;  /* of all that had arrived by then */
    uint64_t capacity;  /* of the newest message */
};

/* rx->choice says "auto". */
void auto_scheme_init(struct rx *rx, struct auto_scheme *memory);

/* The scheme of a message whose first segment is about to be posted. */
void auto_scheme_choose(struct rx *rx, uint64_t capacity, lh_time now, struct scheme_choice *choice);
/* One that needs less memory for parity: what nobody named, or what was measured, is no reason to fail. */
void auto_scheme_spare(const struct rx *rx, struct scheme_choice *choice);
/* Whether it is time to decide for the next message. One that is decided later is decided better; but it must
 * be in time for its clear-to-send to reach the sender before the sender has nothing left to send. */
bool auto_scheme_may_start(const struct rx *rx);

/* A segment was polled; changed: it has more chunks than before. */
void auto_scheme_poll(struct rx *rx, struct rx_segment *segment, bool changed, lh_time now);
/* All were; number of chunks that have come. */
void auto_scheme_polled(struct rx *rx, uint32_t chunks, lh_time now);
/* A segment has arrived, or can be decoded; its bitmap is still there. */
void auto_scheme_segment_over(struct rx *rx, struct rx_segment *segment, lh_time now);

/* Whether there are candidates to be weighed. */
bool auto_scheme_planning(const struct rx *rx);
/* Weighs one; whether there are more. */
bool auto_scheme_plan(struct rx *rx);
/* That took so long, until now. */
void auto_scheme_planned(struct rx *rx, lh_time now, lh_time took_ns);

void auto_scheme_give_back(struct rx *rx);

/* What was chosen for the newest message, and why. */
void auto_scheme_report(const struct rx *rx, struct lh_scheme_report *out);

#endif
