/*
 * scheme.h - how a reliability scheme is written: two small machines, a sender's and a receiver's.
 *
 * A *transfer* is one SDR message: chunks 0 … chunks - 1, each one bit of the receive bitmap (SDR-RDMA
 * paper, sections 3.1.1 and 4.1). The connection owns buffers, slots, sockets and time; the scheme decides.
 * It is pure: it sees a view of the moment, and appends what it wants done to a list of actions. It is
 * called again at once when the list was full, whenever something happened to its transfer (a budget where
 * there was none, too), and at next_ns. Actions are carried out in the order of the list: a message leaves
 * after the chunks before it. Nothing a scheme does may depend on anything but its state and its arguments.
 *
 * A scheme needs no final acknowledgement of its own: when the receiver's machine says LH_ACTION_COMPLETE,
 * the connection tells the sender, repeats that as long as the sender asks, and ends the sender's machine.
 *
 * A scheme that codes has *extra* chunks beside those of the message: parity. They are numbered from
 * `chunks` on, travel in an SDR message of their own, and live in memory that the connection keeps at both
 * ends. The sender's machine asks for them to be computed (LH_ACTION_ENCODE), and learns from its view how
 * many of these requests were carried out; the receiver's may say LH_ACTION_COMPLETE as soon as what is
 * missing can be computed: the connection then closes the slots, tells the sender, and decodes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_SCHEME_H
#define LONGHAUL_SCHEME_H

#include <longhaul/stats.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LH_SCHEME_MESSAGE_MAX 896 /* bytes of one message between the two machines */
#define LH_SCHEME_PARAMS      8   /* bytes of parameters that travel from receiver to sender */
#define LH_ACTIONS_MAX        8
#define LH_ENCODES_MAX        64 /* LH_ACTION_ENCODE of one transfer that were not carried out yet */

/* Scheme ids from here on are free for schemes that are not part of Longhaul. */
#define LH_SCHEME_ID_USER 128

enum lh_action_kind {
    LH_ACTION_SEND_CHUNKS,  /* sender: inject chunks first … first + count - 1, all of the message or all
                              extra, count <= budget_chunks left */
    LH_ACTION_SEND_MESSAGE, /* either: to the other machine; may be lost, doubled, late */
    LH_ACTION_COMPLETE,     /* receiver: every chunk is there or can be decoded; hand the buffer over */
    LH_ACTION_FAIL,         /* either: end the transfer with this error */
    LH_ACTION_ENCODE,       /* sender: compute extra chunks; the connection counts when it is done */
};

struct lh_action {
    enum lh_action_kind kind;
    union {
        struct {
            uint32_t first;
            uint32_t count;
            bool again; /* these were sent before: counted as retransmitted */
        } chunks;
        struct {
            uint32_t bytes;
            uint8_t data[LH_SCHEME_MESSAGE_MAX];
        } message;
        struct {
            uint32_t group;
            uint32_t first_row;
            uint32_t rows;
        } encode;
        int error; /* enum lh_error */
    } what;
};

struct lh_actions {
    struct lh_action list[LH_ACTIONS_MAX];
    uint32_t count;
    lh_time next_ns;           /* out: call step again at this moment at the latest; LH_TIME_NEVER */
    uint32_t in_flight_chunks; /* out, sender: sent, not acknowledged, not given up as lost */
};

/* Room for one more action of this kind, or NULL when the list is full (return then: you are called again).
 */
static inline struct lh_action *lh_action_add(struct lh_actions *actions, enum lh_action_kind kind)
{
    if (actions->count == LH_ACTIONS_MAX)
        return (struct lh_action *)0;
    struct lh_action *action = &actions->list[actions->count++];
    action->kind = kind;
    return action;
}

/* The path as it is measured now. All 0 before the first sample. */
struct lh_path_view {
    lh_time rtt_ns; /* smoothed */
    lh_time rtt_minimum_ns;
    lh_time overdue_ns;        /* an answer that takes longer than this is late */
    lh_time reorder_window_ns; /* a packet that comes this much after its successors is lost */
};

struct lh_sender_view {
    lh_time now;
    struct lh_path_view path;
    uint32_t budget_chunks; /* that may be injected in this step */
    bool extra_open;        /* extra chunks may be injected: the receiver has cleared them to be sent */
    uint32_t encoded; /* how many LH_ACTION_ENCODE of this transfer were carried out, in their order */
};

