/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/completion_queue.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/connection.h>
#include <longhaul/queue.h>
#include <longhaul/types.h>

#include "base/error.h"
#include "message/engine.h"
#include "sdr/worker_sleep.h"

/* ---- spin wait ------------------------------------------------------------------------------------- */

void spin_wait_init(struct spin_wait *wait, lh_time spin_ns)
{
    wait->spin_ns = spin_ns;
    atomic_init(&wait->short_pauses, SPIN_ALWAYS);
}

static lh_time clock_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (lh_time)at.tv_sec * LH_NS_PER_S + (lh_time)at.tv_nsec;
}

void spin_wait_begin(struct spin_wait *wait, struct spin *spin, const _Atomic uint32_t *word,
                     uint32_t value, lh_time timeout_ns)
{
    if (wait->spin_ns == 0)
        return;
    lh_time start = clock_ns(), now = start;
    spin_init(spin, wait->spin_ns);
    spin->idle_since_ns = start;
    spin->short_pauses = atomic_load_explicit(&wait->short_pauses, memory_order_relaxed);
    /* Ends after spin_ns. */
    while (atomic_load_explicit(word, memory_order_acquire) == value) {
        if (spin_is_over(spin, now) || now - start >= timeout_ns) {
            spin_on_sleep(spin);
            return;
        }
        sched_yield(); /* to the worker, where both have but one CPU */
        now = clock_ns();
    }
}

void spin_wait_end(struct spin_wait *wait, struct spin *spin)
{
    if (wait->spin_ns == 0)
        return;
    spin_on_work(spin, clock_ns());
    /* Of two threads that end at once one is forgotten. */
    atomic_store_explicit(&wait->short_pauses, spin->short_pauses, memory_order_relaxed);
}

struct timespec spin_wait_deadline(lh_time timeout_ns)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    uint64_t ns = (uint64_t)at.tv_nsec + timeout_ns % LH_NS_PER_S;
    at.tv_sec += (time_t)(timeout_ns / LH_NS_PER_S + ns / LH_NS_PER_S);
    at.tv_nsec = (long)(ns % LH_NS_PER_S);
    return at;
}

/* ---- futex ----------------------------------------------------------------------------------------- */

static_assert(sizeof(_Atomic uint32_t) == sizeof(uint32_t), "a futex is 32 bits");

/* ---- completion ring ------------------------------------------------------------------------------- */

/* ---- open and close ---------------------------------------------------------------------------------- */

/* The lock is held for some ten nanoseconds: who finds it taken spins before it sleeps. */
static void init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(lock, &attr);
    pthread_mutexattr_destroy(&attr);
}

int completion_ring_open(struct completion_ring *ring, uint32_t capacity, lh_time spin_ns)
{
    assert(capacity > 0 && capacity <= LH_QUEUE_CAPACITY_MAX);
    *ring = (struct completion_ring){.capacity = capacity, .fd = -1};
    ring->entries = calloc(capacity, sizeof *ring->entries);
    if (!ring->entries)
        return lh_fail(LH_ENOMEM, "no memory for a completion queue of %u entries", capacity);
    spin_wait_init(&ring->spin, spin_ns);
    init_lock(&ring->lock);
    return 0;
}

static uint32_t count_of(const struct completion_ring *ring)
{
    return atomic_load_explicit(&ring->count, memory_order_relaxed);
}

int completion_ring_enlarge(struct completion_ring *ring, uint32_t capacity)
{
    assert(capacity <= LH_QUEUE_CAPACITY_MAX);
    pthread_mutex_lock(&ring->lock);
    struct lh_completion *entries = capacity > ring->capacity ? calloc(capacity, sizeof *entries) : NULL;
    bool fails = capacity > ring->capacity && !entries;
    if (entries) {
        for (uint32_t i = 0; i < count_of(ring); i++)
            entries[i] = ring->entries[((uint64_t)ring->first + i) % ring->capacity];
        free(ring->entries);
        ring->entries = entries;
        ring->capacity = capacity;
        ring->first = 0;
    }
    pthread_mutex_unlock(&ring->lock);
    return fails ? lh_fail(LH_ENOMEM, "no memory for a completion queue of %u entries", capacity) : 0;
}

/* Places without an entry yet. */
static uint32_t pending_of(const struct completion_ring *ring)
{
    return ring->requests + ring->notifications - count_of(ring);
}

