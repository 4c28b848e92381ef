/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/xdp/xdp_fabric.h"

#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/min_max.h"
#include "fabric/udp/udp_address.h"
#include "fabric/udp/udp_bypass.h"
#include "fabric/xdp/xdp_frame.h"
#include "fabric/xdp/xdp_program.h"
#include "fabric/xdp/xdp_route.h"
#include "fabric/xdp/xdp_socket.h"
#include "wire/qp_info.h"
#include "wire/roce_packet.h"

/* Timers: a next hop's ask_at (udp_bypass.h): the kernel is asked for route and neighbour again after
 * HOP_KNOWN_NS, and after HOP_UNKNOWN_NS where it knew none; the bypass's check_at: whether the interface
 * still exists, at most once in CHECK_NS. */
#define HOP_KNOWN_NS   LH_NS_PER_S
#define HOP_UNKNOWN_NS (10 * LH_NS_PER_MS)
#define CHECK_NS       (100 * LH_NS_PER_MS)

/* ---- device ------------------------------------------------------------------------------------------ */

/*
 * An interface with its XDP program and queues, which all fabrics of the process on it share.
 *
 * An interface has one XDP program, and a receive queue one memory of frames. The first fabric opens them,
 * the last one closes them; each has sockets of its own, and a place in the program's map of them.
 */

/* More queues than that are the kernel's: what comes there takes the UDP sockets. */
#define XDP_QUEUES_MAX 16u

struct xdp_device {
    struct xdp_device *next;
    pid_t process; /* a child of fork() has no part in it */
    struct xdp_interface interface;
    struct xdp_program program;
    uint32_t queues;
    uint32_t receive_frames; /* of all queues */
    struct xdp_queue *queue[XDP_QUEUES_MAX];
    uint64_t places; /* bit i: place i is taken */
};

/* Receive frames of all queues together, and the minimum of one. */
#define RECEIVE_FRAMES_ALL 8192u
#define RECEIVE_FRAMES_MIN 1024u

static_assert(XDP_PLACES_MAX == 64, "a bit each");

/* Those of this process. */
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct xdp_device *devices;

static uint32_t frames_per_queue(uint32_t queues)
{
    uint32_t frames = RECEIVE_FRAMES_ALL;
    while (frames * queues > RECEIVE_FRAMES_ALL && frames > RECEIVE_FRAMES_MIN)
        frames /= 2;
    return frames;
}

static void free_device(struct xdp_device *device)
{
    xdp_program_close(&device->program);
    for (uint32_t i = 0; i < device->queues; i++)
        xdp_queue_close(device->queue[i]);
    free(device);
}

static int add_queue(struct xdp_device *device, uint32_t queues)
{
    const struct xdp_queue_attr attr = {
        .interface = device->interface.name,
        .ifindex = device->interface.index,
        .queue = device->queues,
        .receive_frames = frames_per_queue(queues),
        .copy = !device->program.native,
    };
    int error = xdp_queue_open(&attr, &device->queue[device->queues]);
    if (error != 0)
        return error;
    device->queues++; /* from here on free_device ends it */
    device->receive_frames += attr.receive_frames;
    return 0;
}

static int make_device(const struct xdp_interface *interface, struct xdp_device **made)
{
    const uint32_t queues = (uint32_t)lh_min(interface->queues, XDP_QUEUES_MAX);
    struct xdp_device *device = calloc(1, sizeof *device);
    if (device == NULL)
        return lh_fail(LH_ENOMEM, "device xdp:%s: no memory", interface->name);
    device->process = getpid();
    device->interface = *interface;
    int error = xdp_program_attach(interface->name, interface->index, queues, &device->program);
    while (error == 0 && device->queues < queues)
        error = add_queue(device, queues);
    if (error != 0) {
        free_device(device);
        return error;
    }
    *made = device;
    return 0;
}

/* Interfaces of other network namespaces may have the same name and index. What a child inherited by fork()
 * stays its parent's: they would both write the rings. */
static struct xdp_device *find_device(const struct xdp_interface *interface)
{
    struct xdp_device *device = devices;
    while (device != NULL && (device->process != getpid() || device->interface.index != interface->index ||
                              memcmp(device->interface.mac, interface->mac, sizeof interface->mac) != 0))
        device = device->next;
    return device;
}

