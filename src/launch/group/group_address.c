/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/group/group_address.h"

#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/big_endian.h"
#include "base/error.h"
#include "launch/tcp.h"
#include "launch/variables/interface_filter.h"

/* Where nobody chose: as NCCL does. */
#define NOT_LOCAL     "^lo,docker"
#define ALONE         "udp:127.0.0.1"
#define LOOPBACK_FOUR "udp:127."
#define LOOPBACK_SIX  "udp:[::1]"

/* Whether it can be reached from elsewhere: link-local IPv6 needs a scope that is another one there. */
static bool is_usable(const struct ifaddrs *interface)
{
    if (!interface->ifa_addr || !(interface->ifa_flags & IFF_UP))
        return false;
    if (interface->ifa_addr->sa_family == AF_INET)
        return true;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)interface->ifa_addr;
    return interface->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
}

static int format_device(const struct sockaddr *address, char *device, size_t size)
{
    char host[64];
    bool six = address->sa_family == AF_INET6;
    socklen_t bytes = six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int failed = getnameinfo(address, bytes, host, sizeof host, NULL, 0, NI_NUMERICHOST);
    if (failed)
        return lh_fail(LH_EADDR, "%s", gai_strerror(failed));
    snprintf(device, size, six ? "udp:[%s]" : "udp:%s", host);
    return 0;
}

/* The first usable address in the filter's order, of that family if there is one. */
static const struct ifaddrs *find(const struct ifaddrs *list, const char *filter, int family)
{
    int best = INT32_MAX;
    const struct ifaddrs *found = NULL;
    for (const struct ifaddrs *at = list; at; at = at->ifa_next) {
        int place = is_usable(at) ? interface_filter_match(filter, at->ifa_name) : -1;
        if (place < 0)
            continue;
        place = 2 * place + (at->ifa_addr->sa_family != family);
        if (place < best) {
            best = place;
            found = at;
        }
    }
    return found;
}

/* 1: there is one; 0: there is none. */
static int interface_device(const char *filter, int family, char *device, size_t size)
{
    struct ifaddrs *list;
    if (getifaddrs(&list))
        return lh_fail(LH_ESYSTEM, "getifaddrs: %s", strerror(errno));
    const struct ifaddrs *found = find(list, filter, family);
    int error = found ? format_device(found->ifa_addr, device, size) : 0;
    freeifaddrs(list);
    return error ? error : found != NULL;
}

static int chosen_device(const char *interfaces, int family, char *device, size_t size)
{
    int found = interface_device(interfaces, family, device, size);
    if (found == 0)
        return lh_fail(LH_EADDR,
                       "LONGHAUL_SOCKET_IFNAME: \"%.80s\" matches no interface with an address "
                       "(ip address lists them)",
                       interfaces);
    return found < 0 ? found : 0;
}

static bool is_loopback(const char *device)
{
    return !strncmp(device, LOOPBACK_FOUR, strlen(LOOPBACK_FOUR)) || !strcmp(device, LOOPBACK_SIX);
}

/* What ranks learn of each other: whether the address is a loopback one 1 | MTU 4 */
#define NOTE_BYTES 5u

/* *alone: this rank has a loopback address, and others do not, so that they could not reach it. */
static int compare(struct group_meeting *meeting, bool local, bool *alone, uint32_t *mtu_bytes)
{
    uint8_t mine[NOTE_BYTES] = {local};
    uint8_t *all = malloc((size_t)meeting->size * NOTE_BYTES);
    int fd = group_meeting_socket(meeting);
    *mtu_bytes = fd >= 0 ? tcp_path_mtu(fd) : 0;
    *alone = false;
    if (!all)
        return lh_fail(LH_ENOMEM, "no memory for %u ranks", meeting->size);
    lh_put_be32(mine + 1, *mtu_bytes);
    int error = group_meeting_exchange(meeting, mine, sizeof mine, all);
    for (uint32_t rank = 0; rank < meeting->size && !error; rank++) {
        const uint8_t *note = all + (size_t)rank * NOTE_BYTES;
        uint32_t mtu = lh_get_be32(note + 1);
        *alone |= local && !note[0];
        *mtu_bytes = mtu < *mtu_bytes ? mtu : *mtu_bytes;
    }
    free(all);
    return error;
}

int group_address_find(struct group_meeting *meeting, const char *interfaces, char *device, size_t size,
                       uint32_t *mtu_bytes)
{
    bool alone;
    int fd = group_meeting_socket(meeting), error = 0;
    snprintf(device, size, ALONE);
    if (fd >= 0)
        error = tcp_udp_device(fd, device, size);
    int family = strchr(device, '[') ? AF_INET6 : AF_INET;
    if (!error && *interfaces)
        error = chosen_device(interfaces, family, device, size);
    if (!error)
        error = compare(meeting, is_loopback(device), &alone, mtu_bytes);
    if (!error && alone && !*interfaces) {
        int found = interface_device(NOT_LOCAL, family, device, size);
        error = found < 0 ? found : 0;
    }
    return error;
}
