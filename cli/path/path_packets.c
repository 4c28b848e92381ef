/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/path/path_packets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- packet ---------------------------------------------------------------------------------------- */

enum { IPV4_BYTES = 20, IPV6_BYTES = 40, PORT_BYTES = 4 };

static uint16_t read16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static bool read_ipv4(const uint8_t *packet, size_t bytes, struct path_packet_view *view)
{
    size_t header = (packet[0] & 15u) * 4;
    if (bytes < IPV4_BYTES || header < IPV4_BYTES || header > bytes)
        return false;
    bool first = (read16(packet + 6) & 0x1FFF) == 0;
    view->ecn = packet[1] & 3;
    view->protocol = first ? packet[9] : 0;
    view->multicast = packet[16] >= 224;
    view->from_host = packet[15];
    view->to_host = packet[19];
    view->payload = (uint16_t)header;
    return true;
}

static bool read_ipv6(const uint8_t *packet, size_t bytes, struct path_packet_view *view)
{
    if (bytes < IPV6_BYTES)
        return false;
    view->ecn = packet[1] >> 4 & 3;
    view->protocol = packet[6];
    view->multicast = packet[24] == 0xFF;
    view->from_host = packet[23];
    view->to_host = packet[39];
    view->payload = IPV6_BYTES;
    return true;
}

bool path_packet_read(const uint8_t *packet, size_t bytes, struct path_packet_view *view)
{
    *view = (struct path_packet_view){.version = bytes ? packet[0] >> 4 : 0};
    bool whole = (view->version == 4 && read_ipv4(packet, bytes, view)) ||
                 (view->version == 6 && read_ipv6(packet, bytes, view));
    if (whole && (view->protocol == IPPROTO_UDP || view->protocol == IPPROTO_TCP) &&
        bytes >= (size_t)view->payload + PORT_BYTES) {
        view->from_port = read16(packet + view->payload);
        view->to_port = read16(packet + view->payload + 2);
    }
    return whole;
}

static void path_checksum_change(uint8_t *checksum, uint16_t before, uint16_t after);

void path_packet_set_ecn(uint8_t *packet, const struct path_packet_view *view, uint8_t ecn)
{
    if (view->version == 6) {
        packet[1] = (uint8_t)((packet[1] & 0xCF) | ecn << 4);
        return;
    }
    uint16_t before = read16(packet);
    packet[1] = (uint8_t)((packet[1] & 0xFC) | ecn);
    path_checksum_change(packet + 10, before, read16(packet));
}

/* Corrects an Internet checksum for a 16-bit word of what it covers that has changed (RFC 1624). */
static void path_checksum_change(uint8_t *checksum, uint16_t before, uint16_t after)
{
    /* HC' = ~(~HC + ~m + m') */
    uint32_t sum = (uint32_t)(uint16_t)~read16(checksum) + (uint16_t)~before + after;
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16);
    checksum[0] = (uint8_t)(~sum >> 8);
    checksum[1] = (uint8_t)~sum;
}

bool path_filter_drops(const struct path_filter *filter, const struct path_packet_view *view, size_t bytes)
{
    if (filter->above_bytes && bytes > filter->above_bytes)
        return true;
    if (!filter->udp || view->protocol != IPPROTO_UDP)
        return false;
    return !filter->but_port || (view->from_port != filter->but_port && view->to_port != filter->but_port);
}

/* ---- nat ------------------------------------------------------------------------------------------- */

#define PATH_NAT_HOST 254 /* 10.99.0.254 */

enum {
    IPV4_CHECKSUM = 10,
    IPV4_FROM_HOST = 15, /* last bytes of the addresses */
    IPV4_TO_HOST = 19,
    FROM_PORT = 0, /* after the IP header */
    TO_PORT = 2,
    UDP_CHECKSUM = 6,
    TCP_CHECKSUM = 16,
};

/* Both checksums hold the address. The host is the low byte of a 16-bit word of it. */
static void rewrite(uint8_t *packet, const struct path_packet_view *view, unsigned host_at, uint8_t host,
                    unsigned port_at, uint16_t port)
{
    uint8_t *payload = packet + view->payload;
    uint8_t *sum = payload + (view->protocol == IPPROTO_UDP ? UDP_CHECKSUM : TCP_CHECKSUM);
    uint16_t host_before = read16(packet + host_at - 1), port_before = read16(payload + port_at);
    packet[host_at] = host;
    payload[port_at] = (uint8_t)(port >> 8);
    payload[port_at + 1] = (uint8_t)port;
    path_checksum_change(packet + IPV4_CHECKSUM, host_before, read16(packet + host_at - 1));
    /* UDP without a checksum stays so. */
    if (view->protocol == IPPROTO_UDP && !read16(sum))
        return;
    path_checksum_change(sum, host_before, read16(packet + host_at - 1));
    path_checksum_change(sum, port_before, port);
    if (view->protocol == IPPROTO_UDP && !read16(sum))
        sum[0] = sum[1] = 0xFF;
}

