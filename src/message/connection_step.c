/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/connection_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/min_max.h"
#include "control/message_control.h"
#include "message/connection_state.h"
#include "message/onesided_operations.h"
#include "message/requests.h"
#include "message/rx_messages.h"
#include "message/rx_receiver.h"
#include "message/rx_state.h"
#include "message/tx_injector.h"
#include "message/tx_messages.h"
#include "message/tx_sender.h"
#include "message/tx_state.h"
#include "sdr/sdr_driver.h"

/* ---- sub-connection -------------------------------------------------------------------------------- */

/* The sub-connection of a connection (onesided_operations.h): the exchange of blobs, its effects. */

static void lock(struct lh_connection *c)
{
    pthread_mutex_lock(&c->requests->lock);
}

static void unlock(struct lh_connection *c)
{
    pthread_mutex_unlock(&c->requests->lock);
}

bool onesided_waits(const struct lh_connection *c)
{
    return exchange_waits(&c->onesided_parent.exchange);
}

int onesided_attach(struct lh_connection *c, const uint8_t *blob, uint32_t bytes)
{
    int error = lh_attach(c->onesided_parent.sub, blob, bytes);
    if (error) /* in a call of the user, too */
        __atomic_fetch_add(&c->stats->bad_control, 1, __ATOMIC_RELAXED);
    return error;
}

/* Keeps the peer's blob until this side opens its sub-connection. */
static bool keep(struct lh_connection *c, const uint8_t *blob, uint32_t bytes)
{
    struct onesided_parent *parent = &c->onesided_parent;
    parent->peer_blob = store_take(c->tx.store, bytes);
    if (!parent->peer_blob)
        return false;
    memcpy(parent->peer_blob, blob, bytes);
    parent->peer_blob_bytes = bytes;
    return true;
}

static uint32_t operations_of(struct lh_connection *sub)
{
    lock(sub);
    uint32_t operations = sub->onesided->operations;
    unlock(sub);
    return operations;
}

static void end_operations(struct lh_connection *sub, lh_time now)
{
    lock(sub);
    onesided_end_all(sub->onesided, -LH_EKEY, now);
    effects_carry_out(sub);
    unlock(sub);
}

void onesided_on_exchange(struct lh_connection *c, const uint8_t *data, size_t bytes, lh_time now)
{
    struct onesided_parent *parent = &c->onesided_parent;
    struct onesided_exchange message;
    if (c->parent || onesided_exchange_decode(data, bytes, &message) != 0) {
        c->stats->bad_control++;
        return;
    }
    uint32_t operations = parent->sub ? operations_of(parent->sub) : 0;
    switch (exchange_on_message(&parent->exchange, &message, operations)) {
    case EXCHANGE_NOTHING:
        return;
    case EXCHANGE_BLOB:
        if (parent->sub ? onesided_attach(c, message.blob, message.blob_bytes) == 0
                        : keep(c, message.blob, message.blob_bytes))
            exchange_accept(&parent->exchange);
        return;
    case EXCHANGE_EMPTY:
        if (parent->sub)
            end_operations(parent->sub, now);
        return;
    }
}

/* False: there is none, or it found no place. */
static bool send_exchange(struct lh_connection *c, lh_time now)
{
    struct onesided_parent *parent = &c->onesided_parent;
    struct onesided_exchange message;
    uint8_t blob[LH_BLOB_MAX], out[ONESIDED_EXCHANGE_BYTES_MAX];
    size_t bytes = sizeof blob;
    bool with_blob;
    if (!parent->exchange.answer_due && !exchange_waits(&parent->exchange))
        return false;
    uint32_t operations = parent->sub ? operations_of(parent->sub) : 0;
    if (!exchange_next(&parent->exchange, operations, now, &message, &with_blob))
        return false;
    if (with_blob) { /* without one the peer would be told that nothing is exposed here */
        int error = lh_blob(parent->sub, blob, &bytes);
        assert(error == 0 && bytes <= ONESIDED_BLOB_MAX); /* SUB_CHANNELS_MAX */
        message.blob = blob;
        message.blob_bytes = (uint32_t)bytes;
    }
    if (lh_sdr_message_send(c->qp, out, onesided_exchange_encode(&message, out)) != 0)
        return false;
    exchange_on_sent(&parent->exchange, &message, timing_refresh_interval(&c->path, parent->exchange.sent),
                     now);
    return true;
}

void onesided_exchange_step(struct lh_connection *c, lh_time now, lh_time *next)
{
    struct exchange *exchange = &c->onesided_parent.exchange;
    while (send_exchange(c, now)) /* at most an answer and a message that asks */
        continue;
    if (exchange->answer_due)
        lh_keep_earlier(next, now + timing_refresh_interval(&c->path, 0));
    if (exchange_waits(exchange))
        lh_keep_earlier(next, exchange->refresh_at > now ? exchange->refresh_at
                                                         : now + timing_refresh_interval(&c->path, 0));
}

