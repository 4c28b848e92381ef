/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/tx/cancel.h"

#include <assert.h>

#include "message/control/number.h"
#include "message/tx/messages.h"

void cancel_message(struct tx *tx, struct tx_message *message, int error, lh_time now)
{
    assert(message->state == TX_OPEN);
    message->notice.error = abort_error(error);
    tx_end_message(tx, message, -message->notice.error, TX_CANCELING, now);
    tx->canceling++;
    abort_send(&message->notice, tx->qp, TRANSFER_CANCEL, message->number, tx->path, now);
}

static void end_refused(struct tx *tx, struct tx_message *message, int error, lh_time now)
{
    switch (message->state) {
    case TX_OPEN:
    case TX_SENT:
        tx_end_message(tx, message, -error, TX_OVER, now);
        return;
    case TX_CANCELING:
        message->state = TX_OVER;
        tx->canceling--;
        outgoing_forget(&tx->outgoing, message->number);
        return;
    case TX_OVER:
    case TX_EMPTY:
        return;
    }
}

/* False: no memory. */
static bool refuse_ahead(struct tx *tx, uint32_t number, int error)
{
    if (!ring_hold(&tx->messages, tx->store, tx->oldest, number - tx->oldest + 1))
        return false;
    tx_message_at(tx, number)->notice.error = error;
    tx_message_at(tx, number)->refused = true;
    if (number_before(tx->ahead, number + 1) || !number_before(tx->next, tx->ahead))
        tx->ahead = number + 1;
    return true;
}

void cancel_on_refuse(struct tx *tx, const struct transfer_message *message, lh_time now)
{
    uint32_t number = message->body.verdict.message;
    int error = (int)message->body.verdict.error;
    error = error == 0 ? 0 : abort_error(error); /* 0: it has ended by its deadline, and was delivered */
    if (!number_before(number, tx->oldest)) {
        if (number - tx->oldest >= MESSAGES_MAX)
            return; /* no place to remember it: the receiver sends it again */
        if (number_before(number, tx->next))
            end_refused(tx, tx_message_at(tx, number), error, now);
        else if (!refuse_ahead(tx, number, error))
            return; /* likewise */
    }
    tx_retire(tx);
    control_tx_abort(tx->qp, TRANSFER_FORGET, number, 0);
}

void cancel_on_refresh_expired(struct tx *tx, lh_time now, lh_time *next)
{
    if (tx->canceling == 0)
        return;
    for (uint32_t n = tx->oldest; n != tx->next; n++) { /* at most MESSAGES_MAX */
        struct tx_message *message = tx_message_at(tx, n);
        if (message->state == TX_CANCELING)
            abort_on_refresh_expired(&message->notice, tx->qp, TRANSFER_CANCEL, n, tx->path, now, next);
    }
}