/* Opens the interface, or shares what this process has open of it; takes a place. -LH_EDEVICE, -LH_ESYSTEM,
 * -LH_ENOMEM: the message names cause and remedy. */
static int open_device(const struct xdp_interface *interface, struct xdp_device **opened, uint32_t *place)
{
    int error = 0;
    pthread_mutex_lock(&devices_lock);
    struct xdp_device *device = find_device(interface);
    if (device == NULL && (error = make_device(interface, &device)) == 0) {
        device->next = devices;
        devices = device;
    }
    if (error == 0 && device->places == UINT64_MAX)
        error = lh_fail(LH_EDEVICE, "device xdp:%s: limit of %u contexts reached (use udp:ADDRESS)",
                        interface->name, XDP_PLACES_MAX);
    if (error == 0) {
        *place = (uint32_t)__builtin_ctzll(~device->places);
        device->places |= (uint64_t)1 << *place;
        *opened = device;
    }
    pthread_mutex_unlock(&devices_lock);
    return error;
}

/* Leaves the place, whose ports and sockets are closed. */
static void close_device(struct xdp_device *device, uint32_t place)
{
    pthread_mutex_lock(&devices_lock);
    assert((device->places >> place & 1) == 1);
    device->places &= ~((uint64_t)1 << place);
    if (device->places == 0) {
        struct xdp_device **at = &devices;
        while (*at != device) /* it is one of them */
            at = &(*at)->next;
        *at = device->next;
        free_device(device);
    }
    pthread_mutex_unlock(&devices_lock);
}

/* ---- bypass ------------------------------------------------------------------------------------------ */

/* Where the kernel copies, a burst by a UDP socket (GSO) takes less of its time than packets by AF_XDP, which
 * it sends one by one: without a choice of the user, AF_XDP sends only where it is zero-copy. */
enum xdp_send {
    SEND_BY_EITHER,
    SEND_BY_XDP,
    SEND_BY_UDP,
};

struct xdp_bypass {
    struct udp_bypass base;
    bool sends;
    union udp_address local; /* port 0 */
    struct xdp_device *device;
    uint32_t place;
    uint32_t sockets; /* one a queue */
    struct xdp_socket *socket[XDP_QUEUES_MAX];
    uint32_t ports; /* under the fabric's lock */
    uint16_t port[QP_INFO_CHANNELS_MAX];
    _Atomic uint32_t next_queue; /* where a reader begins */
    _Atomic lh_time check_at;
    _Atomic bool gone;
    char warning[192];
};

static struct xdp_bypass *xdp_of(struct udp_bypass *bypass)
{
    return (struct xdp_bypass *)bypass;
}

static lh_time xdp_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (lh_time)time.tv_sec * LH_NS_PER_S + (lh_time)time.tv_nsec;
}

/* ---- ports and next hops ----------------------------------------------------------------------------- */

static int xdp_open_port(struct udp_bypass *base, uint16_t port)
{
    struct xdp_bypass *bypass = xdp_of(base);
    union udp_address address = bypass->local;
    assert(bypass->ports < QP_INFO_CHANNELS_MAX);
    udp_address_set_port(&address, port);
    int error = xdp_program_open_port(&bypass->device->program, &address, bypass->place);
    if (error == 0)
        bypass->port[bypass->ports++] = port;
    return error;
}

/* What goes by a socket until the neighbour is known makes the kernel ask for it. */
static bool xdp_reaches(struct udp_bypass *base, const union udp_address *to, struct udp_next_hop *hop)
{
    const struct xdp_bypass *bypass = xdp_of(base);
    if (!bypass->sends)
        return false;
    lh_time now = xdp_now();
    if (now < hop->ask_at && udp_address_same_host(to, &hop->to))
        return hop->reached;
    hop->to = *to;
    hop->reached = xdp_route_find(bypass->device->interface.index, &bypass->local, to, hop->mac);
    hop->ask_at = now + (hop->reached ? HOP_KNOWN_NS : HOP_UNKNOWN_NS);
    return hop->reached;
}

/* ---- sending ----------------------------------------------------------------------------------------- */

static uint32_t message_bytes(const struct msghdr *message)
{
    uint32_t bytes = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++) /* a batch's pieces */
        bytes += (uint32_t)message->msg_iov[i].iov_len;
    return bytes;
}

