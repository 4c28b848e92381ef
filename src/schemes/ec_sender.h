/*
 * ec_sender.h - the sending machine of the erasure-code schemes.
 *
 * It injects the message and its parity without waiting for anybody (ec_sender.h: round 0), then what it
 * is asked for (ec_sender.h: each request is a round). MARKs say how far it is: they are numbered, repeated
 * and covered by timers as in selective repeat (sr_ledger.h); one with the flag END says that all of a round
 * was injected.
 *
 * Parity is asked to be computed ahead, at most EC_ENCODINGS_AHEAD groups, behind the first chunks.
 *
 * What is under way is what was injected, less what the receiver says has arrived, or less all that was
 * injected before a MARK that has settled at the receiver: what was lost must not fill the window for ever.
 *
 * Timers: cover, repeat (sr_ledger.h), probe (sr_timers.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_SENDER_H
#define LH_SCHEMES_EC_SENDER_H

#include <longhaul/scheme.h>

#include "schemes/ec_layout.h"
#include "wire/scheme_messages.h"

#define EC_ENCODINGS_AHEAD 16u /* given out and not yet carried out; a few for each of several threads */

/* The same for any number of chunks: only what is asked for is remembered. */
size_t ec_sender_bytes(uint32_t chunks_max);
void ec_sender_start(void *state, const struct lh_transfer *transfer, lh_time now);
void ec_sender_on_message(void *state, const uint8_t *data, size_t bytes,
                          const struct lh_sender_view *view);
void ec_sender_step(void *state, const struct lh_sender_view *view, struct lh_actions *actions);

/* ---- opening --------------------------------------------------------------------------------------- */

/*
 * What a sender injects before anybody asks: the message in plain order, then the parity of
 * each block in order, as it becomes ready. (Round 0.)
 *
 * A message of one chunk has no parity; the chunk goes out 1 + min(m, 2) times.
 */

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

/* ---- repairs --------------------------------------------------------------------------------------- */

/*
 * What a sender injects because it was asked to: the rounds after the first.
 *
 * A request may come in several parts; the round begins when all have been heard, and not before all of the
 * round before was injected: an honest receiver asks only then. Its data chunks go out first; meanwhile its
 * parity is computed.
 */

enum ec_request_result {
    EC_REQUEST_BAD,      /* no receiver of ours can have written it */
    EC_REQUEST_OLD,      /* of a round that is over */
    EC_REQUEST_AGAIN,    /* of the present round */
    EC_REQUEST_PART,     /* one more part, or one that was heard; others are missing */
    EC_REQUEST_COMPLETE, /* a new round begins */
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
    uint32_t parts_received;
    struct ec_run runs[EC_PARTS_MAX * EC_RUNS_MAX];
};

void ec_repairs_init(struct ec_repairs *repairs);
/* A request that decoded. `encodings`: how many were given out so far. */
enum ec_request_result ec_repairs_on_request(struct ec_repairs *repairs, const struct ec_layout *layout,
                                             const struct ec_request *request, uint32_t encodings);
bool ec_repairs_done(const struct ec_repairs *repairs);
/* As in opening.h. */
bool ec_repairs_take(struct ec_repairs *repairs, const struct ec_layout *layout,
                     const struct ec_ready *ready, uint32_t limit, struct ec_sending *sending);
bool ec_repairs_encode(struct ec_repairs *repairs, const struct ec_layout *layout,
                       struct ec_encoding *encoding);

#endif
