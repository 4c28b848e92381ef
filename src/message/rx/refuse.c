/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/rx/refuse.h"

#include <assert.h>

#include "message/control/number.h"
#include "message/rx/decoding.h"
#include "message/rx/messages.h"

void refuse_message(struct rx *rx, struct rx_message *message, int error, lh_time now)
{
    assert(message->state == RX_OPEN);
    decoding_finish(rx, now); /* nothing may change the buffer afterwards */
    if (message->state == RX_OVER)
        return;
    message->notice.error = abort_error(error);
    rx_end_message(rx, message, -message->notice.error, RX_REFUSED, now);
    rx->refusing++;
    abort_send(&message->notice, rx->qp, TRANSFER_REFUSE, message->number, rx->path, now);
}

void refuse_answer(struct rx *rx, uint32_t number)
{
    int error = rx_message_known(rx, number) ? rx_message_at(rx, number)->notice.error : 0;
    control_tx_abort(rx->qp, TRANSFER_REFUSE, number, error);
}

/* False: no memory. */
static bool cancel_ahead(struct rx *rx, uint32_t number, int error)
{
    if (!ring_hold(&rx->messages, rx->store, rx->oldest, number - rx->oldest + 1))
        return false;
    rx_message_at(rx, number)->notice.error = error;
    if (number_before(rx->ahead, number + 1) || !number_before(rx->next, rx->ahead))
        rx->ahead = number + 1;
    return true;
}

void refuse_on_cancel(struct rx *rx, const struct transfer_message *message, lh_time now)
{
    uint32_t number = message->body.verdict.message;
    if (!number_before(number, rx->oldest)) {
        int error = abort_error((int)message->body.verdict.error);
        if (number - rx->oldest >= MESSAGES_MAX)
            return; /* no place to remember it: the sender sends it again */
        if (!number_before(number, rx->next)) {
            if (!cancel_ahead(rx, number, error))
                return; /* likewise */
        } else if (rx_message_at(rx, number)->state == RX_OPEN) {
            struct rx_message *own = rx_message_at(rx, number);
            refuse_message(rx, own, error, now);
            if (own->state == RX_REFUSED)
                return; /* that was the answer */
        }
    }
    refuse_answer(rx, number);
}

void refuse_on_forget(struct rx *rx, const struct transfer_message *message)
{
    uint32_t number = message->body.verdict.message;
    if (!rx_message_known(rx, number))
        return;
    struct rx_message *own = rx_message_at(rx, number);
    if (own->state == RX_REFUSED) {
        own->state = RX_OVER;
        rx->refusing--;
    } else if (own->state == RX_EMPTY && own->notice.error) {
        own->forgotten = true;
    }
    rx_retire(rx);
}

void refuse_on_refresh_expired(struct rx *rx, lh_time now, lh_time *next)
{
    if (rx->refusing == 0)
        return;
    for (uint32_t n = rx->oldest; n != rx->next; n++) { /* at most MESSAGES_MAX */
        struct rx_message *message = rx_message_at(rx, n);
        if (message->state == RX_REFUSED)
            abort_on_refresh_expired(&message->notice, rx->qp, TRANSFER_REFUSE, n, rx->path, now, next);
    }
}
