/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/xdp/xdp_socket.h"

#include <assert.h>
#include <errno.h>
#include <linux/if_xdp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/types.h>

#include "base/error.h"
#include "base/min_max.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9
#endif

#define CACHE_LINE_BYTES 64u
/* Packets that one call of the kernel sends where it copies; since Linux 6.18, 32 before. */
#define SEND_BUDGET 256
/* Calls of the kernel for one batch: each sends 32 packets or more. */
#define SEND_CALLS_MAX    64u
#define SEND_BUFFER_BYTES (8 << 20)
/* A second in all. */
#define BIND_TRIES    100u
#define BIND_PAUSE_NS (10 * LH_NS_PER_MS)
/* 10 ms in all. */
#define DRAIN_TRIES    100u
#define DRAIN_PAUSE_NS 100000

struct mapping {
    void *memory;
    size_t bytes;
};

/* In cache lines of its own: another thread works on the other side. */
struct receive_side {
    _Alignas(CACHE_LINE_BYTES) pthread_mutex_t lock;
    struct xdp_ring fill;
    uint32_t frames; /* 0 … frames - 1 of the memory */
};

struct send_side {
    _Alignas(CACHE_LINE_BYTES) pthread_mutex_t lock;
    struct xdp_ring completed; /* of all sockets */
    uint32_t first;            /* of its frames in the memory */
    uint32_t free_count;
    uint32_t added; /* since send_begin */
    uint32_t free_frames[XDP_TRANSMIT_FRAMES];
    bool in_flight[XDP_TRANSMIT_FRAMES];
};

/* Its own socket owns the memory, and takes no packets. */
struct xdp_queue {
    struct xdp_queue_attr attr;
    int fd;
    bool zero_copy;
    uint8_t *memory;
    size_t memory_bytes;
    struct mapping fill_mapping;
    struct mapping completed_mapping;
    struct receive_side receive;
    struct send_side send;
};

struct xdp_socket {
    struct xdp_queue *queue;
    int fd;
    struct mapping received_mapping;
    struct mapping transmit_mapping;
    struct xdp_ring transmit; /* under the queue's lock of the sending side */
    _Alignas(CACHE_LINE_BYTES) pthread_mutex_t lock;
    struct xdp_ring received;
    uint32_t invalid; /* descriptors that were dropped */
};

/* ---- errors and memory ------------------------------------------------------------------------------- */

static int make_failed(const struct xdp_queue_attr *attr, const char *what, int error)
{
    const char *interface = attr->interface;
    if (error == EPERM)
        return lh_fail(LH_EDEVICE,
                       "device xdp:%s: AF_XDP sockets need CAP_NET_RAW, the XDP program CAP_BPF and "
                       "CAP_NET_ADMIN (run as root, or use udp:ADDRESS)",
                       interface);
    if (error == EAFNOSUPPORT || error == ESOCKTNOSUPPORT || error == ENOPROTOOPT)
        return lh_fail(LH_EDEVICE, "device xdp:%s: kernel without AF_XDP (use udp:ADDRESS)", interface);
    if (error == EBUSY)
        return lh_fail(LH_EDEVICE,
                       "device xdp:%s: queue %u belongs to another AF_XDP socket (end its owner, or use "
                       "udp:ADDRESS)",
                       interface, attr->queue);
    return lh_fail(LH_ESYSTEM, "device xdp:%s: %s: %s (use udp:ADDRESS)", interface, what, strerror(error));
}

