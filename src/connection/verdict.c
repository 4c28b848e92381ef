/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "connection/verdict.h"

#include <assert.h>

#include "base/error.h"
#include "connection/number.h"
#include "connection/receiver.h"
#include "connection/sender.h"
#include "connection/tell.h"

#define QUEUE_FULL_FRACTION 8u /* of the span of a repeat */

static bool tell_verdict(struct lh_connection *c, enum transfer_kind kind, uint32_t number, int error)
{
    struct transfer_message message = {.kind = kind};
    message.body.verdict.message = number;
    message.body.verdict.error = (uint32_t)error;
    return tell(c, &message);
}

/* When to say it again. What found the queue full was not said yet: a user may cancel thousands at once. */
static lh_time next_tell(const struct lh_connection *c, bool told, uint32_t *times, lh_time now)
{
    return now + (told ? connection_repeat_span(c, (*times)++)
                       : connection_repeat_span(c, 0) / QUEUE_FULL_FRACTION);
}

static void tell_cancel(struct lh_connection *c, struct send_message *message, lh_time now)
{
    bool told = tell_verdict(c, TRANSFER_CANCEL, message->number, message->error);
    message->tell_at = next_tell(c, told, &message->told, now);
}

static void tell_refuse(struct lh_connection *c, struct recv_message *message, lh_time now)
{
    bool told = tell_verdict(c, TRANSFER_REFUSE, message->number, message->error);
    message->tell_at = next_tell(c, told, &message->told, now);
}

/* A scheme's own or a peer's code must not be taken for success, and users know what lh_strerror() knows.
 * */
static int as_error(int error)
{
    return lh_error_known(error) ? error : LH_EPROTOCOL;
}

void verdict_cancel(struct lh_connection *c, struct send_message *message, enum lh_error error, lh_time now)
{
    assert(message->state == SEND_OPEN);
    message->error = as_error((int)error);
    sender_end_message(c, message, -message->error, SEND_CANCELING, now);
    c->sender.telling++;
    tell_cancel(c, message, now);
}

bool verdict_refuse(struct lh_connection *c, struct recv_message *message, enum lh_error error, lh_time now)
{
    assert(message->state == RECV_OPEN);
    coder_finish(c, now); /* nothing may change the buffer afterwards */
    if (message->state != RECV_OPEN)
        return false;
    message->error = as_error((int)error);
    receiver_end_message(c, message, -message->error, RECV_REFUSED, now);
    c->receiver.telling++;
    tell_refuse(c, message, now);
    return true;
}

void verdict_answer(struct lh_connection *c, uint32_t number)
{
    const struct recv_message *message = recv_message_at(c, number);
    bool refused = number - c->receiver.oldest < MESSAGES_MAX && message->error != 0;
    tell_verdict(c, TRANSFER_REFUSE, number, refused ? message->error : 0);
}

/* ---- what the receiver said -------------------------------------------------------------------------- */

static void on_refuse_open(struct lh_connection *c, struct send_message *message, int error, lh_time now)
{
    switch (message->state) {
    case SEND_OPEN:
        sender_end_message(c, message, -as_error(error), SEND_OVER, now);
        return;
    case SEND_CANCELING:
        message->state = SEND_OVER;
        c->sender.telling--;
        return;
    case SEND_OVER:
    case SEND_EMPTY:
        return;
    }
}

void verdict_on_refuse(struct lh_connection *c, const struct transfer_message *message, lh_time now)
{
    struct sender *s = &c->sender;
    uint32_t number = message->body.verdict.message;
    int error = (int)message->body.verdict.error;
    if (!number_before(number, s->oldest)) {
        if (number - s->oldest >= MESSAGES_MAX)
            return; /* no place to remember it: the receiver repeats itself */
        if (number_before(number, s->next))
            on_refuse_open(c, send_message_at(c, number), error, now);
        else
            send_message_at(c, number)->error = as_error(error);
    }
    sender_retire(c);
    tell_verdict(c, TRANSFER_FORGET, number, 0);
}

/* ---- what the sender said ---------------------------------------------------------------------------- */

void verdict_on_cancel(struct lh_connection *c, const struct transfer_message *message, lh_time now)
{
    struct receiver *r = &c->receiver;
    uint32_t number = message->body.verdict.message;
    struct recv_message *own = recv_message_at(c, number);
    if (!number_before(number, r->oldest)) {
        if (number - r->oldest >= MESSAGES_MAX)
            return; /* no place to remember it: the sender repeats itself */
        if (!number_before(number, r->next)) {
            own->error = as_error((int)message->body.verdict.error);
        } else if (own->state == RECV_OPEN &&
                   verdict_refuse(c, own, (enum lh_error)message->body.verdict.error, now)) {
            return; /* that was the answer */
        }
    }
    verdict_answer(c, number);
}

void verdict_on_forget(struct lh_connection *c, const struct transfer_message *message)
{
    struct receiver *r = &c->receiver;
    uint32_t number = message->body.verdict.message;
    if (number - r->oldest >= MESSAGES_MAX)
        return;
    struct recv_message *own = recv_message_at(c, number);
    if (own->state == RECV_REFUSED) {
        own->state = RECV_OVER;
        r->telling--;
    } else if (own->state == RECV_EMPTY && own->error) {
        own->forgotten = true;
    }
    receiver_retire(c);
}

/* ---- repetition -------------------------------------------------------------------------------------- */

static void repeat_cancels(struct lh_connection *c, lh_time now, lh_time *next)
{
    for (uint32_t n = c->sender.oldest; n != c->sender.next; n++) { /* at most MESSAGES_MAX */
        struct send_message *message = send_message_at(c, n);
        if (message->state != SEND_CANCELING)
            continue;
        if (message->tell_at <= now)
            tell_cancel(c, message, now);
        lh_keep_earlier(next, message->tell_at);
    }
}

static void repeat_refusals(struct lh_connection *c, lh_time now, lh_time *next)
{
    for (uint32_t n = c->receiver.oldest; n != c->receiver.next; n++) { /* at most MESSAGES_MAX */
        struct recv_message *message = recv_message_at(c, n);
        if (message->state != RECV_REFUSED)
            continue;
        if (message->tell_at <= now)
            tell_refuse(c, message, now);
        lh_keep_earlier(next, message->tell_at);
    }
}

void verdict_step(struct lh_connection *c, lh_time now, lh_time *next)
{
    if (c->sender.telling > 0)
        repeat_cancels(c, now, next);
    if (c->receiver.telling > 0)
        repeat_refusals(c, now, next);
}
