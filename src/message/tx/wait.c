/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx/wait.h"

#include "message/tx/tx.h"

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