static uint32_t datagrams_of(const struct udp_bypass_batch *batch, uint32_t index)
{
    uint32_t bytes = message_bytes(&batch->messages[index].msg_hdr);
    return (bytes + batch->segment_bytes[index] - 1) / batch->segment_bytes[index];
}

static void send_message(struct xdp_socket *socket, const struct xdp_flow *flow,
                         const struct udp_bypass_batch *batch, uint32_t index, uint32_t datagrams)
{
    const struct msghdr *message = &batch->messages[index].msg_hdr;
    assert(flow->header_bytes + batch->segment_bytes[index] <= XDP_FRAME_BYTES); /* payload_max */
    struct xdp_gather gather = {.pieces = message->msg_iov, .count = message->msg_iovlen};
    for (uint32_t i = 0; i < datagrams; i++) {
        uint8_t *frame = xdp_socket_send_frame(socket);
        uint32_t bytes = xdp_gather_copy(&gather, frame + flow->header_bytes, batch->segment_bytes[index]);
        xdp_socket_send_add(socket, xdp_frame_finish(flow, frame, bytes, (uint16_t)i));
    }
}

static int xdp_send(struct udp_bypass *base, const struct udp_next_hop *hop,
                    const struct udp_bypass_batch *batch)
{
    struct xdp_bypass *bypass = xdp_of(base);
    struct xdp_socket *socket = bypass->socket[batch->queue % bypass->sockets];
    union udp_address source = bypass->local;
    struct xdp_flow flow;
    uint32_t wanted = 0, taken = 0;
    udp_address_set_port(&source, batch->source_port);
    xdp_flow_make(&flow, bypass->device->interface.mac, hop->mac, &source, &hop->to, batch->ecn);
    for (uint32_t i = 0; i < batch->count; i++)
        wanted += datagrams_of(batch, i);
    uint32_t room = xdp_socket_send_begin(socket, wanted);
    for (; taken < batch->count; taken++) {
        uint32_t datagrams = datagrams_of(batch, taken);
        if (datagrams > room)
            break;
        room -= datagrams;
        send_message(socket, &flow, batch, taken, datagrams);
    }
    int error = xdp_socket_send_end(socket);
    if (error == ENXIO || taken == 0) { /* the interface is gone; the rings are full */
        errno = error == ENXIO ? error : EAGAIN;
        return -1;
    }
    return (int)taken; /* where it is only down, what is in the ring leaves later */
}

/* ---- receiving --------------------------------------------------------------------------------------- */

/* Asks now and then. */
static bool is_gone(struct xdp_bypass *bypass)
{
    lh_time now = xdp_now();
    if (now >= atomic_load_explicit(&bypass->check_at, memory_order_relaxed)) {
        atomic_store_explicit(&bypass->check_at, now + CHECK_NS, memory_order_relaxed);
        if (xdp_socket_is_gone(bypass->socket[0]))
            atomic_store_explicit(&bypass->gone, true, memory_order_relaxed);
    }
    return atomic_load_explicit(&bypass->gone, memory_order_relaxed);
}

/* The frames of the queue that are no datagrams to the address are given back. */
static uint32_t receive_queue(struct xdp_bypass *bypass, uint32_t queue, struct udp_bypass_packet *packets,
                              uint32_t count)
{
    struct xdp_received received[FABRIC_BATCH_MAX];
    uint64_t unwanted[FABRIC_BATCH_MAX];
    struct xdp_datagram datagram;
    uint32_t taken = 0, unwanted_count = 0;
    assert(count <= FABRIC_BATCH_MAX);
    uint32_t got = xdp_socket_receive(bypass->socket[queue], received, count);
    for (uint32_t i = 0; i < got; i++) {
        if (!xdp_frame_parse(received[i].data, received[i].bytes, &datagram) ||
            !udp_address_same_host(&datagram.to, &bypass->local)) {
            unwanted[unwanted_count++] = received[i].frame;
            continue;
        }
        packets[taken++] = (struct udp_bypass_packet){
            .from = datagram.from,
            .data = datagram.payload,
            .bytes = datagram.bytes,
            .ip_id = datagram.ip_id,
            .port = udp_address_port(&datagram.to),
            .marked = datagram.marked,
            .frame = received[i].frame * XDP_QUEUES_MAX + queue,
        };
    }
    if (unwanted_count > 0)
        xdp_socket_release(bypass->socket[queue], unwanted, unwanted_count);
    return taken;
}

