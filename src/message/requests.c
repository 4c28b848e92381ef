/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/requests.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

static_assert(offsetof(struct lh_request, part) == 0, "a part's request is its request");
static_assert(sizeof(_Atomic uint32_t) == sizeof(uint32_t), "a futex is 32 bits");

struct request_table *request_table_create(struct lh_connection *connection, bool workers)
{
    struct request_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    pthread_mutex_init(&table->lock, NULL);
    table->connection = connection;
    table->workers = workers;
    for (uint32_t i = LH_REQUESTS_MAX; i > 0; i--) {
        table->requests[i - 1].table = table;
        table->requests[i - 1].next_free = table->free;
        table->free = i;
    }
    return table;
}

static void destroy(struct request_table *table)
{
    pthread_mutex_destroy(&table->lock);
    free(table);
}

void request_table_close(struct request_table *table)
{
    pthread_mutex_lock(&table->lock);
    assert(table->pending == 0);
    table->connection = NULL;
    bool unused = table->in_use == 0;
    pthread_mutex_unlock(&table->lock);
    if (unused)
        destroy(table);
}

struct lh_request *request_take(struct request_table *table, bool sending, uint32_t message,
                                struct sdr_mr *own, lh_time now)
{
    if (table->free == 0)
        return NULL;
    struct lh_request *request = &table->requests[table->free - 1];
    table->free = request->next_free;
    table->in_use++;
    table->pending++;
    request->sending = sending;
    request->message = message;
    request->own = own;
    request->part.result = (struct lh_result){.started_ns = now};
    atomic_store_explicit(&request->state, REQUEST_PENDING, memory_order_release);
    return request;
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *deadline)
{
    return syscall(SYS_futex, word, operation, value, deadline, NULL, FUTEX_BITSET_MATCH_ANY);
}

void request_finish(struct message_request *part)
{
    struct lh_request *request = (struct lh_request *)part;
    assert(atomic_load(&request->state) == REQUEST_PENDING);
    message_memory_put(request->own);
    request->table->pending--;
    atomic_store(&request->state, REQUEST_DONE);
    if (atomic_load(&request->waiters) > 0)
        futex(&request->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
}

int lh_test(struct lh_request *request, struct lh_result *result)
{
    if (atomic_load_explicit(&request->state, memory_order_acquire) != REQUEST_DONE)
        return 0;
    if (result)
        *result = request->part.result;
    return 1;
}

static struct timespec deadline_after(lh_time timeout_ns)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    uint64_t ns = (uint64_t)at.tv_nsec + timeout_ns % LH_NS_PER_S;
    at.tv_sec += (time_t)(timeout_ns / LH_NS_PER_S + ns / LH_NS_PER_S);
    at.tv_nsec = (long)(ns % LH_NS_PER_S);
    return at;
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
        deadline = deadline_after(timeout_ns);
    bool late = false;
    atomic_fetch_add(&request->waiters, 1);
    /* Each turn sleeps until the request is done, the deadline passed, or a signal came. */
    while (atomic_load(&request->state) == REQUEST_PENDING && !late) {
        long slept =
            futex(&request->state, FUTEX_WAIT_BITSET_PRIVATE, REQUEST_PENDING, for_ever ? NULL : &deadline);
        late = slept < 0 && errno == ETIMEDOUT;
    }
    atomic_fetch_sub(&request->waiters, 1);
    if (lh_test(request, result))
        return 0;
    return lh_fail(LH_ETIMEDOUT, "request is not done after %llu ms",
                   (unsigned long long)(timeout_ns / LH_NS_PER_MS));
}

void request_give(struct lh_request *request)
{
    struct request_table *table = request->table;
    pthread_mutex_lock(&table->lock);
    assert(atomic_load(&request->state) == REQUEST_DONE);
    atomic_store(&request->state, REQUEST_FREE);
    request->next_free = table->free;
    table->free = (uint32_t)(request - table->requests) + 1;
    table->in_use--;
    bool unused = !table->connection && table->in_use == 0;
    pthread_mutex_unlock(&table->lock);
    if (unused)
        destroy(table);
}
