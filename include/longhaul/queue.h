/*
 * queue.h - completion queues: requests of many connections complete into one place, with a value of the
 * user's, and one descriptor for all of them.
 *
 * A request started with lh_post_send() or lh_post_recv(), or with a queue in struct lh_message, adds one
 * entry to its queue when it is done. The queue has room for it from the start: no entry is ever lost, and a
 * queue that nobody polls refuses further requests instead.
 *
 * Threads: all calls may come from any thread, and several threads may poll one queue; each entry goes to one
 * of them. lh_completion_queue_destroy() must be the last call that uses a queue, and no other may run
 * meanwhile.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_QUEUE_H
#define LONGHAUL_QUEUE_H

#include <longhaul/connection.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lh_completion_queue;
struct lh_engine;

enum lh_operation {
    LH_OPERATION_SEND = 1,
    LH_OPERATION_RECV = 2,
    /* longhaul/onesided.h */
    LH_OPERATION_WRITE = 3,
    LH_OPERATION_READ = 4,
    LH_OPERATION_NOTIFY = 5,     /* the peer wrote into a region: user is the region's, result.bytes that
                                write's, result.tag its immediate; request is NULL */
    LH_OPERATION_COLLECTIVE = 6, /* longhaul/collective.h; connection and request are NULL */
};

struct lh_completion {
    uint64_t user; /* as given with the request */
    /* After lh_close(), or lh_request_free(), these two only say which connection, which request it was */
    struct lh_connection *connection;
    struct lh_request *request; /* NULL: it was started without; there is nothing to free */
    struct lh_result result;
    enum lh_operation operation;
};

/* ---- the queue --------------------------------------------------------------------------------------- */

/* Creates a queue for requests of the connections of an engine. capacity: requests that are pending, and
 * entries that were not polled yet, together; 1 to LH_QUEUE_CAPACITY_MAX. Memory: 80 bytes each.
 * -LH_EINVAL, -LH_ENOMEM. */
LH_API int lh_completion_queue_create(struct lh_engine *engine, uint32_t capacity,
                                      struct lh_completion_queue **queue);
#define LH_QUEUE_CAPACITY_MAX (1u << 20)
/* Frees a queue, with the entries that were not polled. NULL is allowed. -LH_ESTATE: requests are pending, or
 * threads asleep in lh_queue_wait(), and nothing changes; the message has their number. */
LH_API int lh_completion_queue_destroy(struct lh_completion_queue *queue);

/* ---- requests that complete into it ------------------------------------------------------------------ */

/* As lh_send() and lh_recv(), with an entry in the queue when the request is done, whatever the reason.
 * request: NULL: the request frees itself; only lh_close() ends it early. Else it is as that of lh_send():
 * lh_test(), lh_wait() and lh_cancel() apply, it counts as done from when its entry is in the queue, and
 * lh_request_free() frees it. -LH_EINVAL: no queue, or one of another engine; -LH_EAGAIN: the queue has no
 * room for another entry. */
LH_API int lh_post_send(struct lh_connection *connection, const void *buffer, size_t bytes,
                        struct lh_memory *memory, struct lh_completion_queue *queue, uint64_t user,
                        struct lh_request **request);
LH_API int lh_post_recv(struct lh_connection *connection, void *buffer, size_t capacity,
                        struct lh_memory *memory, struct lh_completion_queue *queue, uint64_t user,
                        struct lh_request **request);

/* ---- polling ----------------------------------------------------------------------------------------- */

/* Takes up to n entries, oldest first; returns their number, 0: none. Does not sleep, and with workers makes
 * no system call. On an engine without workers a poll that finds none makes progress, as lh_engine_progress()
 * does, and looks again; so polling alone is enough. A negative error: that of lh_engine_progress(). */
LH_API int lh_poll(struct lh_completion_queue *queue, struct lh_completion *entries, uint32_t n);
/* As lh_poll(), and waits for the first entry, at most timeout_ns (LH_TIME_NEVER: without limit); needs
 * workers. n: at least 1. Returns the number of entries. -LH_ETIMEDOUT; -LH_ESTATE: no workers;
 * -LH_EINVAL. */
LH_API int lh_queue_wait(struct lh_completion_queue *queue, struct lh_completion *entries, uint32_t n,
                         lh_time timeout_ns);

/* ---- sleeping in epoll, poll, io_uring --------------------------------------------------------------- */

/* The queue's descriptor, the same with each call, or a negative error. It becomes readable with the first
 * entry after lh_queue_arm(). It is the queue's: do not write or close it; reading it is not needed.
 * -LH_ESTATE: no workers; -LH_ESYSTEM: the limit of open files. */
LH_API int lh_queue_fd(struct lh_completion_queue *queue);
/* Call before each sleep. 0: there is no entry; the descriptor is not readable, and becomes so with the next
 * entry, once. Above 0: number of entries; poll them first. -LH_ESTATE: lh_queue_fd() was not called. */
LH_API int lh_queue_arm(struct lh_completion_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
