/*
 * operation_state.h - one collective at one rank: its state, which the parts of an operation share, and what
 * operations need of their group.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_OPERATION_STATE_H
#define LH_GROUP_OPERATION_STATE_H

#include <pthread.h>

#include <longhaul/collective.h>
#include <longhaul/timeout.h>

#include "collective/operation_digest.h"
#include "collective/operation_progress.h"
#include "group/group_link.h"
#include "group/group_messages.h"
#include "group/group_paths.h"

struct bounded;
struct sdr_context;

/* What operations need of their group, and leave to the next. */
struct op_context {
    const struct members *members;
    struct group_paths *paths;
    struct past past;
    struct lh_timeout *timeouts[COLLECTIVES]; /* of operations whose deadline is learned; NULL: none yet */
    uint8_t *work;                            /* of the last operation that needed memory, for the next */
    size_t work_bytes;
    bool work_taken;
    size_t block_bytes;
    bool bounded[2]; /* reliability inside a site, across */
    lh_time peer_timeout_ns;
    struct sdr_context *clock;
    pthread_cond_t *changed; /* an operation is done */
};

/* A message that has arrived and is not applied yet. */
struct arrival {
    struct bounce *bounce; /* NULL: copied */
    uint8_t *copy;
    struct loss *loss; /* what did not come of it; NULL: nothing */
    uint8_t
        *counts; /* of a bounded operation: contributions, where there is more than one number of them */
    uint16_t contributions; /* else the number; 0: `counts` is to come, or has */
    bool arrived;           /* but for `counts` */
    bool complete;          /* nothing more is waited for */
    bool given_up;          /* it did not come in time: what comes now is dropped */
};

/* Another rank in it. */
struct op_peer {
    struct progress_list ready; /* sends that may leave, by op->next_ready */
    uint32_t first_receive;     /* in op->receives_of */
    uint32_t receives;
    uint32_t left;  /* of these, that have not arrived */
    uint32_t sends; /* pieces for it */
    uint32_t unsent;
    uint32_t early[LANES]; /* pieces sent before its signature came */
    bool agreed;           /* its signature has come, and is the same */
    bool excused;          /* it is not waited for */
};

/* Of lh_compare(). */
struct comparison {
    uint8_t *digests; /* by rank and buffer, as `differs`; NULL: it is none. The operation's, once made */
    uint32_t buffers;
    bool *differs;
};

enum op_state {
    OP_RUNNING,
    OP_DONE,
};

struct lh_collective {
    struct lh_collective *next; /* of the group's */
    struct lh_group *group;     /* for the calls: parts of an operation know the next two only */
    const struct members *members;
    struct op_context *context;
    uint32_t number; /* modulo, in tags */
    enum op_state state;
    struct signature signature;
    struct layout layout;
    struct parts parts; /* of a v-variant */
    void *parts_memory;
    const struct schedule *schedule;
    struct comparison comparison;
    struct bounded *bounded; /* NULL: every byte arrives */
    struct schedule_shape shape;
    struct group_order *order; /* that it follows; NULL: none */
    struct pieces pieces;
    struct progress progress;
    struct arrival *arrivals; /* by receive */
    uint32_t *receives_of;    /* receives by peer and number */
    uint32_t *next_ready;     /* by send */
    struct op_peer *peers;    /* by rank of the group */
    void *arrays;             /* all of these */
    uint8_t *work;
    size_t work_bytes;
    uint32_t unsent;
    uint32_t unsigned_peers;  /* whose signature has not come: nobody ends before they agree */
    struct sent_list waiting; /* sends out of the user's memory */
    lh_time deadline_at;      /* LH_TIME_NEVER: none */
    struct lh_completion_queue *queue;
    uint64_t user;
    struct lh_collective_result result;
};

struct op_request {
    enum collective collective;
    const void *in;
    void *out;
    size_t count;
    const size_t *in_counts; /* of a v-variant, by rank; NULL: it needs none */
    const size_t *out_counts;
    enum call_form form;
    struct comparison comparison;
    enum lh_type type;
    enum lh_reduction reduction;
    bool reduces;
    bool in_place; /* in may be equal to out */
    bool needs_in;
    bool needs_out;
    bool needs_counts;
    bool by_rank; /* whatever is known of paths */
    uint32_t root;
    const struct lh_collective_options *options;
};

#endif