struct lh_receiver_view {
    lh_time now;
    struct lh_path_view path;
    const uint8_t *chunk_bitmap; /* one byte a chunk, non-zero: the whole chunk is there */
    uint32_t chunks_arrived;     /* how many are non-zero */
    const uint8_t *extra_bitmap; /* likewise of the extra chunks; NULL: there are none */
    uint32_t extra_arrived;
    lh_time last_arrival_ns; /* when the newest chunk, extra or not, was seen; LH_TIME_NEVER: none yet */
    lh_time later_seen_ns;   /* when a later message of the connection first showed; LH_TIME_NEVER: none */
    lh_time
        caught_up_ns; /* each chunk that had reached this host before this moment is in the bitmap; messages
                         come another way, and may overtake chunks that still wait. 0: not known */
    bool length_known; /* chunks is final: the sender has told the length */
    uint32_t chunks;   /* of the message; before length_known, of the buffer */
};

struct lh_transfer {
    uint32_t chunks; /* sender: of the message; receiver: room in the buffer */
    uint32_t chunk_bytes;
    uint8_t params[LH_SCHEME_PARAMS];
    struct lh_stats *stats; /* counters to add to */
};

/* A transfer's memory, for the calls that compute. */
struct lh_coding {
    uint8_t params[LH_SCHEME_PARAMS];
    uint32_t chunks; /* of the message */
    uint32_t chunk_bytes;
    uint64_t bytes; /* of the message: the last chunk may be short, and counts as filled up with 0 */
    const uint8_t *message; /* sender: only read */
    uint8_t *room;          /* receiver: the message's place; NULL at the sender */
    uint8_t *extra;         /* extra chunks, chunk_bytes each */
};

/* What a scheme that codes has besides. May be called from any thread. */
struct lh_scheme_coding {
    /* Most chunks of a message in one transfer, where an SDR message holds slot_chunks: the extra chunks
     * must fit one, too. 0: it is too small for this code. */
    uint32_t (*transfer_chunks_max)(const uint8_t params[LH_SCHEME_PARAMS], uint32_t slot_chunks);
    /* Places of extra chunks beside so many chunks; at most slot_chunks, and no fewer for more chunks. */
    uint32_t (*extra_chunks)(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks);
    /* Groups that are coded by themselves: submessages. */
    uint32_t (*groups)(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks);
    void (*encode)(const struct lh_coding *coding, uint32_t group, uint32_t first_row, uint32_t rows);
    /* Fills in what a group of a complete transfer lacks. The bitmaps are as in the view, and do not change
     * meanwhile. Returns how many chunks it recovered. */
    uint32_t (*decode)(const struct lh_coding *coding, uint32_t group, const uint8_t *chunk_bitmap,
                       const uint8_t *extra_bitmap);
};

struct lh_scheme {
    const char *name; /* "sr-nack": what users type before the first comma */
    const char *help; /* its parameters in one line */
    uint8_t id;       /* travels in every clear-to-send; LH_SCHEME_ID_USER or above for your own */

    /* Parses what stands after the first comma ("" when nothing does) into params. 0 or -LH_EINVAL. */
    int (*parse)(const char *text, uint8_t params[LH_SCHEME_PARAMS]);
    /* Whether params that came over the wire are possible. */
    bool (*params_valid)(const uint8_t params[LH_SCHEME_PARAMS]);

    /* Bytes of state for a transfer of at most that many chunks; aligned to 64 when it is given back. */
    size_t (*sender_bytes)(uint32_t chunks_max);
    void (*sender_start)(void *state, const struct lh_transfer *transfer, lh_time now);
    void (*sender_on_message)(void *state, const uint8_t *data, size_t bytes,
                              const struct lh_sender_view *view);
    void (*sender_step)(void *state, const struct lh_sender_view *view, struct lh_actions *actions);

    size_t (*receiver_bytes)(uint32_t chunks_max);
    void (*receiver_start)(void *state, const struct lh_transfer *transfer, lh_time now);
    void (*receiver_on_message)(void *state, const uint8_t *data, size_t bytes,
                                const struct lh_receiver_view *view);
    void (*receiver_step)(void *state, const struct lh_receiver_view *view, struct lh_actions *actions);

    const struct lh_scheme_coding *coding; /* NULL: it sends the message's chunks and no others */
};

/* The schemes of this build, ended by NULL. */
LH_API const struct lh_scheme *const *lh_schemes(void);

#ifdef __cplusplus
}
#endif
#endif
