/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/storage.h"

#include "base/earlier.h"
#include "message/connection.h"
#include "message/effects.h"
#include "message/rx/receiver.h"
#include "message/tx/sender.h"
#include "sdr/driver.h"

int storage_hold_send(struct lh_connection *c, uint32_t count)
{
    idle_note(&c->idle);
    return sender_hold(&c->tx, count);
}

int storage_hold_recv(struct lh_connection *c, uint32_t count)
{
    idle_note(&c->idle);
    int error = matching_hold(c);
    return error ? error : receiver_hold(&c->rx, count);
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
    if (c->matching.waiting.count == 0)
        receiver_give_back(&c->rx);
    coder_give_back(c->coder);
    parity_give_back(&c->parity);
    requests_give_back(c->requests);
    small_messages_give_back(c);
    matching_give_back(c);
}

static lh_time give_back_idle(struct lh_connection *c, lh_time now)
{
    if (!idle_is_over(&c->idle, now))
        return c->idle.at;
    give_back(c);
    /* What ends without a request: sends that were aborted, refusals. */
    if (c->requests->pending == 0 && (c->tx.segments || c->rx.segments))
        idle_note(&c->idle);
    return c->idle.at;
}

static uint64_t refusals_of(const struct lh_connection *c)
{
    return atomic_load_explicit(&c->store.refusals, memory_order_relaxed);
}

/* What is repeated does not count. */
static uint64_t moved_by(const struct lh_connection *c)
{
    return sdr_qp_rx_new_packets(c->qp) + (c->tx.posted_bytes - c->stats->tx_retransmitted_bytes) +
           c->stats->messages_sent + c->stats->messages_received + c->stats->messages_failed;
}

static void look_at_stall(struct lh_connection *c, lh_time now)
{
    struct store *whole = c->store.whole;
    struct storage_stall before = c->stall;
    c->stall = (struct storage_stall){
        .look_at = LH_TIME_NEVER,
        .refusals = refusals_of(c),
        .yields = atomic_load_explicit(&whole->yields, memory_order_relaxed),
        .moved = moved_by(c),
    };
    if (c->stall.refusals == before.refusals || c->requests->pending == 0)
        return;
    c->stall.look_at = now + c->attr.peer_timeout_ns;
    if (before.look_at == LH_TIME_NEVER || c->stall.yields != before.yields ||
        c->stall.moved != before.moved)
        return;
    atomic_fetch_add_explicit(&whole->yields, 1, memory_order_relaxed);
    connection_fail(c, LH_ENOMEM,
                    "no memory for its messages, and others gave none back (raise "
                    "lh_engine_attr.memory_bytes, or open fewer connections)");
}

lh_time storage_step(struct lh_connection *c, lh_time now)
{
    lh_time next = give_back_idle(c, now);
    bool watched = c->stall.look_at != LH_TIME_NEVER;
    if (c->error || c->attr.peer_timeout_ns == LH_TIME_NEVER)
        return next;
    if (watched ? c->stall.look_at <= now : refusals_of(c) != c->stall.refusals)
        look_at_stall(c, now);
    lh_keep_earlier(&next, c->stall.look_at);
    return next;
}

/* Messages of the peer and its clear-to-sends are of no use any more: as many as the queue and its window
 * hold. */
static void drop_unread(struct lh_connection *c)
{
    size_t bytes;
    uint32_t unread = 0;
    while (sdr_qp_message_peek(c->qp, unread, &bytes))
        unread++;
    sdr_qp_messages_drop(c->qp, unread);
    while (lh_sdr_cts_skip(c->qp) == 0)
        ;
}

lh_time storage_step_ended(struct lh_connection *c, lh_time now)
{
    drop_unread(c);
    sender_rest(&c->tx);
    receiver_rest(&c->rx);
    give_back(c);
    return storage_step(c, now);
}