void onesided_free_parent(struct lh_connection *c)
{
    struct onesided_parent *parent = &c->onesided_parent;
    store_give(c->tx.store, parent->peer_blob, parent->peer_blob_bytes);
    parent->peer_blob = NULL;
}

void onesided_free_sub(struct lh_connection *c)
{
    struct regions *regions = c->onesided->regions;
    for (uint32_t i = 0; regions && i < REGIONS_MAX; i++)
        if (regions->places[i])
            region_free((struct lh_region *)regions->places[i]);
    store_give(c->tx.store, regions, sizeof *regions);
    c->onesided->regions = NULL;
}

/* ---- step ------------------------------------------------------------------------------------------ */

#define MESSAGES_A_STEP 256u /* of the peer, so that a flood cannot hold the worker */
/* How soon to look again for what another worker does, and does not tell. */
#define OTHERS_NS           (20 * LH_NS_PER_US)
#define POST_AGAIN_FRACTION 8u /* of a round trip */
/* Between two candidates of a plan: what arrives comes first. */
#define PLAN_INTERVAL_NS LH_NS_PER_US

/* ---- messages of the peer ---------------------------------------------------------------------------- */

static void route(struct lh_connection *c, const struct transfer_message *message, lh_time now)
{
    switch (message->kind) {
    case TRANSFER_TO_RECEIVER:
        lengths_on_to_receiver(&c->rx, message, now);
        return;
    case TRANSFER_TO_SENDER:
        sender_on_to_sender(&c->tx, message, now);
        return;
    case TRANSFER_DONE:
        sender_on_done(&c->tx, message, now);
        return;
    case TRANSFER_REFUSE:
        cancel_on_refuse(&c->tx, message, now);
        return;
    case TRANSFER_CANCEL:
        matching_on_cancel(&c->small.matching, message->body.verdict.message);
        refuse_on_cancel(&c->rx, message, now);
        matching_consider(&c->small.matching, now); /* of those behind it */
        return;
    case TRANSFER_FORGET:
        refuse_on_forget(&c->rx, message);
        return;
    }
}

static void on_message(struct lh_connection *c, const uint8_t *data, size_t bytes, lh_time now)
{
    struct transfer_message message;
    if (bytes > 0 && data[0] == EAGER_KIND)
        small_messages_on_packet(&c->small, data, bytes, now);
    else if (bytes > 0 && data[0] == ONESIDED_KIND)
        onesided_on_exchange(c, data, bytes, now);
    else if (transfer_decode(data, bytes, &message) == 0)
        route(c, &message, now);
    else
        c->stats->bad_control++;
    effects_carry_out(c);
}

/* DONE, and what arrived of small messages. */
static void on_last_message(struct lh_connection *c, const uint8_t *data, size_t bytes, lh_time now)
{
    bool both = c->small.on && bytes > TRANSFER_DONE_BYTES && data[0] == TRANSFER_DONE;
    on_message(c, data, both ? TRANSFER_DONE_BYTES : bytes, now);
    if (both)
        on_message(c, data + TRANSFER_DONE_BYTES, bytes - TRANSFER_DONE_BYTES, now);
}

/* Whether there were any. Notes whether small ones ended requests. */
static bool receive_messages(struct lh_connection *c, lh_time now)
{
    const uint8_t *data;
    size_t bytes;
    uint32_t count = 0;
    /* One that ended the connection is the last: what follows would get answers that contradict it. */
    while (!c->error && count < MESSAGES_A_STEP &&
           (data = sdr_qp_message_peek(c->qp, count, &bytes)) != NULL) {
        if (count++ == 0)
            lh_sdr_path(c->qp, &c->path);
        uint32_t pending = c->requests->pending;
        on_message(c, data, bytes, now);
        c->ended_small |= data[0] == EAGER_KIND && c->requests->pending != pending;
    }
    if (count > 0)
        sdr_qp_messages_drop(c->qp, count);
    return count > 0;
}

/* ---- results of the coder ---------------------------------------------------------------------------- */

/* Whether there were any. */
static bool collect_coded(struct lh_connection *c, lh_time now)
{
    struct coder_result result;
    if (!coder_has_results(c->coder))
        return false;
    while (coder_collect(c->coder, &result)) { /* at most CODER_JOBS_MAX are out */
        if (result.decoded)
            decoding_on_decoded(&c->rx, &result, now);
        else
            injector_on_encoded(&c->tx, &result);
        effects_carry_out(c);
    }
    return true;
}

/* ---- is the peer there? ------------------------------------------------------------------------------ */

