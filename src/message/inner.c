/*
 * inner.c - the inner connection of a connection (onesided.h): the exchange of blobs, what it leaves.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/onesided.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/earlier.h"
#include "message/connection.h"
#include "message/control/timing.h"
#include "message/effects.h"
#include "message/own_messages.h"

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
    return exchange_waits(&c->onesided_outer.exchange);
}

int onesided_attach(struct lh_connection *c, const uint8_t *blob, uint32_t bytes)
{
    int error = lh_attach(c->onesided_outer.inner, blob, bytes);
    if (error) /* in a call of the user, too */
        __atomic_fetch_add(&c->stats->bad_control, 1, __ATOMIC_RELAXED);
    return error;
}

/* Keeps the peer's blob until this side opens its inner connection. */
static bool keep(struct lh_connection *c, const uint8_t *blob, uint32_t bytes)
{
    struct onesided_outer *outer = &c->onesided_outer;
    outer->peer_blob = store_take(c->tx.store, bytes);
    if (!outer->peer_blob)
        return false;
    memcpy(outer->peer_blob, blob, bytes);
    outer->peer_blob_bytes = bytes;
    return true;
}

static uint32_t operations_of(struct lh_connection *inner)
{
    lock(inner);
    uint32_t operations = inner->onesided->operations;
    unlock(inner);
    return operations;
}

static void end_operations(struct lh_connection *inner, lh_time now)
{
    lock(inner);
    onesided_end_all(inner, -LH_EKEY, now);
    effects_carry_out(inner);
    unlock(inner);
}

void onesided_on_exchange(struct lh_connection *c, const uint8_t *data, size_t bytes, lh_time now)
{
    struct onesided_outer *outer = &c->onesided_outer;
    struct onesided_exchange message;
    if (c->outer || onesided_exchange_decode(data, bytes, &message) != 0) {
        c->stats->bad_control++;
        return;
    }
    uint32_t operations = outer->inner ? operations_of(outer->inner) : 0;
    switch (exchange_on_message(&outer->exchange, &message, operations)) {
    case EXCHANGE_NOTHING:
        return;
    case EXCHANGE_BLOB:
        if (outer->inner ? onesided_attach(c, message.blob, message.blob_bytes) == 0
                         : keep(c, message.blob, message.blob_bytes))
            exchange_accept(&outer->exchange);
        return;
    case EXCHANGE_EMPTY:
        if (outer->inner)
            end_operations(outer->inner, now);
        return;
    }
}

/* False: there is none, or it found no place. */
static bool send_exchange(struct lh_connection *c, lh_time now)
{
    struct onesided_outer *outer = &c->onesided_outer;
    struct onesided_exchange message;
    uint8_t blob[LH_BLOB_MAX], out[ONESIDED_EXCHANGE_BYTES_MAX];
    size_t bytes = sizeof blob;
    bool with_blob;
    if (!outer->exchange.answer_due && !exchange_waits(&outer->exchange))
        return false;
    uint32_t operations = outer->inner ? operations_of(outer->inner) : 0;
    if (!exchange_next(&outer->exchange, operations, now, &message, &with_blob))
        return false;
    if (with_blob) { /* without one the peer would be told that nothing is exposed here */
        int error = lh_blob(outer->inner, blob, &bytes);
        assert(error == 0 && bytes <= ONESIDED_BLOB_MAX); /* INNER_CHANNELS_MAX */
        message.blob = blob;
        message.blob_bytes = (uint32_t)bytes;
    }
    if (lh_sdr_message_send(c->qp, out, onesided_exchange_encode(&message, out)) != 0)
        return false;
    exchange_on_sent(&outer->exchange, &message, timing_refresh_interval(&c->path, outer->exchange.sent),
                     now);
    return true;
}

void onesided_exchange_step(struct lh_connection *c, lh_time now, lh_time *next)
{
    struct exchange *exchange = &c->onesided_outer.exchange;
    while (send_exchange(c, now)) /* at most an answer and a message that asks */
        continue;
    if (exchange->answer_due)
        lh_keep_earlier(next, now + timing_refresh_interval(&c->path, 0));
    if (exchange_waits(exchange))
        lh_keep_earlier(next, exchange->refresh_at > now ? exchange->refresh_at
                                                         : now + timing_refresh_interval(&c->path, 0));
}

void onesided_free_outer(struct lh_connection *c)
{
    struct onesided_outer *outer = &c->onesided_outer;
    store_give(c->tx.store, outer->peer_blob, outer->peer_blob_bytes);
    outer->peer_blob = NULL;
}

void region_free(struct lh_region *region)
{
    message_memory_put(&region->memory);
    if (region->queue)
        completion_ring_unhold(&region->queue->ring);
    free(region);
}

void onesided_free_inner(struct lh_connection *c)
{
    struct regions *regions = c->onesided->regions;
    for (uint32_t i = 0; regions && i < REGIONS_MAX; i++)
        if (regions->places[i])
            region_free((struct lh_region *)regions->places[i]);
    store_give(c->tx.store, regions, sizeof *regions);
    c->onesided->regions = NULL;
}
