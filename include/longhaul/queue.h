/*
 * queue.h - completion queues: one place, and one descriptor, for the completions of many connections'
 * requests.
 *
 * A request started with lh_post_send() or lh_post_recv(), or with a queue in struct lh_message, adds one
 * entry to its queue when it is done. The entry has a value of the user's choice. Each request reserves its
 * entry when it starts, so no entry is ever lost; a full queue refuses further requests.
 *
 * Threads: any thread may call, and several threads may poll one queue; each entry goes to one of them.
 * lh_completion_queue_destroy() must be the last call that uses a queue; no other may run meanwhile.
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
    LH_OPERATION_NOTIFY = 5,     /* the peer wrote to a region: user is the region's, result.bytes the
                                    write's, result.tag its immediate; request is NULL */
    LH_OPERATION_COLLECTIVE = 6, /* longhaul/collective.h; connection and request are NULL */
};

struct lh_completion {
    uint64_t user; /* as given with the request */
    /* After lh_close() or lh_request_free(), these two only identify the former connection and request */
    struct lh_connection *connection;
    struct lh_request *request; /* NULL: started without a request, nothing to free */
    struct lh_result result;
    enum lh_operation operation;
};

/* ---- the queue --------------------------------------------------------------------------------------- */

/* Creates a queue for requests of an engine's connections. capacity: maximum of pending requests and unpolled
 * entries together, 1 to LH_QUEUE_CAPACITY_MAX; each takes 80 bytes. -LH_EINVAL, -LH_ENOMEM. */
LH_API int lh_completion_queue_create(struct lh_engine *engine, uint32_t capacity,
                                      struct lh_completion_queue **queue);
#define LH_QUEUE_CAPACITY_MAX (1u << 20)
/* Frees a queue, with its unpolled entries. NULL is allowed. -LH_ESTATE, without effect: requests are
 * pending, or threads sleep in lh_queue_wait(); the message has their number. */
LH_API int lh_completion_queue_destroy(struct lh_completion_queue *queue);

/* ---- requests that complete into it ------------------------------------------------------------------ */

/* Start sending or receiving a message, as lh_send() and lh_recv(); the request adds an entry to the queue
 * when it is done, whatever its result. request: NULL: the request frees itself, and only lh_close() ends it
 * early. Otherwise use lh_test(), lh_wait() and lh_cancel() as with lh_send(), and free it with
 * lh_request_free(); it is done once its entry is in the queue. -LH_EINVAL: no queue, or a queue of another
 * engine; -LH_EAGAIN: the queue is full. */
LH_API int lh_post_send(struct lh_connection *connection, const void *buffer, size_t bytes,
                        struct lh_memory *memory, struct lh_completion_queue *queue, uint64_t user,
                        struct lh_request **request);
LH_API int lh_post_recv(struct lh_connection *connection, void *buffer, size_t capacity,
                        struct lh_memory *memory, struct lh_completion_queue *queue, uint64_t user,
                        struct lh_request **request);

/* ---- polling ----------------------------------------------------------------------------------------- */

/* Takes up to n entries, oldest first. Returns their number; 0: none. Does not sleep, and with workers makes
 * no system call. Without workers, a poll that finds no entry makes progress as lh_engine_progress(), and
 * polls again, so polling alone suffices. Errors: those of lh_engine_progress(). */
LH_API int lh_poll(struct lh_completion_queue *queue, struct lh_completion *entries, uint32_t n);
/* Waits for the first entry, at most timeout_ns (LH_TIME_NEVER: without limit), and takes up to n entries;
 * needs workers. n: at least 1. Returns the number of entries. -LH_ETIMEDOUT; -LH_ESTATE: no workers;
 * -LH_EINVAL. */
LH_API int lh_queue_wait(struct lh_completion_queue *queue, struct lh_completion *entries, uint32_t n,
                         lh_time timeout_ns);

/* ---- sleeping in epoll, poll, io_uring --------------------------------------------------------------- */

/* Returns the queue's descriptor, the same for each call, or a negative error. It becomes readable with the
 * first entry after lh_queue_arm(). The queue owns it: do not write or close it. Reading is not necessary.
 * -LH_ESTATE: no workers; -LH_ESYSTEM: the limit of open files. */
LH_API int lh_queue_fd(struct lh_completion_queue *queue);
/* Arms the descriptor; call it before each sleep. 0: there is no entry; the descriptor is not readable, and
 * becomes readable once, with the next entry. Above 0: number of entries; poll them first. -LH_ESTATE:
 * lh_queue_fd() was not called. */
LH_API int lh_queue_arm(struct lh_completion_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
