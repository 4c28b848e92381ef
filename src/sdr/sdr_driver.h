/*
 * sdr_driver.h - what the layer above needs besides the public calls.
 *
 * The control worker's thread belongs to the context, and runs the protocol step of the layer above between
 * receiving control messages and sending them: so an answer leaves in the round in which its question came.
 * That is why the step is handed down as a function. Polling from a thread of its own would cost two
 * wake-ups an exchange. Each call here goes downwards.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_SDR_DRIVER_H
#define LH_SDR_SDR_DRIVER_H

#include <longhaul/sdr_ext.h>
#include <stdbool.h>
#include <stdint.h>
#include <sdr_mr.h>

#include "sdr/worker_sleep.h"
#include "wire/qp_info.h"

/* Called in each round of the control worker (or of lh_sdr_progress), with no SDR lock held; may call the
 * SDK, but not create or destroy a QP. Must be cheap when nothing happened. Returns when it must be called
 * again at the latest. */
typedef lh_time sdr_driver_step(void *context, lh_time now);

/* One round of worker `index` of `count`, for a context without workers: so a simulation runs the rounds of
 * several workers in any order. *moved: whether anything did; *next_ns: when to call again at the latest. */
void sdr_context_round(struct sdr_context *context, uint32_t index, uint32_t count, bool *moved,
                       lh_time *next_ns);

/* lh_sdr_context_create() for up to 2^qps_log QPs; 0: the default. */
int sdr_context_open(const char *device, const struct lh_context_attr *attr, uint32_t qps_log,
                     struct sdr_context **context);

/* Processors that this process may run on; 1 where the system does not say. */
uint32_t sdr_processors(void);

struct store;
/* What its QPs take memory from while they are used. */
struct store *sdr_context_store(struct sdr_context *context);

/* The control worker (or lh_sdr_progress) calls other->on_ready in its rounds. That may kick drivers, but
 * neither create nor destroy a QP, nor call these. 0, or -LH_ESYSTEM. */
int sdr_context_watch(struct sdr_context *context, struct watch_other *other);
/* Also when it is ready for writing. Any thread, even from within on_ready, while it is watched. */
void sdr_context_watch_writable(struct sdr_context *context, struct watch_other *other, bool wanted);
/* Returns when on_ready does not run any more, and never will. */
void sdr_context_unwatch(struct sdr_context *context, struct watch_other *other);

/* What its QPs inject together, at most; 0: no bound. Before the first one is created. */
void sdr_context_rate_set(struct sdr_context *context, uint64_t rate_bps);

/* What one QP has otherwise than its context. */
struct sdr_qp_own {
    uint32_t channels;        /* at most the context's; 0: as many */
    struct lh_link_spec link; /* emulated where this QP sends; all zero: none */
    struct store *store;      /* that it takes memory from, which outlives it; NULL: the context's */
};
/* lh_sdr_qp_create() with what is its own. */
int sdr_qp_open(struct sdr_context *context, const struct sdr_qp_attr *attr, const struct lh_qp_attr *more,
                const struct sdr_qp_own *own, struct sdr_qp **qp);

/* Which packets of a receive have arrived, when it is closed. */
struct sdr_recv_arrived {
    uint64_t *bitmap; /* bit first + i is set for packet i below `packets`; NULL: not wanted */
    uint64_t first;
    uint32_t packets;
    uint64_t end_bytes; /* out: where a short packet has ended the message, or its length is known; else the
                           receive's length */
};
/* sdr_recv_complete(), and sets *arrived: no later packet changes the buffer. */
int sdr_recv_close(struct sdr_recv_handle *handle, struct sdr_recv_arrived *arrived);

/* Random, new in each incarnation, and never sent. */
uint64_t sdr_qp_secret(const struct sdr_qp *qp);

#define SDR_SECRET_BYTES 32u

/* Whether the fabric of such a QP encrypts. */
bool sdr_qp_can_encrypt(const struct sdr_qp *qp);
/* Once, before lh_sdr_qp_connect(): all packets of both directions are encrypted with keys derived of a
 * secret that the peer has, too, and that no other QP has. connecting: true on one side, false on the other.
 * Errors as of fabric_ops.secure (fabric/fabric.h); -LH_EUNSUPPORTED: the fabric does not encrypt. */
int sdr_qp_secure(struct sdr_qp *qp, const uint8_t secret[SDR_SECRET_BYTES], bool connecting);
/* Another secret of this one, from which this one does not follow. -LH_ESYSTEM. */
int sdr_secret_derive(const uint8_t secret[SDR_SECRET_BYTES], const char *label,
                      uint8_t out[SDR_SECRET_BYTES]);
/* Before lh_sdr_qp_connect(): the peer's packets may come from this host (16 bytes, of the family of its QP
 * information) instead of its own: there may be NAT on the path. */
