/*
 * asking.h - when a receiver asks for what its submessages lack, and the request itself.
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
 *              it waits longer (sr/backoff.h).
 *   repeat     a request goes out again after one, then two, then four more windows, until a MARK shows that
 *              it was heard. From there on each probe of the sender that knows nothing of it brings it
 *              forth.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_ASKING_H
#define LH_SCHEMES_EC_ASKING_H

#include "schemes/sr/backoff.h"
#include "schemes/sr/timing.h"
#include "wire/erasure_coding.h"

#define EC_ASKING_REPEATS 3u

struct ec_asking {
    uint32_t round;     /* newest that was asked for; 0: none yet */
    bool heard;         /* the sender knows of it */
    lh_time end_ns;     /* its END was first heard; LH_TIME_NEVER: not yet */
    uint32_t next_part; /* of the request, to be sent; its number of parts: none */
    uint32_t repeats_left;
    lh_time repeat_ns; /* meaningful while repeats_left > 0 */
    lh_time repeat_span_ns;
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
void ec_asking_on_fallback_expired(struct ec_asking *asking, uint32_t count, const struct sr_timing *timing,
                                   lh_time now);
lh_time ec_asking_repeat_expiry(const struct ec_asking *asking);
void ec_asking_on_repeat_expired(struct ec_asking *asking, lh_time now);

/* The next part that is to be sent now; false when there is none. */
bool ec_asking_next(const struct ec_asking *asking, struct ec_request *request);
void ec_asking_on_sent(struct ec_asking *asking);

#endif