static int xdp_receive(struct udp_bypass *base, struct udp_bypass_packet *packets, uint32_t count)
{
    struct xdp_bypass *bypass = xdp_of(base);
    uint32_t taken = 0;
    uint32_t first = atomic_fetch_add_explicit(&bypass->next_queue, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < bypass->sockets && taken < count; i++)
        taken += receive_queue(bypass, (first + i) % bypass->sockets, packets + taken, count - taken);
    if (taken > 0 || !is_gone(bypass))
        return (int)taken;
    return lh_fail(LH_EDEVICE, "device xdp:%s: the interface is gone", bypass->device->interface.name);
}

static void xdp_release(struct udp_bypass *base, const struct udp_bypass_packet *packets, uint32_t count)
{
    const struct xdp_bypass *bypass = xdp_of(base);
    uint64_t frames[FABRIC_BATCH_MAX];
    assert(count <= FABRIC_BATCH_MAX);
    for (uint32_t i = 0; i < count;) { /* each round gives back a run of one queue */
        const uint64_t queue = packets[i].frame % XDP_QUEUES_MAX;
        uint32_t run = 0;
        for (; i < count && packets[i].frame % XDP_QUEUES_MAX == queue; i++)
            frames[run++] = packets[i].frame / XDP_QUEUES_MAX;
        xdp_socket_release(bypass->socket[queue], frames, run);
    }
}

static uint32_t xdp_drops(struct udp_bypass *base)
{
    const struct xdp_bypass *bypass = xdp_of(base);
    uint32_t drops = 0;
    for (uint32_t i = 0; i < bypass->sockets; i++)
        drops += xdp_socket_drops(bypass->socket[i]);
    return drops;
}

static const char *xdp_warning(const struct udp_bypass *base)
{
    const struct xdp_bypass *bypass = (const struct xdp_bypass *)base;
    return bypass->warning[0] != '\0' ? bypass->warning : NULL;
}

/* ---- opening ----------------------------------------------------------------------------------------- */

static void xdp_close(struct udp_bypass *base)
{
    struct xdp_bypass *bypass = xdp_of(base);
    union udp_address address = bypass->local;
    for (uint32_t i = 0; i < bypass->ports; i++) {
        udp_address_set_port(&address, bypass->port[i]);
        xdp_program_close_port(&bypass->device->program, &address);
    }
    for (uint32_t i = 0; i < bypass->sockets; i++)
        xdp_socket_close(bypass->socket[i]);
    if (bypass->device != NULL)
        close_device(bypass->device, bypass->place);
    if (bypass->base.fd >= 0)
        close(bypass->base.fd);
    free(bypass);
}

static const struct udp_bypass_ops xdp_bypass_ops = {
    .open_port = xdp_open_port,
    .reaches = xdp_reaches,
    .send = xdp_send,
    .receive = xdp_receive,
    .release = xdp_release,
    .drops = xdp_drops,
    .warning = xdp_warning,
    .close = xdp_close,
};

