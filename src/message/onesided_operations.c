/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/onesided_operations.h"

#include <stdlib.h>

#include "control/message_control.h"
#include "message/completion_queue.h"
#include "store/store.h"

void onesided_init(struct onesided *o, struct lh_connection *user, struct effects *effects,
                   struct store *store)
{
    o->user = user;
    o->effects = effects;
    o->store = store;
}

void own_init(struct own_message *own, enum own_kind kind)
{
    own->request.own = true;
    own->kind = kind;
}

/* ---- operations of the user -------------------------------------------------------------------------- */

struct onesided_operation *onesided_new(struct onesided *o)
{
    struct onesided_operation *operation = store_take(o->store, sizeof *operation);
    if (operation)
        own_init(&operation->header, OWN_HEADER);
    return operation;
}

void onesided_discard(struct onesided *o, struct onesided_operation *operation)
{
    store_give(o->store, operation, sizeof *operation);
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
static void free_if_over(struct onesided *o, struct onesided_operation *operation)
{
    if (operation->header_done && operation->answered)
        onesided_discard(o, operation);
}

void onesided_on_answered(struct onesided *o, struct onesided_operation *operation)
{
    operation->answered = true;
    free_if_over(o, operation);
}

void onesided_finish_user(struct onesided *o, struct onesided_operation *operation, int error, lh_time now)
{
    if (!operation->request)
        return;
    operation->request->waiting = NULL;
    effects_finish(o->effects, &operation->request->part, error, 0, now);
    operation->request = NULL;
}

void onesided_cancel(struct onesided *o, struct onesided_operation *operation, lh_time now)
{
    onesided_finish_user(o, operation, -LH_ECANCELED, now);
    if (operation->started)
        return; /* its answer comes, and nobody wants it */
    remove_from(&o->waiting, operation);
    onesided_discard(o, operation);
}

void onesided_end_all(struct onesided *o, int error, lh_time now)
{
    while (o->waiting.first) { /* at most LH_REQUESTS_MAX, like the next */
        struct onesided_operation *operation = onesided_pop(&o->waiting);
        onesided_finish_user(o, operation, error, now);
        onesided_discard(o, operation);
    }
    while (o->asked.first) {
        struct onesided_operation *operation = onesided_pop(&o->asked);
        onesided_finish_user(o, operation, error, now);
        onesided_on_answered(o, operation);
    }
}

/* ---- operations of the peer -------------------------------------------------------------------------- */

struct onesided_remote *onesided_add_remote(struct onesided *o, enum own_kind kind)
{
    struct onesided_remote *remote = store_take(o->store, sizeof *remote);
    if (!remote)
        return NULL;
    own_init(&remote->bytes, kind);
    remote->next = o->remotes;
    if (o->remotes)
        o->remotes->previous = remote;
    o->remotes = remote;
    return remote;
}

void onesided_remove_remote(struct onesided *o, struct onesided_remote *remote)
{
    if (remote->next)
        remote->next->previous = remote->previous;
    if (remote->previous)
        remote->previous->next = remote->next;
    else
        o->remotes = remote->next;
    store_give(o->store, remote, sizeof *remote);
}

/* ---- messages that are done -------------------------------------------------------------------------- */

static void notify(const struct onesided *o, const struct onesided_remote *remote)
{
    struct completion_ring *ring = &remote->region->queue->ring;
    struct lh_completion entry = {
        .user = remote->region->user,
        .connection = o->user,
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

static void on_own_done(struct onesided *o, struct own_message *own)
{
    struct onesided_operation *operation = (struct onesided_operation *)own;
    struct onesided_remote *remote = (struct onesided_remote *)own;
    switch (own->kind) {
    case OWN_HEADER:
        operation->header_done = true;
        o->broken |= own->request.result.error != 0;
        free_if_over(o, operation);
        return;
    case OWN_ANSWER:
        o->broken |= own->request.result.error != 0;
        store_give(o->store, own, sizeof(struct own_answer));
        return;
    case OWN_READ:
        o->reads--;
        onesided_remove_remote(o, remote);
        return;
    case OWN_WRITTEN:
        if (remote->notify)
            notify(o, remote);
        onesided_remove_remote(o, remote);
        return;
    }
}

struct message_request *onesided_on_done(struct onesided *o, struct message_request *done)
{
    struct message_request *others = NULL, **end = &others, *next;
    for (; done; done = next) { /* at most MESSAGES_MAX in each direction */
        next = done->next;
        if (done->own) {
            on_own_done(o, (struct own_message *)done);
            continue;
        }
        *end = done;
        end = &done->next;
    }
    *end = NULL;
    return others;
}

void region_free(struct lh_region *region)
{
    message_memory_put(&region->memory);
    if (region->queue)
        completion_ring_unhold(&region->queue->ring);
    free(region);
}
