/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probe_port.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/link_spec.h"
#include "base/min_max.h"
#include "launch/tcp.h"
#include "link/link_timeline.h"
#include "probe/probe_messages.h"

/* ---- port ------------------------------------------------------------------------------------------ */

#define IPV4_AND_UDP_BYTES 28u
#define IPV6_AND_UDP_BYTES 48u
/* What a link may hold: 400 Gbit/s of the largest packets for 100 ms, or 500,000 packets of any size. Pages
 * are allocated as they are used. */
#define HELD_BYTES   ((size_t)64 << 20)
#define BUFFER_BYTES (32 << 20) /* of a receiving socket: what a busy host may be late by */
#define RETRY_NS     (50 * LH_NS_PER_US)
/* A thread that sleeps wakes up some tens of microseconds late, which would be part of an emulated round
 * trip. While single packets are in flight it stays awake for the last bit. */
#define AWAKE_NS      (150 * LH_NS_PER_US)
#define AWAKE_PACKETS 4u

/* ---- opening ----------------------------------------------------------------------------------------- */

/* An end of the TCP connection, in its own family (a dual-stack socket shows IPv4-mapped IPv6 addresses). */
static int end_of(int tcp_fd, bool peer, union port_address *address)
{
    char name[TCP_NAME_MAX], host[TCP_NAME_MAX], port[8];
    int error = peer ? tcp_peer_name(tcp_fd, name, sizeof name) : tcp_local_name(tcp_fd, name, sizeof name);
    if (error == 0)
        error = tcp_split(name, host, sizeof host, port, sizeof port);
    if (error != 0)
        return error;
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV},
                    *found;
    int failed = getaddrinfo(host, port, &hints, &found);
    if (failed != 0)
        return lh_fail(LH_EADDR, "%s: %s", name, gai_strerror(failed));
    assert(found->ai_addrlen <= sizeof *address);
    memset(address, 0, sizeof *address);
    memcpy(address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

static void set_port(union port_address *address, uint16_t port)
{
    if (address->any.sa_family == AF_INET6)
        address->six.sin6_port = htons(port);
    else
        address->four.sin_port = htons(port);
}

static uint16_t port_of(const union port_address *address)
{
    return ntohs(address->any.sa_family == AF_INET6 ? address->six.sin6_port : address->four.sin_port);
}

static socklen_t size_of(const union port_address *address)
{
    return address->any.sa_family == AF_INET6 ? sizeof address->six : sizeof address->four;
}

static bool same_host(const union port_address *a, const union port_address *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    if (a->any.sa_family == AF_INET6)
        return memcmp(&a->six.sin6_addr, &b->six.sin6_addr, sizeof a->six.sin6_addr) == 0;
    return a->four.sin_addr.s_addr == b->four.sin_addr.s_addr;
}

static void set_option(int fd, int level, int name, int value)
{
    setsockopt(fd, level, name, &value, sizeof value);
}

/* Never fragments, whatever ICMP says: an oversize packet is EMSGSIZE, or lost on the path. */
static int make_socket(bool ipv6, int *out)
{
    int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return lh_fail(LH_ESYSTEM, "socket: %s", strerror(errno));
    if (ipv6) {
        set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
        set_option(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
        set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    } else {
        set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    }
    set_option(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
    set_option(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES);
    set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES); /* where we may */
    *out = fd;
    return 0;
}

static int open_link(struct probe_port *port, const struct lh_link_spec *spec)
{
    port->emulating = !lh_link_is_none(spec);
    if (!port->emulating)
        return 0;
    port->link.spec = *spec;
    if (!ring_store_init(&port->held, HELD_BYTES))
        return lh_fail(LH_ENOMEM, "no memory for an emulated link");
    probe_port_start_round(port, 0);
    return 0;
}

static int open_ends(struct probe_port *port, int tcp_fd, union port_address *local)
{
    int error = end_of(tcp_fd, false, local);
    if (error == 0)
        error = end_of(tcp_fd, true, &port->peer);
    port->ipv6 = local->any.sa_family == AF_INET6;
    port->header_bytes = port->ipv6 ? IPV6_AND_UDP_BYTES : IPV4_AND_UDP_BYTES;
    return error;
}

int probe_port_open_client(struct probe_port *port, int tcp_fd, uint16_t udp_port, uint32_t flows,
                           const struct lh_link_spec *link)
{
    union port_address local;
    *port = (struct probe_port){.client = true};
    int error = open_ends(port, tcp_fd, &local);
    set_port(&local, 0);
    set_port(&port->peer, udp_port);
    for (uint32_t i = 0; i < flows && error == 0; i++) {
        error = make_socket(port->ipv6, &port->fds[i]);
        if (error != 0)
            break;
        port->flows++;
        if (bind(port->fds[i], &local.any, size_of(&local)) != 0 ||
            connect(port->fds[i], &port->peer.any, size_of(&port->peer)) != 0)
            error = lh_fail(LH_EADDR, "UDP to the server: %s", strerror(errno));
    }
    if (error == 0)
        error = open_link(port, link);
    if (error != 0)
        probe_port_close(port);
    return error;
}

int probe_port_open_server(struct probe_port *port, int tcp_fd, uint16_t *udp_port,
                           const struct lh_link_spec *link)
{
    union port_address local;
    *port = (struct probe_port){0};
    int error = open_ends(port, tcp_fd, &local);
    if (error == 0)
        error = make_socket(port->ipv6, &port->fds[0]);
    if (error != 0)
        return error;
    port->flows = 1;
    /* The number that is open for TCP is most likely open for UDP as well. */
    if (bind(port->fds[0], &local.any, size_of(&local)) != 0) {
        set_port(&local, 0);
        if (bind(port->fds[0], &local.any, size_of(&local)) != 0)
            error = lh_fail(LH_EADDR, "cannot bind a UDP socket: %s", strerror(errno));
    }
    socklen_t bytes = sizeof local;
    if (error == 0 && getsockname(port->fds[0], &local.any, &bytes) != 0)
        error = lh_fail(LH_ESYSTEM, "getsockname: %s", strerror(errno));
    if (error == 0)
        error = open_link(port, link);
    if (error != 0)
        probe_port_close(port);
    else
        *udp_port = port_of(&local);
    return error;
}

void probe_port_close(struct probe_port *port)
{
    for (uint32_t i = 0; i < port->flows; i++)
        close(port->fds[i]);
    port->flows = 0;
    timeline_clear(&port->in_flight);
    ring_store_free(&port->held);
}

/* ---- the emulated link ------------------------------------------------------------------------------- */

void probe_port_start_round(struct probe_port *port, uint32_t round)
{
    struct lh_link_spec spec = port->link.spec;
    lh_time busy_until_ns = port->link.bottleneck_free_ns;
    if (!port->emulating)
        return;
    lh_link_state_init(&port->link, &spec, (uint64_t)round << 1 | !port->client);
    port->link.bottleneck_free_ns = busy_until_ns; /* what waits there still has to pass */
}

static bool put_in_flight(struct probe_port *port, const struct port_packet *packet,
                          const struct lh_link_fate *fate)
{
    struct port_packet *held = ring_store_take(&port->held, sizeof *held);
    assert(held != NULL); /* the caller asked */
    *held = *packet;
    if (!timeline_push(&port->in_flight, fate->arrive_ns[0], port->pushed++, held)) {
        ring_store_give_back(&port->held, held);
        return false;
    }
    if (fate->copies > 1 && timeline_push(&port->in_flight, fate->arrive_ns[1], port->pushed++, held))
        ring_store_share(held);
    return true;
}

static bool send_over_link(struct probe_port *port, const struct port_packet *packet, lh_time now)
{
    if (!ring_store_fits(&port->held, sizeof *packet))
        return false;
    struct lh_link_fate fate = lh_link_decide(&port->link, now, port->header_bytes + packet->bytes);
    if (!fate.accepted)
        return false;
    if (!fate.dropped && !fate.corrupted)
        put_in_flight(port, packet, &fate);
    return true;
}

lh_time probe_port_ready_ns(const struct probe_port *port, lh_time now)
{
    lh_time ready_ns = port->emulating ? lh_link_ready_ns(&port->link, now) : now;
    return ready_ns > now ? ready_ns : now + RETRY_NS;
}

bool probe_port_is_empty(const struct probe_port *port)
{
    return port->out_count == 0 && timeline_count(&port->in_flight) == 0;
}

/* ---- sending ----------------------------------------------------------------------------------------- */

/* Gives the first packets that leave from the same socket to the kernel. How many it took; -1: errno. */
static int send_first(struct probe_port *port)
{
    static uint8_t fill[PROBE_UDP_PAYLOAD_MAX];
    struct mmsghdr messages[PORT_BATCH] = {0};
    struct iovec pieces[PORT_BATCH][2];
    uint32_t flow = port->out[0].flow, count = 0;
    for (; count < port->out_count && port->out[count].flow == flow; count++) {
        struct port_packet *packet = &port->out[count];
        pieces[count][0] = (struct iovec){packet->header, PROBE_HEADER_BYTES};
        pieces[count][1] = (struct iovec){fill, packet->bytes - PROBE_HEADER_BYTES};
        messages[count].msg_hdr = (struct msghdr){.msg_iov = pieces[count], .msg_iovlen = 2};
        if (port->client)
            continue;
        messages[count].msg_hdr.msg_name = &packet->to;
        messages[count].msg_hdr.msg_namelen = size_of(&packet->to);
    }
    return sendmmsg(port->fds[flow], messages, count, MSG_DONTWAIT);
}

static void forget_first(struct probe_port *port, uint32_t count)
{
    assert(count <= port->out_count);
    port->out_count -= count;
    memmove(port->out, port->out + count, port->out_count * sizeof port->out[0]);
}

/* A packet that cannot be sent is as lost as one that is lost further on; the reason is kept for the
 * report. */
static void lose_first(struct probe_port *port)
{
    if (errno == EMSGSIZE)
        port->too_long++;
    else
        port->send_error = errno;
    forget_first(port, 1);
}

static void flush(struct probe_port *port)
{
    bool again = false;           /* an error may be an old one, of an ICMP message about another packet */
    while (port->out_count > 0) { /* each round takes a packet off, or it is the second try of one */
        int sent = send_first(port);
        if (sent > 0) {
            forget_first(port, (uint32_t)sent);
            again = false;
        } else if (errno == EAGAIN || errno == ENOBUFS) {
            return;
        } else if (again) {
            lose_first(port);
            again = false;
        } else {
            again = true;
        }
    }
}

bool probe_port_send(struct probe_port *port, const struct port_packet *packet, lh_time now)
{
    assert(packet->flow < port->flows && packet->bytes >= PROBE_HEADER_BYTES);
    bool taken = true;
    if (port->emulating) {
        taken = send_over_link(port, packet, now);
    } else {
        if (port->out_count == PORT_BATCH)
            flush(port);
        taken = port->out_count < PORT_BATCH;
        if (taken)
            port->out[port->out_count++] = *packet;
    }
    port->pushed_back += !taken;
    return taken;
}

static lh_time wake_up_ns(const struct probe_port *port, lh_time now)
{
    lh_time due_ns = timeline_next_ns(&port->in_flight);
    if (due_ns == LH_TIME_NEVER || timeline_count(&port->in_flight) > AWAKE_PACKETS)
        return due_ns;
    return due_ns > now + AWAKE_NS ? due_ns - AWAKE_NS : now;
}

lh_time probe_port_pump(struct probe_port *port, lh_time now)
{
    struct port_packet *due;
    do { /* until nothing is due, or the kernel takes no more */
        flush(port);
        while (port->out_count < PORT_BATCH && (due = timeline_pop_due(&port->in_flight, now)) != NULL) {
            port->out[port->out_count++] = *due;
            ring_store_give_back(&port->held, due);
        }
    } while (port->out_count == PORT_BATCH && timeline_next_ns(&port->in_flight) <= now &&
             (flush(port), port->out_count < PORT_BATCH));
    flush(port);
    return port->out_count > 0 ? now + RETRY_NS : wake_up_ns(port, now);
}

/* ---- receiving --------------------------------------------------------------------------------------- */

/* The kernel stamps with the wall clock: how long ago that was, on ours. */
static lh_time arrival_ns(struct msghdr *message, lh_time now, const struct timespec *wall)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        struct timespec stamp;
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
            continue;
        memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
        int64_t ago_ns =
            (wall->tv_sec - stamp.tv_sec) * (int64_t)LH_NS_PER_S + wall->tv_nsec - stamp.tv_nsec;
        /* Somebody may set that clock. */
        if (ago_ns > 0 && ago_ns < (int64_t)LH_NS_PER_S)
            return now - (lh_time)ago_ns;
    }
    return now;
}

