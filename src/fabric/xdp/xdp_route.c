/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/xdp/xdp_route.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/min_max.h"
#include "fabric/udp/udp_address.h"

/* ---- interface --------------------------------------------------------------------------------------- */

static uint32_t queues_of(int fd, const char *name)
{
    struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
    struct ifreq request = {.ifr_data = (void *)&channels};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (ioctl(fd, SIOCETHTOOL, &request) != 0)
        return 1;
    return (uint32_t)lh_max(1, (uint64_t)channels.rx_count + channels.combined_count);
}

static int read_interface(int fd, struct xdp_interface *interface)
{
    struct ifreq request = {0};
    const char *name = interface->name;
    memcpy(request.ifr_name, interface->name, sizeof request.ifr_name);
    if (ioctl(fd, SIOCGIFINDEX, &request) != 0)
        return lh_fail(LH_EDEVICE, "device xdp:%s: no such interface (see \"longhaul devices\")", name);
    interface->index = (uint32_t)request.ifr_ifindex;
    if (ioctl(fd, SIOCGIFMTU, &request) != 0)
        return lh_fail(LH_ESYSTEM, "device xdp:%s: MTU unknown: %s", name, strerror(errno));
    interface->mtu_bytes = (uint32_t)request.ifr_mtu;
    if (ioctl(fd, SIOCGIFHWADDR, &request) != 0)
        return lh_fail(LH_ESYSTEM, "device xdp:%s: hardware address unknown: %s", name, strerror(errno));
    if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER)
        return lh_fail(LH_EDEVICE, "device xdp:%s: not an Ethernet interface (use udp:ADDRESS)", name);
    memcpy(interface->mac, request.ifr_hwaddr.sa_data, XDP_MAC_BYTES);
    interface->is_up = ioctl(fd, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_UP) != 0;
    interface->queues = queues_of(fd, name);
    return 0;
}

int xdp_interface_find(const char *name, struct xdp_interface *interface)
{
    *interface = (struct xdp_interface){0};
    if (name[0] == '\0' || strlen(name) >= sizeof interface->name)
        return lh_fail(LH_EDEVICE, "device xdp:%s: invalid interface name (example: xdp:eth0)", name);
    snprintf(interface->name, sizeof interface->name, "%s", name);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return lh_fail(LH_ESYSTEM, "cannot make a socket: %s", strerror(errno));
    int error = read_interface(fd, interface);
    close(fd);
    return error;
}

/* ---- rtnetlink --------------------------------------------------------------------------------------- */

#define REPLY_BYTES 4096u

/* A request, and the first message of its reply. */
struct exchange {
    union {
        struct nlmsghdr header;
        uint8_t bytes[256];
    } request;
    union {
        struct nlmsghdr header;
        uint8_t bytes[REPLY_BYTES];
    } reply;
};

/* Begins a request whose fixed part has that many bytes; returns it. */
static void *begin(struct exchange *exchange, uint16_t type, size_t bytes)
{
    memset(&exchange->request, 0, sizeof exchange->request);
    exchange->request.header.nlmsg_len = (uint32_t)NLMSG_LENGTH(bytes);
    exchange->request.header.nlmsg_type = type;
    exchange->request.header.nlmsg_flags = NLM_F_REQUEST;
    return NLMSG_DATA(&exchange->request.header);
}

static void add_attribute(struct exchange *exchange, uint16_t type, const void *data, size_t bytes)
{
    struct nlmsghdr *header = &exchange->request.header;
    uint8_t *at = exchange->request.bytes + NLMSG_ALIGN(header->nlmsg_len);
    const struct rtattr attribute = {.rta_len = (uint16_t)RTA_LENGTH(bytes), .rta_type = type};
    memcpy(at, &attribute, sizeof attribute);
    memcpy(at + RTA_LENGTH(0), data, bytes);
    header->nlmsg_len = (uint32_t)(NLMSG_ALIGN(header->nlmsg_len) + RTA_ALIGN(attribute.rta_len));
}

/* The kernel has answered when the request is sent. False: an error, or no reply of that type. */
static bool ask(int fd, struct exchange *exchange, uint16_t type, size_t bytes)
{
    const struct nlmsghdr *request = &exchange->request.header;
    const struct nlmsghdr *reply = &exchange->reply.header;
    if (send(fd, request, request->nlmsg_len, 0) < 0)
        return false;
    ssize_t got = recv(fd, &exchange->reply, sizeof exchange->reply, MSG_DONTWAIT);
    return got >= (ssize_t)NLMSG_LENGTH(bytes) && reply->nlmsg_len <= (size_t)got &&
           reply->nlmsg_len >= NLMSG_LENGTH(bytes) && reply->nlmsg_type == type;
}