int completion_ring_close(struct completion_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    uint32_t pending = pending_of(ring) + ring->held, sleeping = ring->sleeping;
    pthread_mutex_unlock(&ring->lock);
    if (pending > 0)
        return lh_fail(LH_ESTATE,
                       "completion queue is in use (pending requests: %u): cancel them or close their "
                       "connections first",
                       pending);
    if (sleeping > 0)
        return lh_fail(LH_ESTATE,
                       "%u threads wait for the completion queue: end their lh_queue_wait() first",
                       sleeping);
    if (ring->fd >= 0)
        close(ring->fd);
    pthread_mutex_destroy(&ring->lock);
    free(ring->entries);
    return 0;
}

/* ---- adding ------------------------------------------------------------------------------------------ */

static uint32_t *places_of(struct completion_ring *ring, enum lh_operation operation)
{
    return operation == LH_OPERATION_NOTIFY ? &ring->notifications : &ring->requests;
}

/* Whether they would fit together. */
static bool fit(const struct completion_ring *ring, uint32_t requests, uint32_t notifications,
                uint32_t held)
{
    return requests + (notifications > held ? notifications : held) <= ring->capacity;
}

static int refuse(uint32_t capacity, uint32_t pending, uint32_t count, uint32_t held)
{
    return lh_fail(LH_EAGAIN,
                   "completion queue is full (entries: %u, pending requests: %u, entries not polled: %u, "
                   "regions: %u): poll it, or create a larger one",
                   capacity, pending, count, held);
}

int completion_ring_reserve(struct completion_ring *ring, enum lh_operation operation)
{
    bool notifies = operation == LH_OPERATION_NOTIFY;
    pthread_mutex_lock(&ring->lock);
    uint32_t pending = pending_of(ring), count = count_of(ring), held = ring->held,
             capacity = ring->capacity;
    bool has_room = fit(ring, ring->requests + !notifies, ring->notifications + notifies, held);
    if (has_room)
        ++*places_of(ring, operation);
    pthread_mutex_unlock(&ring->lock);
    return has_room ? 0 : refuse(capacity, pending, count, held);
}

void completion_ring_release(struct completion_ring *ring, enum lh_operation operation)
{
    pthread_mutex_lock(&ring->lock);
    assert(pending_of(ring) > 0 && *places_of(ring, operation) > 0);
    --*places_of(ring, operation);
    pthread_mutex_unlock(&ring->lock);
}

int completion_ring_hold(struct completion_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    uint32_t pending = pending_of(ring), count = count_of(ring), held = ring->held,
             capacity = ring->capacity;
    bool has_room = fit(ring, ring->requests, ring->notifications, held + 1);
    if (has_room)
        ring->held++;
    pthread_mutex_unlock(&ring->lock);
    return has_room ? 0 : refuse(capacity, pending, count, held);
}

void completion_ring_unhold(struct completion_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    assert(ring->held > 0);
    ring->held--;
    pthread_mutex_unlock(&ring->lock);
}

void completion_ring_begin(struct completion_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->added = 0;
}

void completion_ring_put(struct completion_ring *ring, const struct lh_completion *entry)
{
    uint32_t count = count_of(ring);
    assert(pending_of(ring) > 0 && count < ring->capacity);
    uint64_t place = (uint64_t)ring->first + count;
    ring->entries[place < ring->capacity ? place : place - ring->capacity] = *entry;
    atomic_store_explicit(&ring->count, count + 1, memory_order_relaxed);
    ring->added++;
}

uint32_t completion_ring_end_quietly(struct completion_ring *ring)
{
    /* One for each entry: a thread that takes several leaves others to sleep again. */
    uint32_t sleeping = ring->sleeping < ring->added ? ring->sleeping : ring->added;
    /* Under the lock: afterwards a thread that polled the last entry may close the ring. */
    if (ring->armed && count_of(ring) > 0) {
        const uint64_t one = 1;
        ring->armed = false;
        ring->readable = true;
        ssize_t written = write(ring->fd, &one, sizeof one);
        (void)written; /* fails only when the user has closed it */
    }
    pthread_mutex_unlock(&ring->lock);
    return sleeping;
}

void completion_ring_end(struct completion_ring *ring)
{
    uint32_t sleeping = completion_ring_end_quietly(ring);
    if (sleeping > 0)
        futex_wake(&ring->count, (int)sleeping);
}

/* ---- taking ------------------------------------------------------------------------------------------ */

