/*
 * sdr.h - the SDR SDK: unreliable messages with a bitmap of arrived chunks.
 *
 * Source compatible with the SDK that the authors of "SDR-RDMA: Software-Defined Reliability Architecture
 * for Planetary Scale RDMA Communication" published (its section 3.1, table 1). Extensions are in
 * <longhaul/sdr_ext.h>.
 *
 * A queue pair moves messages of up to the slot size. Matching is by order: the n-th send fills the n-th
 * receive that the peer posted. Nothing is retransmitted: a lost chunk stays 0 in the bitmap.
 *
 * Progress: the context's worker threads move packets. Any thread may call. Calls return an enum sdr_errcode;
 * after SDR_ERROR or NULL, lh_last_error() (<longhaul/error.h>) has the reason.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SDR_H
#define SDR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SDR_API
#if defined(__GNUC__)
#define SDR_API __attribute__((visibility("default")))
#else
#define SDR_API
#endif
#endif

struct sdr_context;
struct sdr_qp;
struct sdr_send_handle;
struct sdr_recv_handle;

enum sdr_errcode {
    SDR_SUCCESS = 0,
    SDR_ERROR = 1,
    SDR_RETRY = 2, /* not ready, or out of resources for now: call again */
};

/* Payload of a full packet. RDMA devices support 256 and more. */
enum sdr_mtu {
    SDR_MTU_64 = 0, /* in sdr_qp_attr the default, 4096; use lh_qp_attr.mtu_bytes = 64 for 64 bytes */
    SDR_MTU_128,
    SDR_MTU_256,
    SDR_MTU_512,
    SDR_MTU_1024,
    SDR_MTU_2048,
    SDR_MTU_4096,
};

struct sdr_dev_attr {
    uint32_t
        num_channels; /* parallel paths of each QP, each with a worker, up to the number of CPUs; 0: 1 */
    uint32_t log_max_qps; /* log2 of the maximum number of QPs; 0: 10 */
};

enum sdr_wr_opcode {
    SDR_WR_WRITE,
    SDR_WR_WRITE_WITH_IMM, /* the receiver gets imm_value, reassembled from fragments */
};

/* Zero the struct first: zero means the default, for each field. So one message in flight (log2 0) and
 * SDR_MTU_64 need lh_sdr_qp_create() of <longhaul/sdr_ext.h>. If max_log_num_msgs or mtu is zero, the first
 * sdr_qp_create() of a context prints the defaults on standard error. */
struct sdr_qp_attr {
    uint32_t bitmap_chunk_size_log_bytes; /* log2 of the bytes of one bitmap entry; 0: 16 (64 KiB) */
    size_t max_in_flight_log_bytes;       /* log2 of all bytes in flight; 0: 30 */
    uint32_t max_log_num_msgs; /* log2 of the messages in flight (slots); 0: the default 7, not one message
                                  (lh_qp_attr.slots = 1). A message is at most
                                  2^(max_in_flight_log_bytes - max_log_num_msgs) bytes */
    enum sdr_mtu mtu;          /* 0, SDR_MTU_64: the default, SDR_MTU_4096 */
    uint8_t send_enable;       /* both zero: both directions; else only the set ones */
    uint8_t recv_enable;
    uint32_t rate_limit; /* pace of injection in Mbit/s; 0: none */
};

struct sdr_send_wr {
    enum sdr_wr_opcode opcode;
    uint32_t imm_value;
    uint32_t length; /* bytes */
    uint32_t lkey;
    uint64_t local_addr;
    uint64_t remote_offset; /* in chunks, within the receive buffer */
};

struct sdr_send_start_wr {
    enum sdr_wr_opcode opcode;
    uint32_t imm_value;
};

struct sdr_send_continue_wr {
    uint32_t length; /* bytes; a whole number of packets unless it ends the message */
    uint64_t local_addr;
    uint32_t lkey;
    uint64_t remote_offset; /* in chunks */
};

struct sdr_recv_wr {
    uint32_t max_length; /* buffer size in bytes; the bitmap has an entry for each chunk of it */
    uint32_t lkey;
    uint64_t address;
};

struct sdr_send_status {
    uint32_t flags; /* 0: every packet was injected; 1: aborted (by the caller, or the QP failed) */
};

