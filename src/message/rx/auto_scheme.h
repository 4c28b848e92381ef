/*
 * auto_scheme.h - `reliability = "auto"`: what this side receives shows what the path is like, and by that
 * each message gets its scheme when its first segment is posted.
 *
 * Everything here is nothing when the scheme was named and does not adapt to the path: rx.automatic is NULL
 * then. Of one that does (lh_scheme.measured) the path is measured, and nothing is planned. Until a chunk
 * is lost nothing is planned: all messages come by the scheme that sends least. Planning takes time,
 * which the engine measures: auto_scheme_plan() weighs one candidate while auto_scheme_planning(). It
 * takes memory, too, which is given back when the connection is idle, but for what each size has.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_AUTO_SCHEME_H
#define LH_MESSAGE_RX_AUTO_SCHEME_H

#include "message/rx/rx.h"
#include "schemes/auto/choice.h"

/* What the newest message came by, for the user. */
struct auto_named {
    struct lh_model_scheme scheme, other; /* without other: .other_seconds 0 */
    double seconds, other_seconds;
};

struct auto_scheme {
    struct path_estimate estimate;
    struct auto_choice *choice; /* of the store; NULL: nothing was lost, or idle */
    struct auto_kept kept;      /* of the one before */
    struct auto_named named;
    uint32_t newest;    /* segment of which a chunk has arrived */
    bool any;           /* or none has */
    lh_time arrival_ns; /* the newest poll that found anything; LH_TIME_NEVER: none did */
    uint64_t rx_bytes;  /* of all that had arrived by then */
    uint64_t capacity;  /* of the newest message */
};

/* rx->choice says "auto". */
void auto_scheme_init(struct rx *rx, struct auto_scheme *memory);

/* The scheme of a message whose first segment is about to be posted. */
void auto_scheme_choose(struct rx *rx, uint64_t capacity, lh_time now, struct scheme_choice *choice);
/* One that needs less memory for parity: what nobody named, or what was measured, is no reason to fail. */
void auto_scheme_spare(const struct rx *rx, struct scheme_choice *choice);
/* Whether it is time to decide for the next message. One that is decided later is decided better; but it must
 * be in time for its clear-to-send to reach the sender before the sender has nothing left to send. */
bool auto_scheme_may_start(const struct rx *rx);

/* A segment was polled; changed: it has more chunks than before. */
void auto_scheme_poll(struct rx *rx, struct rx_segment *segment, bool changed, lh_time now);
/* All were; number of chunks that have come. */
void auto_scheme_polled(struct rx *rx, uint32_t chunks, lh_time now);
/* A segment has arrived, or can be decoded; its bitmap is still there. */
void auto_scheme_segment_over(struct rx *rx, struct rx_segment *segment, lh_time now);

/* Whether there are candidates to be weighed. */
bool auto_scheme_planning(const struct rx *rx);
/* Weighs one; whether there are more. */
bool auto_scheme_plan(struct rx *rx);
/* That took so long, until now. */
void auto_scheme_planned(struct rx *rx, lh_time now, lh_time took_ns);

void auto_scheme_give_back(struct rx *rx);

/* What was chosen for the newest message, and why. */
void auto_scheme_report(const struct rx *rx, struct lh_scheme_report *out);

#endif