static int memory_failed(const struct xdp_queue *queue, int error)
{
    const struct xdp_queue_attr *attr = &queue->attr;
    struct rlimit limit = {0};
    if (error != ENOBUFS || getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        return make_failed(attr, "registering memory for packets", error);
    return lh_fail(
        LH_EDEVICE,
        "device xdp:%s: queue %u needs %zu KiB of locked memory, the limit RLIMIT_MEMLOCK is %llu "
        "KiB (raise it with \"ulimit -l\", or add CAP_IPC_LOCK)",
        attr->interface, attr->queue, queue->memory_bytes / 1024,
        (unsigned long long)limit.rlim_cur / 1024);
}

static int register_memory(struct xdp_queue *queue)
{
    const struct xdp_queue_attr *attr = &queue->attr;
    queue->memory_bytes = (size_t)(attr->receive_frames + XDP_TRANSMIT_FRAMES) * XDP_FRAME_BYTES;
    void *memory =
        mmap(NULL, queue->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return lh_fail(LH_ENOMEM, "device xdp:%s: no memory for packets: %zu KiB", attr->interface,
                       queue->memory_bytes / 1024);
    queue->memory = memory;
    (void)madvise(memory, queue->memory_bytes, MADV_DONTFORK); /* else fork() copies it, as it is pinned */
    struct xdp_umem_reg registration = {
        .addr = (uintptr_t)memory,
        .len = queue->memory_bytes,
        .chunk_size = XDP_FRAME_BYTES,
    };
    if (setsockopt(queue->fd, SOL_XDP, XDP_UMEM_REG, &registration, sizeof registration) == 0)
        return 0;
    return memory_failed(queue, errno);
}

/* ---- rings ------------------------------------------------------------------------------------------- */

/* What a kind of ring is called in system calls. */
struct ring_kind {
    int option;
    uint64_t page_offset;
    size_t at; /* in struct xdp_mmap_offsets */
    size_t entry_bytes;
};

static const struct ring_kind fill_ring = {XDP_UMEM_FILL_RING, XDP_UMEM_PGOFF_FILL_RING,
                                           offsetof(struct xdp_mmap_offsets, fr), sizeof(uint64_t)};
static const struct ring_kind completion_ring = {XDP_UMEM_COMPLETION_RING, XDP_UMEM_PGOFF_COMPLETION_RING,
                                                 offsetof(struct xdp_mmap_offsets, cr), sizeof(uint64_t)};
static const struct ring_kind receive_ring = {
    XDP_RX_RING, XDP_PGOFF_RX_RING, offsetof(struct xdp_mmap_offsets, rx), sizeof(struct xdp_desc)};
static const struct ring_kind transmit_ring = {
    XDP_TX_RING, XDP_PGOFF_TX_RING, offsetof(struct xdp_mmap_offsets, tx), sizeof(struct xdp_desc)};

/* A ring of that size, a power of two. 0, or an errno. */
static int make_ring(int fd, const struct ring_kind *kind, uint32_t size, struct mapping *mapping,
                     struct xdp_ring *ring)
{
    struct xdp_mmap_offsets offsets;
    struct xdp_ring_offset at;
    socklen_t bytes = sizeof offsets;
    if (setsockopt(fd, SOL_XDP, kind->option, &size, sizeof size) != 0 ||
        getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &bytes) != 0)
        return errno;
    if (bytes != sizeof offsets) /* before Linux 5.4: without flags */
        return EOPNOTSUPP;
    memcpy(&at, (const uint8_t *)&offsets + kind->at, sizeof at);
    mapping->bytes = at.desc + size * kind->entry_bytes;
    void *memory = mmap(NULL, mapping->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
                        (off_t)kind->page_offset);
    if (memory == MAP_FAILED)
        return errno;
    mapping->memory = memory;
    uint8_t *base = memory;
    *ring = (struct xdp_ring){
        .producer = (uint32_t *)(void *)(base + at.producer),
        .consumer = (uint32_t *)(void *)(base + at.consumer),
        .flags = (const uint32_t *)(void *)(base + at.flags),
        .entries = base + at.desc,
        .size = size,
    };
    return 0;
}

static void unmap(struct mapping *mapping)
{
    if (mapping->memory != NULL)
        munmap(mapping->memory, mapping->bytes);
    mapping->memory = NULL;
}

/* ---- queue ----------------------------------------------------------------------------------------- */

/* All receive frames are the kernel's, all others free. */
static void give_out_frames(struct xdp_queue *queue)
{
    struct receive_side *receive = &queue->receive;
    struct send_side *send = &queue->send;
    receive->frames = queue->attr.receive_frames;
    for (uint32_t i = 0; i < receive->frames; i++)
        *xdp_ring_address(&receive->fill, receive->fill.next++) = (uint64_t)i * XDP_FRAME_BYTES;
    xdp_ring_produce(&receive->fill);
    send->first = receive->frames;
    for (uint32_t i = 0; i < XDP_TRANSMIT_FRAMES; i++)
        send->free_frames[send->free_count++] = i;
}

/* The kernel frees a queue some time after the last socket on it was closed. */
static int bind_patiently(int fd, const struct sockaddr_xdp *address)
{
    const struct timespec pause = {.tv_nsec = (long)(BIND_PAUSE_NS)};
    int failed = bind(fd, (const struct sockaddr *)address, sizeof *address);
    for (uint32_t i = 1; i < BIND_TRIES && failed != 0 && errno == EBUSY; i++) {
        nanosleep(&pause, NULL);
        failed = bind(fd, (const struct sockaddr *)address, sizeof *address);
    }
    return failed;
}

/* A socket without a ring of its own cannot be bound, so the owner has the smallest one. Without a flag the
 * kernel takes zero-copy where the driver has it. */
static int bind_queue(struct xdp_queue *queue)
{
    const struct xdp_queue_attr *attr = &queue->attr;
    const uint32_t smallest = 2;
    struct sockaddr_xdp address = {
        .sxdp_family = AF_XDP,
        .sxdp_ifindex = attr->ifindex,
        .sxdp_queue_id = attr->queue,
        .sxdp_flags = (uint16_t)(XDP_USE_NEED_WAKEUP | (attr->copy ? XDP_COPY : 0)),
    };
    if (setsockopt(queue->fd, SOL_XDP, XDP_RX_RING, &smallest, sizeof smallest) != 0 ||
        bind_patiently(queue->fd, &address) != 0)
        return make_failed(attr, "binding an AF_XDP socket", errno);
    struct xdp_options options = {0};
    socklen_t bytes = sizeof options;
    if (getsockopt(queue->fd, SOL_XDP, XDP_OPTIONS, &options, &bytes) == 0)
        queue->zero_copy = (options.flags & XDP_OPTIONS_ZEROCOPY) != 0;
    return 0;
}

static int make_queue_rings(struct xdp_queue *queue)
{
    int failed = make_ring(queue->fd, &fill_ring, queue->attr.receive_frames, &queue->fill_mapping,
                           &queue->receive.fill);
    if (failed == 0)
        failed = make_ring(queue->fd, &completion_ring, XDP_TRANSMIT_FRAMES, &queue->completed_mapping,
                           &queue->send.completed);
    return failed == 0 ? 0 : make_failed(&queue->attr, "making rings", failed);
}

int xdp_queue_open(const struct xdp_queue_attr *attr, struct xdp_queue **made)
{
    struct xdp_queue *fresh = aligned_alloc(CACHE_LINE_BYTES, sizeof *fresh);
    if (fresh == NULL)
        return lh_fail(LH_ENOMEM, "device xdp:%s: no memory for a queue", attr->interface);
    memset(fresh, 0, sizeof *fresh);
    fresh->attr = *attr;
    pthread_mutex_init(&fresh->receive.lock, NULL);
    pthread_mutex_init(&fresh->send.lock, NULL);
    fresh->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
    int error = fresh->fd < 0 ? make_failed(attr, "making an AF_XDP socket", errno) : 0;
    if (error == 0)
        error = register_memory(fresh);
    if (error == 0)
        error = make_queue_rings(fresh);
    if (error == 0) {
        give_out_frames(fresh);
        error = bind_queue(fresh);
    }
    if (error != 0) {
        xdp_queue_close(fresh);
        return error;
    }
    *made = fresh;
    return 0;
}

/* Also of one that was opened only in part. */
void xdp_queue_close(struct xdp_queue *queue)
{
    if (queue == NULL)
        return;
    unmap(&queue->fill_mapping);
    unmap(&queue->completed_mapping);
    if (queue->fd >= 0)
        close(queue->fd);
    if (queue->memory != NULL)
        munmap(queue->memory, queue->memory_bytes);
    pthread_mutex_destroy(&queue->receive.lock);
    pthread_mutex_destroy(&queue->send.lock);
    free(queue);
}

bool xdp_queue_is_zero_copy(const struct xdp_queue *queue)
{
    return queue->zero_copy;
}

/* ---- socket ---------------------------------------------------------------------------------------- */

/* The frame of this address was sent, or never will be. */
static void free_frame(struct send_side *side, uint64_t address)
{
    uint64_t frame = address / XDP_FRAME_BYTES - side->first;
    if (frame >= XDP_TRANSMIT_FRAMES || !side->in_flight[frame])
        return; /* not one that was given away */
    side->in_flight[frame] = false;
    side->free_frames[side->free_count++] = (uint32_t)frame;
}

static int make_socket_rings(struct xdp_socket *socket)
{
    const struct xdp_queue_attr *attr = &socket->queue->attr;
    int failed = make_ring(socket->fd, &receive_ring, attr->receive_frames, &socket->received_mapping,
                           &socket->received);
    if (failed == 0)
        failed = make_ring(socket->fd, &transmit_ring, XDP_TRANSMIT_FRAMES, &socket->transmit_mapping,
                           &socket->transmit);
    return failed == 0 ? 0 : make_failed(attr, "making rings", failed);
}

/* Without these it is slower, nothing worse. */
static void ask_for_more(const struct xdp_socket *socket)
{
    int budget = SEND_BUDGET, buffer = SEND_BUFFER_BYTES;
    setsockopt(socket->fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof budget);
    if (setsockopt(socket->fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer) != 0)
        setsockopt(socket->fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
}

static int bind_socket(const struct xdp_socket *socket)
{
    const struct xdp_queue_attr *attr = &socket->queue->attr;
    const struct sockaddr_xdp address = {
        .sxdp_family = AF_XDP,
        .sxdp_ifindex = attr->ifindex,
        .sxdp_queue_id = attr->queue,
        .sxdp_flags = XDP_SHARED_UMEM,
        .sxdp_shared_umem_fd = (uint32_t)socket->queue->fd,
    };
    if (bind(socket->fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return 0;
    return make_failed(attr, "binding an AF_XDP socket", errno);
}

int xdp_socket_open(struct xdp_queue *queue, struct xdp_socket **made)
{
    struct xdp_socket *fresh = aligned_alloc(CACHE_LINE_BYTES, sizeof *fresh);
    if (fresh == NULL)
        return lh_fail(LH_ENOMEM, "device xdp:%s: no memory for a socket", queue->attr.interface);
    memset(fresh, 0, sizeof *fresh);
    fresh->queue = queue;
    pthread_mutex_init(&fresh->lock, NULL);
    fresh->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
    int error = fresh->fd < 0 ? make_failed(&queue->attr, "making an AF_XDP socket", errno) : 0;
    if (error == 0)
        error = make_socket_rings(fresh);
    if (error == 0) {
        ask_for_more(fresh);
        error = bind_socket(fresh);
    }
    if (error != 0) {
        xdp_socket_close(fresh);
        return error;
    }
    *made = fresh;
    return 0;
}

/* The mappings of its rings keep a socket bound. Where the kernel copies, it sends in calls alone, and there
 * are no more; a driver with zero-copy sends by itself: what it takes, it completes. For 10 ms at most: its
 * link may be down. */
static void await_driver(const struct xdp_socket *socket)
{
    const struct timespec pause = {.tv_nsec = DRAIN_PAUSE_NS};
    const struct xdp_ring *transmit = &socket->transmit;
    for (uint32_t i = 0; i < DRAIN_TRIES && xdp_ring_free(transmit) < transmit->size; i++)
        nanosleep(&pause, NULL);
}

/* Frames in its rings come back to the queue: what it has not read, and what the kernel has not sent. */
static void return_frames(struct xdp_socket *socket)
{
    struct send_side *side = &socket->queue->send;
    const struct xdp_ring *transmit = &socket->transmit;
    struct xdp_received packet;
    while (xdp_socket_receive(socket, &packet, 1) > 0) /* at most the ring, as no more come */
        xdp_socket_release(socket, &packet.frame, 1);
    pthread_mutex_lock(&side->lock);
    for (uint32_t i = transmit->size - xdp_ring_free(transmit); i > 0; i--)
        free_frame(side, xdp_ring_descriptor(transmit, transmit->next - i)->addr);
    pthread_mutex_unlock(&side->lock);
}

/* Also of one that was opened only in part. */
void xdp_socket_close(struct xdp_socket *socket)
{
    if (socket == NULL)
        return;
    if (socket->transmit_mapping.memory != NULL && socket->queue->zero_copy)
        await_driver(socket);
    if (socket->fd >= 0)
        close(socket->fd);
    if (socket->transmit_mapping.memory != NULL) /* it was made last */
        return_frames(socket);
    unmap(&socket->received_mapping);
    unmap(&socket->transmit_mapping);
    pthread_mutex_destroy(&socket->lock);
    free(socket);
}

int xdp_socket_fd(const struct xdp_socket *socket)
{
    return socket->fd;
}

uint32_t xdp_socket_drops(const struct xdp_socket *socket)
{
    struct xdp_statistics counted = {0};
    socklen_t bytes = sizeof counted;
    if (getsockopt(socket->fd, SOL_XDP, XDP_STATISTICS, &counted, &bytes) != 0)
        return 0;
    return (uint32_t)(counted.rx_dropped + counted.rx_ring_full) +
           __atomic_load_n(&socket->invalid, __ATOMIC_RELAXED);
}

/* The kernel unbinds the sockets of an interface that is removed, and from then on each call says so; poll()
 * does before Linux 5.11 only, and recvfrom() is there since then. */
bool xdp_socket_is_gone(const struct xdp_socket *socket)
{
    struct pollfd watched = {.fd = socket->fd};
    if (recvfrom(socket->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL) < 0 && errno == ENXIO)
        return true;
    return poll(&watched, 1, 0) > 0 && (watched.revents & (POLLERR | POLLHUP)) != 0;
}

/* ---- receive --------------------------------------------------------------------------------------- */

uint32_t xdp_socket_receive(struct xdp_socket *socket, struct xdp_received *packets, uint32_t count)
{
    const struct xdp_queue *queue = socket->queue;
    struct xdp_ring *ring = &socket->received;
    uint32_t taken = 0;
    pthread_mutex_lock(&socket->lock);
    for (uint32_t waiting = xdp_ring_waiting(ring); waiting > 0 && taken < count; waiting--) {
        const struct xdp_desc *read = xdp_ring_descriptor(ring, ring->next++);
        const struct xdp_desc descriptor = *read; /* once: what is checked is what is used */
        if (!xdp_descriptor_is_valid(&descriptor, 0, queue->receive.frames)) {
            __atomic_fetch_add(&socket->invalid, 1, __ATOMIC_RELAXED);
            continue;
        }
        packets[taken++] =
            (struct xdp_received){queue->memory + descriptor.addr, descriptor.len, descriptor.addr};
    }
    xdp_ring_consume(ring);
    pthread_mutex_unlock(&socket->lock);
    return taken;
}

void xdp_socket_release(struct xdp_socket *socket, const uint64_t *frames, uint32_t count)
{
    struct xdp_queue *queue = socket->queue;
    struct receive_side *side = &queue->receive;
    pthread_mutex_lock(&side->lock);
    count = (uint32_t)lh_min(count, xdp_ring_free(&side->fill)); /* fewer: one was received twice */
    for (uint32_t i = 0; i < count; i++)
        *xdp_ring_address(&side->fill, side->fill.next++) = frames[i] - frames[i] % XDP_FRAME_BYTES;
    xdp_ring_produce(&side->fill);
    bool wake = xdp_ring_needs_wakeup(&side->fill);
    pthread_mutex_unlock(&side->lock);
    if (wake) /* the driver waits for frames */
        (void)recvfrom(socket->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

/* ---- send ------------------------------------------------------------------------------------------ */

static void take_completed(struct send_side *side)
{
    for (uint32_t waiting = xdp_ring_waiting(&side->completed); waiting > 0; waiting--)
        free_frame(side, *xdp_ring_address(&side->completed, side->completed.next++));
    xdp_ring_consume(&side->completed);
}

/* Has the kernel send what waits in the ring. 0, or its errno. */
static int kick(const struct xdp_socket *socket)
{
    const struct xdp_ring *ring = &socket->transmit;
    for (uint32_t i = 0; i < SEND_CALLS_MAX && xdp_ring_needs_wakeup(ring); i++) {
        uint32_t room = xdp_ring_free(ring);
        if (sendto(socket->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0)
            return 0;
        if (errno != EAGAIN && errno != EINTR)
            return errno == EBUSY || errno == ENOBUFS ? 0 : errno;
        if (errno == EAGAIN && xdp_ring_free(ring) == room)
            return 0; /* no progress: its queue is full */
    }
    return 0;
}

uint32_t xdp_socket_send_begin(struct xdp_socket *socket, uint32_t wanted)
{
    struct send_side *side = &socket->queue->send;
    pthread_mutex_lock(&side->lock);
    side->added = 0;
    take_completed(side);
    if (side->free_count < wanted || xdp_ring_free(&socket->transmit) < wanted) {
        (void)kick(socket);
        take_completed(side);
    }
    uint64_t room = lh_min(side->free_count, xdp_ring_free(&socket->transmit));
    return (uint32_t)lh_min(room, wanted);
}

uint8_t *xdp_socket_send_frame(struct xdp_socket *socket)
{
    const struct send_side *side = &socket->queue->send;
    assert(side->free_count > 0);
    uint32_t frame = side->first + side->free_frames[side->free_count - 1];
    return socket->queue->memory + (size_t)frame * XDP_FRAME_BYTES;
}

void xdp_socket_send_add(struct xdp_socket *socket, uint32_t bytes)
{
    struct send_side *side = &socket->queue->send;
    struct xdp_ring *ring = &socket->transmit;
    assert(bytes <= XDP_FRAME_BYTES && side->free_count > 0 && xdp_ring_free(ring) > 0);
    uint32_t frame = side->free_frames[--side->free_count];
    side->in_flight[frame] = true;
    side->added++;
    *xdp_ring_descriptor(ring, ring->next++) =
        (struct xdp_desc){.addr = (uint64_t)(side->first + frame) * XDP_FRAME_BYTES, .len = bytes};
}

int xdp_socket_send_end(struct xdp_socket *socket)
{
    struct send_side *side = &socket->queue->send;
    int error = 0;
    if (side->added > 0) {
        xdp_ring_produce(&socket->transmit);
        error = kick(socket);
    }
    pthread_mutex_unlock(&side->lock);
    return error;
}