/* Opens a device. dev_name: "udp:[::1]", "xdp:eth0", "sim:<world>/<host>". dev_attr may be NULL. NULL on
 * failure. */
SDR_API struct sdr_context *sdr_context_create(const char *dev_name, struct sdr_dev_attr *dev_attr);
/* Frees the context. SDR_ERROR while it has QPs or registered memory. */
SDR_API int sdr_context_destroy(struct sdr_context *context);

/* Creates a queue pair, not connected. qp_attr may be NULL. NULL on failure; the reason names each bad value.
 * */
SDR_API struct sdr_qp *sdr_qp_create(struct sdr_context *context, struct sdr_qp_attr *qp_attr);
/* Ends all sends and receives, frees their handles and notifies the peer. */
SDR_API int sdr_qp_destroy(struct sdr_qp *qp);

/* The connection blob, which the application exchanges before it connects. */
SDR_API int sdr_qp_info_size_get(struct sdr_qp *qp, size_t *info_size);
SDR_API int sdr_qp_info_get(struct sdr_qp *qp, void *info);
/* Connects. remote_qp_info: the peer's blob, complete. */
SDR_API int sdr_qp_connect(struct sdr_qp *qp, void *remote_qp_info);

/* Posts a buffer, clears its bitmap and sends a clear-to-send. SDR_RETRY: no slot is free. Until
 * sdr_recv_complete any byte outside of marked chunks may change, also beyond the end of a shorter message.
 * */
SDR_API int sdr_recv_post(struct sdr_qp *qp, struct sdr_recv_wr *wr, struct sdr_recv_handle **handle);
/* Gets the user's immediate. SDR_RETRY until every fragment has arrived. */
SDR_API int sdr_recv_imm_get(struct sdr_recv_handle *handle, uint32_t *immediate);
/* Gets the chunk bitmap: one byte per chunk, non-zero when the whole chunk has arrived. It may be polled
 * without further calls (with acquire order where the machine reorders loads). Valid until
 * sdr_recv_complete.
 *
 * Bytes of an unmarked chunk are unspecified, before completion and after it: the former contents, packets
 * of this message, or payload from the peer's address that failed validation, at any offset of the buffer:
 * payload is placed before it is validated. Nothing is written outside the max_length bytes at address. */
SDR_API int sdr_recv_bitmap_get(struct sdr_recv_handle *handle, uint8_t **bitmap_bytes,
                                size_t *bitmap_num_bytes);
/* Gets one bit per packet of that chunk, in (packets per chunk + 63) / 64 words. */
SDR_API int sdr_recv_bitmap_chunk_expand(struct sdr_recv_handle *handle, uint32_t chunk_offset,
                                         uint64_t *bitmap);
/* Ends a receive, at any time and exactly once; after it returns no packet changes the buffer or a bitmap. */
SDR_API int sdr_recv_complete(struct sdr_recv_handle *handle);

/* Sends a whole message, or its part from remote_offset on. SDR_RETRY: the matching receive is not posted
 * yet, or no send context is free. The buffer must not change until the send has completed.
 *
 * There is no flow control: bytes in flight beyond the receiver's socket buffers are dropped there, and a
 * program that waits for them never ends. The first sends that exceed the peer's buffers print a line on
 * standard error; the receiver counts the drops in rx_socket_drops (lh_sdr_stats()). See sdr_send_post(3). */
SDR_API int sdr_send_post(struct sdr_qp *qp, struct sdr_send_wr *wr, struct sdr_send_handle **handle);
/* Starts a message whose chunks are added one by one, in any order, repeatedly if necessary. */
SDR_API int sdr_streaming_send_start(struct sdr_qp *qp, struct sdr_send_start_wr *wr,
                                     struct sdr_send_handle **handle);
/* Adds chunks. SDR_RETRY: the injection queue is full. */
SDR_API int sdr_streaming_send_continue(struct sdr_send_handle *handle, struct sdr_send_continue_wr *wr);
/* Ends the additions. The handle stays valid until sdr_send_poll reports completion. */
SDR_API int sdr_streaming_send_end(struct sdr_send_handle *handle);
/* Polls a send. *completed_flag 1: everything was injected, and the handle is freed. status may be NULL. */
SDR_API int sdr_send_poll(struct sdr_send_handle *handle, int *completed_flag,
                          struct sdr_send_status *status);

#ifdef __cplusplus
}
#endif
#endif
