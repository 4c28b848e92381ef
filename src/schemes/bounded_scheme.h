/*
 * bounded_scheme.h - bounded completion: its entry in the table of schemes, the model of its missing chunks,
 * its machines.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_BOUNDED_SCHEME_H
#define LH_SCHEMES_BOUNDED_SCHEME_H

#include <longhaul/scheme.h>

#include "model/predictor.h"
#include "model/repeat_model.h"
#include "schemes/ec_arrival_model.h"
#include "schemes/ec_layout.h"

extern const struct lh_scheme bounded_scheme;
extern const struct scheme_entry bounded_entry;

/* ---- missing --------------------------------------------------------------------------------------- */

/*
 * What a segment lacks that is sent once and then ended, and when it lacks nothing.
 *
 * All data is sent first, then the parity (schemes/ec_layout.h). With r rows of its parity a submessage
 * lacks what it lost when that is more than they can repair, and nothing else. Of a chunk of several
 * packets only those that were lost are missing.
 */

struct bounded_missing {
    struct model_loss loss;
    double packets;
    double parity;   /* chunks, behind the data; 0: no code */
    double inject_s; /* of a chunk */
    double data_s;   /* of all data */
    double rtt_s;
    double window_s;
    struct ec_missing missing;
    struct ec_partial_arrival partial;
    bool xor_code;
};

void bounded_missing_start(struct bounded_missing *segment, const struct lh_model_scheme *scheme,
                           const struct model_message *message);
/* Seconds from the injection of the first chunk to DONE, of a segment that ends without what is missing. */
double bounded_missing_settled(const struct bounded_missing *segment);
/* Log of the chance that nothing is missing so many seconds after the injection of the first chunk,
 * when DONE is received half a round trip after its last packet arrived. */
double bounded_missing_log_whole(const struct bounded_missing *segment, double seconds);
/* Share of the segment's bytes that is missing when it is ended then. */
double bounded_missing_share(const struct bounded_missing *segment, double seconds);

/* ---- sender ---------------------------------------------------------------------------------------- */

/*
 * The machines of bounded completion: each chunk once, then its parity, then END.
 * Nothing is retransmitted.
 *
 * One that is withdrawn ends with what was injected: END says so.
 *
 * What is in flight is what was injected but for what an ACK says has passed, and for what was injected an
 * overdue round trip ago: ACKs are few, they may be lost, and so may be all that they would speak of.
 *
 * Timers:
 *   end       END is repeated, a reordering window after the first and then at doubling intervals, until the
 *             receiver has finished: so that its loss does not cost the deadline
 *   passed    an overdue round trip after the last look: what was injected before that is not in flight
 *   give_up   a deadline and an overdue round trip after the start: the receiver takes no more. Not with
 *             deadline=auto, which the sender does not know
 */

size_t bounded_sender_bytes(uint32_t chunks_max);
void bounded_sender_start(void *state, const struct lh_transfer *transfer, lh_time now);
void bounded_sender_on_message(void *state, const uint8_t *data, size_t bytes,
                               const struct lh_sender_view *view);
void bounded_sender_step(void *state, const struct lh_sender_view *view, struct lh_actions *actions);

/* ---- receiver -------------------------------------------------------------------------------------- */

/*
 * The receiver's machine of bounded completion (OptiNIC, sections 3.1.1, 3.1.2 and 3.3):
 * when all has arrived that will, it is delivered. Nothing is asked for.
 *
 * The end is seen from the last place of the order of injection, from END, or from a later message
 * (preemption), whichever is first; what was sent before may still be behind that, so the transfer ends
 * when nothing has arrived for a reordering window. (With a code, a later message counts a round trip
 * after it was seen.) The deadline is the connection's (longhaul/scheme.h).
 *
 * One timer:
 *   settle   a reordering window after the end was seen, or after the newest arrival, whichever is later
 * and those of ACKs (schemes/sr_timers.h), which open the sender's window.
 */

size_t bounded_receiver_bytes(uint32_t chunks_max);
void bounded_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now);
void bounded_receiver_on_message(void *state, const uint8_t *data, size_t bytes,
                                 const struct lh_receiver_view *view);
void bounded_receiver_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions);

/* ---- params ---------------------------------------------------------------------------------------- */

/*
 * The parameters of bounded completion: as text, and as the bytes that travel.
 *
 * Bytes: 0-3 deadline in us, 0: auto, all ones: none | 4 kind of the code (0 none, 1 xor, 2 mds) | 5 k | 6
 * m | 7 zero. Big-endian.
 */

#define BOUNDED_DEADLINE_MAX_NS (3600 * LH_NS_PER_S)

struct bounded_params {
    lh_time deadline_ns; /* LH_DEADLINE_AUTO: by what the path did before; LH_DEADLINE_NONE */
    bool codes;
    uint8_t code[LH_SCHEME_PARAMS]; /* of schemes/ec, when it codes */
};

/* "deadline=20ms", "deadline=auto" (the default), "deadline=none", and "code=mds,k=32,m=2", in any order.
 * -LH_EINVAL, -LH_ERANGE. */
int bounded_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS]);
/* Every byte is looked at. */
bool bounded_params_valid(const uint8_t params[LH_SCHEME_PARAMS]);
/* Valid ones. */
struct bounded_params bounded_params_of(const uint8_t params[LH_SCHEME_PARAMS]);
/* See struct lh_scheme. */
lh_time bounded_deadline(const uint8_t params[LH_SCHEME_PARAMS]);

/* ---- coding ---------------------------------------------------------------------------------------- */

/*
 * The code of bounded completion: that of schemes/ec, or none. What cannot be decoded stays
 * missing.
 */

extern const struct lh_scheme_coding bounded_coding;

/* Of a transfer of that many chunks; without a code, one without groups and parity. */
struct ec_layout bounded_layout_of(const struct bounded_params *params, uint32_t chunks);
/* One past the last place that is injected: the chunks, then the parity that is always sent. */
uint32_t bounded_layout_end(const struct ec_layout *layout);

#endif
