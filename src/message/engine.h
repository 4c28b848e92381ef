/*
 * engine.h - an engine: what its connections share, and what it remembers of paths.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_ENGINE_H
#define LH_MESSAGE_ENGINE_H

#include <pthread.h>

#include <longhaul/connection.h>
#include <longhaul/engine.h>

#include "history/path_history.h"
#include "message/message_memory.h"
#include "message/parity_coding.h"
#include "wire/qp_info.h"

#define ENGINE_TEXT_MAX 128u

struct control_connection;
struct watch_other;

struct lh_engine {
    struct sdr_context *context;
    struct coder_threads coders;
    char device[ENGINE_TEXT_MAX];
    uint32_t channels;
    uint32_t workers; /* or LH_NO_WORKERS */
    uint64_t receive_buffer_bytes;
    lh_time spin_ns;      /* as it was asked for */
    bool shared;          /* of lh_engine_create(); else of one connection, and ends with it */
    uint32_t forks;       /* of this process's ancestors, when it was created */
    pthread_mutex_t lock; /* of all that follows; no other is taken under it */
    uint32_t connections;
    uint32_t listeners;
    uint32_t queues; /* of completions */
    struct memory_list memories;
    struct control_connection
        *controls; /* src/launch has them, and reads and changes the list under the lock */
};

/* The control worker, or who makes progress, waits for a descriptor: as sdr_context_watch() and its
 * siblings. */
int engine_watch(struct lh_engine *engine, struct watch_other *other);
void engine_watch_writable(struct lh_engine *engine, struct watch_other *other, bool wanted);
void engine_unwatch(struct lh_engine *engine, struct watch_other *other);
/* The largest payload whose packets, sealed or not, the interface of a udp engine sends whole; 0: not
 * known. */
uint32_t engine_payload_max(const struct lh_engine *engine, bool sealed);
/* How long threads that wait spin before they sleep; 0: they do not. */
lh_time engine_waiters_spin_ns(const struct lh_engine *engine);
/* Of this process's ancestors, since the first call: another number in each child. */
uint32_t engine_forks(void);
/* Whether this process inherited it by fork(): its threads are not here, and any of its locks may be held for
 * ever. Cheap. */
bool engine_is_inherited(const struct lh_engine *engine);
/* The same, as -LH_ESTATE. */
int engine_check_process(const struct lh_engine *engine);
/* attr->engine (NULL: nothing to do) has some of the attributes: fills those in. -LH_EINVAL names one that
 * contradicts it; -LH_ESTATE: inherited. Again with its own result is fine. */
int engine_settle(struct lh_attr *attr);
/* The engine of a connection with these complete attributes: attr->engine, or a new one. */
int engine_join(const struct lh_attr *attr, struct lh_engine **engine);
/* The connection is gone, and, if it was its own, the engine. */
void engine_leave(struct lh_engine *engine);
/* A listener came (1) or went (-1). engine may be NULL. */
void engine_count_listener(struct lh_engine *engine, int change);
/* The same for a completion queue. */
void engine_count_queue(struct lh_engine *engine, int change);

/* ---- path memory ----------------------------------------------------------------------------------- */

/* What a connection takes from the file of remembered paths, and leaves there. */

struct path_memory {
    struct path_record record; /* as of lh_attach(); rate_bps 0: nothing but the addresses */
    char file[];
};

/* With attr->path_file, which is then the copy in there; else *memory stays. -LH_ENOMEM. By free(). */
int path_memory_create(struct lh_attr *attr, struct path_memory **memory);
/* Before the queue pair is connected. memory: NULL: no effect, here and below. */
void path_memory_load(struct path_memory *memory, struct sdr_qp *qp, const struct qp_info_endpoint *peer);
/* Writes what the controller of a connected queue pair learned of the path, if it did. Failure is no error.
 * rtt_minimum_ns: of the path. */
void path_memory_save(struct path_memory *memory, struct sdr_qp *qp, lh_time rtt_minimum_ns);

#endif