static void check_peer(struct lh_connection *c, lh_time now, lh_time *next)
{
    struct keepalive_end end;
    const struct keepalive_view view = {
        .pending = c->requests->pending > 0 || c->tx.oldest != c->tx.next || c->rx.refusing > 0 ||
                   onesided_waits(c),
        .sends_open = c->tx.oldest != c->tx.next || deadline_waits(&c->rx),
        .rtt_ns = c->path.rtt_ns,
    };
    if (!keepalive_step(&c->keepalive, &view, now, next, &end))
        return;
    /* What it acknowledges counts, though its packets may have been lost. */
    if (end.last_bytes > 0)
        on_last_message(c, end.last, end.last_bytes, now);
    if (end.error == LH_ECLOSED && !c->error)
        deadline_on_closed(&c->rx, now);
    connection_fail(c, end.error, end.reason);
}

/* ---- everything that is due -------------------------------------------------------------------------- */

/* `auto` weighs one candidate; how long that takes decides when it does so again. */
static void plan(struct lh_connection *c, lh_time now, lh_time *next)
{
    if (!auto_scheme_planning(&c->rx))
        return;
    lh_time began = lh_sdr_now(c->context);
    if (auto_scheme_plan(&c->rx))
        lh_keep_earlier(next, now + PLAN_INTERVAL_NS);
    lh_time ended = lh_sdr_now(c->context);
    auto_scheme_planned(&c->rx, ended, ended - began);
}

/* For what another worker does and does not tell: with a controller it tells what it lets out. */
static bool waits_for_others(const struct lh_connection *c)
{
    const struct tx *tx = &c->tx;
    if (c->attr.workers == LH_NO_WORKERS || c->attr.workers == 1)
        return false;
    bool queue = tx->window_limited || tx->timers_move || tx->leaving > 0 || tx->held_head != tx->held_tail;
    return tx->ending_count > 0 || (queue && !c->path.controlled);
}

/* With the path as it is now. */
static void act(struct lh_connection *c, lh_time now)
{
    const struct tx *tx = &c->tx;
    lh_time next = LH_TIME_NEVER;
    c->needs_step = false;
    receiver_step(&c->rx, now, &next);
    /* A complete message waits for no post, plan or encoding; its registration is free for the next one. What
     * ends the connection here ends the step: memory of messages is gone. */
    effects_carry_out(c);
    if (c->error)
        return;
    onesided_step(c, now, &next);
    if (c->error)
        return;
    receiver_post(&c->rx, now, &next);
    plan(c, now, &next);
    sender_step(&c->tx, now, &next);
    sdr_qp_user_window(c->qp, c->tx.window_full);
    effects_carry_out(c);
    if (c->error)
        return;
    cancel_on_refresh_expired(&c->tx, now, &next);
    receiver_announce(&c->rx, now, &next);
    small_messages_step(&c->small, now, &next);
    onesided_exchange_step(c, now, &next);
    effects_carry_out(c);
    if (waits_for_others(c))
        lh_keep_earlier(&next, now + OTHERS_NS);
    if (c->rx.post_refused || tx->start_refused || tx->end_refused)
        lh_keep_earlier(&next, now + timing_refresh_interval(&c->path, 0) / POST_AGAIN_FRACTION);
    c->due_ns = next;
}

/* Small messages were received, or were sent: the program learns of that before the rest of the step, and its
 * answer takes an acknowledgement along. Not twice in a row, so that a stream of them holds nothing up. */
static bool may_answer_first(struct lh_connection *c, bool arrived)
{
    bool first = c->ended_small && !c->answers && !arrived && !c->error;
    c->ended_small = false;
    c->answers = first;
    return first;
}

static lh_time step_locked(struct lh_connection *c, lh_time now)
{
    if (!c->attached)
        return LH_TIME_NEVER;
    if (c->error)
        return storage_step_ended(c, now);
    lh_time next = LH_TIME_NEVER;
    bool arrived = arrivals_poll(&c->rx, now);
    bool received = receive_messages(c, now);
    if (may_answer_first(c, arrived)) {
        c->needs_step = true;
        return now;
    }
    bool coded = collect_coded(c, now);
    if (!c->error)
        check_peer(c, now, &next);
    if (!c->error &&
        (received || arrived || coded || c->needs_step || c->due_ns <= now || sender_has_work(&c->tx))) {
        if (!received) /* else that has asked for it */
            lh_sdr_path(c->qp, &c->path);
        act(c, now);
    }
    if (c->error)
        return storage_step_ended(c, now);
    tx_wait_note(&c->tx, now);
    lh_keep_earlier(&next, c->due_ns);
    lh_keep_earlier(&next, storage_step(c, now));
    return c->error ? now : next;
}

lh_time connection_step(void *connection, lh_time now)
{
    struct lh_connection *c = connection;
    struct request_wakes wakes;
    requests_lock(c->requests, &wakes);
    lh_time next = step_locked(c, now);
    requests_unlock(c->requests);
    return next;
}
