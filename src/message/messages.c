/*
 * messages.c - what users ask of a connection: messages to send, to receive, to cancel.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include "base/error.h"
#include "message/completion_queue.h"
#include "message/connection_state.h"
#include "message/requests.h"
#include "message/rx_receiver.h"
#include "message/tx_sender.h"
#include "sdr/sdr_driver.h"

/* A request for a message that was checked; it owns the memory that is held for it. */
static int take_request(struct lh_connection *c, const struct request_target *target, bool sending,
                        const struct message_memory *memory, lh_time now, struct lh_request **out)
{
    int error =
        request_take(c->requests, target, sending, sending ? c->tx.next : c->rx.next, memory, now, out);
    if (error)
        message_memory_put(memory);
    return error;
}

#define IGNORE_ALL UINT64_MAX

typedef unsigned long long wide; /* for %llx */

static int check_choice(const struct lh_connection *c, const struct lh_message *message)
{
    bool any = message->tag == 0 && (message->ignore == 0 || message->ignore == IGNORE_ALL);
    if (c->small.matching.on || any)
        return 0;
    return lh_fail(LH_EINVAL,
                   "receive with tag 0x%llx, ignore 0x%llx: it takes the next message, whatever its tag; "
                   "use 0, or lh_attr.match_tags",
                   (wide)message->tag, (wide)message->ignore);
}

static int check_tag(const struct lh_connection *c, const struct lh_message *message)
{
    uint64_t tag = message->tag;
    if (message->ignore != 0)
        return lh_fail(LH_EINVAL, "send with ignore 0x%llx: a message has one tag; use 0",
                       (wide)message->ignore);
    if (tag != 0 && !(c->peer_flags & BLOB_TAGS))
        return lh_fail(LH_EVERSION,
                       "tag 0x%llx: tags are unsupported by the peer's release (update it, or use 0)",
                       (unsigned long long)tag);
    return 0;
}

static int check_message(const struct lh_connection *c, const struct lh_message *message, bool sending,
                         uint64_t *bytes)
{
    int error = connection_check(c);
    if (!error)
        error = sending ? check_tag(c, message) : check_choice(c, message);
    if (!error)
        error = message_memory_check(message, bytes);
    if (!error)
        error = sending ? sender_check(&c->tx, *bytes) : receiver_check(&c->rx, *bytes);
    return error;
}

static void start_receive(struct lh_connection *c, struct lh_request *request,
                          const struct lh_message *message, const struct message_buffer *buffer,
                          uint64_t bytes, lh_time now)
{
    const struct rx_receive receive = {&request->part, *buffer, bytes, message->tag, message->ignore};
    if (c->small.matching.on) {
        matching_recv(&c->small.matching, &receive, now);
        return;
    }
    receiver_recv(&c->rx, &request->part, buffer, bytes, now);
    small_messages_on_receive(&c->small, request->message, now);
}

/* 0; 1: it is to be kicked, for it needs a step, and nobody else did so; or an error. */
static int start_locked(struct lh_connection *c, const struct lh_message *message, bool sending,
                        const struct request_target *target, struct lh_request **out)
{
    lh_time now = lh_sdr_now(c->context);
    struct message_buffer buffer;
    struct message_memory memory;
    struct lh_request *request;
    uint64_t bytes;
    int error = check_message(c, message, sending, &bytes);
    if (!error)
        error = sending ? storage_hold_send(c, 1) : storage_hold_recv(c, 1);
    if (!error && sending)
        error = small_messages_prepare(&c->small, 1);
    if (!error)
        error = message_memory_get(&c->engine->memories, message, sending, small_messages_max(&c->small),
                                   &buffer, &memory);
    if (!error)
        error = take_request(c, target, sending, &memory, now, &request);
    if (error)
        return error;
    if (out) /* its entry in a completion queue may be there before this call returns */
        *out = request;
    const struct tx_content content = {.buffer = buffer, .bytes = bytes, .tag = message->tag};
    if (sending) {
        sender_send(&c->tx, &request->part, &content, now);
        small_messages_on_send(&c->small, 1, now);
    } else {
        start_receive(c, request, message, &buffer, bytes, now);
    }
    effects_carry_out(c);
    if (c->needs_step ||
        !small_messages_need_step(&c->small, bytes, sending, c->requests->pending, c->due_ns))
        return 0;
    c->needs_step = true;
    return 1;
}

static int start(struct lh_connection *connection, const struct lh_message *message, bool sending,
                 struct lh_request **request)
{
    const struct request_target target = {
        .queue = message->queue,
        .user = message->user,
        .detached = !request,
        .operation = sending ? LH_OPERATION_SEND : LH_OPERATION_RECV,
    };
    int error = request_target_check(&target, connection->engine);
    if (error)
        return error;
    pthread_mutex_lock(&connection->requests->lock);
    error = start_locked(connection, message, sending, &target, request);
    pthread_mutex_unlock(&connection->requests->lock);
    if (error <= 0)
        return error;
    sdr_qp_driver_kick(connection->qp);
    return 0;
}

