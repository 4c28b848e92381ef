/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/early_messages.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Operations are numbered one after another: neighbours get buckets of their own. */
static uint32_t bucket_of(const struct link *link, uint32_t group, uint32_t operation)
{
    return (operation + group * 0x9E3779B1u + link->rank * 0x85EBCA77u) % AHEAD_BUCKETS;
}

static struct ahead_queue **place_of(struct ahead_store *store, const struct link *link, uint32_t group,
                                     uint32_t operation)
{
    struct ahead_queue **at = &store->buckets[bucket_of(link, group, operation)];
    while (*at && ((*at)->link != link || (*at)->group != group || (*at)->operation != operation))
        at = &(*at)->next;
    return at;
}

struct ahead_queue *ahead_find(const struct ahead_store *store, const struct link *link, uint32_t group,
                               uint32_t operation)
{
    return *place_of((struct ahead_store *)(uintptr_t)store, link, group, operation);
}

/* ---- keeping ----------------------------------------------------------------------------------------- */

size_t ahead_cost(size_t bytes)
{
    return sizeof(struct ahead) + sizeof(struct ahead_queue) + bytes;
}

/* The queue of a message, perhaps a new one; NULL: no memory. */
static struct ahead_queue *queue_for(struct ahead_store *store, struct link *link, const struct tag *tag)
{
    struct ahead_queue **at = place_of(store, link, tag->group, tag->operation);
    if (*at)
        return *at;
    struct ahead_queue *queue = malloc(sizeof *queue);
    if (!queue)
        return NULL;
    *queue = (struct ahead_queue){.link = link, .group = tag->group, .operation = tag->operation};
    queue->last = &queue->first;
    *at = queue;
    store->queues++;
    return queue;
}

int ahead_keep(struct ahead_store *store, struct link *link, const struct tag *tag, const uint8_t *data,
               size_t bytes, struct bounce *bounce, struct loss *loss)
{
    struct ahead *ahead = malloc(sizeof *ahead + (bounce ? 0 : bytes));
    struct ahead_queue *queue = ahead ? queue_for(store, link, tag) : NULL;
    if (!queue) {
        free(ahead);
        return lh_fail(LH_ENOMEM, "group: no memory for a message of %zu bytes", bytes);
    }
    *ahead = (struct ahead){.tag = *tag, .bytes = bytes, .bounce = bounce, .loss = loss};
    if (!bounce && bytes > 0)
        memcpy(ahead->data, data, bytes);
    *queue->last = ahead;
    queue->last = &ahead->next;
    link->kept_bytes += ahead_cost(bytes);
    return 0;
}

/* ---- taking out -------------------------------------------------------------------------------------- */

struct ahead_queue *ahead_detach(struct ahead_store *store, const struct link *link, uint32_t group,
                                 uint32_t operation)
{
    struct ahead_queue **at = place_of(store, link, group, operation), *queue = *at;
    if (!queue)
        return NULL;
    *at = queue->next;
    queue->next = NULL;
    store->queues--;
    return queue;
}

void ahead_attach(struct ahead_store *store, struct ahead_queue *queue)
{
    struct ahead_queue **at = place_of(store, queue->link, queue->group, queue->operation);
    assert(!*at && queue->first);
    *at = queue;
    store->queues++;
}

void ahead_remove(struct ahead_queue *queue, struct ahead **at)
{
    struct ahead *ahead = *at;
    *at = ahead->next;
    if (queue->last == &ahead->next)
        queue->last = at;
    queue->link->kept_bytes -= ahead_cost(ahead->bytes);
    free(ahead);
}

void ahead_discard(struct ahead_queue *queue)
{
    while (queue && queue->first) {
        struct bounce *bounce = queue->first->bounce;
        loss_free(queue->first->loss);
        ahead_remove(queue, &queue->first);
        if (bounce)
            link_repost(bounce); /* of a connection that has ended: its entries say so */
    }
    free(queue);
}

void ahead_discard_group(struct ahead_store *store, uint32_t group)
{
    for (uint32_t i = 0; i < AHEAD_BUCKETS && store->queues > 0; i++) {
        struct ahead_queue **at = &store->buckets[i];
        while (*at) {
            struct ahead_queue *queue = *at;
            if (queue->group != group) {
                at = &queue->next;
                continue;
            }
            *at = queue->next;
            store->queues--;
            ahead_discard(queue);
        }
    }
}

void ahead_end(struct ahead_store *store)
{
    for (uint32_t i = 0; i < AHEAD_BUCKETS; i++)
        while (store->buckets[i]) {
            struct ahead_queue *queue = store->buckets[i];
            store->buckets[i] = queue->next;
            while (queue->first) {
                loss_free(queue->first->loss);
                ahead_remove(queue, &queue->first);
            }
            free(queue);
        }
    store->queues = 0;
}
