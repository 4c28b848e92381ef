/*
 * queue_delay.h - how long chunks wait in the injection queue before they leave. Pure.
 *
 * A machine starts its timers when it asks for a chunk to be injected. Behind a slow link, or a pace, the
 * chunk may then wait for many round trips; if its timer did not allow for that, it would be retransmitted
 * before it was sent at all. So the delay is added to the overdue time that machines see.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_TX_QUEUE_DELAY_H
#define LH_MESSAGE_TX_QUEUE_DELAY_H

#include <stdbool.h>
#include <stdint.h>

#include <longhaul/types.h>

#define QUEUE_DELAY_MARKS 16u /* a power of two */

struct queue_delay_mark {
    uint64_t posted; /* bytes that had ever been posted, */
    lh_time at_ns;   /* at this time at the earliest */
};

/* All zero is an empty queue. */
struct queue_delay {
    struct queue_delay_mark *marks; /* QUEUE_DELAY_MARKS, the owner's; NULL: nothing waits */
    uint32_t head;
    uint32_t tail;
    lh_time delay_ns; /* as of since_ns; it decays after hold_ns more */
    lh_time since_ns;
    lh_time hold_ns; /* the owner's: how long what left may take to be acknowledged */
};

/* That many bytes have ever been posted. */
void queue_delay_on_posted(struct queue_delay *delay, uint64_t posted, lh_time now);
/* That many of them have left, the last of them at left_ns, which may be long ago. */
void queue_delay_on_left(struct queue_delay *delay, uint64_t left, lh_time left_ns);
/* The longest that recently posted bytes wait, about; never less than what still waits has waited. */
lh_time queue_delay_now(const struct queue_delay *delay, lh_time now);
/* Whether a timer that ends then, with the delay as it is now, moves on as time passes until the oldest that
 * waits has left: from when that has waited longer than the timer allows for, the delay grows with time. */
bool queue_delay_moves(const struct queue_delay *delay, lh_time expiry_ns, lh_time now);
/* Whether the oldest that waits has left, when that many bytes have; not yet noted. */
bool queue_delay_ends(const struct queue_delay *delay, uint64_t left);
/* All that was posted has left long ago, or never will: the marks are not read any more. */
static inline void queue_delay_rest(struct queue_delay *delay)
{
    delay->tail = delay->head;
    delay->marks = NULL;
}
/* Something has been posted that has not left. */
static inline bool queue_delay_waits(const struct queue_delay *delay)
{
    return delay->tail != delay->head;
}
/* The number of the oldest that waits; another one from when it has left. */
static inline uint32_t queue_delay_oldest(const struct queue_delay *delay)
{
    return delay->tail;
}

#endif
