/*
 * engine.h - one engine owns a device: its sockets, its threads, the memory registered with it. Any number
 * of connections and listeners share it, by lh_attr.engine of lh_open, lh_connect and lh_listen. A
 * connection without one (NULL) has an engine of its own.
 *
 * What connections share is progress and the engine's rate, nothing else: one that closes, fails, or whose
 * peer dies changes nothing for the others. Both are shared evenly: a connection with much to send or to
 * receive gets as much as each other one, and those with little go first.
 *
 * Threads: calls may come from any thread, for one connection too, and connections of an engine may be
 * opened and closed side by side. What ends an object (lh_close, lh_listener_close, lh_engine_destroy) must
 * be the last call that uses it, and no other may run meanwhile.
 *
 * CPUs: a worker runs on the CPU that worker_cpus gives it, as long as the engine lives. Without one (-1,
 * NULL) it runs where the thread that called lh_engine_create() was allowed to, and so do coders.
 *
 * fork(): the engine stays with the process that created it. In the child lh_close() and lh_listener_close()
 * do nothing; lh_send(), lh_recv(), lh_post_send(), lh_post_recv(), creation and destruction of completion
 * queues, lh_attach(), lh_accept(), calls with the engine in their attributes, and those of this header fail
 * with -LH_ESTATE; no other call may be made with what was created before. The child may create an engine of
 * its own. Descriptors are closed by exec; until then the child keeps its
 * parent's, so that a peer may learn of the parent's death only by its silence.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_ENGINE_H
#define LONGHAUL_ENGINE_H

#include <longhaul/error.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lh_engine;

/* Zero means the default. Call lh_engine_attr_init() first. These are the engine's: in the lh_attr of its
 * connections they stay zero, or are the same (worker_cpus: NULL); a connection may have fewer channels, and
 * a rate_bps of its own. */
struct lh_engine_attr {
    size_t struct_bytes;    /* set by lh_engine_attr_init: lets the struct grow */
    const char *device;     /* "udp:[::1]", "udp:127.0.0.1", "sim:world/0"; needed. Copied */
    uint32_t channels;      /* of a connection, at most; default 1 */
    uint32_t workers;       /* threads, at most one a channel; default 1, set LH_NO_WORKERS for none */
    const int *worker_cpus; /* one CPU per worker, -1 for any; NULL: any. Copied */
    uint32_t coders;        /* threads for erasure codes, as in lh_attr; default 1 */
    uint64_t receive_buffer_bytes; /* of the sockets; default 32 MiB */
    lh_time spin_ns;               /* before a sleep, as in lh_attr; default 50 us for workers alone */
    /* Payload that all connections inject together, at most, retransmissions included; 0: no bound. Those
     * that have something to send share it evenly, in bytes; lh_attr.rate_bps and rate_max_bps bound each by
     * itself. */
    uint64_t rate_bps;
    /* Memory of all connections together, at most, in bytes: queues, bitmaps, requests, early messages,
     * parity. 0: no bound. What would exceed it fails with -LH_ENOMEM: lh_open(), lh_connect(), lh_send(),
     * lh_recv(); a listener refuses its client. Messages that were accepted wait until others give memory
     * back; a connection of which nothing moves for its peer_timeout_ns, for lack of it, ends with
     * -LH_ENOMEM. Not in it: the engine's own (sockets, threads, control connections), emulated links, what
     * a device registers. */
    uint64_t memory_bytes;
};

/* Bytes that count against memory_bytes. */
struct lh_engine_memory {
    uint64_t limit_bytes; /* memory_bytes; UINT64_MAX: no bound */
    uint64_t now_bytes;
    uint64_t most_bytes; /* since the engine was created */
    uint64_t refusals;   /* how often something would have exceeded the bound */
};

LH_API void lh_engine_attr_init(struct lh_engine_attr *attr);
/* -LH_EINVAL, -LH_EDEVICE, -LH_EADDR, -LH_ENOMEM, -LH_ESYSTEM (a thread cannot start). */
LH_API int lh_engine_create(const struct lh_engine_attr *attr, struct lh_engine **engine);
/* Ends the threads, deregisters what lh_register() has left, closes the device. NULL is allowed. -LH_ESTATE:
 * connections or listeners are open, or completion queues are left, and nothing changes; the message has
 * their numbers. */
LH_API int lh_engine_destroy(struct lh_engine *engine);
/* Makes progress on all connections of an engine without workers; so does lh_progress() with any of them.
 * *next_ns: time of the next call at the latest; NULL is allowed. -LH_ESTATE: the engine has workers. */
LH_API int lh_engine_progress(struct lh_engine *engine, lh_time *next_ns);
/* Of its connections. -LH_ESTATE: inherited by fork(). */
LH_API int lh_engine_memory(struct lh_engine *engine, struct lh_engine_memory *memory);

#ifdef __cplusplus
}
#endif
#endif
