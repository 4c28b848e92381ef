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
static int take_request(struct lh_connection *c, const struct request_target *target, bool sending,
                        uint32_t message, const struct message_memory *memory, lh_time now,
                        struct lh_request **out)
{
    int error = request_take(c->requests, target, sending, message, memory->own, now, out);
    if (error)
        message_memory_put(memory->own);
    return error;
}

/* The fabric does not touch the buffers of small messages. */
static int get_memory(struct lh_connection *c, const void *buffer, uint64_t bytes, struct lh_memory *given,
                      struct message_memory *memory)
{
    if (given || (bytes > 0 && !buffer) || !small_messages_serve(c, bytes))
        return message_memory_get(c, buffer, bytes, given, memory);
    *memory = (struct message_memory){0};
    return 0;
}

static int send_locked(struct lh_connection *c, const void *buffer, size_t bytes, struct lh_memory *memory,
                       const struct request_target *target, struct lh_request **out)
{
    lh_time now = lh_sdr_now(c->context);
    struct message_memory known;
    struct lh_request *request;
    int error = check_state(c);
    if (!error)
        error = sender_check(&c->tx, bytes);
    if (!error)
        error = storage_hold_send(c);
    if (!error)
        error = small_messages_prepare(c);
    if (!error)
        error = get_memory(c, buffer, bytes, memory, &known);
    if (!error)
        error = take_request(c, target, true, c->tx.next, &known, now, &request);
    if (error)
        return error;
    if (out) /* its entry in a completion queue may be there before this call returns */
        *out = request;
    const struct tx_content content = {.buffer = buffer, .bytes = bytes, .lkey = known.lkey};
    sender_send(&c->tx, &request->part, &content, now);
    effects_carry_out(c);
    c->needs_step = true;
    return 0;
}

/* Before the lock is taken. */
static int check_start(const struct lh_connection *c, const struct request_target *target)
{
    int error = engine_check_process(c->engine);
    if (!error && !target->queue && target->detached)
        error = lh_fail(LH_EINVAL, "no place for the request: give one, or a completion queue");
    return error;
}

static int start_send(struct lh_connection *connection, const void *buffer, size_t bytes,
                      struct lh_memory *memory, struct lh_completion_queue *queue, uint64_t user,
                      struct lh_request **request)
{
    const struct request_target target = {.queue = queue, .user = user, .detached = !request};
    int error = check_start(connection, &target);
    if (error)
        return error;
    pthread_mutex_lock(&connection->requests->lock);
    error = send_locked(connection, buffer, bytes, memory, &target, request);
    pthread_mutex_unlock(&connection->requests->lock);
    if (!error)
        sdr_qp_driver_kick(connection->qp);
    return error;
}

int lh_send(struct lh_connection *connection, const void *buffer, size_t bytes, struct lh_memory *memory,
            struct lh_request **request)
{
    return start_send(connection, buffer, bytes, memory, NULL, 0, request);
}

int lh_post_send(struct lh_connection *connection, const void *buffer, size_t bytes,
                 struct lh_memory *memory, struct lh_completion_queue *queue, uint64_t user,
                 struct lh_request **request)
{
    int error = completion_queue_check(queue, connection->engine);
    return error ? error : start_send(connection, buffer, bytes, memory, queue, user, request);
}

static int recv_locked(struct lh_connection *c, void *buffer, size_t room, struct lh_memory *memory,
                       const struct request_target *target, struct lh_request **out)
{
    lh_time now = lh_sdr_now(c->context);
    struct message_memory known;
    struct lh_request *request;
    int error = check_state(c);
    if (!error)
        error = receiver_check(&c->rx, room);
    if (!error)
        error = storage_hold_recv(c);
    if (!error)
        error = get_memory(c, buffer, room, memory, &known);
    if (!error)
        error = take_request(c, target, false, c->rx.next, &known, now, &request);
    if (error)
        return error;
    if (out) /* its entry in a completion queue may be there before this call returns */
        *out = request;
    receiver_recv(&c->rx, &request->part, buffer, room, known.lkey, now);
    small_messages_on_receive(c, request->message, now);
    effects_carry_out(c);
    c->needs_step = true;
    return 0;
}

static int start_recv(struct lh_connection *connection, void *buffer, size_t room, struct lh_memory *memory,
                      struct lh_completion_queue *queue, uint64_t user, struct lh_request **request)
{
    const struct request_target target = {.queue = queue, .user = user, .detached = !request};
    int error = check_start(connection, &target);
    if (error)
        return error;
    pthread_mutex_lock(&connection->requests->lock);
    error = recv_locked(connection, buffer, room, memory, &target, request);
    pthread_mutex_unlock(&connection->requests->lock);
    if (!error)
        sdr_qp_driver_kick(connection->qp);
    return error;
}

int lh_recv(struct lh_connection *connection, void *buffer, size_t room, struct lh_memory *memory,
            struct lh_request **request)
{
    return start_recv(connection, buffer, room, memory, NULL, 0, request);
}

int lh_post_recv(struct lh_connection *connection, void *buffer, size_t room, struct lh_memory *memory,
                 struct lh_completion_queue *queue, uint64_t user, struct lh_request **request)
{
    int error = completion_queue_check(queue, connection->engine);
    return error ? error : start_recv(connection, buffer, room, memory, queue, user, request);
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
