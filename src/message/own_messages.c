/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/own_messages.h"

#include "message/connection.h"

void own_init(struct own_message *own, enum own_kind kind)
{
    own->request.own = true;
    own->kind = kind;
}

/* ---- operations of the user -------------------------------------------------------------------------- */

struct onesided_operation *onesided_new(struct lh_connection *c)
{
    struct onesided_operation *operation = store_take(c->tx.store, sizeof *operation);
    if (operation)
        own_init(&operation->header, OWN_HEADER);
    return operation;
}

void onesided_discard(struct lh_connection *c, struct onesided_operation *operation)
{
    store_give(c->tx.store, operation, sizeof *operation);
}

void onesided_push(struct onesided_list *list, struct onesided_operation *operation)
{
    operation->next = NULL;
    if (list->first)
        list->last->next = operation;
    else
        list->first = operation;
    list->last = operation;
    list->count++;
}

struct onesided_operation *onesided_pop(struct onesided_list *list)
{
    struct onesided_operation *operation = list->first;
    list->first = operation->next;
    list->count--;
    return operation;
}

static void remove_from(struct onesided_list *list, const struct onesided_operation *operation)
{
    struct onesided_operation *before = NULL;
    for (struct onesided_operation *at = list->first; at != operation; at = at->next)
        before = at; /* at most LH_REQUESTS_MAX */
    if (before)
        before->next = operation->next;
    else
        list->first = operation->next;
    if (list->last == operation)
        list->last = before;
    list->count--;
}

/* Of one that was started. */
static void free_if_over(struct lh_connection *c, struct onesided_operation *operation)
{
    if (operation->header_done && operation->answered)
        onesided_discard(c, operation);
}

void onesided_on_answered(struct lh_connection *c, struct onesided_operation *operation)
{
    operation->answered = true;
    free_if_over(c, operation);
}

void onesided_finish_user(struct lh_connection *c, struct onesided_operation *operation, int error,
                          lh_time now)
{
    if (!operation->request)
        return;
    operation->request->waiting = NULL;
    effects_finish(&c->effects, &operation->request->part, error, 0, now);
    operation->request = NULL;
}

void onesided_cancel(struct lh_connection *c, struct onesided_operation *operation, lh_time now)
{
    onesided_finish_user(c, operation, -LH_ECANCELED, now);
    if (operation->started)
        return; /* its answer comes, and nobody wants it */
    remove_from(&c->onesided->waiting, operation);
    onesided_discard(c, operation);
}

void onesided_end_all(struct lh_connection *c, int error, lh_time now)
{
    struct onesided *o = c->onesided;
    while (o->waiting.first) { /* at most LH_REQUESTS_MAX, like the next */
        struct onesided_operation *operation = onesided_pop(&o->waiting);
        onesided_finish_user(c, operation, error, now);
        onesided_discard(c, operation);
    }
    while (o->asked.first) {
        struct onesided_operation *operation = onesided_pop(&o->asked);
        onesided_finish_user(c, operation, error, now);
        onesided_on_answered(c, operation);
    }
}

/* ---- operations of the peer -------------------------------------------------------------------------- */

struct onesided_remote *onesided_add_remote(struct lh_connection *c, enum own_kind kind)
{
    struct onesided *o = c->onesided;
    struct onesided_remote *remote = store_take(c->rx.store, sizeof *remote);
    if (!remote)
        return NULL;
    own_init(&remote->bytes, kind);
    remote->next = o->remotes;
    if (o->remotes)
        o->remotes->previous = remote;
    o->remotes = remote;
    return remote;
}

void onesided_remove_remote(struct lh_connection *c, struct onesided_remote *remote)
{
    struct onesided *o = c->onesided;
    if (remote->next)
        remote->next->previous = remote->previous;
    if (remote->previous)
        remote->previous->next = remote->next;
    else
        o->remotes = remote->next;
    store_give(c->rx.store, remote, sizeof *remote);
}

/* ---- messages that are done -------------------------------------------------------------------------- */

static void notify(const struct lh_connection *c, const struct onesided_remote *remote)
{
    struct completion_ring *ring = &remote->region->queue->ring;
    struct lh_completion entry = {
        .user = remote->region->user,
        .connection = c->outer,
        .result = remote->bytes.request.result,
        .operation = LH_OPERATION_NOTIFY,
    };
    entry.result.tag = remote->immediate;
    if (entry.result.error) {
        completion_ring_release(ring, LH_OPERATION_NOTIFY);
        return;
    }
    completion_ring_begin(ring);
    completion_ring_put(ring, &entry);
    completion_ring_end(ring);
}

static void on_own_done(struct lh_connection *c, struct own_message *own)
{
    struct onesided_operation *operation = (struct onesided_operation *)own;
    struct onesided_remote *remote = (struct onesided_remote *)own;
    switch (own->kind) {
    case OWN_HEADER:
        operation->header_done = true;
        c->onesided->broken |= own->request.result.error != 0;
        free_if_over(c, operation);
        return;
    case OWN_ANSWER:
        c->onesided->broken |= own->request.result.error != 0;
        store_give(c->tx.store, own, sizeof(struct own_answer));
        return;
    case OWN_READ:
        c->onesided->reads--;
        onesided_remove_remote(c, remote);
        return;
    case OWN_WRITTEN:
        if (remote->notify)
            notify(c, remote);
        onesided_remove_remote(c, remote);
        return;
    }
}

struct message_request *onesided_on_done(struct lh_connection *c, struct message_request *done)
{
    struct message_request *others = NULL, **end = &others, *next;
    for (; done; done = next) { /* at most MESSAGES_MAX in each direction */
        next = done->next;
        if (done->own) {
            on_own_done(c, (struct own_message *)done);
            continue;
        }
        *end = done;
        end = &done->next;
    }
    *end = NULL;
    return others;
}
