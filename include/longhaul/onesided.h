/*
 * onesided.h - one-sided operations: lh_write() to the peer's memory, and lh_read() from it.
 *
 * A side exposes a memory region to the peer of a connection. The application sends the region's key, 16
 * bytes, to the peer by any means. With the key the peer writes and reads, any number of times, until the
 * region is revoked. The exposing program takes no part in the operations.
 *
 * Both operations are as reliable as messages, and use no receives. The side that receives the bytes chooses
 * the scheme: for a write the peer, for a read this side ("auto" replaces a scheme with a deadline). The
 * exposing side checks key, access and range; an operation that fails the check changes nothing.
 *
 * Order: operations and messages may complete in any order, and parts of an operation may arrive in any
 * order. A write has placed all of its bytes when it is done, and when its notification arrives; operations
 * started afterwards find them. A read started after a write was done reads the written bytes. Bytes that
 * change during an operation on them are undefined. With an erasure code (or "auto") all bytes of that
 * operation are undefined, since repairs are computed from other bytes.
 *
 * Any thread may call. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_ONESIDED_H
#define LONGHAUL_ONESIDED_H

#include <longhaul/connection.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- memory for the peer ----------------------------------------------------------------------------- */

struct lh_region;

enum lh_access {
    LH_ACCESS_WRITE = 1, /* the peer may write */
    LH_ACCESS_READ = 2,  /* the peer may read */
};

/* A region's key, for the peer. The format is independent of the machine: copy it byte by byte. */
struct lh_key {
    uint8_t bytes[16];
};

/* Exposes memory to the peer of a connection. The caller owns the memory, and keeps it valid until it is
 * revoked. The peer's bytes appear as packets arrive, in any order; bytes of damaged packets may appear until
 * they are repaired. part->bytes: 1 to 2^48 - 1. part->memory: a registration that covers the part; NULL: the
 * call registers it until it is revoked. access: bits of enum lh_access. queue: gets the notifications of
 * lh_write(); NULL: the peer cannot notify. One entry of the queue stays reserved for notifications until the
 * region is revoked; destroy the queue later. user: of the notifications' entries. A connection has at most
 * LH_REGIONS_MAX regions; the first one opens a second queue pair to the peer.
 *
 * -LH_EINVAL, -LH_ENOMEM, -LH_EAGAIN (LH_REGIONS_MAX, or the queue is full), -LH_EVERSION (the peer's release
 * does not support one-sided operations), -LH_ECLOSED, -LH_EPEER. */
LH_API int lh_expose(struct lh_connection *connection, const struct lh_part *part, uint32_t access,
                     struct lh_completion_queue *queue, uint64_t user, struct lh_region **region);
#define LH_REGIONS_MAX 1024
/* Gets a region's key. Only the peer of the region's connection can use it. */
LH_API void lh_region_key(const struct lh_region *region, struct lh_key *key);
/* Revokes a region, and frees it; NULL is allowed. After the call returns, no packet changes the memory, and
 * the caller may free it (a device may read it for a short time afterwards: lh_expose(3)). Operations in
 * progress end at the peer with -LH_EKEY, without a notification; some of their bytes may have been placed.
 * lh_close() revokes the regions of its connection. */
LH_API void lh_revoke(struct lh_region *region);

/* ---- operations -------------------------------------------------------------------------------------- */

/* Zero means none. The library reads the struct and its array of parts only during the call; the memory of
 * the parts belongs to the library until the request is done. */
struct lh_onesided {
    const struct lh_part *parts; /* this side's memory: source of a write, destination of a read */
    uint32_t count;              /* of parts: 0 to LH_PARTS_MAX */
    struct lh_key key;           /* of the peer's region */
    uint64_t offset;             /* in that region, in bytes */
    bool notify;        /* write: adds an entry to the region's queue when all bytes are placed; read: false
                           */
    uint64_t immediate; /* of that entry: its lh_result.tag */
    struct lh_completion_queue *queue; /* gets an entry when the request is done: longhaul/queue.h */
    uint64_t user;                     /* of that entry */
};

/* Start writing the parts to the peer's region, or reading the region into the parts. The length is that of
 * the parts; 0 is allowed. Both return at once. Requests are as for lh_sendmsg(): use lh_test(), lh_wait(),
 * lh_cancel() and lh_request_free(). request: may be NULL with a queue.
 *
 * A write is done when the peer has all bytes, a read when this side has them. Errors in result.error, or of
 * the call:
 *   -LH_EKEY       the key is unknown or revoked, or does not permit the access
 *   -LH_ERANGE     the range exceeds the region
 *   -LH_EUNSUPPORTED   the region has no queue for notifications
 *   -LH_ECANCELED  lh_cancel(); bytes may have been placed
 * and those of messages (-LH_EPEER, -LH_ECLOSED, …). The call also fails with -LH_EINVAL, -LH_ENOMEM,
 * -LH_EAGAIN (LH_REQUESTS_MAX requests of one-sided operations are pending, or the queue is full) and
 * -LH_EVERSION. For a deadline, call lh_wait() until then, and lh_cancel().
 *
 * Cost: up to 4096 bytes take one round trip, as a message with a posted receive; more bytes take one round
 * trip more than such a message. The peer answers up to LH_READS_MAX reads at a time; further reads wait, and
 * delay the operations after them. The first operation opens a second queue pair, which takes two more round
 * trips. */
LH_API int lh_write(struct lh_connection *connection, const struct lh_onesided *write,
                    struct lh_request **request);
LH_API int lh_read(struct lh_connection *connection, const struct lh_onesided *read,
                   struct lh_request **request);
#define LH_READS_MAX 128

#ifdef __cplusplus
}
#endif
#endif
