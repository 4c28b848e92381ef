/*
 * ec_receiver.h - the receiving machine of the erasure-code schemes.
 *
 * It counts what arrives and says COMPLETE as soon as all data is there or can be decoded. What
 * cannot be decoded long enough after all was sent is asked for, round by round. ACKs only
 * open the sender's window: they go out at the pace of sr-nack (sr_timers.h), when a probe asks, and when
 * a MARK that has settled shows a loss.
 *
 * Timers: periodic and pause (sr_timers.h), fallback and repeat, and
 *   settle   of the oldest MARK, one reordering window after it was heard: what was injected before it and is
 *            not here is lost (sr_arrivals.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_RECEIVER_H
#define LH_SCHEMES_EC_RECEIVER_H

#include <stdint.h>

#include <longhaul/scheme.h>

#include "schemes/ec_layout.h"
#include "schemes/sr_timers.h"
#include "wire/scheme_messages.h"

size_t ec_receiver_bytes(uint32_t chunks_max);
void ec_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now);
void ec_receiver_on_message(void *state, const uint8_t *data, size_t bytes,
                            const struct lh_receiver_view *view);
void ec_receiver_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions);

/* ---- asking ---------------------------------------------------------------------------------------- */

/*
 * When a receiver asks for what its submessages lack, and the request itself.
 *
 * The paper's fallback timeout (section 4.2.3) is FTO = (M + ceil(M / R)) * T_inj + beta * RTT from the
 * first chunk. The injection time of another host would have to be guessed; instead the sender says when it
 * has injected all (MARK with END), which arrives at that very moment, and the rest of the timeout runs from
 * there.
 *
 * Timers:
 *   fallback   round 0: beta round trips, and at least a reordering window, after END of round 0 was heard;
 *              later rounds: one reordering window after END of that round. Not before arrivals have been
 *              looked at so far (caught_up_ns), and none has come for a window. When rounds bring nothing
 *              it waits longer (sr_timers.h).
 *   repeat     a request goes out again after one window, then two more, doubling up to 8 overdue times,
 *              until a MARK shows that it was heard; where more than a 16th is lost, each window for a round
 *              trip before that. Each probe of a sender that knows nothing of it brings it forth, too.
 */

/* What of the path a request takes into account. */
struct ec_path_seen {
    uint32_t injected;
    uint32_t arrived;
};

struct ec_asking {
    uint32_t round;      /* newest that was asked for; 0: none yet */
    bool received;       /* the sender knows of it */
    lh_time end_ns;      /* its END was first heard; LH_TIME_NEVER: not yet */
    uint32_t first_part; /* of the request, with which this transmission began */
    uint32_t parts_sent; /* in this transmission */
    lh_time repeat_ns;   /* LH_TIME_NEVER: the sender knows of it */
    lh_time repeat_span_ns;
    lh_time hasty_until_ns; /* the span is not doubled before */
    struct sr_backoff backoff;
    uint32_t count; /* of runs of the request */
    struct ec_run runs[EC_PARTS_MAX * EC_RUNS_MAX];
};

void ec_asking_init(struct ec_asking *asking);
/* `arrived` chunks are there. False, and nothing is changed, when the MARK is of a round that was never
 * asked for. */
bool ec_asking_on_mark(struct ec_asking *asking, const struct ec_mark *mark, uint32_t arrived, lh_time now);

/* When it is time to ask, as far as arrivals have been looked at; LH_TIME_NEVER: the round still runs. */
lh_time ec_asking_fallback_expiry(const struct ec_asking *asking, uint32_t beta_hundredths,
                                  lh_time last_arrival_ns, const struct sr_timing *timing);
/* runs[0 … count - 1] are filled in: the next round begins. */
void ec_asking_on_fallback_expired(struct ec_asking *asking, uint32_t count,
                                   const struct ec_path_seen *seen, const struct sr_timing *timing,
                                   lh_time now);
lh_time ec_asking_repeat_expiry(const struct ec_asking *asking);
void ec_asking_on_repeat_expired(struct ec_asking *asking, const struct sr_timing *timing, lh_time now);

/* The next part that is to be sent now; false when there is none. */
bool ec_asking_next(const struct ec_asking *asking, struct ec_request *request);
void ec_asking_on_sent(struct ec_asking *asking);

/* ---- margin ---------------------------------------------------------------------------------------- */

/*
 * How many chunks more than it lacks a receiver asks for.
 *
 * What is asked for is lost as often as anything else, and a second request costs a round trip. So a few
 * more are asked for: as many that too few arrive once in a million times, at the loss that this transfer
 * has seen.
 */

#define EC_MARGIN_MAX 255u

/* The smallest a such that of lacking + a chunks fewer than `lacking` arrive with a probability of at most
 * 1e-6, where each is lost as those were of which `injected` were sent and `arrived` came: at least 1 in
 * 1024, at most every second. At most EC_MARGIN_MAX. */
uint32_t ec_margin(uint32_t missing_work, uint32_t injected, uint32_t arrived);

/* ---- needs ----------------------------------------------------------------------------------------- */

/*
 * What a receiver's submessages lack, and what it asks for.
 *
 * A submessage is met when all its data can be there: as many chunks as it has data (mds), at most one chunk
 * missing of each class (xor), or, where it has fallen back to selective repeat, its data itself.
 *
 * Of one that is not, incremental redundancy asks for as many chunks as it lacks and a margin
 *: first rows of parity that were never asked for, since these are of use whatever else still
 * comes, then missing data; never for more data than is missing. With xor: for the missing data of each
 * class that lacks more than one. Selective repeat asks for all its data once, then for what of it is
 * missing.
 */

/* One byte a chunk, as in struct lh_receiver_view; extra may be NULL. Others write them meanwhile, and clear
 * nothing. */
struct ec_bitmaps {
    const uint8_t *chunks;
    const uint8_t *extra;
};

struct ec_needs {
    uint32_t first_unmet; /* all groups before are met */
    uint8_t *asked; /* a byte a group: 0 never; else mds: one more than the first row never asked for */
};

/* Bytes behind it: a group has at least one chunk. */
static inline size_t ec_needs_bytes(uint32_t chunks_max)
{
    return chunks_max;
}
/* memory: ec_needs_bytes(chunks), stays the caller's. */
void ec_needs_init(struct ec_needs *needs, uint32_t chunks, void *memory);
/* Whether every group is met. Costs no more than one group when the first that is not still is not. */
bool ec_needs_met(struct ec_needs *needs, const struct ec_layout *layout, const struct ec_bitmaps *bitmaps);
/* Whether all data of a group can be there, when nothing was asked for. */
bool ec_needs_group_met(const struct ec_layout *layout, const struct ec_bitmaps *bitmaps, uint32_t group);
/* The runs to be asked for now, into runs[room], room >= 128: whole groups, in order. Returns how many; adds
 * groups that are asked for the first time to *failed. 0 only when every group is met. */
uint32_t ec_needs_ask(struct ec_needs *needs, const struct ec_layout *layout,
                      const struct ec_bitmaps *bitmaps, const struct ec_path_seen *seen,
                      struct ec_run *runs, uint32_t room, uint32_t *failed);

#endif
