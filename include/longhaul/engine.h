/*
 * engine.h - an engine owns a device: its sockets, threads and registered memory. Any number of connections
 * and listeners can share it: pass it to lh_open, lh_connect and lh_listen in lh_attr.engine. A connection
 * without one (NULL) creates its own.
 *
 * Connections share only progress and the engine's rate: when one closes or fails, or its peer dies, the
 * others continue unaffected. Sharing is even: busy connections get equal shares, and connections with little
 * traffic go first.
 *
 * Threads: any thread may call, also several on one connection, and threads may open and close connections of
 * an engine concurrently. The call that ends an object (lh_close, lh_listener_close, lh_engine_destroy) must
 * be the last one to use it; no other may run meanwhile.
 *
 * CPUs: worker_cpus pins a worker to a CPU for the engine's life. Without a CPU (-1, NULL), workers inherit
 * the CPU affinity of the thread that called lh_engine_create(), as coders do.
 *
 * fork(): the engine stays with the process that created it. In the child lh_close() and lh_listener_close()
 * do nothing. lh_send(), lh_recv(), lh_post_send(), lh_post_recv(), creation and destruction of completion
 * queues, lh_attach(), lh_accept(), calls with the engine in their attributes, and the calls of this header
 * fail with -LH_ESTATE. The child must make no other call with inherited objects. It may create an engine of
 * its own. exec closes the descriptors; until then the child holds its parent's, so a peer may detect the
 * parent's death only by timeout.
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

/* Zero means the default. Call lh_engine_attr_init() first. In the lh_attr of the engine's connections, these
 * attributes stay zero or equal (worker_cpus: NULL), except that a connection may have fewer channels, and
 * its own rate_bps. */
struct lh_engine_attr {
    size_t struct_bytes;           /* set by lh_engine_attr_init, so that the struct can grow */
    const char *device;            /* "udp:[::1]", "xdp:eth0", "sim:world/0"; required. Copied */
    uint32_t channels;             /* maximum per connection; default 1 */
    uint32_t workers;              /* threads, at most one per channel; default 1, LH_NO_WORKERS: none */
    const int *worker_cpus;        /* one CPU per worker, -1 for any; NULL: any. Copied */
    uint32_t coders;               /* threads for erasure codes, as in lh_attr; default 1 */
    uint64_t receive_buffer_bytes; /* of the sockets; default 32 MiB */
    lh_time spin_ns;               /* before a sleep, as in lh_attr; default 50 us, for workers only */
    /* Maximum payload rate of all connections together, with retransmissions; 0: none. Sending connections
     * share it evenly, in bytes. lh_attr.rate_bps and rate_max_bps limit each connection. */
    uint64_t rate_bps;
    /* Maximum memory of all connections together, in bytes: queues, bitmaps, requests, early messages,
     * parity; 0: none. Calls that would exceed it fail with -LH_ENOMEM: lh_open(), lh_connect(), lh_send(),
     * lh_recv(); a listener refuses its client. Accepted messages wait until others release memory. A
     * connection that makes no progress for its peer_timeout_ns, for lack of memory, ends with -LH_ENOMEM.
     * Not counted: the engine's own memory (sockets, threads, control connections), emulated links, memory
     * registered by a device. */
    uint64_t memory_bytes;
};

/* Bytes that count against memory_bytes. */
struct lh_engine_memory {
    uint64_t limit_bytes; /* memory_bytes; UINT64_MAX: no bound */
    uint64_t now_bytes;
    uint64_t most_bytes; /* maximum since the engine was created */
    uint64_t refusals;   /* times that the limit refused memory */
};

LH_API void lh_engine_attr_init(struct lh_engine_attr *attr);
/* Creates an engine. -LH_EINVAL, -LH_EDEVICE, -LH_EADDR, -LH_ENOMEM, -LH_ESYSTEM (a thread cannot start). */
LH_API int lh_engine_create(const struct lh_engine_attr *attr, struct lh_engine **engine);
/* Ends the threads, deregisters remaining memory of lh_register(), and closes the device. NULL is allowed.
 * -LH_ESTATE, without effect: connections, listeners or completion queues remain; the message has their
 * numbers. */
LH_API int lh_engine_destroy(struct lh_engine *engine);
/* Makes progress on all connections of an engine without workers, as lh_progress() does with any of them.
 * *next_ns: latest time of the next call; may be NULL. -LH_ESTATE: the engine has workers. */
LH_API int lh_engine_progress(struct lh_engine *engine, lh_time *next_ns);
/* Gets the memory use of the engine's connections. -LH_ESTATE: inherited by fork(). */
LH_API int lh_engine_memory(struct lh_engine *engine, struct lh_engine_memory *memory);

#ifdef __cplusplus
}
#endif
#endif
