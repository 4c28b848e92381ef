/*
 * scheme.h - the interface of reliability schemes: two small state machines, the sender's and the receiver's.
 *
 * A *transfer* is one SDR message: chunks 0 … chunks - 1, each one bit of the receive bitmap (SDR-RDMA
 * paper, sections 3.1.1 and 4.1). The connection owns buffers, slots, sockets and time; the scheme decides. A
 * scheme is pure: it depends only on its state and its arguments. A step gets a view of the current state,
 * and appends actions to a list. The connection executes the actions in order: a message leaves after the
 * chunks before it.
 *
 * The connection calls a step again
 *   - at once, when the list was full;
 *   - after every event of its transfer, and when budget returns after the step used all of it, when the
 *     round trip falls below half of its former value, when data_waits ends, and when holds_up begins;
 *   - at next_ns; while pacing blocks a sender, only after data has left.
 *
 * A scheme needs no final acknowledgement. After the receiver's LH_ACTION_COMPLETE the connection notifies
 * the sender, again for each of the sender's probes, and ends the sender's machine.
 *
 * An erasure code has *extra* chunks: parity. They are numbered from `chunks` on, and use a separate SDR
 * message and memory of the connection at both ends. The sender's machine requests their computation
 * (LH_ACTION_ENCODE); its view counts completed requests. The receiver's machine may issue LH_ACTION_COMPLETE
 * as soon as the missing chunks can be decoded. The connection then closes the slots, notifies the sender,
 * and decodes.
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
#define LH_ENCODES_MAX        64 /* pending LH_ACTION_ENCODE of one transfer */

/* Scheme ids from here on are free for other schemes than Longhaul's. */
#define LH_SCHEME_ID_USER 128

/* Rules for a step, beside those at each action:
 *   budget      All actions together inject at most budget_chunks. A step that leaves budget unused has
 *               nothing to inject: further budget does not trigger a step, only an event or next_ns does.
 *   next_ns     Each step sets it, to a time after `now` or LH_TIME_NEVER, unless the list is full.
 *   in flight   Each step of the sender sets in_flight_chunks, at most the chunks injected so far.
 *   complete    Once, with length_known, when every chunk has arrived (or can be decoded); nothing after it.
 *   again       Set only for chunks that were injected before.
 *   encode      At most LH_ENCODES_MAX requests pending; extra chunks leave only while extra_open. */
enum lh_action_kind {
    LH_ACTION_SEND_CHUNKS,  /* sender: inject chunks first … first + count - 1, all of the message or all
                              extra, count <= budget_chunks left */
    LH_ACTION_SEND_MESSAGE, /* either: to the peer's machine; may be lost, duplicated, late */
    LH_ACTION_COMPLETE,     /* receiver: every chunk has arrived or can be decoded; deliver the buffer */
    LH_ACTION_FAIL,         /* either: end the transfer with this error */
    LH_ACTION_ENCODE,       /* sender: compute extra chunks; counted in the view when done */
    LH_ACTION_FINISH,       /* receiver: no more data is expected; deliver the arrived data */
    LH_ACTION_SENT,         /* sender: all data is injected; the message is sent when it has left */
};

