/*
 * bounded_operation.h - an operation over hops whose reliability is `bounded`: what does not come by the
 * deadline is missing, and each *granule* of GRANULE_BYTES of a block has the number of contributions
 * that are in it.
 *
 * The deadline counts from the call at this rank. Phases, the steps of the schedule that receive over such a
 * hop, get slices of it; what has not come at the end of its slice is given up, and the last slice ends with
 * the deadline. Then nothing more is sent over such hops, either, and peers that did not get all learn it
 * (TAG_OVER): one that has fallen behind need not wait for what never comes.
 *
 * Sums are of encoded tensors (longhaul/hadamard.h), whose packets are the granules. A granule that does not
 * come leaves the sum as it is, and a stored one what this rank has of the sum; so all that is in a granule
 * counts, and decoding scales it by ranks / contributions. Without a sum, what no contribution is in is
 * zeroed.
 *
 * Counts that are the same in all of a piece travel in its tag, others in a message of their own
 * (TAG_COUNTS).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_BOUNDED_OPERATION_H
#define LH_GROUP_BOUNDED_OPERATION_H

#include <longhaul/hadamard.h>

#include "collective/adaptive_timeout.h"
#include "group/operation_state.h"

#define GRANULE_BYTES       1024u
#define BOUNDED_NUMBER_BITS 19 /* of a piece's tag; above them its contributions, 0: TAG_COUNTS has them */
#define BOUNDED_PIECES_MAX  (1u << BOUNDED_NUMBER_BITS)
#define BOUNDED_BYTES_MIN   4096u /* an operation of fewer bytes is reliable */
#define BOUNDED_OVER_RANGES 256u  /* of one TAG_OVER */

struct bounded_phase {
    uint64_t weight;    /* its share of the deadline */
    lh_time latency_ns; /* half a round trip */
};

struct bounded {
    bool transforms;
    bool pipelined; /* steps overlap */
    struct lh_hadamard transform;
    const uint8_t *in; /* the user's */
    uint8_t *out;
    uint8_t *encoded;            /* in the operation's work memory */
    uint32_t granules;           /* of a block, at most */
    uint16_t *counts;            /* contributions by block and granule */
    struct bounded_phase *until; /* by receive: of the phases up to its own */
    struct bounded_phase total;  /* of all */
    uint32_t pending;            /* receives before it are not waited for by a deadline */
    lh_time next_at;             /* nothing expires before */
    bool *dropped;               /* by send: it was not sent */
    bool *over;                  /* by rank: it needs nothing more */
    uint64_t *missing;           /* by rank: bytes that did not come of what it sent */
    uint8_t *zeroes;             /* as long as any piece; NULL: none was given up */
    lh_time deadline_ns;         /* where it is learned; LH_TIME_NEVER: there is none yet */
    bool expired;                /* the deadline of all has passed */
    struct group_timeout_operation learned;
    uint64_t expected; /* bytes over such hops, where the deadline is learned */
    lh_time took_ns;   /* until all of them had come, or were given up; 0: not yet */
};

/* Whether an operation may be incomplete: there is such a hop in its group. -LH_EINVAL: it cannot be. */
int bounded_check(const struct op_context *context, const struct op_request *request, bool *is);
/* Takes an operation, which has its pieces, but no work memory. -LH_ENOMEM, -LH_EINVAL. */
int bounded_create(struct lh_collective *op);
void bounded_free(struct bounded *bounded);
/* Work memory, and its place. */
uint64_t bounded_work_bytes(const struct lh_collective *op);
void bounded_set_work(struct lh_collective *op, uint8_t *work);
/* Encodes. -LH_ERANGE: an element is not finite. */
int bounded_begin(struct lh_collective *op);
/* All has been received, or given up: decodes, scales, zeroes. -LH_ERANGE. */
int bounded_end(struct lh_collective *op, lh_time now);
/* Ranges of the output that are missing, up to `count` from number `first` on. Returns their number. */
uint64_t bounded_ranges(const struct lh_collective *op, uint64_t first, struct lh_range *ranges,
                        uint64_t count);
/* Tells peers that did not get all, or sent in vain. *rank: of an error, whose link it is of. */
int bounded_announce_over(struct lh_collective *op, uint32_t *rank);

/* ---- hops -------------------------------------------------------------------------------------------- */

/* Whether the hop to a rank may lose something. */
bool bounded_hop(const struct lh_collective *op, uint32_t rank);
/* Whether nothing more is sent to a rank. */
bool bounded_abandons(const struct lh_collective *op, uint32_t rank);
/* The tag's piece of a send; *counts: how many bytes its TAG_COUNTS has, written to out; 0: it needs none. */
uint32_t bounded_tag(const struct lh_collective *op, const struct piece *piece, uint8_t *out,
                     size_t *counts);
/* Bytes of the TAG_COUNTS of a piece. */
size_t bounded_counts_bytes(const struct lh_collective *op, const struct piece *piece);

/* ---- arrivals ---------------------------------------------------------------------------------------- */

/* A piece that is applied: notes its contributions, zeroes in `data` what is missing, which counts as
 * received no more, and stores it unless it is added. */
void bounded_apply(struct lh_collective *op, uint32_t receive, uint8_t *data);
/* A peer needs nothing more, and has not sent some pieces. -LH_EPROTOCOL, -LH_ENOMEM. */
int bounded_on_over(struct lh_collective *op, uint32_t rank, const uint8_t *data, size_t bytes);
/* What a peer has sent and is not here was not kept. -LH_ENOMEM. */
int bounded_on_lost(struct lh_collective *op, uint32_t rank);
/* The moment after which nothing leaves for a rank over such a hop. */
lh_time bounded_until(const struct lh_collective *op, uint32_t rank);
/* Messages with pieces that are due arrive as they are: whether some may be in the queue. */
bool bounded_end_due(const struct lh_collective *op, lh_time now);
/* Gives up what is due. -LH_ENOMEM. */
int bounded_on_expired(struct lh_collective *op, lh_time now);
/* The next moment at which something is; LH_TIME_NEVER: none. */
lh_time bounded_next(const struct lh_collective *op);

#endif
