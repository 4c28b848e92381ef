/*
 * tag.h - the tags of a group's messages: which group, what, of which operation, which piece.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_TAG_H
#define LH_GROUP_TAG_H

#include <stdbool.h>
#include <stdint.h>

enum tag_kind {
    TAG_HELLO = 1,     /* after the connection is made; no body */
    TAG_SIGNATURE = 2, /* collective/run/signature.h */
    TAG_PIECE = 3,     /* its bytes */
    TAG_ABORT = 4,     /* an operation has failed: notice.h */
    TAG_FAILED = 5,    /* a rank has failed: notice.h */
    TAG_AGREE = 6,     /* survivors agree on the failed: agreement.h */
    TAG_COUNTS = 7,    /* contributions of a piece, by granule: bounded.h */
    TAG_OVER = 8,      /* an operation is over at a rank, and these pieces were not sent: bounded.h */
    TAG_TIMEOUT = 9,   /* a proposal of a group's timeout; piece: of which collective: deadlines.h */
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

#endif
