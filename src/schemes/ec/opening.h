/*
 * opening.h - what a sender injects before anybody asks: the message in plain order, then the parity of
 * each block in order, as it becomes ready. (Round 0.)
 *
 * A message of one chunk has no parity; the chunk goes out 1 + min(m, 2) times.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_OPENING_H
#define LH_SCHEMES_EC_OPENING_H

#include "schemes/ec/layout.h"

/* A stretch of chunks that go out together. */
struct ec_sending {
    uint32_t first; /* of the message, or from its chunks on: extra */
    uint32_t count;
    bool parity; /* for statistics: of no use when nothing is lost */
    bool again;  /* data that was sent before, because it was asked for */
};

/* What an LH_ACTION_ENCODE says. */
struct ec_encoding {
    uint32_t group;
    uint32_t first_row;
    uint32_t rows;
};

/* What parity the sender may inject now. */
struct ec_ready {
    bool extra_open;
    uint32_t encoded; /* encodings of this transfer that were carried out */
};

struct ec_opening {
    uint32_t next_chunk;
    uint32_t copies;      /* of the only chunk that are still to go */
    uint32_t next_group;  /* to be encoded */
    uint32_t done_groups; /* all parity of those before is injected */
    uint32_t next_parity; /* in the block that begins with done_groups */
};

void ec_opening_init(struct ec_opening *opening, const struct ec_layout *layout);
bool ec_opening_done(const struct ec_opening *opening, const struct ec_layout *layout);
/* The next stretch, of at most `limit` chunks; false when none may go now. */
bool ec_opening_take(struct ec_opening *opening, const struct ec_layout *layout,
                     const struct ec_ready *ready, uint32_t limit, struct ec_sending *sending);
/* The next group to be encoded; false when all were given out. Their order is that of the groups. */
bool ec_opening_encode(struct ec_opening *opening, const struct ec_layout *layout,
                       struct ec_encoding *encoding);

#endif