static bool passes(const struct path_packet_view *view, size_t bytes)
{
    size_t payload = bytes - view->payload;
    return (view->protocol == IPPROTO_UDP && payload >= UDP_CHECKSUM + 2) ||
           (view->protocol == IPPROTO_TCP && payload >= TCP_CHECKSUM + 2);
}

static bool inside_is(const struct path_nat_flow *flow, const struct path_packet_view *view)
{
    return flow->protocol == view->protocol && flow->host == view->from_host &&
           flow->port == view->from_port;
}

static const struct path_nat_flow *find_or_add(struct path_nat *nat, const struct path_packet_view *view)
{
    uint16_t public_port = 0;
    for (unsigned i = 0; i < nat->flows; i++) {
        const struct path_nat_flow *flow = &nat->flow[i];
        if (!inside_is(flow, view))
            continue;
        if (flow->far_host == view->to_host && flow->far_port == view->to_port)
            return flow;
        public_port = flow->public_port;
    }
    if (nat->flows == PATH_NAT_FLOWS)
        return NULL;
    if (!public_port)
        public_port = (uint16_t)(PATH_NAT_FIRST_PORT + nat->ports++);
    nat->flow[nat->flows] = (struct path_nat_flow){
        .protocol = view->protocol,
        .host = view->from_host,
        .far_host = view->to_host,
        .port = view->from_port,
        .far_port = view->to_port,
        .public_port = public_port,
    };
    return &nat->flow[nat->flows++];
}

bool path_nat_outbound(struct path_nat *nat, uint8_t *packet, size_t bytes, struct path_packet_view *view)
{
    if (view->version == 6)
        return true;
    const struct path_nat_flow *flow = passes(view, bytes) ? find_or_add(nat, view) : NULL;
    if (!flow)
        return false;
    rewrite(packet, view, IPV4_FROM_HOST, PATH_NAT_HOST, FROM_PORT, flow->public_port);
    view->from_host = PATH_NAT_HOST;
    view->from_port = flow->public_port;
    return true;
}

bool path_nat_inbound(const struct path_nat *nat, uint8_t *packet, size_t bytes,
                      struct path_packet_view *view)
{
    if (view->version == 6)
        return true;
    for (unsigned i = 0; passes(view, bytes) && view->to_host == PATH_NAT_HOST && i < nat->flows; i++) {
        const struct path_nat_flow *flow = &nat->flow[i];
        if (flow->protocol != view->protocol || flow->public_port != view->to_port ||
            flow->far_host != view->from_host || flow->far_port != view->from_port)
            continue;
        rewrite(packet, view, IPV4_TO_HOST, flow->host, TO_PORT, flow->port);
        view->to_host = flow->host;
        view->to_port = flow->port;
        return true;
    }
    return false;
}

/* ---- network --------------------------------------------------------------------------------------- */

#define PATH_DEVICE      "path0"
#define PATH_IPV4_PREFIX 24
#define PATH_IPV6_PREFIX 64

/* Packets that wait in the kernel for our next read: 64 MiB of those of 4 KiB. */
#define TUN_QUEUE_PACKETS 16384

/* What the kernel's TCP may hold: without that its own buffers, and not the path, would limit it. */
#define TCP_BUFFERS "4096 131072 268435456"

const char *const path_ipv4[PATH_ENDS] = {"10.99.0.1", "10.99.0.2"};
const char *const path_ipv6[PATH_ENDS] = {"fd99::1", "fd99::2"};

/* As the kernel has it; <linux/ipv6.h> does not go with <netinet/in.h>. */
struct ipv6_request {
    struct in6_addr address;
    uint32_t prefix;
    int device;
};

static bool write_file(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool done = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0)
        close(file);
    return done;
}

/* Root of a user namespace: allowed to have networks of one's own. */
static bool become_root(void)
{
    char map[64];
    snprintf(map, sizeof map, "0 %u 1", (unsigned)getuid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return false;
    write_file("/proc/self/setgroups", "deny");
    return write_file("/proc/self/uid_map", map);
}

/* A new device in the namespace that this thread is in; -1 and errno. */
static int open_tun(void)
{
    struct ifreq request = {.ifr_name = PATH_DEVICE, .ifr_flags = IFF_TUN | IFF_NO_PI};
    int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tun < 0)
        return -1;
    if (ioctl(tun, TUNSETIFF, &request) != 0 || ioctl(tun, TUNSETOFFLOAD, 0) != 0) {
        int error = errno;
        close(tun);
        errno = error;
        return -1;
    }
    return tun;
}

static void put_ipv4(struct sockaddr *out, const char *address)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    inet_pton(AF_INET, address, &in.sin_addr);
    memcpy(out, &in, sizeof in);
}

static bool set_up_ipv4(int fd, unsigned side, unsigned mtu)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    bool done = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    request = (struct ifreq){.ifr_name = PATH_DEVICE};
    put_ipv4(&request.ifr_addr, path_ipv4[side]);
    done = done && ioctl(fd, SIOCSIFADDR, &request) == 0;
    put_ipv4(&request.ifr_netmask, "255.255.255.0");
    done = done && ioctl(fd, SIOCSIFNETMASK, &request) == 0;
    request.ifr_mtu = (int)mtu;
    done = done && ioctl(fd, SIOCSIFMTU, &request) == 0;
    request.ifr_qlen = TUN_QUEUE_PACKETS;
    done = done && ioctl(fd, SIOCSIFTXQLEN, &request) == 0;
    request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_POINTOPOINT | IFF_NOARP;
    return done && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
}

