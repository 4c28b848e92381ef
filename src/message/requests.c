/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/requests.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/connection.h>

#include "base/error.h"
#include "control/message_control.h"
#include "message/completion_queue.h"
#include "message/engine.h"
#include "message/message_memory.h"
#include "message/receive_buffer.h"
#include "store/store.h"

/* ---- requests -------------------------------------------------------------------------------------- */

static_assert(offsetof(struct lh_request, part) == 0, "a part's request is its request");

struct request_table *request_table_create(struct lh_connection *connection, const struct lh_engine *engine,
                                           struct store *store)
{
    struct request_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    pthread_mutex_init(&table->lock, NULL);
    table->connection = connection;
    table->owner = connection;
    table->workers = engine->workers != LH_NO_WORKERS;
    spin_wait_init(&table->spin, engine_waiters_spin_ns(engine));
    table->store = store;
    return table;
}

static void put_free(struct request_table *table, struct request_block *block)
{
    for (uint32_t i = REQUESTS_A_BLOCK; i > 0; i--) {
        struct lh_request *request = &block->requests[i - 1];
        if (atomic_load_explicit(&request->state, memory_order_relaxed) != REQUEST_FREE)
            continue;
        request->table = table;
        request->part.next = table->free;
        table->free = &request->part;
    }
}

static int add_block(struct request_table *table)
{
    if (table->count == LH_REQUESTS_MAX)
        return lh_fail(LH_EAGAIN, "limit of %u requests reached (free completed ones)", LH_REQUESTS_MAX);
    struct request_block *block = store_take(table->store, sizeof *block);
    if (!block)
        return -LH_ENOMEM;
    block->next = table->blocks;
    table->blocks = block;
    table->count += REQUESTS_A_BLOCK;
    put_free(table, block);
    return 0;
}

static bool is_unused(const struct request_block *block)
{
    for (uint32_t i = 0; i < REQUESTS_A_BLOCK; i++)
        if (atomic_load_explicit(&block->requests[i].state, memory_order_relaxed) != REQUEST_FREE)
            return false;
    return true;
}

void requests_give_back(struct request_table *table)
{
    struct request_block *next, *blocks = table->blocks;
    table->blocks = NULL;
    table->free = NULL;
    for (struct request_block *block = blocks; block;
         block = next) { /* LH_REQUESTS_MAX / REQUESTS_A_BLOCK */
        next = block->next;
        if (is_unused(block)) {
            table->count -= REQUESTS_A_BLOCK;
            store_give(table->store, block, sizeof *block);
            continue;
        }
        block->next = table->blocks;
        table->blocks = block;
        put_free(table, block);
    }
}

static void destroy(struct request_table *table)
{
    struct request_block *next;
    for (struct request_block *block = table->blocks; block; block = next) {
        next = block->next;
        free(block);
    }
    pthread_mutex_destroy(&table->lock);
    free(table);
}

void request_table_close(struct request_table *table)
{
    pthread_mutex_lock(&table->lock);
    assert(table->pending == 0);
    table->connection = NULL;
    requests_give_back(table);
    store_forget(table->store, table->count / REQUESTS_A_BLOCK * sizeof(struct request_block));
    table->store = NULL;
    bool unused = table->in_use == 0;
    pthread_mutex_unlock(&table->lock);
    if (unused)
        destroy(table);
}

int request_target_check(const struct request_target *target, const struct lh_engine *engine)
{
    int error = engine_check_process(engine);
    if (!error && !target->queue && target->detached)
        error = lh_fail(LH_EINVAL, "request is NULL without a completion queue (pass one of them)");
    if (!error && target->queue)
        error = completion_queue_check(target->queue, engine);
    return error;
}

