/*
 * completion_queue.c - the calls of longhaul/queue.h, but for those that start requests (messages.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/completion_queue.h"

#include <stdlib.h>

#include "base/error.h"
#include "message/engine.h"

int lh_completion_queue_create(struct lh_engine *engine, uint32_t capacity,
                               struct lh_completion_queue **queue)
{
    if (!engine)
        return lh_fail(LH_EINVAL, "completion queue without an engine: lh_engine_create() first");
    if (capacity == 0 || capacity > LH_QUEUE_CAPACITY_MAX)
        return lh_fail(LH_EINVAL, "completion queue of %u entries: use 1 to %u", capacity,
                       LH_QUEUE_CAPACITY_MAX);
    int error = engine_check_process(engine);
    if (error)
        return error;
    struct lh_completion_queue *made = calloc(1, sizeof *made);
    if (!made)
        return lh_fail(LH_ENOMEM, "no memory for a completion queue");
    error = completion_ring_open(&made->ring, capacity, engine_waiters_spin_ns(engine));
    if (error) {
        free(made);
        return error;
    }
    made->engine = engine;
    engine_count_queue(engine, 1);
    *queue = made;
    return 0;
}

int lh_completion_queue_destroy(struct lh_completion_queue *queue)
{
    if (!queue)
        return 0;
    int error = engine_check_process(queue->engine);
    if (!error)
        error = completion_ring_close(&queue->ring);
    if (error)
        return error;
    engine_count_queue(queue->engine, -1);
    free(queue);
    return 0;
}

int completion_queue_check(const struct lh_completion_queue *queue, const struct lh_engine *engine)
{
    if (queue->engine != engine)
        return lh_fail(LH_EINVAL, "completion queue of another engine: create one on the connection's "
                                  "(lh_attr.engine)");
    return 0;
}

static bool has_workers(const struct lh_completion_queue *queue)
{
    return queue->engine->workers != LH_NO_WORKERS;
}

int lh_poll(struct lh_completion_queue *queue, struct lh_completion *entries, uint32_t n)
{
    uint32_t taken = completion_ring_take(&queue->ring, entries, n);
    if (taken > 0 || has_workers(queue))
        return (int)taken;
    int error = lh_engine_progress(queue->engine, NULL);
    return error ? error : (int)completion_ring_take(&queue->ring, entries, n);
}

/* Who sleeps on an engine without workers would sleep for ever. */
static int check_workers(const struct lh_completion_queue *queue)
{
    if (has_workers(queue))
        return 0;
    return lh_fail(LH_ESTATE,
                   "engine of the completion queue has no workers: call lh_poll() again and again");
}

int lh_queue_wait(struct lh_completion_queue *queue, struct lh_completion *entries, uint32_t n,
                  lh_time timeout_ns)
{
    int error = check_workers(queue);
    if (error)
        return error;
    if (n == 0)
        return lh_fail(LH_EINVAL, "wait for 0 entries: ask for at least 1");
    uint32_t taken = completion_ring_wait(&queue->ring, entries, n, timeout_ns);
    if (taken > 0)
        return (int)taken;
    return lh_fail(LH_ETIMEDOUT, "completion queue is empty after %llu ms",
                   (unsigned long long)(timeout_ns / LH_NS_PER_MS));
}

int lh_queue_fd(struct lh_completion_queue *queue)
{
    int error = check_workers(queue);
    return error ? error : completion_ring_fd(&queue->ring);
}

int lh_queue_arm(struct lh_completion_queue *queue)
{
    return completion_ring_arm(&queue->ring);
}
