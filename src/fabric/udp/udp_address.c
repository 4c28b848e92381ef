/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/udp_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "fabric/fabric.h"
#include "wire/roce_packet.h"

/* ---- address --------------------------------------------------------------------------------------- */

/* The text without brackets, at most size - 1 characters; false when the brackets do not match or it is too
 * long. */
static bool strip_brackets(const char *text, char *out, size_t size)
{
    size_t length = strlen(text);
    if (text[0] == '[') {
        if (length < 3 || text[length - 1] != ']')
            return false;
        text++;
        length -= 2;
    }
    if (length == 0 || length >= size)
        return false;
    memcpy(out, text, length);
    out[length] = '\0';
    return true;
}

static int check_unicast(const char *text, const union udp_address *address)
{
    bool wildcard, multicast;
    if (udp_address_is_ipv4(address)) {
        wildcard = address->v4.sin_addr.s_addr == INADDR_ANY;
        multicast = IN_MULTICAST(ntohl(address->v4.sin_addr.s_addr)) ||
                    address->v4.sin_addr.s_addr == INADDR_BROADCAST;
    } else {
        wildcard = IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr);
        multicast = IN6_IS_ADDR_MULTICAST(&address->v6.sin6_addr);
        if (IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr))
            return lh_fail(LH_EADDR, "address \"%s\": IPv4-mapped IPv6 address (use the IPv4 address)",
                           text);
        if (IN6_IS_ADDR_LINKLOCAL(&address->v6.sin6_addr) && address->v6.sin6_scope_id == 0)
            return lh_fail(LH_EADDR,
                           "link-local address \"%s\": missing interface (example: fe80::1%%eth0)", text);
    }
    if (wildcard)
        return lh_fail(
            LH_EADDR,
            "address \"%s\": wildcard (use an address of this machine: it is part of every packet's iCRC)",
            text);
    if (multicast)
        return lh_fail(LH_EADDR, "address \"%s\": not unicast (use an address of this machine)", text);
    return 0;
}

static int parse_v6(const char *text, char *plain, union udp_address *address)
{
    char *scope = strchr(plain, '%');
    if (scope != NULL)
        *scope++ = '\0';
    address->v6.sin6_family = AF_INET6;
    if (inet_pton(AF_INET6, plain, &address->v6.sin6_addr) != 1)
        return lh_fail(LH_EADDR,
                       "\"%s\": invalid IP address (examples: 192.0.2.1, [2001:db8::1], [fe80::1%%eth0])",
                       text);
    if (scope != NULL) {
        address->v6.sin6_scope_id = if_nametoindex(scope);
        if (address->v6.sin6_scope_id == 0)
            return lh_fail(LH_EADDR, "address \"%s\": interface \"%s\" does not exist", text, scope);
    }
    return 0;
}

int udp_address_parse(const char *text, union udp_address *address)
{
    char plain[UDP_ADDRESS_TEXT_MAX];
    if (!strip_brackets(text, plain, sizeof plain))
        return lh_fail(LH_EADDR,
                       "\"%s\": invalid IP address (examples: 192.0.2.1, [2001:db8::1], [fe80::1%%eth0])",
                       text);
    union udp_address parsed;
    memset(&parsed, 0, sizeof parsed);
    if (text[0] != '[' && inet_pton(AF_INET, plain, &parsed.v4.sin_addr) == 1) {
        parsed.v4.sin_family = AF_INET;
    } else {
        memset(&parsed, 0, sizeof parsed);
        int error = parse_v6(text, plain, &parsed);
        if (error != 0)
            return error;
    }
    int error = check_unicast(text, &parsed);
    if (error == 0)
        *address = parsed;
    return error;
}

union udp_address udp_address_make(uint8_t family, const uint8_t bytes[16], uint16_t port,
                                   const union udp_address *local)
{
    union udp_address address;
    memset(&address, 0, sizeof address);
    if (family == 4) {
        address.v4.sin_family = AF_INET;
        memcpy(&address.v4.sin_addr, bytes, 4);
    } else {
        address.v6.sin6_family = AF_INET6;
        memcpy(&address.v6.sin6_addr, bytes, 16);
        if (IN6_IS_ADDR_LINKLOCAL(&address.v6.sin6_addr) && !udp_address_is_ipv4(local))
            address.v6.sin6_scope_id = local->v6.sin6_scope_id;
    }
    udp_address_set_port(&address, port);
    return address;
}

bool udp_address_is_ipv4(const union udp_address *address)
{
    return address->any.sa_family == AF_INET;
}

socklen_t udp_address_size(const union udp_address *address)
{
    return udp_address_is_ipv4(address) ? sizeof address->v4 : sizeof address->v6;
}

uint16_t udp_address_port(const union udp_address *address)
{
    return ntohs(udp_address_is_ipv4(address) ? address->v4.sin_port : address->v6.sin6_port);
}

