/*
 * layout.h - which chunks of a message form a submessage, and where its parity stands.
 *
 * The message is cut into blocks of spread * k chunks; the last may be shorter. A block of n chunks has
 * G = ceil(n / k) groups (submessages), and chunk j of the block is position j / G of its group j mod G. So
 * a row of lost packets hits many groups lightly though the wire carries the chunks in plain order, and the
 * sizes of the groups of a block differ by at most one.
 *
 * Parity is numbered block after block, R places a group: R = m and the rows that may be asked for later
 * (ec_fresh_rows). In a block row r of group g has place r * G + g, so that the rows that are always sent
 * stand side by side. How many these are depends on the largest group: m when it is full, else one more
 * than it has data (mds), or as many (xor): a short message is not drowned in parity.
 *
 * A message of one chunk is a group without parity: the chunk itself is sent several times.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_LAYOUT_H
#define LH_SCHEMES_EC_LAYOUT_H

#include "schemes/ec/params.h"

struct ec_layout {
    struct ec_params params;
    uint32_t chunks; /* of the message */
    uint32_t block_chunks;
    uint32_t block_groups; /* of all blocks but the last, and there at most */
    uint32_t groups;       /* in all */
    uint32_t places;       /* R: extra chunks of a group; 0 when the message is one chunk */
};

struct ec_block {
    uint32_t first_chunk;
    uint32_t chunks;
    uint32_t first_group;
    uint32_t groups;
    uint32_t size;        /* data chunks of its largest groups; these come first */
    uint32_t rows;        /* of parity that are always sent, of the largest groups */
    uint32_t first_place; /* of its extra chunks */
    uint32_t parity;      /* how many places from there on are always sent */
};

struct ec_group {
    uint32_t first_chunk; /* position p is chunk first_chunk + p * stride */
    uint32_t first_place; /* row r is extra chunk first_place + r * stride */
    uint32_t stride;
    uint32_t size; /* data chunks */
    uint32_t rows; /* of parity that are always sent; row `rows` is the first that is fresh */
};

/* See struct lh_scheme_coding. */
uint32_t ec_transfer_chunks_max(const uint8_t params[LH_SCHEME_PARAMS], uint32_t slot_chunks);
uint32_t ec_extra_chunks(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks);
uint32_t ec_groups(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks);

/* params must be valid, and the extra chunks must be fewer than 2^32. */
struct ec_layout ec_layout_of(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks);
uint32_t ec_layout_extra(const struct ec_layout *layout);
/* The block that begins with this group; which must exist. */
struct ec_block ec_layout_block(const struct ec_layout *layout, uint32_t first_group);
struct ec_group ec_layout_group(const struct ec_layout *layout, uint32_t group);
/* Parity rows that a group can have in all: those that are always sent, and then the fresh ones. */
static inline uint32_t ec_group_rows_max(const struct ec_layout *layout, const struct ec_group *group)
{
    return layout->params.kind == EC_MDS ? layout->places : group->rows;
}

#endif
