/*
 * xdp_socket.h - AF_XDP sockets of a receive queue: shared memory of frames, rings, sending, receiving.
 *
 * Whole Ethernet frames. A frame of the memory is either the receive side's (in the fill ring, the kernel,
 * the receive ring, or a reader's hands) or the transmit side's (free, in the transmit ring, or in the
 * completion ring). The kernel's addresses are checked before use: a frame that is not where it says is
 * dropped.
 *
 * Threads: any may call; sending on a queue has a lock, receiving on a socket another.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_XDP_XDP_SOCKET_H
#define LH_FABRIC_XDP_XDP_SOCKET_H

#include <linux/if_xdp.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes of a frame in the memory that kernel and process share: a packet is in one of them. */
#define XDP_FRAME_BYTES 4096u
/* Frames of the transmit side: a few calls of FABRIC_BATCH_MAX packets. */
#define XDP_TRANSMIT_FRAMES 2048u
/* The kernel keeps as much of a frame free before a packet that arrives (XDP_PACKET_HEADROOM). */
#define XDP_HEADROOM_BYTES 256u
/* The longest packet that a frame takes in either direction, Ethernet header included. */
#define XDP_PACKET_BYTES_MAX (XDP_FRAME_BYTES - XDP_HEADROOM_BYTES)

/* ---- queue ----------------------------------------------------------------------------------------- */

/* The memory of frames for a receive queue, which all sockets on it share. */
struct xdp_queue;

struct xdp_queue_attr {
    const char *interface; /* for messages */
    uint32_t ifindex;
    uint32_t queue;
    uint32_t receive_frames; /* a power of two */
    bool copy;               /* not zero-copy, even where the driver has it */
};

/* -LH_EDEVICE, -LH_ESYSTEM, -LH_ENOMEM: the message names cause and remedy. */
int xdp_queue_open(const struct xdp_queue_attr *attr, struct xdp_queue **made);
/* All its sockets are closed before. */
void xdp_queue_close(struct xdp_queue *queue);
bool xdp_queue_is_zero_copy(const struct xdp_queue *queue);

/* ---- socket ---------------------------------------------------------------------------------------- */

struct xdp_socket;

/* Opens a socket on the queue. The same errors. */
int xdp_socket_open(struct xdp_queue *queue, struct xdp_socket **made);
void xdp_socket_close(struct xdp_socket *socket);
int xdp_socket_fd(const struct xdp_socket *socket);
/* Packets that the kernel dropped because rings were full, or empty; wraps. */
uint32_t xdp_socket_drops(const struct xdp_socket *socket);
/* Whether the interface was removed. System calls. */
bool xdp_socket_is_gone(const struct xdp_socket *socket);

/* ---- receive --------------------------------------------------------------------------------------- */

struct xdp_received {
    const uint8_t *data;
    uint32_t bytes;
    uint64_t frame;
};

/* Takes up to `count` packets. Each is the caller's until its frame is released. */
uint32_t xdp_socket_receive(struct xdp_socket *socket, struct xdp_received *packets, uint32_t count);
/* Gives back frames of the socket. */
void xdp_socket_release(struct xdp_socket *socket, const uint64_t *frames, uint32_t count);

/* ---- send ------------------------------------------------------------------------------------------ */

/* Locks the sending side of the queue. Returns the number of packets that there are frames for now, up to
 * `wanted`. xdp_socket_send_end() follows in any case. */
uint32_t xdp_socket_send_begin(struct xdp_socket *socket, uint32_t wanted);
/* XDP_FRAME_BYTES for the next packet. */
uint8_t *xdp_socket_send_frame(struct xdp_socket *socket);
/* The packet is written, and that long. */
void xdp_socket_send_add(struct xdp_socket *socket, uint32_t bytes);
/* Sends what was added, and unlocks. 0, or the errno of the kernel; what was added leaves later then. */
int xdp_socket_send_end(struct xdp_socket *socket);

/* ---- ring ------------------------------------------------------------------------------------------ */

/*
 * The rings between a socket and the kernel: single producer, single consumer. Pure.
 *
 * The counters run freely and wrap at 2^32; a place is a counter modulo the size. One side of a ring belongs
 * to the kernel: what it wrote is checked like anything that is read.
 */

struct xdp_ring {
    uint32_t *producer;
    uint32_t *consumer;
    const uint32_t *flags;
    void *entries; /* struct xdp_desc (receive, transmit), uint64_t (fill, completion) */
    uint32_t size; /* a power of two */
    uint32_t next; /* of this side: the counter up to which it has written or read */
};

/* Entries that may be written from ring->next on. */
static inline uint32_t xdp_ring_free(const struct xdp_ring *ring)
{
    uint32_t used = ring->next - __atomic_load_n(ring->consumer, __ATOMIC_ACQUIRE);
    return used <= ring->size ? ring->size - used : 0;
}

/* Entries that may be read from ring->next on. */
static inline uint32_t xdp_ring_waiting(const struct xdp_ring *ring)
{
    uint32_t waiting = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) - ring->next;
    return waiting <= ring->size ? waiting : 0;
}

static inline struct xdp_desc *xdp_ring_descriptor(const struct xdp_ring *ring, uint32_t counter)
{
    return &((struct xdp_desc *)ring->entries)[counter & (ring->size - 1)];
}

static inline uint64_t *xdp_ring_address(const struct xdp_ring *ring, uint32_t counter)
{
    return &((uint64_t *)ring->entries)[counter & (ring->size - 1)];
}

/* What lies before ring->next is the kernel's from now on: written, or free again. In one order with the read
 * of the flag in xdp_ring_needs_wakeup(): else this side could miss it, and both sides would wait. */
static inline void xdp_ring_produce(const struct xdp_ring *ring)
{
    __atomic_store_n(ring->producer, ring->next, __ATOMIC_SEQ_CST);
}

static inline void xdp_ring_consume(const struct xdp_ring *ring)
{
    __atomic_store_n(ring->consumer, ring->next, __ATOMIC_RELEASE);
}

/* After xdp_ring_produce(). */
static inline bool xdp_ring_needs_wakeup(const struct xdp_ring *ring)
{
    return (__atomic_load_n(ring->flags, __ATOMIC_SEQ_CST) & XDP_RING_NEED_WAKEUP) != 0;
}

/* Whether a descriptor's bytes lie within one of the frames from `first` on, `count` of them. */
static inline bool xdp_descriptor_is_valid(const struct xdp_desc *descriptor, uint32_t first,
                                           uint32_t count)
{
    uint64_t frame = descriptor->addr / XDP_FRAME_BYTES;
    return frame >= first && frame - first < count &&
           descriptor->addr % XDP_FRAME_BYTES + descriptor->len <= XDP_FRAME_BYTES;
}

#endif