struct intake {
    struct mmsghdr messages[PORT_BATCH];
    struct iovec pieces[PORT_BATCH];
    uint8_t headers[PORT_BATCH][PROBE_HEADER_BYTES];
    union port_address from[PORT_BATCH];
    _Alignas(struct cmsghdr) uint8_t control[PORT_BATCH][CMSG_SPACE(sizeof(struct timespec))];
};

static void prepare(struct intake *intake)
{
    for (uint32_t i = 0; i < PORT_BATCH; i++) {
        intake->pieces[i] = (struct iovec){intake->headers[i], PROBE_HEADER_BYTES};
        intake->messages[i].msg_hdr = (struct msghdr){.msg_name = &intake->from[i],
                                                      .msg_namelen = sizeof intake->from[i],
                                                      .msg_iov = &intake->pieces[i],
                                                      .msg_iovlen = 1,
                                                      .msg_control = intake->control[i],
                                                      .msg_controllen = sizeof intake->control[i]};
    }
}

uint32_t probe_port_receive(struct probe_port *port, uint64_t token, struct port_arrival *arrivals,
                            uint32_t *seen)
{
    struct intake intake;
    uint32_t count = 0;
    *seen = 0;
    for (uint32_t flow = 0; flow < port->flows && *seen == 0; flow++) {
        prepare(&intake);
        /* MSG_TRUNC: the length of the whole packet, although only its header is read. */
        int got = recvmmsg(port->fds[flow], intake.messages, PORT_BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            port->send_error = errno; /* what ICMP reported about a packet of ours */
        struct timespec wall;
        clock_gettime(CLOCK_REALTIME, &wall);
        lh_time now = tcp_now();
        for (int i = 0; i < got; i++) {
            struct port_arrival *arrival = &arrivals[count];
            ++*seen;
            arrival->from = intake.from[i];
            arrival->at_ns = arrival_ns(&intake.messages[i].msg_hdr, now, &wall);
            count += probe_packet_decode(intake.headers[i], intake.messages[i].msg_len, &arrival->packet) &&
                     arrival->packet.token == token && same_host(&arrival->from, &port->peer);
        }
    }
    return count;
}

bool probe_port_wait(const struct probe_port *port, int other_fd, lh_time until_ns)
{
    struct pollfd fds[LH_PROBE_FLOWS_MAX + 1] = {{.fd = other_fd, .events = POLLIN}};
    for (uint32_t i = 0; i < port->flows; i++)
        fds[i + 1] = (struct pollfd){.fd = port->fds[i], .events = POLLIN};
    lh_time now = tcp_now();
    lh_time span = lh_earlier(until_ns > now ? until_ns - now : 0, LH_NS_PER_S);
    struct timespec timeout = {(time_t)(span / LH_NS_PER_S), (long)(span % LH_NS_PER_S)};
    int ready = ppoll(fds, port->flows + 1, &timeout, NULL);
    return ready > 0 && fds[0].revents != 0;
}

/* ---- host drops ------------------------------------------------------------------------------------ */

uint64_t host_drops_of_stack(void)
{
    FILE *file = fopen("/proc/net/softnet_stat", "re");
    uint64_t sum = 0;
    char line[512];
    unsigned dropped;
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) /* a line a CPU */
        if (sscanf(line, "%*x %x", &dropped) == 1)
            sum += dropped;
    fclose(file);
    return sum;
}
