/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/run_queue.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/due_heap.h"
#include "base/min_max.h"

/* ---- turns ----------------------------------------------------------------------------------------- */

void turns_init(struct turn_order *turns, struct due **places, uint32_t room)
{
    *turns = (struct turn_order){0};
    due_heap_init(&turns->waiting, places, room);
}

void turns_enter(struct turn_order *turns, struct turn *turn)
{
    if (turn->start.place == 0)
        due_heap_set(&turns->waiting, &turn->start,
                     lh_max(turn->ended, lh_sub_sat(turns->now, TURNS_CREDIT)));
}

void turns_leave(struct turn_order *turns, struct turn *turn)
{
    due_heap_set(&turns->waiting, &turn->start, LH_TIME_NEVER);
}

struct turn *turns_next(struct turn_order *turns)
{
    struct turn *turn = (struct turn *)due_heap_pop(&turns->waiting, LH_TIME_NEVER);
    if (!turn)
        return NULL;
    turn->ended = turn->start.at_ns;
    turns->now = lh_max(turns->now, turn->ended);
    return turn;
}

void turns_charge(struct turn *turn, uint64_t cost)
{
    turn->ended += cost;
}

/* ---- run queue ------------------------------------------------------------------------------------- */

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

/* ---- channel order --------------------------------------------------------------------------------- */

void channel_order_init(struct channel_order *order, uint32_t channels)
{
    order->unserved = channels;
    order->waiting = 0;
}

void channel_order_set(struct channel_order *order, uint32_t channel, bool waiting, uint64_t front)
{
    uint32_t bit = (uint32_t)1 << channel;
    order->waiting = waiting ? order->waiting | bit : order->waiting & ~bit;
    order->fronts[channel] = front;
}

/* Of a set that is not empty. Places wrap. */
static uint32_t earliest(const struct channel_order *order, uint32_t channels)
{
    uint32_t first = (uint32_t)__builtin_ctz(channels);
    for (channels &= channels - 1; channels != 0; channels &= channels - 1) {
        uint32_t c = (uint32_t)__builtin_ctz(channels);
        if ((int64_t)(order->fronts[c] - order->fronts[first]) < 0)
            first = c;
    }
    return first;
}

bool channel_order_next(struct channel_order *order, uint32_t *channel)
{
    if (order->unserved == 0)
        return false;
    uint32_t waiting = order->unserved & order->waiting;
    *channel = waiting != 0 ? earliest(order, waiting) : (uint32_t)__builtin_ctz(order->unserved);
    order->unserved &= ~((uint32_t)1 << *channel);
    return true;
}

bool channel_order_bound(const struct channel_order *order, uint32_t channel, uint64_t *bound)
{
    uint32_t others = order->waiting & ~((uint32_t)1 << channel);
    if (others == 0)
        return false;
    *bound = order->fronts[earliest(order, others)];
    return true;
}
