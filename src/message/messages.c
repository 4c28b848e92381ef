/*
 * messages.c - what users ask of a connection: messages to send, to receive, to cancel.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include "base/error.h"
#include "message/connection.h"
#include "message/effects.h"
#include "message/rx/receiver.h"
#include "message/tx/sender.h"
#include "sdr/driver.h"

static int check_state(const struct lh_connection *c)
{
    if (c->error)
        return lh_fail((enum lh_error) - c->error, "connection has ended: %s", c->reason);
    if (!c->attached)
        return lh_fail(LH_ESTATE, "connection is not attached yet: lh_attach() first");
    return 0;
}

/* A request for a message that was checked; it owns the registration of the message's buffer. */
static int take_request(struct lh_connection *c, bool sending, uint32_t message,
                        const struct message_memory *memory, lh_time now, struct lh_request **out)
{
    *out = request_take(c->requests, sending, message, memory->own, now);
    if (*out)
        return 0;
    message_memory_put(memory->own);
    return lh_fail(LH_EAGAIN, "%u requests are in use: free those that are done", LH_REQUESTS_MAX);
}

static int send_locked(struct lh_connection *c, const void *buffer, size_t bytes, struct lh_memory *memory,
                       struct lh_request **out)
{
    lh_time now = lh_sdr_now(c->context);
    struct message_memory known;
    struct lh_request *request;
    int error = check_state(c);
    if (!error)
        error = sender_check(&c->tx, bytes);
    if (!error)
        error = message_memory_get(c, buffer, bytes, memory, &known);
    if (!error)
        error = take_request(c, true, c->tx.next, &known, now, &request);
    if (error)
        return error;
    sender_send(&c->tx, &request->part, buffer, bytes, known.lkey, now);
    effects_carry_out(c);
    c->needs_step = true;
    *out = request;
    return 0;
}

int lh_send(struct lh_connection *connection, const void *buffer, size_t bytes, struct lh_memory *memory,
            struct lh_request **request)
{
    int error = engine_check_process(connection->engine);
    if (error)
        return error;
    pthread_mutex_lock(&connection->requests->lock);
    error = send_locked(connection, buffer, bytes, memory, request);
    pthread_mutex_unlock(&connection->requests->lock);
    if (!error)
        sdr_qp_driver_kick(connection->qp);
    return error;
}

static int recv_locked(struct lh_connection *c, void *buffer, size_t room, struct lh_memory *memory,
                       struct lh_request **out)
{
    lh_time now = lh_sdr_now(c->context);
    struct message_memory known;
    struct lh_request *request;
    int error = check_state(c);
    if (!error)
        error = receiver_check(&c->rx, room);
    if (!error)
        error = message_memory_get(c, buffer, room, memory, &known);
    if (!error)
        error = take_request(c, false, c->rx.next, &known, now, &request);
    if (error)
        return error;
    receiver_recv(&c->rx, &request->part, buffer, room, known.lkey, now);
    effects_carry_out(c);
    c->needs_step = true;
    *out = request;
    return 0;
}

int lh_recv(struct lh_connection *connection, void *buffer, size_t room, struct lh_memory *memory,
            struct lh_request **request)
{
    int error = engine_check_process(connection->engine);
    if (error)
        return error;
    pthread_mutex_lock(&connection->requests->lock);
    error = recv_locked(connection, buffer, room, memory, request);
    pthread_mutex_unlock(&connection->requests->lock);
    if (!error)
        sdr_qp_driver_kick(connection->qp);
    return error;
}

static void cancel_locked(struct lh_connection *c, const struct lh_request *request)
{
    lh_time now = lh_sdr_now(c->context);
    if (request->sending)
        sender_cancel(&c->tx, request->message, now);
    else
        receiver_cancel(&c->rx, request->message, now);
    effects_carry_out(c);
    c->needs_step = true;
    sdr_qp_driver_kick(c->qp);
}

int lh_cancel(struct lh_request *request)
{
    struct request_table *table = request->table;
    pthread_mutex_lock(&table->lock);
    /* A closed connection has ended all its requests. */
    if (atomic_load(&request->state) == REQUEST_PENDING)
        cancel_locked(table->connection, request);
    pthread_mutex_unlock(&table->lock);
    return 0;
}

void lh_request_free(struct lh_request *request)
{
    if (!request)
        return;
    lh_cancel(request);
    request_give(request);
}