int request_take(struct request_table *table, const struct request_target *target, bool sending,
                 uint32_t message, const struct message_memory *memory, lh_time now,
                 struct lh_request **out)
{
    int error = table->free ? 0 : add_block(table);
    if (!error && target->queue)
        error = completion_ring_reserve(&target->queue->ring, target->operation);
    if (error)
        return error;
    struct lh_request *request = (struct lh_request *)table->free;
    table->free = table->free->next;
    table->in_use++;
    table->pending++;
    request->target = *target;
    request->sending = sending;
    request->message = message;
    request->waiting = NULL;
    request->memory = *memory;
    request->part.result = (struct lh_result){.started_ns = now};
    request->part.delivery = (struct message_delivery){0};
    atomic_store_explicit(&request->state, REQUEST_PENDING, memory_order_release);
    *out = request;
    return 0;
}

/* Under the lock. */
static void give_back(struct lh_request *request)
{
    struct request_table *table = request->table;
    free(request->part.delivery.arrived);
    request->part.delivery.arrived = NULL;
    atomic_store(&request->state, REQUEST_FREE);
    request->part.next = table->free;
    table->free = &request->part;
    table->in_use--;
}

static void wake(struct request_wakes *wakes, _Atomic uint32_t *word, int threads)
{
    if (wakes && wakes->count < REQUEST_WAKES_MAX)
        wakes->wakes[wakes->count++] = (struct request_wake){word, threads};
    else
        futex_wake(word, threads);
}

void requests_lock(struct request_table *table, struct request_wakes *wakes)
{
    wakes->count = 0;
    pthread_mutex_lock(&table->lock);
    table->wakes = wakes;
}

void requests_unlock(struct request_table *table)
{
    const struct request_wakes *wakes = table->wakes;
    table->wakes = NULL;
    pthread_mutex_unlock(&table->lock);
    /* The requests and queues may be gone by now. */
    for (uint32_t i = 0; i < wakes->count; i++)
        futex_wake(wakes->wakes[i].word, wakes->wakes[i].threads);
}

static void add_entry(const struct lh_request *request)
{
    const struct lh_completion entry = {
        .user = request->target.user,
        .connection = request->table->owner,
        .request = request->target.detached ? NULL : (struct lh_request *)request,
        .result = request->part.result,
        .operation = request->target.operation,
    };
    completion_ring_put(&request->target.queue->ring, &entry);
}

static void finish(struct lh_request *request)
{
    assert(atomic_load(&request->state) == REQUEST_PENDING);
    request->table->pending--;
    if (request->target.queue)
        add_entry(request);
    if (request->target.detached) {
        give_back(request);
        return;
    }
    atomic_store(&request->state, REQUEST_DONE);
    if (atomic_load(&request->waiters) > 0)
        wake(request->table->wakes, &request->state, INT_MAX);
}

/* From one ring, or none, to another. */
static struct completion_ring *change_ring(struct completion_ring *from, struct lh_completion_queue *queue,
                                           struct request_wakes *wakes)
{
    struct completion_ring *to = queue ? &queue->ring : NULL;
    if (from == to)
        return to;
    uint32_t sleeping = from ? completion_ring_end_quietly(from) : 0;
    if (sleeping > 0)
        wake(wakes, &from->count, (int)sleeping);
    if (to)
        completion_ring_begin(to);
    return to;
}

void requests_finish(struct message_request *parts)
{
    struct completion_ring *ring = NULL;
    struct request_wakes *wakes = parts ? ((struct lh_request *)parts)->table->wakes : NULL;
    struct message_request *next;
    for (struct message_request *part = parts; part; part = part->next) /* at most MESSAGES_MAX */
        message_memory_put(&((struct lh_request *)part)->memory);       /* under no ring's lock */
    for (struct message_request *part = parts; part; part = next) {
        struct lh_request *request = (struct lh_request *)part;
        next = part->next;
        ring = change_ring(ring, request->target.queue, wakes);
        finish(request); /* who polls its entry finds it done: the ring's lock is held */
    }
    change_ring(ring, NULL, wakes);
}

int lh_test(struct lh_request *request, struct lh_result *result)
{
    if (atomic_load_explicit(&request->state, memory_order_acquire) != REQUEST_DONE)
        return 0;
    if (result)
        *result = request->part.result;
    return 1;
}