int lh_sendmsg(struct lh_connection *connection, const struct lh_message *message,
               struct lh_request **request)
{
    return start(connection, message, true, request);
}

int lh_recvmsg(struct lh_connection *connection, const struct lh_message *message,
               struct lh_request **request)
{
    return start(connection, message, false, request);
}

int lh_send(struct lh_connection *connection, const void *buffer, size_t bytes, struct lh_memory *memory,
            struct lh_request **request)
{
    const struct lh_part part = {(void *)(uintptr_t)buffer, bytes, memory};
    return start(connection, &(struct lh_message){.parts = &part, .count = 1}, true, request);
}

int lh_recv(struct lh_connection *connection, void *buffer, size_t room, struct lh_memory *memory,
            struct lh_request **request)
{
    const struct lh_part part = {buffer, room, memory};
    const struct lh_message message = {.parts = &part, .count = 1, .ignore = IGNORE_ALL};
    return start(connection, &message, false, request);
}

static int post(struct lh_connection *connection, const struct lh_part *part,
                struct lh_completion_queue *queue, uint64_t user, bool sending, struct lh_request **request)
{
    const struct lh_message message = {
        .parts = part, .count = 1, .ignore = sending ? 0 : IGNORE_ALL, .queue = queue, .user = user};
    if (!queue)
        return lh_fail(LH_EINVAL, "no completion queue (pass one, or use lh_send() and lh_recv())");
    return start(connection, &message, sending, request);
}

int lh_post_send(struct lh_connection *connection, const void *buffer, size_t bytes,
                 struct lh_memory *memory, struct lh_completion_queue *queue, uint64_t user,
                 struct lh_request **request)
{
    const struct lh_part part = {(void *)(uintptr_t)buffer, bytes, memory};
    return post(connection, &part, queue, user, true, request);
}

int lh_post_recv(struct lh_connection *connection, void *buffer, size_t room, struct lh_memory *memory,
                 struct lh_completion_queue *queue, uint64_t user, struct lh_request **request)
{
    const struct lh_part part = {buffer, room, memory};
    return post(connection, &part, queue, user, false, request);
}

static void carry_out(struct lh_connection *c)
{
    effects_carry_out(c);
    c->needs_step = true;
    sdr_qp_driver_kick(c->qp);
}

static void cancel_locked(struct lh_connection *c, struct lh_request *request)
{
    lh_time now = lh_sdr_now(c->context);
    if (request->waiting)
        onesided_cancel(c->onesided, request->waiting, now);
    else if (request->sending)
        sender_cancel(&c->tx, request->message, now);
    else if (!matching_cancel(&c->small.matching, &request->part, now))
        receiver_cancel(&c->rx, request->message, now);
    carry_out(c);
}

static void cancel(struct lh_request *request, bool is_freed)
{
    struct request_table *table = request->table;
    pthread_mutex_lock(&table->lock);
    /* A closed connection has ended all its requests. */
    if (atomic_load(&request->state) == REQUEST_PENDING)
        cancel_locked(table->connection, request);
    if (is_freed && table->connection)
        storage_on_request_free(table->connection);
    pthread_mutex_unlock(&table->lock);
}

int lh_cancel(struct lh_request *request)
{
    cancel(request, false);
    return 0;
}

void lh_request_free(struct lh_request *request)
{
    if (!request)
        return;
    cancel(request, true);
    request_give(request);
}

/* ---- early ends -------------------------------------------------------------------------------------- */

void early_end_send(struct lh_request *request)
{
    struct request_table *table = request->table;
    pthread_mutex_lock(&table->lock);
    /* A closed connection has ended all its requests. */
    if (atomic_load(&request->state) == REQUEST_PENDING) {
        struct lh_connection *c = table->connection;
        sender_withdraw(&c->tx, request->message, lh_sdr_now(c->context));
        carry_out(c);
    }
    pthread_mutex_unlock(&table->lock);
}

void early_end_receives(struct lh_connection *c, deadline_ends *ends, const void *context)
{
    pthread_mutex_lock(&c->requests->lock);
    if (c->attached && !c->error) {
        deadline_end_some(&c->rx, ends, context, lh_sdr_now(c->context));
        carry_out(c);
    }
    pthread_mutex_unlock(&c->requests->lock);
}

bool sends_are_over(struct lh_connection *c)
{
    pthread_mutex_lock(&c->requests->lock);
    bool over = c->error || c->tx.oldest == c->tx.next;
    pthread_mutex_unlock(&c->requests->lock);
    return over;
}

void early_finish_decoding(struct lh_connection *c)
{
    pthread_mutex_lock(&c->requests->lock);
    if (c->attached && !c->error) { /* one that has ended has finished it */
        decoding_finish(&c->rx, lh_sdr_now(c->context));
        carry_out(c);
    }
    pthread_mutex_unlock(&c->requests->lock);
}

/* ---- registered memory ------------------------------------------------------------------------------- */

int lh_register(struct lh_connection *connection, void *address, size_t bytes, struct lh_memory **memory)
{
    return memory_register(&connection->engine->memories, address, bytes, memory);
}
