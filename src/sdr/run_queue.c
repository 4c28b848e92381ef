/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/run/run_queue.h"

#include <assert.h>

void run_queue_init(struct run_queue *queue, struct due **places, uint32_t room)
{
    *queue = (struct run_queue){0};
    pthread_mutex_init(&queue->lock, NULL);
    due_heap_init(&queue->due, places, room);
}

void run_queue_destroy(struct run_queue *queue)
{
    assert(!queue->first && queue->due.count == 0);
    pthread_mutex_destroy(&queue->lock);
}

static void append(struct run_queue *queue, struct run_entry *entry)
{
    entry->listed = true;
    entry->next = NULL;
    entry->previous = queue->last;
    if (queue->last)
        queue->last->next = entry;
    else
        queue->first = entry;
    queue->last = entry;
}

static void unlink_entry(struct run_queue *queue, struct run_entry *entry)
{
    if (entry->previous)
        entry->previous->next = entry->next;
    else
        queue->first = entry->next;
    if (entry->next)
        entry->next->previous = entry->previous;
    else
        queue->last = entry->previous;
    entry->listed = false;
}

void run_queue_attach(struct run_queue *queue, struct run_entry *entry)
{
    pthread_mutex_lock(&queue->lock);
    entry->attached = true;
    if (atomic_load(&entry->ready) != RUN_IDLE && !entry->listed)
        append(queue, entry);
    pthread_mutex_unlock(&queue->lock);
}

void run_queue_detach(struct run_queue *queue, struct run_entry *entry)
{
    pthread_mutex_lock(&queue->lock);
    entry->attached = false;
    if (entry->listed)
        unlink_entry(queue, entry);
    pthread_mutex_unlock(&queue->lock);
    due_heap_set(&queue->due, &entry->due, LH_TIME_NEVER);
}

static void list(struct run_queue *queue, struct run_entry *entry)
{
    pthread_mutex_lock(&queue->lock);
    if (entry->attached && !entry->listed)
        append(queue, entry);
    pthread_mutex_unlock(&queue->lock);
}

/* An exchange, even where it is ready already: so its worker, who exchanges it back before it looks, sees
 * what was written before. */
void run_queue_mark(struct run_queue *queue, struct run_entry *entry)
{
    if (atomic_exchange(&entry->ready, RUN_MARKED) == RUN_IDLE)
        list(queue, entry);
}

void run_queue_linger(struct run_queue *queue, struct run_entry *entry)
{
    enum run_ready idle = RUN_IDLE;
    if (atomic_compare_exchange_strong(&entry->ready, &idle, RUN_LINGERS))
        list(queue, entry);
}

void run_queue_mark_due(struct run_queue *queue, lh_time now)
{
    struct due *due;
    while ((due = due_heap_pop(&queue->due, now)) != NULL) /* bounded by the entries */
        run_queue_mark(queue, (struct run_entry *)due);
}

struct run_entry *run_queue_take(struct run_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    struct run_entry *first = queue->first;
    for (struct run_entry *entry = first; entry; entry = entry->next) /* bounded by the entries */
        entry->listed = false;
    queue->first = NULL;
    queue->last = NULL;
    pthread_mutex_unlock(&queue->lock);
    return first;
}
