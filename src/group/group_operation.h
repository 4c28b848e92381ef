/*
 * group_operation.h - one collective at one rank, from its call to its end: runs the dependencies of
 * collective/operation_progress.h over the links of its group.
 *
 * All under the lock of the mesh. An operation neither reads messages nor waits: arrivals come in as calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_GROUP_OPERATION_H
#define LH_GROUP_GROUP_OPERATION_H

#include "collective/operation_digest.h"
#include "collective/operation_progress.h"
#include "group/bounded_operation.h"
#include "group/group.h"

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

struct bounded;

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
    struct lh_group *group;
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

/* Makes an operation, which has not begun. -LH_EINVAL, -LH_ENOMEM. */
int op_create(struct lh_group *group, const struct op_request *request, const struct schedule *schedule,
              struct lh_collective **op);
/* Sends signatures and the first pieces. 0, or what ends it, and *rank says whose link failed, or who is the
 * cause; LH_NO_RANK: no one. Then call op_fail(). */
int op_begin(struct lh_collective *op, lh_time now, uint32_t *rank);
/* The signature of a rank. 0; -LH_EPROTOCOL: it differs, and text[size] says how. */
int op_on_signature(struct lh_collective *op, uint32_t rank, const struct signature *signature, char *text,
                    size_t size);
/* A piece of a rank that has agreed, in a buffer, or, without one, as data that is copied. Buffer and loss
 * are the operation's where it sets them to NULL. -LH_EPROTOCOL: no such piece; -LH_ENOMEM. */
struct op_piece {
    uint32_t piece; /* of the tag */
    const uint8_t *data;
    size_t bytes;
    struct bounce *bounce;
    struct loss *loss;
};
int op_on_piece(struct lh_collective *op, uint32_t rank, struct op_piece *in);
/* The contributions of a piece of such a rank. Likewise. */
int op_on_counts(struct lh_collective *op, uint32_t rank, const struct op_piece *in);
/* The buffer of a piece that waits for others is needed for more messages: copies it, where it is small or
 * few are left. -LH_ENOMEM. */
int op_unload(struct lh_collective *op, uint32_t rank, uint32_t piece);
/* Applies what is due, sends what may leave, and ends when all is done. 0, or what ends it, with the rank
 * that the error is of: then call op_fail(). */
int op_run(struct lh_collective *op, lh_time now, uint32_t *rank);
/* Whether it needs anything of a rank, or has something for it. */
bool op_needs(const struct lh_collective *op, uint32_t rank);
/* Ends it with an error. */
void op_fail(struct lh_collective *op, lh_time now, const struct notice *notice);
/* It is done. */
void op_destroy(struct lh_collective *op);

/* ---- deadlines ------------------------------------------------------------------------------------- */

/*
 * Deadlines of operations that nobody has given (`bounded`, or `bounded:deadline=auto`): a
 * group's timeout (longhaul/timeout.h) for each collective. The first operation has none, and is the
 * warm-up; after each of the others a rank proposes to all what its bytes took, over the reliable path,
 * and waits for nobody.
 */

/* A proposal. -LH_EPROTOCOL: it is none; -LH_ENOMEM. */
int deadlines_on_proposal(struct lh_group *group, uint32_t rank, uint32_t collective, const uint8_t *data,
                          size_t bytes);

#endif