void udp_address_set_port(union udp_address *address, uint16_t port)
{
    if (udp_address_is_ipv4(address))
        address->v4.sin_port = htons(port);
    else
        address->v6.sin6_port = htons(port);
}

void udp_address_bytes(const union udp_address *address, uint8_t bytes[16])
{
    memset(bytes, 0, 16);
    if (udp_address_is_ipv4(address))
        memcpy(bytes, &address->v4.sin_addr, 4);
    else
        memcpy(bytes, &address->v6.sin6_addr, 16);
}

bool udp_address_same_host(const union udp_address *a, const union udp_address *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    if (udp_address_is_ipv4(a))
        return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
    return memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof a->v6.sin6_addr) == 0;
}

char *udp_address_format(const union udp_address *address, char out[UDP_ADDRESS_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN] = "?";
    char scope[IF_NAMESIZE] = "";
    char port[8] = "";
    if (udp_address_port(address) != 0)
        snprintf(port, sizeof port, ":%u", udp_address_port(address));
    if (udp_address_is_ipv4(address)) {
        inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof host);
        snprintf(out, UDP_ADDRESS_TEXT_MAX, "%s%s", host, port);
        return out;
    }
    inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof host);
    bool scoped =
        address->v6.sin6_scope_id != 0 && if_indextoname(address->v6.sin6_scope_id, scope) != NULL;
    snprintf(out, UDP_ADDRESS_TEXT_MAX, "[%s%s%s]%s", host, scoped ? "%" : "", scope, port);
    return out;
}

/* ---- device list ----------------------------------------------------------------------------------- */

/* The local addresses that the udp fabric can use: those of every interface that is up. */

#define BITS_PER_MBIT ((uint64_t)1000000)

/* The largest payload whose packets the interface sends whole; 0: none, or not known. */
static uint32_t payload_of(const char *interface, bool ipv4)
{
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool known = fd >= 0 && ioctl(fd, SIOCGIFMTU, &request) == 0;
    if (fd >= 0)
        close(fd);
    if (!known)
        return 0;
    uint32_t overhead = ipv4 ? ROCE_WRITE_IMM_OVERHEAD_V4 : ROCE_WRITE_IMM_OVERHEAD_V6;
    return roce_payload_for((uint32_t)request.ifr_mtu, overhead);
}

/* From the driver; 0: unknown. */
static uint64_t rate_of(const char *interface)
{
    char path[64];
    long long mbit = 0;
    snprintf(path, sizeof path, "/sys/class/net/%s/speed", interface);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%lld", &mbit) != 1 || mbit < 0 || mbit > UINT32_MAX - 1)
        mbit = 0;
    fclose(file);
    return (uint64_t)mbit * BITS_PER_MBIT;
}

static bool is_usable(const struct ifaddrs *entry)
{
    if (entry->ifa_addr == NULL || (entry->ifa_flags & IFF_UP) == 0)
        return false;
    if (entry->ifa_addr->sa_family == AF_INET)
        return true;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)entry->ifa_addr;
    /* A link-local address reaches only who names the same interface: for experts, who know it. */
    return entry->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
}

void udp_device_describe(struct lh_device *device, const char *interface, const union udp_address *address)
{
    char text[UDP_ADDRESS_TEXT_MAX];
    udp_address_format(address, text);
    snprintf(device->interface, sizeof device->interface, "%s", interface);
    snprintf(device->address, sizeof device->address, "%.63s", text);
    snprintf(device->late_packets, sizeof device->late_packets, "slot table");
    snprintf(device->congestion, sizeof device->congestion, "by longhaul");
    device->mtu_bytes = payload_of(interface, udp_address_is_ipv4(address));
    device->rate_bps = rate_of(interface);
    if (device->mtu_bytes == 0)
        snprintf(device->trouble, sizeof device->trouble,
                 "MTU of %s: below the smallest RoCE packet, %u bytes (raise it)", interface,
                 ROCE_MTU_MIN + ROCE_WRITE_IMM_OVERHEAD_V6);
}

static void add(struct fabric_device_list *list, const struct ifaddrs *entry)
{
    union udp_address address = {0};
    bool ipv4 = entry->ifa_addr->sa_family == AF_INET;
    memcpy(&address, entry->ifa_addr, ipv4 ? sizeof address.v4 : sizeof address.v6);
    udp_address_set_port(&address, 0);
    struct lh_device *device = fabric_device_add(list, "udp");
    if (device == NULL)
        return;
    udp_device_describe(device, entry->ifa_name, &address);
    snprintf(device->name, sizeof device->name, "udp:%s", device->address);
}

int udp_devices(struct fabric_device_list *list)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return lh_fail(LH_ESYSTEM, "the addresses of this machine cannot be read: %s", strerror(errno));
    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next)
        if (is_usable(entry))
            add(list, entry);
    freeifaddrs(all);
    return 0;
}
