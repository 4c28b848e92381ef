/*
 * encoding.h - which parity is computed, and when.
 *
 * The end of a message is near when no more data is to come than is in flight: about a round trip of it.
 * Parity of submessages whose data is injected from then on is computed ahead, as many rows as they would
 * need if nothing of them was acknowledged. Rows beyond that, and those of submessages that were injected
 * earlier, are computed when they are wanted. So a long message costs the encoder no more than its end
 * does.
 *
 * At most HYBRID_ENCODINGS_AHEAD requests are pending. They are carried out in their order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_HYBRID_ENCODING_H
#define LH_SCHEMES_HYBRID_ENCODING_H

#include "schemes/hybrid/groups.h"

#define HYBRID_ENCODINGS_AHEAD 16u /* a few for each of several threads */

struct hybrid_encoding {
    uint32_t next_ahead; /* submessage; layout->groups: none, or not near the end */
    bool near;
    uint32_t given; /* requests ever */
    uint32_t done;  /* of those, as far as the groups know */
    struct {
        uint32_t group;
        uint8_t rows; /* ready when it is done */
    } pending[HYBRID_ENCODINGS_AHEAD];
};

/* What an LH_ACTION_ENCODE asks for. */
struct hybrid_encode {
    uint32_t group;
    uint32_t first_row;
    uint32_t rows;
};

void hybrid_encoding_init(struct hybrid_encoding *encoding, const struct ec_layout *layout);
/* So many requests have been carried out. */
void hybrid_encoding_on_encoded(struct hybrid_encoding *encoding, struct hybrid_groups *groups,
                                uint32_t encoded);
/* The end of the message is near; sent_through: data chunks that were injected. Only the first call
 * counts. */
void hybrid_encoding_on_near(struct hybrid_encoding *encoding, const struct ec_layout *layout,
                             uint32_t sent_through);
/* The next request; false: nothing is to be computed, or enough is pending. rows_ahead: of each
 * submessage that is computed ahead. */
bool hybrid_encoding_next(struct hybrid_encoding *encoding, struct hybrid_groups *groups,
                          uint32_t sent_through, uint32_t rows_ahead, struct hybrid_encode *encode);

#endif
