/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx/queue_delay.h"

#include <assert.h>

#include "base/earlier.h"

/* The estimate decays by this share of the time that passes. What left last had waited that long, and its
 * timer runs from when it was posted: the estimate must not fall faster than that timer runs. */
#define DECAY 8u

static lh_time decayed(const struct queue_delay *delay, lh_time now)
{
    lh_time kept_ns = delay->since_ns + delay->hold_ns;
    lh_time less = now > kept_ns ? (now - kept_ns) / DECAY : 0;
    return delay->delay_ns > less ? delay->delay_ns - less : 0;
}

void queue_delay_on_posted(struct queue_delay *delay, uint64_t posted, lh_time now)
{
    uint32_t waiting = delay->head - delay->tail;
    assert(waiting <= QUEUE_DELAY_MARKS);
    uint32_t last = (delay->head - 1) % QUEUE_DELAY_MARKS;
    /* When there is no place left, what is posted now counts as older than it is. */
    if (waiting > 0 && (delay->marks[last].at_ns == now || waiting == QUEUE_DELAY_MARKS)) {
        assert(posted >= delay->marks[last].posted);
        delay->marks[last].posted = posted;
        return;
    }
    delay->marks[delay->head % QUEUE_DELAY_MARKS].posted = posted;
    delay->marks[delay->head % QUEUE_DELAY_MARKS].at_ns = now;
    delay->head++;
}

void queue_delay_on_left(struct queue_delay *delay, uint64_t left, lh_time left_ns)
{
    /* Bounded by the marks. */
    for (; delay->tail != delay->head && delay->marks[delay->tail % QUEUE_DELAY_MARKS].posted <= left;
         delay->tail++) {
        /* Another worker may have let it out, by a clock that it had read a little earlier. */
        lh_time at_ns = lh_earlier(delay->marks[delay->tail % QUEUE_DELAY_MARKS].at_ns, left_ns);
        lh_time kept_ns = decayed(delay, left_ns);
        delay->delay_ns = left_ns - at_ns > kept_ns ? left_ns - at_ns : kept_ns;
        delay->since_ns = left_ns;
    }
}

lh_time queue_delay_now(const struct queue_delay *delay, lh_time now)
{
    lh_time known_ns = decayed(delay, now);
    if (delay->tail == delay->head)
        return known_ns;
    lh_time waiting_ns = now - delay->marks[delay->tail % QUEUE_DELAY_MARKS].at_ns;
    return waiting_ns > known_ns ? waiting_ns : known_ns;
}

bool queue_delay_moves(const struct queue_delay *delay, lh_time expiry_ns, lh_time now)
{
    if (!queue_delay_waits(delay))
        return false;
    lh_time at_ns = delay->marks[delay->tail % QUEUE_DELAY_MARKS].at_ns;
    return expiry_ns > at_ns && expiry_ns - at_ns > queue_delay_now(delay, now);
}

bool queue_delay_ends(const struct queue_delay *delay, uint64_t left)
{
    return queue_delay_waits(delay) && delay->marks[delay->tail % QUEUE_DELAY_MARKS].posted <= left;
}