/* A host without IPv6 has a path for IPv4. */
static bool set_up_ipv6(unsigned side)
{
    struct ipv6_request request = {.prefix = PATH_IPV6_PREFIX, .device = (int)if_nametoindex(PATH_DEVICE)};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET6, path_ipv6[side], &request.address);
    bool done = fd >= 0 && ioctl(fd, SIOCSIFADDR, &request) == 0;
    if (fd >= 0)
        close(fd);
    return done;
}

/* That each TCP connection starts from nothing, and is limited by the path. Where that may not be set,
 * it stays. */
static void set_up_tcp(void)
{
    write_file("/proc/sys/net/ipv4/tcp_no_metrics_save", "1");
    write_file("/proc/sys/net/ipv4/tcp_rmem", TCP_BUFFERS);
    write_file("/proc/sys/net/ipv4/tcp_wmem", TCP_BUFFERS);
}

/* In the new namespace of this thread. */
static const char *set_up(struct path_end *end, unsigned side, unsigned mtu)
{
    end->network = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (end->network < 0)
        return "/proc/thread-self/ns/net";
    end->tun = open_tun();
    if (end->tun < 0)
        return "/dev/net/tun";
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool done = fd >= 0 && set_up_ipv4(fd, side, mtu);
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    if (!done)
        return "setting up a TUN device";
    end->with_ipv6 = set_up_ipv6(side);
    set_up_tcp();
    return NULL;
}

static const char *open_end(struct path_end *end, unsigned side, unsigned mtu)
{
    if (unshare(CLONE_NEWNET) != 0 && (errno != EPERM || !become_root()))
        return "a network namespace";
    return set_up(end, side, mtu);
}

bool path_ends_open(struct path_end end[PATH_ENDS], unsigned mtu, char *reason, size_t size)
{
    const char *failed = NULL;
    int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    for (unsigned side = 0; side < PATH_ENDS; side++)
        end[side] = (struct path_end){.network = -1, .tun = -1};
    for (unsigned side = 0; side < PATH_ENDS && !failed; side++)
        failed = open_end(&end[side], side, mtu);
    if (failed)
        snprintf(reason, size, "%s: %s", failed, strerror(errno));
    /* Not possible from a user namespace: there it is of no importance which network the path runs in. */
    if (own >= 0) {
        setns(own, CLONE_NEWNET);
        close(own);
    }
    if (failed)
        path_ends_close(end);
    return !failed;
}

void path_ends_close(struct path_end end[PATH_ENDS])
{
    for (unsigned side = 0; side < PATH_ENDS; side++) {
        if (end[side].tun >= 0)
            close(end[side].tun);
        if (end[side].network >= 0)
            close(end[side].network);
        end[side].tun = end[side].network = -1;
    }
}

int path_end_enter(const struct path_end *end)
{
    int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (own >= 0 && setns(end->network, CLONE_NEWNET) != 0) {
        close(own);
        own = -1;
    }
    return own;
}

void path_end_leave(int own)
{
    setns(own, CLONE_NEWNET);
    close(own);
}

bool path_end_add_host(const struct path_end *left, unsigned host)
{
    char address[32];
    struct ifreq request = {.ifr_flags = 0};
    int own = path_end_enter(left);
    if (own < 0)
        return false;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(address, sizeof address, "10.99.0.%u", host);
    snprintf(request.ifr_name, sizeof request.ifr_name, PATH_DEVICE ":%u", host);
    put_ipv4(&request.ifr_addr, address);
    bool done = fd >= 0 && ioctl(fd, SIOCSIFADDR, &request) == 0;
    put_ipv4(&request.ifr_netmask, "255.255.255.0");
    done = done && ioctl(fd, SIOCSIFNETMASK, &request) == 0;
    if (fd >= 0)
        close(fd);
    path_end_leave(own);
    return done;
}

/* In /proc/net/dev: eight fields of received packets; then bytes, packets, errors and drops of sent ones. */
#define FIELDS_TO_DROPS 12

static uint64_t read_drops(void)
{
    char line[512];
    uint64_t dropped = 0;
    FILE *file = fopen("/proc/thread-self/net/dev", "re");
    while (file && fgets(line, sizeof line, file)) {
        char *at = strstr(line, PATH_DEVICE ":");
        if (!at)
            continue;
        at += sizeof PATH_DEVICE;
        for (unsigned field = 0; field < FIELDS_TO_DROPS; field++)
            dropped = strtoull(at, &at, 10);
    }
    if (file)
        fclose(file);
    return dropped;
}

uint64_t path_end_overrun(const struct path_end *end)
{
    int own = path_end_enter(end);
    if (own < 0)
        return 0;
    uint64_t dropped = read_drops();
    path_end_leave(own);
    return dropped;
}
