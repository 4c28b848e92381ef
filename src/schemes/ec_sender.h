/*
 * repairs.h - what a sender injects because it was asked to: the rounds after the first.
 *
 * A request may come in several parts; the round begins when all have been heard, and not before all of the
 * round before was injected: an honest receiver asks only then. Its data chunks go out first; meanwhile its
 * parity is computed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_REPAIRS_H
#define LH_SCHEMES_EC_REPAIRS_H

#include "schemes/ec/opening.h"
#include "wire/erasure_coding.h"

enum ec_heard {
    EC_HEARD_BAD,   /* no receiver of ours can have written it */
    EC_HEARD_OLD,   /* of a round that is over */
    EC_HEARD_AGAIN, /* of the present round */
    EC_HEARD_PART,  /* one more part, or one that was heard; others are missing */
    EC_HEARD_WHOLE, /* a new round begins */
};

/* Where one walk along the runs has got to. */
struct ec_cursor {
    uint32_t run;
    uint32_t place;  /* next, in this run */
    uint32_t number; /* parity runs that were passed */
};

struct ec_repairs {
    uint32_t round;
    uint32_t count;       /* of runs of the present round */
    uint32_t chunks_left; /* of it, that are still to be injected */
    uint32_t encode_base; /* encodings of the rounds before */
    struct ec_cursor data, parity, encode;
    uint8_t parts;      /* of the next round, as far as known; 0: nothing was heard of it */
    uint8_t last_count; /* runs of its last part */
    uint32_t parts_heard;
    struct ec_run runs[EC_PARTS_MAX * EC_RUNS_MAX];
};

void ec_repairs_init(struct ec_repairs *repairs);
/* A request that decoded. `encodings`: how many were given out so far. */
enum ec_heard ec_repairs_on_request(struct ec_repairs *repairs, const struct ec_layout *layout,
                                    const struct ec_request *request, uint32_t encodings);
bool ec_repairs_done(const struct ec_repairs *repairs);
/* As in opening.h. */
bool ec_repairs_take(struct ec_repairs *repairs, const struct ec_layout *layout,
                     const struct ec_ready *ready, uint32_t limit, struct ec_sending *sending);
bool ec_repairs_encode(struct ec_repairs *repairs, const struct ec_layout *layout,
                       struct ec_encoding *encoding);

#endif
