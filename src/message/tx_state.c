/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx_state.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <longhaul/connection.h>
#include <longhaul/sdr_ext.h>
#include <longhaul/types.h>

#include "base/min_max.h"

/* ---- queue delay ----------------------------------------------------------------------------------- */

/* Something has been posted that has not left. */
static inline bool queue_delay_waits(const struct queue_delay *delay)
{
    return delay->tail != delay->head;
}

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

/* ---- wait ------------------------------------------------------------------------------------------ */

/* As of the last step, but for what the SDR layer has sent since. */
static enum tx_wait wait_of(const struct tx *tx, lh_time now)
{
    if (tx->oldest == tx->next)
        return TX_WAIT_MESSAGE;
    if (lh_sdr_send_queued_bytes(tx->qp) > 0)
        return TX_WAIT_SDR;
    if (tx->window_limited)
        return tx->window_bytes < tx->attr->window_bytes ? TX_WAIT_BUFFER : TX_WAIT_WINDOW;
    if (tx->current != tx->next && tx->segment_next - tx->segment_oldest == tx->attr->slots)
        return TX_WAIT_SLOTS;
    bool late = tx->waits.cts_ns != 0 && now > tx->waits.cts_ns + tx->path->rtt_ns;
    return late ? TX_WAIT_RECEIVE : TX_WAIT_ACKNOWLEDGEMENT;
}

void tx_wait_note(struct tx *tx, lh_time now)
{
    struct tx_waits *waits = &tx->waits;
    if (!tx->cts_wanted)
        waits->cts_ns = 0;
    else if (waits->cts_ns == 0)
        waits->cts_ns = now;
    enum tx_wait wait = wait_of(tx, now);
    if (waits->since_ns == 0 && wait == TX_WAIT_MESSAGE)
        return;
    if (waits->since_ns != 0 && now > waits->since_ns)
        waits->ns[waits->now] += now - waits->since_ns;
    waits->now = wait;
    waits->since_ns = now;
}
