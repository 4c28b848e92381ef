/*
 * group_messages.h - messages of a group: tags, what was sent, losses and buffers of bounded lanes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_GROUP_MESSAGES_H
#define LH_GROUP_GROUP_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include <longhaul/connection.h>

enum tag_kind {
    TAG_HELLO = 1,     /* after the connection is made; no body */
    TAG_SIGNATURE = 2, /* collective/operation_digest.h */
    TAG_PIECE = 3,     /* its bytes */
    TAG_ABORT = 4,     /* an operation has failed: operation_digest.h */
    TAG_FAILED = 5,    /* a rank has failed: operation_digest.h */
    TAG_AGREE = 6,     /* survivors agree on the failed: agreement.h */
    TAG_COUNTS = 7,    /* contributions of a piece, by granule: bounded_operation.h */
    /* an operation is over at a rank, and these pieces were not sent: bounded_operation.h */
    TAG_OVER = 8,
    TAG_TIMEOUT = 9,  /* a proposal of a group's timeout; piece: of which collective: group_operation.h */
    TAG_REFUSED = 10, /* a rank is not in a group that was to grow: operation_digest.h */
    TAG_KINDS
};

#define TAG_GROUP_BITS     14
#define TAG_OPERATION_BITS 18
#define TAG_PIECE_BITS     28
/* Of messages that are of none: nobody is so many operations ahead in a group that its peer does not have. */
#define TAG_NO_OPERATION ((1u << TAG_OPERATION_BITS) - 1)

struct tag {
    uint32_t group;
    enum tag_kind kind;
    uint32_t operation; /* modulo 2^TAG_OPERATION_BITS */
    uint32_t piece;     /* its number on the link */
};

static inline uint64_t tag_encode(const struct tag *tag)
{
    return (uint64_t)tag->group << 50 | (uint64_t)tag->kind << 46 | (uint64_t)tag->operation << 28 |
           tag->piece;
}

/* Of anything. False: no kind. */
static inline bool tag_decode(uint64_t from, struct tag *tag)
{
    uint32_t kind = from >> 46 & 0xf;
    *tag = (struct tag){
        .group = (uint32_t)(from >> 50),
        .kind = (enum tag_kind)kind,
        .operation = from >> 28 & ((1u << TAG_OPERATION_BITS) - 1),
        .piece = from & ((1u << TAG_PIECE_BITS) - 1),
    };
    return kind >= TAG_HELLO && kind < TAG_KINDS;
}

/* How far an operation is ahead of another, modulo; negative: behind. */
static inline int32_t tag_operation_ahead(uint32_t of, uint32_t other)
{
    uint32_t shift = 32 - TAG_OPERATION_BITS;
    return (int32_t)((of - other) << shift) >> shift;
}

/* ---- loss ------------------------------------------------------------------------------------------ */

/* Which bytes of a message did not come. */

struct loss {
    uint64_t count;
    struct lh_range ranges[]; /* by offset, none adjacent to the next */
};

/* Of a receive that is done without an error; NULL: every byte came. Without memory all counts as lost. */
struct loss *loss_of(struct lh_request *request, const struct lh_result *result);
/* Nothing came. */
struct loss *loss_of_all(void);
/* Whether a byte of these is missing. from: where to look, moves on; bytes are asked for in ascending
 * order. */
bool loss_hits(const struct loss *loss, uint64_t *from, uint64_t offset, uint64_t bytes);
/* NULL is allowed. */
void loss_free(struct loss *loss);

/* ---- sent ------------------------------------------------------------------------------------------ */

/*
 * Messages that were sent and are not acknowledged: lists of those that somebody waits for, and
 * the memory of those that were copied.
 *
 * Memory for a block is kept for the next: fresh pages cost more than the copy.
 */

struct link;
struct sent_list;

struct sent {
    struct link *link;
    struct sent *next; /* in the list of who waits, or of the spare ones */
    struct sent *previous;
    struct lh_request *request; /* NULL: it was copied, and leaves */
    struct sent_list *owner;    /* NULL: nobody waits */
    lh_time until;              /* of the link's list: nothing of it leaves after that */
    uint32_t group;             /* likewise: what it is of */
    uint32_t operation;
    uint32_t lane;
    size_t copied_bytes;
    size_t capacity; /* of data */
    uint8_t data[];
};

/* What somebody's memory is sent in. */
struct sent_list {
    struct sent *first;
    uint32_t count;
};

/* Memory of copies. */
struct sent_store {
    size_t block_bytes; /* maximum of a copy */
    uint32_t maximum;   /* that are kept */
    struct sent *spare;
    uint32_t count;
};

/* One with memory for a copy of so many bytes, the rest of it zero. NULL: no memory. */
struct sent *sent_take(struct sent_store *store, size_t bytes);
void sent_give(struct sent_store *store, struct sent *sent);
void sent_store_end(struct sent_store *store);

void sent_add(struct sent_list *list, struct sent *sent);
void sent_remove(struct sent *sent);
/* Cancels all of a list: from now on its memory is not read, and nobody waits. */
void sent_cancel(struct sent_list *list);

/* ---- bounded lane ---------------------------------------------------------------------------------- */

/*
 * Whether the reliability of a hop is `bounded`, and what its connection gets in place of
 * it: the deadline is an operation's, not a message's.
 */

struct bounded_lane {
    bool exists;
    lh_time deadline_ns;   /* that was given; LH_DEADLINE_AUTO: is learned; LH_DEADLINE_NONE */
    char reliability[160]; /* of the connection: without it */
};

/* -LH_EINVAL: unknown, or a deadline that is not below the peer timeout. */
int bounded_lane_of(const struct lh_attr *attr, lh_time peer_timeout_ns, struct bounded_lane *lane);

#endif
