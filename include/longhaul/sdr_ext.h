/*
 * sdr_ext.h - extensions of the SDR SDK (sdr.h): more attributes, control messages, clear-to-send data,
 * statistics.
 *
 * They suffice to write a reliability layer on the SDK, such as src/message. Calls return 0 or a negative
 * lh_error.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_SDR_EXT_H
#define LONGHAUL_SDR_EXT_H

#include <sdr.h>

#include <longhaul/congestion.h>
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
    const int *worker_cpus; /* one per worker, -1: any; NULL: any */
    uint64_t receive_buffer_bytes;
    struct lh_link_spec link; /* emulated for packets that the QPs send */
    lh_time spin_ns; /* of idle workers before they sleep; 0: 50 us, none on one processor; at most 1 s */
};

#define LH_SDR_NO_WORKERS UINT32_MAX

struct lh_qp_attr {
    uint32_t generations;            /* default 4 */
    uint8_t immediate_message_bits;  /* default 10 */
    uint8_t immediate_fragment_bits; /* default 4; the offset has the rest */
    uint32_t mtu_bytes;              /* multiple of 64, 64 to 8896; 0: from sdr_qp_attr.mtu */
    uint64_t slot_bytes;             /* 0: from sdr_qp_attr */
    uint64_t rate_bps;               /* bits per second; 0: sdr_qp_attr.rate_limit, in Mbit/s */
    uint32_t chunk_bytes;            /* 0: from sdr_qp_attr */
    uint32_t slots;                  /* messages in flight, a power of two, also 1; 0: from sdr_qp_attr */
    /* Congestion controller of this side's sends, "bbr": see lh_congestions(3). NULL: "fixed" if rate_bps or
     * the rate of an emulated link is set, or if the fabric has backpressure; else "bbr". Used only during
     * the call. */
    const char *congestion;
    uint64_t rate_max_bps; /* maximum of the controller's rate; 0: none */
    uint64_t window_bytes; /* maximum payload in flight, with a controller; 0: all slots */
};

/* Opens a device. Unlike sdr_context_create(), it prints no warning: see lh_sdr_warning(). */
LH_API int lh_sdr_context_create(const char *device, const struct lh_context_attr *attr,
                                 struct sdr_context **context);
LH_API int lh_sdr_qp_create(struct sdr_context *context, const struct sdr_qp_attr *attr,
                            const struct lh_qp_attr *more, struct sdr_qp **qp);
/* Connects as sdr_qp_connect(), and returns an error code: -LH_EHANDSHAKE, -LH_EVERSION, -LH_EMTU, -LH_EADDR,
 * -LH_ESTATE. */
LH_API int lh_sdr_qp_connect(struct sdr_qp *qp, const void *remote_qp_info);

/* Makes progress on a context without workers. *next_ns: latest time of the next call. */
LH_API int lh_sdr_progress(struct sdr_context *context, lh_time *next_ns);
LH_API lh_time lh_sdr_now(struct sdr_context *context);

/* ---- receives ---------------------------------------------------------------------------------------- */

#define LH_CTS_UPPER_BYTES 24

/* Posts a receive as sdr_recv_post(), with the caller's bytes in the clear-to-send: scheme, parameters, or
 * anything that both ends agree on. */
LH_API int lh_sdr_recv_post(struct sdr_qp *qp, struct sdr_recv_wr *wr,
                            const uint8_t upper[LH_CTS_UPPER_BYTES], struct sdr_recv_handle **handle);
LH_API uint32_t lh_sdr_recv_sequence(const struct sdr_recv_handle *handle);
/* Sets the length of the message. Chunks beyond it count as arrived; a last partial chunk is complete with
 * its packets up to `bytes`. From now on packets that contradict the length are refused, and nothing is
 * placed beyond it. Before, packets may be placed anywhere in the buffer before they are validated.
 * -LH_ERANGE: bytes exceeds the posted length. -LH_ESTATE: bytes exceeds an earlier truncation, or is below
 * the arrived data, or the receive is complete. */
LH_API int lh_sdr_recv_truncate(struct sdr_recv_handle *handle, uint64_t bytes);
/* Returns the number of complete chunks. Takes no lock. */
LH_API uint32_t lh_sdr_recv_chunks_arrived(const struct sdr_recv_handle *handle);

/* ---- sends ------------------------------------------------------------------------------------------- */

struct lh_cts {
    uint32_t sequence;
    uint32_t length_bytes;
    uint8_t upper[LH_CTS_UPPER_BYTES];
};

/* Gets the clear-to-send that the next send will use. -LH_EAGAIN: none has arrived. */
LH_API int lh_sdr_cts_peek(struct sdr_qp *qp, struct lh_cts *cts);
/* Skips that clear-to-send: its receive gets no message. -LH_EAGAIN: none has arrived. */
LH_API int lh_sdr_cts_skip(struct sdr_qp *qp);
/* Returns the posted payload bytes that the fabric has not accepted yet. */
LH_API uint64_t lh_sdr_send_queued_bytes(struct sdr_qp *qp);
/* Returns the time at which the fabric last accepted payload, on the context's clock; 0: never. When read
 * after lh_sdr_send_queued_bytes(), it is never too early for those bytes. */
LH_API lh_time lh_sdr_send_left_ns(struct sdr_qp *qp);
/* Drops the queued chunks of a streaming send, and ends it. */
LH_API int lh_sdr_streaming_send_abort(struct sdr_send_handle *handle);

/* ---- control messages of the layer above ------------------------------------------------------------- */

#define LH_SDR_MESSAGE_MAX 992

/* Sends a control message, unreliably. -LH_EAGAIN: the queue is full. */
LH_API int lh_sdr_message_send(struct sdr_qp *qp, const void *data, size_t bytes);
/* Receives a control message, into LH_SDR_MESSAGE_MAX bytes. -LH_EAGAIN: none is waiting. */
LH_API int lh_sdr_message_recv(struct sdr_qp *qp, void *buffer, size_t *bytes);

/* ---- path and statistics ----------------------------------------------------------------------------- */

struct lh_sdr_path {
    lh_time rtt_ns; /* smoothed; 0: no sample yet */
    lh_time rtt_variance_ns;
    lh_time rtt_minimum_ns;
    lh_time overdue_ns;
    lh_time reorder_window_ns;
    lh_time last_heard_ns; /* time of the peer's last packet; 0: none */
    uint64_t peer_receive_buffer_bytes;
    bool controlled;       /* a congestion controller takes feedback */
    uint64_t pace_bps;     /* its current rate; 0: none */
    uint32_t packet_bytes; /* current payload of data packets: the MTU, or less (RFC 8899) */
};

LH_API int lh_sdr_path(struct sdr_qp *qp, struct lh_sdr_path *path);
/* Gets the congestion control of this side's sends, and the time per limit. */
LH_API int lh_sdr_congestion(struct sdr_qp *qp, struct lh_congestion_report *report);
LH_API int lh_sdr_stats(struct sdr_qp *qp, struct lh_stats *stats);
/* Returns 0, or the error of the QP. -LH_ECLOSED: the peer has closed; -LH_EDEVICE: the fabric failed;
 * lh_last_error() has the cause. */
LH_API int lh_sdr_error(struct sdr_qp *qp);
/* Sends the peer a FIN with a reason (sdr_qp_destroy also sends some). */
LH_API int lh_sdr_goodbye(struct sdr_qp *qp, enum lh_error reason);
LH_API const char *lh_sdr_warning(struct sdr_context *context);

#ifdef __cplusplus
}
#endif
#endif
