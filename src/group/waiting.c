/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/waiting.h"

#include <time.h>

#include "base/error.h"
#include "message/completion_queue.h"

#define ENTRIES 32u

int waiting_init(struct mesh *mesh)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0)
        return lh_fail(LH_ENOMEM, "group: no memory for a condition");
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int failed = pthread_cond_init(&mesh->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (failed)
        return lh_fail(LH_ENOMEM, "group: no memory for a condition");
    if (pthread_mutex_init(&mesh->lock, NULL) != 0) {
        pthread_cond_destroy(&mesh->changed);
        return lh_fail(LH_ENOMEM, "group: no memory for a lock");
    }
    return 0;
}

void waiting_free(struct mesh *mesh)
{
    pthread_mutex_destroy(&mesh->lock);
    pthread_cond_destroy(&mesh->changed);
}

/* ---- waiting ----------------------------------------------------------------------------------------- */

static lh_time until(lh_time now, lh_time at)
{
    if (at == LH_TIME_NEVER)
        return LH_TIME_NEVER;
    return at > now ? at - now : 0;
}

/* For the queue; the lock is free meanwhile. */
static void poll_for_all(struct mesh *mesh, lh_time timeout_ns)
{
    struct lh_completion entries[ENTRIES];
    mesh->polling = true;
    pthread_mutex_unlock(&mesh->lock);
    int n = lh_queue_wait(mesh->queue, entries, ENTRIES, timeout_ns);
    pthread_mutex_lock(&mesh->lock);
    mesh->polling = mesh->woken = false;
    if (n > 0)
        mesh_on_entries(mesh, entries, (uint32_t)n);
    mesh_poll(mesh);
}

static void sleep_until_changed(struct mesh *mesh, lh_time timeout_ns)
{
    struct timespec at;
    if (timeout_ns == LH_TIME_NEVER) {
        pthread_cond_wait(&mesh->changed, &mesh->lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(timeout_ns / LH_NS_PER_S);
    at.tv_nsec += (long)(timeout_ns % LH_NS_PER_S);
    if (at.tv_nsec >= (long)LH_NS_PER_S) {
        at.tv_sec++;
        at.tv_nsec -= (long)LH_NS_PER_S;
    }
    pthread_cond_timedwait(&mesh->changed, &mesh->lock, &at);
}

int wait_until(struct mesh *mesh, bool (*is)(const void *what), const void *what, lh_time timeout_ns)
{
    lh_time now = mesh_now(mesh);
    lh_time end = timeout_ns < LH_TIME_NEVER - now ? now + timeout_ns : LH_TIME_NEVER;
    if (!mesh->polling)
        mesh_poll(mesh);
    while (!is(what)) {
        lh_time deadline = mesh_next_deadline(mesh), next = end < deadline ? end : deadline;
        now = mesh_now(mesh);
        if (now >= end)
            break;
        if (mesh->polling)
            sleep_until_changed(mesh, until(now, next));
        else
            poll_for_all(mesh, until(now, next));
    }
    if (!mesh->polling)
        pthread_cond_broadcast(&mesh->changed); /* another waiter polls now */
    return is(what) ? 0 : -LH_ETIMEDOUT;
}

void waiting_wake(struct mesh *mesh)
{
    struct completion_ring *ring = &mesh->queue->ring;
    const struct lh_completion nothing = {.operation = LH_OPERATION_COLLECTIVE};
    if (!mesh->polling || mesh->woken || completion_ring_reserve(ring, LH_OPERATION_COLLECTIVE) != 0)
        return; /* a full queue wakes it */
    /* Once: the queue has places for what links send. */
    mesh->woken = true;
    completion_ring_begin(ring);
    completion_ring_put(ring, &nothing);
    completion_ring_end(ring);
}

/* ---- the thread -------------------------------------------------------------------------------------- */

static bool is_ending(const void *what)
{
    return ((const struct mesh *)what)->ending;
}

static void *run_thread(void *context)
{
    struct mesh *mesh = context;
    pthread_mutex_lock(&mesh->lock);
    wait_until(mesh, is_ending, mesh, LH_TIME_NEVER);
    pthread_mutex_unlock(&mesh->lock);
    return NULL;
}

int waiting_start_thread(struct mesh *mesh)
{
    int failed = pthread_create(&mesh->thread, NULL, run_thread, mesh);
    mesh->threaded = failed == 0;
    return failed ? lh_fail(LH_ESYSTEM, "group: the thread cannot start") : 0;
}

void waiting_end_thread(struct mesh *mesh)
{
    if (!mesh->threaded)
        return;
    pthread_mutex_lock(&mesh->lock);
    mesh->ending = true;
    waiting_wake(mesh);
    pthread_cond_broadcast(&mesh->changed);
    pthread_mutex_unlock(&mesh->lock);
    pthread_join(mesh->thread, NULL);
    mesh->threaded = false;
}
