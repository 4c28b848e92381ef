/*
 * ec_layout.h - parameters of erasure codes, and which chunks of a message form a submessage with which
 * parity.
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

#include <longhaul/scheme.h>

/* ---- params ---------------------------------------------------------------------------------------- */

/*
 * The parameters of the erasure-code schemes: as text, and as the bytes that travel.
 *
 * Bytes: 0 kind of the code (1 xor, 2 mds) | 1 k | 2 m | 3 fallback (0 ir, 1 sr) | 4-5 spread | 6-7 beta in
 * hundredths. Big-endian.
 */

#define EC_K_DEFAULT 32u /* (32, 8) is the paper's most balanced split, section 5.2.1 */
#define EC_M_DEFAULT 8u
#define EC_ROWS_MAX  255u /* k + m: a symbol of the code is a byte */

/* As in <longhaul/code.h>, and on the wire. */
enum ec_kind {
    EC_XOR = 1,
    EC_MDS = 2,
};

/* What the receiver does about a submessage that it cannot decode. */
enum ec_fallback {
    EC_FALLBACK_IR = 0, /* incremental redundancy: asks for as many chunks as it lacks, new parity first */
    EC_FALLBACK_SR = 1, /* the paper's: the submessage falls back to selective repeat */
};

struct ec_params {
    enum ec_kind kind;
    enum ec_fallback fallback;
    uint32_t k;               /* data chunks of a submessage */
    uint32_t m;               /* its parity chunks */
    uint32_t spread;          /* submessages that share a block of the message; 0: all */
    uint32_t beta_hundredths; /* of a round trip, that the receiver waits before it asks */
};

/* "" or "k=K,m=M,spread=S,beta=B,fallback=ir|sr" in any order. -LH_EINVAL. */
int ec_mds_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS]);
int ec_xor_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS]);
/* Every byte is looked at. */
bool ec_mds_params_valid(const uint8_t params[LH_SCHEME_PARAMS]);
bool ec_xor_params_valid(const uint8_t params[LH_SCHEME_PARAMS]);
/* Valid ones. */
struct ec_params ec_params_of(const uint8_t params[LH_SCHEME_PARAMS]);

/* Parity rows of a submessage that are computed only when they are asked for (incremental redundancy): as
 * many as the code has left, at most m, and at most k - m, so that all parity of a segment fits a slot as
 * large as its data. */
uint32_t ec_fresh_rows(const struct ec_params *params);

/* ---- layout ---------------------------------------------------------------------------------------- */

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

/* ---- coding ---------------------------------------------------------------------------------------- */

/*
 * Computes the parity of a submessage, and from it what was lost.
 *
 * The last chunk of a message may be short, and counts as filled up with zeros. Nobody reads or writes past
 * its end: the columns that it has are coded with all chunks of its group, the columns that it lacks with
 * one chunk less. It has the last position in its group, so that a code shortened by one is meant.
 */

extern const struct lh_scheme_coding ec_coding;

#endif
