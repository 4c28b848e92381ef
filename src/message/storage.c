/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/storage.h"

#include "message/connection.h"
#include "message/rx/receiver.h"
#include "message/tx/sender.h"
#include "sdr/driver.h"

int storage_hold_send(struct lh_connection *c)
{
    idle_note(&c->idle);
    return sender_hold(&c->tx);
}

int storage_hold_recv(struct lh_connection *c)
{
    idle_note(&c->idle);
    return receiver_hold(&c->rx);
}

void storage_on_request_free(struct lh_connection *c)
{
    bool at_rest = c->idle.at == LH_TIME_NEVER;
    idle_note(&c->idle);
    if (!at_rest)
        return; /* a step is due in any case */
    c->needs_step = true;
    sdr_qp_driver_kick(c->qp);
}

static void give_back(struct lh_connection *c)
{
    sender_give_back(&c->tx);
    receiver_give_back(&c->rx);
    coder_give_back(c->coder);
    parity_give_back(&c->parity);
    requests_give_back(c->requests);
    small_messages_give_back(c);
}

lh_time storage_step(struct lh_connection *c, lh_time now)
{
    if (!idle_is_over(&c->idle, now))
        return c->idle.at;
    give_back(c);
    /* What ends without a request: sends that were aborted, refusals. */
    if (c->requests->pending == 0 && (c->tx.segments || c->rx.segments))
        idle_note(&c->idle);
    return c->idle.at;
}