/* An attribute of the reply that has that many bytes or more, or NULL. */
static const void *attribute_of(const struct exchange *exchange, size_t fixed_bytes, uint16_t type,
                                size_t bytes)
{
    const struct nlmsghdr *reply = &exchange->reply.header;
    size_t at = NLMSG_ALIGN(NLMSG_LENGTH(fixed_bytes));
    while (at + sizeof(struct rtattr) <= reply->nlmsg_len) { /* each round passes an attribute */
        const struct rtattr *attribute = (const struct rtattr *)(const void *)(exchange->reply.bytes + at);
        if (attribute->rta_len < RTA_LENGTH(0) || attribute->rta_len > reply->nlmsg_len - at)
            return NULL;
        if (attribute->rta_type == type)
            return attribute->rta_len >= RTA_LENGTH(bytes) ? RTA_DATA(attribute) : NULL;
        at += RTA_ALIGN(attribute->rta_len);
    }
    return NULL;
}

/* The address to resolve: of a router, or of the host itself. */
static bool find_hop(int fd, struct exchange *exchange, uint32_t ifindex, const union udp_address *from,
                     const union udp_address *to, uint8_t hop[16])
{
    const bool ipv4 = udp_address_is_ipv4(to);
    const size_t bytes = ipv4 ? 4 : 16;
    uint8_t source[16];
    uint32_t oif;
    struct rtmsg *ask_route = begin(exchange, RTM_GETROUTE, sizeof *ask_route);
    ask_route->rtm_family = (uint8_t)to->any.sa_family;
    ask_route->rtm_dst_len = ask_route->rtm_src_len = (uint8_t)(8 * bytes);
    udp_address_bytes(to, hop);
    udp_address_bytes(from, source);
    add_attribute(exchange, RTA_DST, hop, bytes);
    add_attribute(exchange, RTA_SRC, source, bytes);
    if (!ipv4 && IN6_IS_ADDR_LINKLOCAL(&to->v6.sin6_addr)) /* any interface has that network */
        add_attribute(exchange, RTA_OIF, &ifindex, sizeof ifindex);
    if (!ask(fd, exchange, RTM_NEWROUTE, sizeof(struct rtmsg)))
        return false;
    const struct rtmsg *route = NLMSG_DATA(&exchange->reply.header);
    const void *out = attribute_of(exchange, sizeof *route, RTA_OIF, sizeof oif);
    if (route->rtm_type != RTN_UNICAST || out == NULL)
        return false;
    memcpy(&oif, out, sizeof oif);
    const void *gateway = attribute_of(exchange, sizeof *route, RTA_GATEWAY, bytes);
    if (gateway != NULL)
        memcpy(hop, gateway, bytes);
    return oif == ifindex;
}

static bool find_neighbor(int fd, struct exchange *exchange, uint32_t ifindex, bool ipv4,
                          const uint8_t hop[16], uint8_t mac[XDP_MAC_BYTES])
{
    struct ndmsg *ask_neighbor = begin(exchange, RTM_GETNEIGH, sizeof *ask_neighbor);
    ask_neighbor->ndm_family = ipv4 ? AF_INET : AF_INET6;
    ask_neighbor->ndm_ifindex = (int32_t)ifindex;
    add_attribute(exchange, NDA_DST, hop, ipv4 ? 4 : 16);
    if (!ask(fd, exchange, RTM_NEWNEIGH, sizeof(struct ndmsg)))
        return false;
    const struct ndmsg *neighbor = NLMSG_DATA(&exchange->reply.header);
    const void *address = attribute_of(exchange, sizeof *neighbor, NDA_LLADDR, XDP_MAC_BYTES);
    if (address == NULL || (neighbor->ndm_state & (NUD_INCOMPLETE | NUD_FAILED | NUD_NONE)) != 0)
        return false;
    memcpy(mac, address, XDP_MAC_BYTES);
    return true;
}

bool xdp_route_find(uint32_t ifindex, const union udp_address *from, const union udp_address *to,
                    uint8_t mac[XDP_MAC_BYTES])
{
    struct exchange exchange;
    uint8_t hop[16];
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0)
        return false;
    bool found = find_hop(fd, &exchange, ifindex, from, to, hop) &&
                 find_neighbor(fd, &exchange, ifindex, udp_address_is_ipv4(to), hop, mac);
    close(fd);
    return found;
}
