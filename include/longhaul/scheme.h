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

/* Scheme ids from here on are free for schemes that are not part of Longhaul. */
#define LH_SCHEME_ID_USER 128

enum lh_action_kind {
    LH_ACTION_SEND_CHUNKS, /* sender: inject chunks first … first + count - 1, count <= budget_chunks left
                            */
    LH_ACTION_SEND_MESSAGE, /* either: to the other machine; may be lost, doubled, late */
    LH_ACTION_COMPLETE,     /* receiver: hand the buffer over */
    LH_ACTION_FAIL,         /* either: end the transfer with this error */
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
};

struct lh_receiver_view {
    lh_time now;
    struct lh_path_view path;
    const uint8_t *chunk_bitmap; /* one byte a chunk, non-zero: the whole chunk is there */
    uint32_t chunks_arrived;     /* how many are non-zero */
    lh_time last_arrival_ns;     /* when the newest chunk was seen; LH_TIME_NEVER: none yet */
    lh_time later_seen_ns; /* when a later message of the connection first showed; LH_TIME_NEVER: none */
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
};

/* The schemes of this build, ended by NULL. */
LH_API const struct lh_scheme *const *lh_schemes(void);

#ifdef __cplusplus
}
#endif
#endif
