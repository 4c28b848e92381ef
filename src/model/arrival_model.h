/*
 * arrival_model.h - which packets of a numbered row arrived, how often, in which order; loss rates seen by
 * that.
 *
 * Words of RFC 4737: a packet is *reordered* when one with a higher number arrived before it. Its *extent*
 * is how many arrivals lie between it and the first that overtook it (at least 1), its *late time* the time
 * between those two. Copies of a packet that arrived before are duplicates, and nothing else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_ARRIVAL_MODEL_H
#define LH_MODEL_ARRIVAL_MODEL_H

#include <longhaul/types.h>

#include "model/predictor.h"

/* What is known of one number. */
struct model_place {
    lh_time reordered_ns;       /* when a higher number arrived first, if it did */
    uint32_t reordered_arrival; /* the how-manieth arrival that was */
    bool arrived;
};

struct model_arrival_order {
    struct model_place *places; /* the caller's */
    uint32_t packets;           /* numbers 0 … packets - 1 */
    uint32_t next;              /* one above the highest that arrived */
    uint32_t received;          /* without duplicates */
    uint32_t duplicates;
    uint32_t reordered;
    uint32_t extent_max;
    uint64_t extent_sum;
    lh_time late_max_ns;
};

/* With memory for `packets` places, which it clears. */
void model_arrival_order_init(struct model_arrival_order *order, struct model_place *places,
                              uint32_t packets);
/* number < packets. */
void model_arrival_order_add(struct model_arrival_order *order, uint32_t number, lh_time now);
bool model_arrival_order_has(const struct model_arrival_order *order, uint32_t number);

/* ---- arrival watch --------------------------------------------------------------------------------- */

/*
 * Which chunks of a transfer were lost when they were first sent, told from its bitmap
 * while it fills, whatever the scheme.
 *
 * Chunks are first sent in order. So what is missing before the last chunk that has arrived is lost, or was
 * only reordered; and what was lost comes again a round trip later at the earliest. A *mark* is set at the
 * last chunk that has arrived, and when a reordering window is over, what is missing before the mark counts
 * as lost. The last chunk itself is not counted: that it arrived is why it is the last.
 *
 * After a pause of about a round trip what arrives past the last chunk may be sent for the second time: it
 * is passed over, it tells nothing. Pure.
 *
 * Timers:
 *   mark_at   the window of the mark is over
 */

struct arrival_watch {
    uint32_t counted;  /* chunks before this one were counted, or passed over */
    uint32_t frontier; /* the last that has arrived, and one more; 0: none */
    uint32_t mark;
    lh_time mark_at;  /* LH_TIME_NEVER: there is no mark */
    bool lost_before; /* the chunk before `counted` was lost: its run may go on */
};

struct arrival_look {
    lh_time now;
    lh_time window_ns;     /* a chunk that comes this much later than its successors is lost */
    const uint8_t *bitmap; /* one byte a chunk */
    uint32_t chunks;
    bool later_arrived; /* something that was sent after all of these chunks has arrived */
    bool paused;        /* nothing has arrived for about a round trip before this look */
};

void arrival_watch_init(struct arrival_watch *watch);
/* Each time something may have arrived, and at mark_at. */
void arrival_watch_look(struct arrival_watch *watch, const struct arrival_look *look,
                        struct path_estimate *estimate);
/* The transfer is over: what was not counted yet is, without a window. */
void arrival_watch_end(struct arrival_watch *watch, const struct arrival_look *look,
                       struct path_estimate *estimate);

#endif