static void free_places(struct completion_ring *ring, const struct lh_completion *entries, uint32_t n)
{
    if (ring->notifications == 0) {
        ring->requests -= n;
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        --*places_of(ring, entries[i].operation);
}

static uint32_t take_locked(struct completion_ring *ring, struct lh_completion *entries, uint32_t n)
{
    uint32_t count = count_of(ring);
    uint32_t taken = n < count ? n : count;
    uint32_t to_end = ring->capacity - ring->first;
    uint32_t one = taken < to_end ? taken : to_end;
    memcpy(entries, ring->entries + ring->first, one * sizeof *entries);
    memcpy(entries + one, ring->entries, (taken - one) * sizeof *entries);
    free_places(ring, entries, taken);
    ring->first = taken < to_end ? ring->first + taken : taken - to_end;
    atomic_store_explicit(&ring->count, count - taken, memory_order_relaxed);
    return taken;
}

uint32_t completion_ring_take(struct completion_ring *ring, struct lh_completion *entries, uint32_t n)
{
    if (count_of(ring) == 0 || n == 0) /* who spins here leaves the lock to those who add */
        return 0;
    pthread_mutex_lock(&ring->lock);
    uint32_t taken = take_locked(ring, entries, n);
    pthread_mutex_unlock(&ring->lock);
    return taken;
}

/* Each turn sleeps until an entry came (which another thread may have taken), or the deadline. */
static uint32_t sleep_and_take(struct completion_ring *ring, struct lh_completion *entries, uint32_t n,
                               const struct timespec *deadline)
{
    bool late = false;
    pthread_mutex_lock(&ring->lock);
    ring->sleeping++;
    while (count_of(ring) == 0 && !late) {
        pthread_mutex_unlock(&ring->lock);
        late = !futex_sleep(&ring->count, 0, deadline);
        pthread_mutex_lock(&ring->lock);
    }
    ring->sleeping--;
    uint32_t taken = take_locked(ring, entries, n);
    pthread_mutex_unlock(&ring->lock);
    return taken;
}

uint32_t completion_ring_wait(struct completion_ring *ring, struct lh_completion *entries, uint32_t n,
                              lh_time timeout_ns)
{
    assert(n > 0);
    struct timespec deadline = {0};
    struct spin spin;
    uint32_t taken = completion_ring_take(ring, entries, n);
    if (taken > 0)
        return taken;
    bool for_ever = timeout_ns == LH_TIME_NEVER;
    if (!for_ever)
        deadline = spin_wait_deadline(timeout_ns);
    spin_wait_begin(&ring->spin, &spin, &ring->count, 0, timeout_ns);
    taken = sleep_and_take(ring, entries, n, for_ever ? NULL : &deadline);
    spin_wait_end(&ring->spin, &spin);
    return taken;
}

/* ---- the descriptor ---------------------------------------------------------------------------------- */

int completion_ring_fd(struct completion_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    if (ring->fd < 0)
        ring->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int fd = ring->fd, cause = errno;
    pthread_mutex_unlock(&ring->lock);
    return fd >= 0 ? fd
                   : lh_fail(LH_ESYSTEM, "eventfd: %s; raise the limit of open files", strerror(cause));
}

static int arm_locked(struct completion_ring *ring)
{
    uint64_t drained;
    if (ring->fd < 0)
        return lh_fail(LH_ESTATE, "completion queue has no descriptor to arm: lh_queue_fd() first");
    if (count_of(ring) > 0)
        return (int)count_of(ring);
    if (ring->readable && read(ring->fd, &drained, sizeof drained) < 0)
        assert(errno != EINVAL); /* EAGAIN: the user has read it */
    ring->readable = false;
    ring->armed = true;
    return 0;
}

int completion_ring_arm(struct completion_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    int entries = arm_locked(ring);
    pthread_mutex_unlock(&ring->lock);
    return entries;
}

/* ---- completion queue ------------------------------------------------------------------------------ */

/* The calls of longhaul/queue.h, but for those that start requests (messages.c). */

int lh_completion_queue_create(struct lh_engine *engine, uint32_t capacity,
                               struct lh_completion_queue **queue)
{
    if (!engine)
        return lh_fail(LH_EINVAL, "completion queue without an engine: lh_engine_create() first");
    if (capacity == 0 || capacity > LH_QUEUE_CAPACITY_MAX)
        return lh_fail(LH_EINVAL, "completion queue of %u entries: out of range (1 to %u)", capacity,
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
    return lh_fail(LH_ESTATE, "engine of the completion queue has no workers (call lh_poll() repeatedly)");
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