void sdr_qp_peer_seen_at(struct sdr_qp *qp, const uint8_t address[16]);
/* Whether NAT can be on the path of such a peer: fabric.h, struct fabric_peer_traits. */
bool sdr_qp_peer_may_be_translated(const struct sdr_qp *qp, const struct qp_info_endpoint *peer);
/* This side is behind NAT: see fabric.h. */
void sdr_qp_punch(struct sdr_qp *qp);
/* step NULL removes the driver, and returns only when no step runs any more (not from within a step). */
int sdr_qp_driver_set(struct sdr_qp *qp, sdr_driver_step *step, void *context);
/* Wakes the control worker when it sleeps; from any thread, cheap when it does not sleep. */
void sdr_qp_driver_kick(struct sdr_qp *qp);
/* Sends what lh_sdr_message_send() took, as far as the fabric takes it: else the control worker does it in
 * its next round. From any thread, not from within a step. */
void sdr_qp_messages_flush(struct sdr_qp *qp);
/* What lh_sdr_message_recv() would take as its index-th from now, where it lies; NULL: there is none. Only
 * from within a step, and valid until sdr_qp_messages_drop(), which takes the first `count`. */
const uint8_t *sdr_qp_message_peek(struct sdr_qp *qp, uint32_t index, size_t *bytes);
void sdr_qp_messages_drop(struct sdr_qp *qp, uint32_t count);
/* How many messages lh_sdr_message_send() would take now. */
uint32_t sdr_qp_messages_room(struct sdr_qp *qp);
/* Longest silence before the peer is pinged; default 1 s. At least 1 ns. */
void sdr_qp_keepalive_set(struct sdr_qp *qp, lh_time interval_ns);
/* Whether the layer above waits for the peer: it is pinged then, or another QP asks for it, of all that lead
 * to there; else that one is enough to keep the way open. True: another asks, and has had no reason to leave
 * this one alone. Only from within a step. */
bool sdr_qp_keepalive_want(struct sdr_qp *qp, bool wanted, lh_time now);
/* Before lh_sdr_qp_connect(): the peer answers other QPs that ask for this one's. */
void sdr_qp_keepalive_asked_for(struct sdr_qp *qp);
/* Before it is connected: the peer takes messages of the layer above in parts. */
void sdr_qp_takes_parts(struct sdr_qp *qp);
/* Whether this side may send and read messages of the layer above as long as a packet. */
bool sdr_qp_can_take_long(const struct sdr_qp *qp);
/* Before it is connected, where this side can: the peer can, too. Returns the bytes of the longest. */
uint32_t sdr_qp_takes_long(struct sdr_qp *qp);
/* Whether packets of this side may come in pieces (fabric/fabric.h), and leave so. */
bool sdr_qp_can_take_pieces(const struct sdr_qp *qp);
/* Before it is connected, where this side can: the peer can, too, and answers probes of the path's MTU. */
void sdr_qp_takes_pieces(struct sdr_qp *qp);
/* Payload of the packets that leave: the MTU, or less since the path takes no more. Cheap, without a lock. */
uint32_t sdr_qp_packet_bytes(const struct sdr_qp *qp);
/* Payload of the largest packet as long as which a probe of the peer was, that arrived at that time or later;
 * 0: none did. */
uint32_t sdr_qp_probed(struct sdr_qp *qp, lh_time since);
/* Whether the layer above has more to send, which only the user's window holds back. */
void sdr_qp_user_window(struct sdr_qp *qp, bool binds);
/* What an earlier connection over this path found, for the controller; before lh_sdr_qp_connect(). It counts
 * only if the round trip is about the same. */
void sdr_qp_remember(struct sdr_qp *qp, uint64_t rate_bps, lh_time rtt_ns, lh_time age_ns);
/* Posted payload bytes from the first that the fabric has not taken on: channels leave in any order, so some
 * of these may be gone. */
uint64_t sdr_qp_send_unsent_bytes(struct sdr_qp *qp);
/* The counters themselves. Those that the SDR layer counts, too (bad_control), are counted by the step, or by
 * an atomic addition. */
struct lh_stats *sdr_qp_stats(struct sdr_qp *qp);
/* Counters of lh_sdr_stats(), without its cost: no lock, no system call. */
uint64_t sdr_qp_rx_bytes(const struct sdr_qp *qp);
uint64_t sdr_qp_rx_packets(const struct sdr_qp *qp);
/* Of data, no duplicates. */
uint64_t sdr_qp_rx_new_packets(const struct sdr_qp *qp);
/* Whether a packet of the whole MTU has arrived since the last call. Cheap, without a lock. */
bool sdr_qp_full_arrived(struct sdr_qp *qp);
/* Each packet that had reached this host before this moment is in the bitmaps: control messages use another
 * socket, and may arrive before data that still waits in its own. 0: not known yet. Cheap, without a lock. */
lh_time sdr_qp_caught_up(struct sdr_qp *qp);
/* Wakes the workers that have not polled their channels since that moment: while they sleep,
 * sdr_qp_caught_up() does not advance. */
void sdr_qp_catch_up(struct sdr_qp *qp, lh_time since);

/* ---- registered memory: the rest of the interface is sdr_mr.h ---- */

/* sdr_mr_dereg() for a layer that knows that nothing uses the memory any more: it asks no QP, takes no lock
 * but that of the list, and so may be called from a driver's step. */
void sdr_mr_drop(struct sdr_mr *mr);
/* Whether a registered range with this key covers the bytes. An empty range always is covered. */
bool memory_covers(struct sdr_context *context, uint32_t lkey, uint64_t address, uint64_t bytes);

#endif
