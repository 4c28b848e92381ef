/*
 * sdr_ext.h - what the SDR SDK (sdr.h) lacks: more attributes, control messages, clear-to-send data,
 * statistics.
 *
 * With these a reliability layer of one's own can be written on the SDK, as src/connection is. Return
 * values here are of the lh_ kind: 0 or a negative lh_error.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_SDR_EXT_H
#define LONGHAUL_SDR_EXT_H

#include <sdr.h>

#include <longhaul/error.h>
#include <longhaul/link.h>
#include <longhaul/stats.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lh_context_attr {
    uint32_t channels;      /* of every QP; default 1 */
    uint32_t workers;       /* threads; LH_SDR_NO_WORKERS: the caller calls lh_sdr_progress(); default 1 */
    const int *worker_cpus; /* one a worker, -1: any; NULL: any */
    uint64_t receive_buffer_bytes;
    struct lh_link_spec link; /* emulated at the sending end of every QP */
};

#define LH_SDR_NO_WORKERS UINT32_MAX

struct lh_qp_attr {
    uint32_t generations;            /* default 4 */
    uint8_t immediate_message_bits;  /* default 10 */
    uint8_t immediate_fragment_bits; /* default 4; the offset gets the rest */
    uint32_t mtu_bytes;              /* power of two, 64 to 4096; 0: from sdr_qp_attr.mtu */
    uint64_t slot_bytes;             /* 0: from sdr_qp_attr */
    uint64_t rate_bps;    /* 0: from sdr_qp_attr.rate_limit, which is in Mbit/s; else bits per second */
    uint32_t chunk_bytes; /* 0: from sdr_qp_attr */
    uint32_t slots;       /* messages in flight, a power of two, also 1; 0: from sdr_qp_attr */
};

/* A context of this call, unlike one of sdr_context_create(), prints nothing: see lh_sdr_warning(). */
LH_API int lh_sdr_context_create(const char *device, const struct lh_context_attr *attr,
                                 struct sdr_context **context);
LH_API int lh_sdr_qp_create(struct sdr_context *context, const struct sdr_qp_attr *attr,
                            const struct lh_qp_attr *more, struct sdr_qp **qp);
/* sdr_qp_connect that says why not: -LH_EHANDSHAKE, -LH_EVERSION, -LH_EMTU, -LH_EADDR, -LH_ESTATE. */
LH_API int lh_sdr_qp_connect(struct sdr_qp *qp, const void *remote_qp_info);

/* One round of everything that is due, for a context without workers. */
LH_API int lh_sdr_progress(struct sdr_context *context, lh_time *next_ns);
LH_API lh_time lh_sdr_now(struct sdr_context *context);

/* ---- receives ---------------------------------------------------------------------------------------- */

#define LH_CTS_UPPER_BYTES 24

/* sdr_recv_post with bytes of the caller's own in the clear-to-send: scheme, parameters, whatever both ends
 * agree. */
LH_API int lh_sdr_recv_post(struct sdr_qp *qp, struct sdr_recv_wr *wr,
                            const uint8_t upper[LH_CTS_UPPER_BYTES], struct sdr_recv_handle **handle);
LH_API uint32_t lh_sdr_recv_sequence(const struct sdr_recv_handle *handle);
/* The message has that many bytes: chunks past it count as arrived, a last partial chunk is whole when its
 * packets up to `bytes` are there. From then on a packet that contradicts this length is refused, and nothing
 * more is placed behind it; before, packets may be placed anywhere in the buffer before they are validated.
 * bytes at most the posted length (-LH_ERANGE); at most what it was truncated to before, and no less than
 * what has arrived (-LH_ESTATE, as after completion). */
LH_API int lh_sdr_recv_truncate(struct sdr_recv_handle *handle, uint64_t bytes);
/* Chunks that are whole, read without a lock. */
LH_API uint32_t lh_sdr_recv_chunks_arrived(const struct sdr_recv_handle *handle);

/* ---- sends ------------------------------------------------------------------------------------------- */

struct lh_cts {
    uint32_t sequence;
    uint32_t length_bytes;
    uint8_t upper[LH_CTS_UPPER_BYTES];
};

/* The clear-to-send that the next send will use; -LH_EAGAIN when none came yet. */
LH_API int lh_sdr_cts_peek(struct sdr_qp *qp, struct lh_cts *cts);
/* Passes it by: that receive gets no message. -LH_EAGAIN. */
LH_API int lh_sdr_cts_skip(struct sdr_qp *qp);
/* Payload bytes that were posted and the fabric has not taken yet. */
LH_API uint64_t lh_sdr_send_queued_bytes(struct sdr_qp *qp);
/* When the fabric last took some, on the context's clock; 0 before. Asked after the bytes, it is never too
 * early for them. */
LH_API lh_time lh_sdr_send_left_ns(struct sdr_qp *qp);
/* Drops what a streaming send still has queued, and ends it. */
LH_API int lh_sdr_streaming_send_abort(struct sdr_send_handle *handle);

/* ---- control messages of the layer above ------------------------------------------------------------- */

#define LH_SDR_MESSAGE_MAX 992

/* Unreliable, like everything. -LH_EAGAIN: the queue is full. */
LH_API int lh_sdr_message_send(struct sdr_qp *qp, const void *data, size_t bytes);
/* -LH_EAGAIN: none waiting. buffer holds LH_SDR_MESSAGE_MAX. */
LH_API int lh_sdr_message_recv(struct sdr_qp *qp, void *buffer, size_t *bytes);

/* ---- path and statistics ----------------------------------------------------------------------------- */

struct lh_sdr_path {
    lh_time rtt_ns; /* smoothed; 0: no sample yet */
    lh_time rtt_variance_ns;
    lh_time rtt_minimum_ns;
    lh_time overdue_ns;
    lh_time reorder_window_ns;
    lh_time last_heard_ns; /* when the peer was last heard at all; 0: never */
    uint64_t peer_receive_buffer_bytes;
};

LH_API int lh_sdr_path(struct sdr_qp *qp, struct lh_sdr_path *path);
LH_API int lh_sdr_stats(struct sdr_qp *qp, struct lh_stats *stats);
/* 0; -LH_ECLOSED when the peer said goodbye; -LH_EDEVICE when the fabric failed: lh_last_error() says
 * why. */
LH_API int lh_sdr_error(struct sdr_qp *qp);
/* Says goodbye to the peer (repeated a few times by qp_destroy as well). */
LH_API int lh_sdr_goodbye(struct sdr_qp *qp, enum lh_error reason);
LH_API const char *lh_sdr_warning(struct sdr_context *context);

#ifdef __cplusplus
}
#endif
#endif
