/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/effects.h"

#include "message/own_messages.h"
#include "message/rx/done.h"
#include "message/rx/receiver.h"
#include "message/tx/sender.h"

static void finish_requests(struct lh_connection *c)
{
    struct message_request *finished = c->effects.finished;
    if (!finished)
        return;
    c->effects.finished = NULL;
    if (c->outer)
        finished = onesided_on_done(c, finished);
    requests_finish(finished);
    idle_note(&c->idle);
}

void connection_end_all(struct lh_connection *c, int error)
{
    lh_time now = lh_sdr_now(c->context);
    sender_end_all(&c->tx, error, now);
    receiver_end_all(&c->rx, error, now);
    matching_end_all(c, error, now);
    if (c->outer)
        onesided_end_all(c, error, now);
    finish_requests(c);
}

size_t effects_make_last(struct lh_connection *c, uint8_t last[CONNECTION_LAST_MAX])
{
    const struct transfer_message done = done_last(&c->rx);
    size_t bytes = transfer_encode(&done, last);
    return bytes + small_messages_last(c, last + bytes);
}

/* Afterwards what failed is over, like what arrived. Without memory the peer learns nothing new. */
static void keep_last(struct lh_connection *c)
{
    c->last = store_try(&c->store, CONNECTION_LAST_MAX);
    if (c->last)
        c->last_bytes = effects_make_last(c, c->last);
}

static void fail_one(struct lh_connection *c, enum lh_error error, const char *reason)
{
    if (c->error)
        return;
    effects_fail(&c->effects, error, reason);
    c->error = -c->effects.failure;
    keep_last(c);
    connection_end_all(c, c->error);
    small_messages_free(c);
    idle_note(&c->idle); /* what is still held is given back when nothing reads it any more */
    if (lh_sdr_error(c->qp) == 0)
        lh_sdr_goodbye(c->qp, error);
}

void connection_fail(struct lh_connection *c, enum lh_error error, const char *reason)
{
    struct lh_connection *inner = c->onesided_outer.inner;
    fail_one(c, error, reason);
    if (!inner)
        return;
    pthread_mutex_lock(&inner->requests->lock);
    fail_one(inner, error, reason);
    pthread_mutex_unlock(&inner->requests->lock);
}

static void carry_out_failure(struct lh_connection *c, const struct effects *effects)
{
    const struct keepalive *keepalive = &c->keepalive;
    /* First by the stream: the packets of a close carry no reason. */
    if (effects->failure == LH_EPATH && keepalive->lifeline_ops)
        keepalive->lifeline_ops->refuse(keepalive->lifeline, effects_reason(effects));
    connection_fail(c, (enum lh_error)effects->failure, effects_reason(effects));
}

void effects_carry_out(struct lh_connection *c)
{
    finish_requests(c);
    if (c->effects.failure && !c->error)
        carry_out_failure(c, &c->effects);
}
