/*
 * onesided.h - one-sided operations: lh_write() into memory of the peer, lh_read() from it.
 *
 * A side exposes a region of its memory to the peer of a connection, and hands out its key: 16 bytes that the
 * application sends to the peer by any means. With it the peer writes and reads, any number of times, until
 * the region is revoked. The exposing side's program does nothing meanwhile.
 *
 * Both are as reliable as messages, by the scheme of the side that receives the bytes (of a write the peer,
 * of a read this side; "auto" instead of one with a deadline), and take no receive of a message. Each is
 * checked where the memory is: key, access, range. One that fails this changes nothing there, and fails.
 *
 * Order. None is promised between operations, nor between them and messages: they may complete in any order,
 * and parts of one may arrive in any order. But a write that is done has placed all of its bytes, and so has
 * one whose notification is there; so whatever is started after that finds them. A read that is started
 * after a write to the same bytes was done reads them. Bytes that change while an operation is in progress on
 * them are undefined, and with a scheme that codes (or "auto") all bytes of that operation are: a repair is
 * computed from bytes beside it.
 *
 * Calls may come from any thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
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

/* What the peer needs, in the format of any machine: copy it as it is. */
struct lh_key {
    uint8_t bytes[16];
};

/* Exposes memory to the peer of a connection. The memory stays the caller's, and must stay valid until it is
 * revoked; what the peer writes is there whenever its packets arrive, in any order, with damaged bytes until
 * they are repaired. part->bytes: 1 to 2^48 - 1; part->memory: a registration that
 * covers it, or NULL: registered until it is revoked. access: bits of enum lh_access.
 * queue: gets the notifications of lh_write(); NULL: the peer can give none. One of its places is held for
 * notifications until the region is revoked, whatever requests are pending; it is not destroyed before.
 * user: of these notifications' entries.
 * At most LH_REGIONS_MAX a connection. The first one opens a second queue pair to the peer.
 * -LH_EINVAL, -LH_ENOMEM, -LH_EAGAIN (LH_REGIONS_MAX, or the queue is full), -LH_EVERSION (the peer's release
 * knows no one-sided operations), -LH_ECLOSED, -LH_EPEER. */
LH_API int lh_expose(struct lh_connection *connection, const struct lh_part *part, uint32_t access,
                     struct lh_completion_queue *queue, uint64_t user, struct lh_region **region);
#define LH_REGIONS_MAX 1024
/* The key of a region, for the peer of its connection alone: no other can use it. */
LH_API void lh_region_key(const struct lh_region *region, struct lh_key *key);
/* Revokes a region, and frees it; NULL is allowed. When this returns no packet changes the memory any more,
 * and it may be freed (a device may read it for a short time after: lh_expose(3)). Operations that were in
 * progress end at the peer with -LH_EKEY, and give no notification; some of their bytes may have been placed.
 * lh_close() revokes the regions of its connection. */
LH_API void lh_revoke(struct lh_region *region);

/* ---- operations -------------------------------------------------------------------------------------- */

/* Zero means none. The struct and its array of parts are read during the call alone; the memory of the parts
 * belongs to the library until the request is done. */
struct lh_onesided {
    const struct lh_part *parts; /* this side's memory: what a write sends, where a read places */
    uint32_t count;              /* of parts: 0 to LH_PARTS_MAX */
    struct lh_key key;           /* of the peer's region */
    uint64_t offset;             /* in that region, in bytes */
    bool notify;        /* write: an entry in the region's queue once all bytes are placed; read: false */
    uint64_t immediate; /* of that entry: its lh_result.tag */
    struct lh_completion_queue *queue; /* gets an entry when the request is done: longhaul/queue.h */
    uint64_t user;                     /* of that entry */
};

/* Start writing the parts to the peer's region, or reading from it into the parts; as many bytes as the parts
 * have, also none. Both return at once; requests are those of lh_sendmsg(): lh_test(), lh_wait(), lh_cancel()
 * and lh_request_free() apply. request: may be NULL with a queue.
 *
 * A write is done when the peer has all bytes; a read when they are here. result.error, or the call's own:
 *   -LH_EKEY       no such key, or it was revoked; or it does not permit this
 *   -LH_ERANGE     the range exceeds the region
 *   -LH_EUNSUPPORTED   the region has no queue for notifications
 *   -LH_ECANCELED  lh_cancel(). Bytes may have been placed
 * and those of messages (-LH_EPEER, -LH_ECLOSED, …). The call also fails with -LH_EINVAL, -LH_ENOMEM,
 * -LH_EAGAIN (LH_REQUESTS_MAX requests of one-sided operations are pending, or the queue is full) and
 * -LH_EVERSION. For a deadline, lh_wait() until then, and lh_cancel().
 *
 * Cost: of up to 4096 bytes what a message costs that finds its receive posted, one round trip; of more,
 * one round trip more than such a message. Up to LH_READS_MAX reads are answered at a time; others wait, and
 * so do the operations after them. The first operation opens a second queue pair: two more round trips. */
LH_API int lh_write(struct lh_connection *connection, const struct lh_onesided *write,
                    struct lh_request **request);
LH_API int lh_read(struct lh_connection *connection, const struct lh_onesided *read,
                   struct lh_request **request);
#define LH_READS_MAX 128

#ifdef __cplusplus
}
#endif
#endif