struct lh_action {
    enum lh_action_kind kind;
    union {
        struct {
            uint32_t first;
            uint32_t count;
            bool again; /* a retransmission, counted as such; false for a planned copy */
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
    lh_time next_ns;           /* out: latest time of the next step; LH_TIME_NEVER: none */
    uint32_t in_flight_chunks; /* out, sender: sent, not acknowledged, not counted as lost */
};

/* Appends an action. NULL: the list is full; the step returns, and is called again. */
static inline struct lh_action *lh_action_add(struct lh_actions *actions, enum lh_action_kind kind)
{
    if (actions->count == LH_ACTIONS_MAX)
        return (struct lh_action *)0;
    struct lh_action *action = &actions->list[actions->count++];
    action->kind = kind;
    return action;
}

/* The path's current measurement. All 0 before the first sample. */
struct lh_path_view {
    lh_time rtt_ns; /* smoothed */
    lh_time rtt_minimum_ns;
    lh_time overdue_ns;        /* time after which an answer is late */
    lh_time reorder_window_ns; /* a packet missing for this long after its successors is lost */
};

struct lh_sender_view {
    lh_time now;
    struct lh_path_view path;
    uint32_t budget_chunks; /* maximum to inject in this step */
    bool extra_open;        /* extra chunks may be injected: their clear-to-send has arrived */
    uint32_t encoded;       /* number of completed LH_ACTION_ENCODE of this transfer, in their order */
    bool data_waits; /* data of other transfers of the connection can be injected; parity delays it */
    bool holds_up;   /* later transfers use half of the connection's slots */
    bool withdrawn;  /* the receiver needs no more: a scheme with a deadline stops injecting, and issues
                        LH_ACTION_SENT */
    uint32_t later_chunks;  /* chunks of other transfers and further messages, not yet injected */
    uint32_t flight_chunks; /* in flight, of all transfers of the connection */
};

struct lh_receiver_view {
    lh_time now;
    struct lh_path_view path;
    const uint8_t *chunk_bitmap; /* one byte per chunk, non-zero: the whole chunk has arrived */
    uint32_t chunks_arrived;     /* number of non-zero bytes */
    const uint8_t *extra_bitmap; /* one byte per extra chunk, as above; NULL: no extra chunks */
    uint32_t extra_arrived;
    lh_time last_arrival_ns; /* arrival of the newest chunk, extra or not; LH_TIME_NEVER: none yet */
    lh_time later_seen_ns;   /* first arrival of a later message of the connection; LH_TIME_NEVER: none */
    /* First arrival of a chunk of a later message or segment, sent after all of this one; LH_TIME_NEVER:
     * none. */
    lh_time later_arrival_ns;
    /* All chunks that reached this host before this time are in the bitmap; messages use another socket, and
     * may be read before earlier chunks. 0: unknown. */
    lh_time caught_up_ns;
    bool length_known; /* chunks is final: the sender has announced the length */
    uint32_t chunks;   /* of the message; before length_known, of the buffer */
};

struct lh_transfer {
    uint32_t chunks; /* sender: of the message; receiver: of the buffer */
    uint32_t chunk_bytes;
    uint8_t params[LH_SCHEME_PARAMS];
    struct lh_stats *stats; /* counters to add to */
};

/* A transfer's memory, for encode and decode. */
struct lh_coding {
    uint8_t params[LH_SCHEME_PARAMS];
    uint32_t chunks; /* of the message */
    uint32_t chunk_bytes;
    uint64_t bytes;         /* of the message: a short last chunk counts as padded with 0 */
    const uint8_t *message; /* sender: only read */
    uint8_t *room;          /* receiver: the message's buffer; NULL at the sender */
    uint8_t *extra;         /* extra chunks, chunk_bytes each */
};

/* The calls of an erasure code. Any thread may call them. */
struct lh_scheme_coding {
    /* Returns the maximum chunks of a message in one transfer, with SDR messages of slot_chunks; the extra
     * chunks must fit one, too. 0: slot_chunks is too small for this code. */
    uint32_t (*transfer_chunks_max)(const uint8_t params[LH_SCHEME_PARAMS], uint32_t slot_chunks);
    /* Returns the number of extra chunks for `chunks` chunks; at most slot_chunks, and never decreasing with
     * chunks. */
    uint32_t (*extra_chunks)(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks);
    /* Returns the number of independently coded groups: submessages. */
    uint32_t (*groups)(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks);
    void (*encode)(const struct lh_coding *coding, uint32_t group, uint32_t first_row, uint32_t rows);
    /* Recovers the missing chunks of a group of a complete transfer. The bitmaps are those of the view, and
     * do not change meanwhile. Returns the number of recovered chunks. */
    uint32_t (*decode)(const struct lh_coding *coding, uint32_t group, const uint8_t *chunk_bitmap,
                       const uint8_t *extra_bitmap);
    /* For a scheme with a deadline, else NULL: sets recovered[i] for each missing chunk i that decode() will
     * recover, clears all others, and returns the number set. decode() is then called for every group, and
     * leaves unrecoverable groups unchanged. */
    uint32_t (*recoverable)(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks,
                            const uint8_t *chunk_bitmap, const uint8_t *extra_bitmap, uint8_t *recovered);
};

#define LH_DEADLINE_AUTO ((lh_time)0)  /* the connection chooses it from earlier messages' times */
#define LH_DEADLINE_NONE LH_TIME_NEVER /* a message ends when no more of its data is expected */

/* A scheme with a deadline delivers the data that has arrived by then. The connection enforces the deadline,
 * whatever the machines do. The machines may end a transfer earlier. The receiver's issues LH_ACTION_FINISH
 * (as COMPLETE, though chunks are missing) when it expects no more data. The sender's issues LH_ACTION_SENT
 * once, with no encode pending, and no chunks or encodes afterwards; it lives on until the receiver has
 * finished. */
struct lh_scheme {
    const char *name; /* "sr-nack": the part of lh_attr.reliability before the first comma */
    const char *help; /* its parameters in one line */
    uint8_t id;       /* sent in every clear-to-send; LH_SCHEME_ID_USER or above for your own */

    /* Parses the part after the first comma ("" without one) into params. 0 or -LH_EINVAL. */
    int (*parse)(const char *text, uint8_t params[LH_SCHEME_PARAMS]);
    /* Returns whether params from the wire are valid. */
    bool (*params_valid)(const uint8_t params[LH_SCHEME_PARAMS]);

    /* Return the bytes of state for a transfer of at most chunks_max chunks; the state is aligned to 64
     * bytes. */
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

    const struct lh_scheme_coding *coding; /* NULL: no erasure code, no extra chunks */

    /* Returns the deadline: LH_DEADLINE_AUTO, LH_DEADLINE_NONE, or at least 1 us, after which a message is
     * delivered as it is. It counts from the time at which the receive is the first pending one: it is
     * posted, and all earlier receives with deadlines are done. NULL: no deadline, every byte arrives. */
    lh_time (*deadline)(const uint8_t params[LH_SCHEME_PARAMS]);

    /* Puts the receiver's measurements of the path into valid params, before each message. loss: of chunks.
     * run_chunks: mean burst length, in chunks. slot_chunks: capacity of an SDR message. NULL: the scheme
     * does not use them. */
    void (*measured)(double loss, double run_chunks, uint32_t slot_chunks,
                     uint8_t params[LH_SCHEME_PARAMS]);
};

/* Returns the schemes of this build, ended by NULL. */
LH_API const struct lh_scheme *const *lh_schemes(void);

#ifdef __cplusplus
}
#endif
#endif