static int add_socket(struct xdp_bypass *bypass)
{
    const uint32_t queue = bypass->sockets;
    struct epoll_event event = {.events = EPOLLIN};
    int error = xdp_socket_open(bypass->device->queue[queue], &bypass->socket[queue]);
    if (error != 0)
        return error;
    bypass->sockets++; /* from here on xdp_close ends it */
    int fd = xdp_socket_fd(bypass->socket[queue]);
    if (epoll_ctl(bypass->base.fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return lh_fail(LH_ESYSTEM, "cannot watch an AF_XDP socket: %s", strerror(errno));
    return xdp_program_set_socket(&bypass->device->program, bypass->place, queue, fd);
}

static void warn_of_generic_mode(struct xdp_bypass *bypass)
{
    if (!bypass->device->program.native)
        snprintf(
            bypass->warning, sizeof bypass->warning,
            "device xdp:%s: the driver has no native XDP for this MTU and these queues; generic mode is "
            "slower",
            bypass->device->interface.name);
}

/* Of a packet that fits a frame. */
static uint32_t payload_max_of(const union udp_address *local)
{
    const uint32_t overhead =
        udp_address_is_ipv4(local) ? ROCE_WRITE_IMM_OVERHEAD_V4 : ROCE_WRITE_IMM_OVERHEAD_V6;
    return roce_payload_for(XDP_PACKET_BYTES_MAX - XDP_ETHERNET_BYTES, overhead);
}

static int open_bypass(const struct xdp_interface *interface, const union udp_address *local,
                       enum xdp_send send, struct xdp_bypass **made)
{
    struct xdp_bypass *bypass = calloc(1, sizeof *bypass);
    if (bypass == NULL)
        return lh_fail(LH_ENOMEM, "no memory for a fabric");
    bypass->base.ops = &xdp_bypass_ops;
    bypass->base.payload_max = payload_max_of(local);
    bypass->local = *local;
    bypass->base.fd = epoll_create1(EPOLL_CLOEXEC);
    int error = bypass->base.fd < 0 ? lh_fail(LH_ESYSTEM, "cannot make an epoll set: %s", strerror(errno))
                                    : open_device(interface, &bypass->device, &bypass->place);
    while (error == 0 && bypass->sockets < bypass->device->queues)
        error = add_socket(bypass);
    if (error != 0) {
        xdp_close(&bypass->base);
        return error;
    }
    bypass->base.receive_packets = bypass->device->receive_frames;
    bypass->sends =
        send == SEND_BY_XDP || (send == SEND_BY_EITHER && xdp_queue_is_zero_copy(bypass->device->queue[0]));
    warn_of_generic_mode(bypass);
    *made = bypass;
    return 0;
}

/* ---- device names ------------------------------------------------------------------------------------ */

#ifndef AF_XDP
#define AF_XDP 44
#endif

/* How good an address is as a default: IPv4, then IPv6, then link-local. 0: it is none. */
static int rank_of(const struct ifaddrs *entry)
{
    if (entry->ifa_addr == NULL)
        return 0;
    if (entry->ifa_addr->sa_family == AF_INET)
        return 3;
    if (entry->ifa_addr->sa_family != AF_INET6)
        return 0;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)entry->ifa_addr;
    return IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) ? 1 : 2;
}

static void copy_address(const struct ifaddrs *entry, union udp_address *address)
{
    *address = (union udp_address){0};
    if (entry->ifa_addr->sa_family == AF_INET)
        memcpy(&address->v4, entry->ifa_addr, sizeof address->v4);
    else
        memcpy(&address->v6, entry->ifa_addr, sizeof address->v6);
    udp_address_set_port(address, 0);
}

/* The address of the interface that is `wanted`, or the best one; NULL: any. */
static int find_address(const char *interface, const union udp_address *wanted, union udp_address *found)
{
    struct ifaddrs *all;
    union udp_address address;
    int best = 0;
    if (getifaddrs(&all) != 0)
        return lh_fail(LH_ESYSTEM, "the addresses of this machine cannot be read: %s", strerror(errno));
    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
        int rank = rank_of(entry);
        if (rank <= best || strcmp(entry->ifa_name, interface) != 0)
            continue;
        copy_address(entry, &address);
        if (wanted != NULL && !udp_address_same_host(&address, wanted))
            continue;
        best = rank;
        *found = address;
    }
    freeifaddrs(all);
    if (best > 0)
        return 0;
    if (wanted == NULL)
        return lh_fail(LH_EADDR, "device xdp:%s: the interface has no IP address (add one)", interface);
    char text[UDP_ADDRESS_TEXT_MAX];
    return lh_fail(LH_EADDR,
                   "device xdp:%s/%s: the interface has no such address (see \"longhaul devices\")",
                   interface, udp_address_format(wanted, text));
}

/* What a device name asks for. */
struct xdp_request {
    char interface[64];
    bool has_address;
    union udp_address address;
    enum xdp_send send;
};

static int parse_option(const char *option, struct xdp_request *request)
{
    if (strcmp(option, "send=xdp") == 0)
        request->send = SEND_BY_XDP;
    else if (strcmp(option, "send=udp") == 0)
        request->send = SEND_BY_UDP;
    else if (strchr(option, '=') != NULL)
        return lh_fail(LH_EDEVICE, "device xdp:%s/%s: unknown option (use send=xdp or send=udp)",
                       request->interface, option);
    else {
        request->has_address = true;
        return udp_address_parse(option, &request->address);
    }
    return 0;
}