int lh_wait(struct lh_request *request, lh_time timeout_ns, struct lh_result *result)
{
    if (lh_test(request, result))
        return 0;
    if (!request->table->workers)
        return lh_fail(LH_ESTATE, "this connection has no workers: call lh_progress() and lh_test()");
    struct timespec deadline;
    bool for_ever = timeout_ns == LH_TIME_NEVER;
    if (!for_ever)
        deadline = spin_wait_deadline(timeout_ns);
    bool late = false;
    struct spin spin;
    spin_wait_begin(&request->table->spin, &spin, &request->state, REQUEST_PENDING, timeout_ns);
    atomic_fetch_add(&request->waiters, 1);
    /* Each turn sleeps until the request is done, the deadline passed, or a signal came. */
    while (atomic_load(&request->state) == REQUEST_PENDING && !late)
        late = !futex_sleep(&request->state, REQUEST_PENDING, for_ever ? NULL : &deadline);
    atomic_fetch_sub(&request->waiters, 1);
    spin_wait_end(&request->table->spin, &spin);
    if (lh_test(request, result))
        return 0;
    return lh_fail(LH_ETIMEDOUT, "request is not done after %llu ms",
                   (unsigned long long)(timeout_ns / LH_NS_PER_MS));
}

/* ---- messages with a deadline ------------------------------------------------------------------------ */

static int check_delivered(struct lh_request *request, struct lh_result *result)
{
    if (!lh_test(request, result))
        return lh_fail(LH_ESTATE, "request is pending: wait for it");
    if (request->sending)
        return lh_fail(LH_ESTATE, "request is a send: only a receive has missing ranges");
    if (result->error)
        return lh_fail(LH_ESTATE, "receive has failed: %s", lh_strerror(result->error));
    return 0;
}

static struct arrived arrived_of(const struct lh_request *request)
{
    const struct message_delivery *delivery = &request->part.delivery;
    return (struct arrived){
        .bits = delivery->arrived,
        .packet_bytes = delivery->packet_bytes,
        .bytes = request->part.result.missing_bytes > 0 ? request->part.result.bytes : 0,
    };
}

int64_t lh_missing(struct lh_request *request, uint64_t first, struct lh_range *ranges, uint64_t count)
{
    struct lh_result result;
    int error = check_delivered(request, &result);
    if (error)
        return error;
    struct arrived arrived = arrived_of(request);
    struct lh_range range = {0};
    int64_t taken = 0;
    /* Each turn is a range: at most half as many as the message has packets. */
    for (uint64_t i = 0; (uint64_t)taken < count; i++) {
        if (arrived.bytes == 0 || !arrived_next_missing(&arrived, range.offset + range.bytes, &range))
            break;
        if (i >= first)
            ranges[taken++] = range;
    }
    return taken;
}

int lh_delivery(struct lh_request *request, struct lh_delivery *delivery)
{
    struct lh_result result;
    int error = check_delivered(request, &result);
    if (error)
        return error;
    *delivery = (struct lh_delivery){.end = request->part.delivery.end, .arrived_bytes = result.bytes};
    if (result.missing_bytes == 0)
        return 0;
    struct arrived arrived = arrived_of(request);
    delivery->missing_ranges = arrived_missing(&arrived, &delivery->missing_bytes);
    delivery->arrived_bytes -= delivery->missing_bytes;
    lh_missing(request, 0, delivery->missing, LH_MISSING_INLINE);
    return 0;
}

/* ---- freeing ----------------------------------------------------------------------------------------- */

void request_give(struct lh_request *request)
{
    struct request_table *table = request->table;
    pthread_mutex_lock(&table->lock);
    assert(atomic_load(&request->state) == REQUEST_DONE);
    give_back(request);
    bool unused = !table->connection && table->in_use == 0;
    pthread_mutex_unlock(&table->lock);
    if (unused)
        destroy(table);
}