/* "eth0", "eth0/192.0.2.7", "eth0/send=xdp", "eth0/192.0.2.7/send=xdp". */
static int parse_device(const char *text, struct xdp_request *request)
{
    const char *slash = strchrnul(text, '/');
    *request = (struct xdp_request){.send = SEND_BY_EITHER};
    snprintf(request->interface, sizeof request->interface, "%.*s",
             (int)lh_min((uint64_t)(slash - text), sizeof request->interface), text);
    int error = 0;
    while (error == 0 && *slash == '/') { /* each round passes an option */
        char option[UDP_ADDRESS_TEXT_MAX];
        const char *start = slash + 1;
        slash = strchrnul(start, '/');
        snprintf(option, sizeof option, "%.*s", (int)lh_min((uint64_t)(slash - start), sizeof option),
                 start);
        error = parse_option(option, request);
    }
    return error;
}

static int open_xdp(const struct fabric_attr *attr, struct fabric **made)
{
    struct xdp_interface interface;
    union udp_address local;
    struct xdp_request request;
    struct xdp_bypass *bypass = NULL;
    int error = parse_device(attr->address, &request);
    if (error == 0)
        error = xdp_interface_find(request.interface, &interface);
    if (error == 0)
        error = find_address(request.interface, request.has_address ? &request.address : NULL, &local);
    if (error == 0)
        error = open_bypass(&interface, &local, request.send, &bypass);
    if (error != 0)
        return error;
    error = udp_fabric_open(&local, attr->receive_buffer_bytes, &bypass->base, made);
    if (error != 0)
        xdp_close(&bypass->base);
    return error;
}

/* ---- device list ------------------------------------------------------------------------------------- */

static bool has_capability(const struct __user_cap_data_struct *sets, uint32_t capability)
{
    return (sets[capability / 32].effective >> capability % 32 & 1) != 0;
}

/* Why this process cannot open any; NULL: it can. */
static const char *unusable_reason(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
    if (syscall(SYS_capget, &header, sets) != 0 || !has_capability(sets, CAP_NET_RAW) ||
        !has_capability(sets, CAP_NET_ADMIN) ||
        !(has_capability(sets, CAP_BPF) || has_capability(sets, CAP_SYS_ADMIN)))
        return "AF_XDP needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF (run as root, or use udp:ADDRESS)";
    int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return "kernel without AF_XDP (use udp:ADDRESS)";
    close(fd);
    return NULL;
}

static void add_device(struct fabric_device_list *list, const struct xdp_interface *interface,
                       const union udp_address *address)
{
    struct lh_device *device = fabric_device_add(list, "xdp");
    if (device == NULL)
        return;
    udp_device_describe(device, interface->name, address);
    device->mtu_bytes = (uint32_t)lh_min(device->mtu_bytes, payload_max_of(address));
    snprintf(device->name, sizeof device->name, "xdp:%s", interface->name);
}

/* One for each Ethernet interface with an address, as it is opened by default. */
static int xdp_devices(struct fabric_device_list *list)
{
    struct if_nameindex *all = if_nameindex();
    const char *reason = unusable_reason();
    if (all == NULL)
        return lh_fail(LH_ESYSTEM, "the interfaces of this machine cannot be read: %s", strerror(errno));
    for (const struct if_nameindex *entry = all; reason == NULL && entry->if_index != 0; entry++) {
        struct xdp_interface interface;
        union udp_address address;
        if (xdp_interface_find(entry->if_name, &interface) == 0 && interface.is_up &&
            find_address(entry->if_name, NULL, &address) == 0)
            add_device(list, &interface, &address);
    }
    if_freenameindex(all);
    struct lh_device *device = reason != NULL ? fabric_device_add(list, "xdp") : NULL;
    if (device != NULL)
        snprintf(device->trouble, sizeof device->trouble, "%s", reason);
    return 0;
}

const struct fabric_ops fabric_xdp_ops = {
    .name = "xdp",
    .devices = xdp_devices,
    .open = open_xdp,
};
