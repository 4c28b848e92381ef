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

#define ALONE         "udp:127.0.0.1"
#define LOOPBACK_FOUR "udp:127."
#define LOOPBACK_SIX  "udp:[::1]"

/* Whether it can be reached from elsewhere: it is up and has a carrier; link-local IPv6 needs a scope that
 * is another one there. */
static bool is_usable(const struct ifaddrs *interface)
{
    const unsigned needed = IFF_UP | IFF_RUNNING;
    if (!interface->ifa_addr || (interface->ifa_flags & needed) != needed)
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
                       "LONGHAUL_SOCKET_IFNAME: \"%.80s\" matches no interface that is up, has a carrier "
                       "and an address (ip address lists them)",
                       interfaces);
    return found < 0 ? found : 0;
}

bool group_address_is_loopback(const char *device)
{
    return !strncmp(device, LOOPBACK_FOUR, strlen(LOOPBACK_FOUR)) || !strcmp(device, LOOPBACK_SIX);
}

/* What ranks learn of each other: whether the address is a loopback one 1 | MTU 4 | of rank 0: the device
 * at which ranks of other hosts reached it, with zeros behind; or zeros, when there are none 64 */
#define NOTE_DEVICE_BYTES 64u
#define NOTE_BYTES        (5u + NOTE_DEVICE_BYTES)

struct note {
    bool local;
    uint32_t mtu_bytes;
    char outside[NOTE_DEVICE_BYTES];
};

static void encode_note(const struct note *note, uint8_t out[NOTE_BYTES])
{
    out[0] = note->local;
    lh_put_be32(out + 1, note->mtu_bytes);
    memcpy(out + 5, note->outside, NOTE_DEVICE_BYTES);
}

static void decode_note(const uint8_t in[NOTE_BYTES], struct note *note)
{
    note->local = in[0];
    note->mtu_bytes = lh_get_be32(in + 1);
    memcpy(note->outside, in + 5, NOTE_DEVICE_BYTES);
    note->outside[NOTE_DEVICE_BYTES - 1] = '\0';
}

/* Rank 0: the address of this host that the first rank of another host has reached. An interface's name or
 * its place in a list shows nothing of the kind: a bridge without a cable comes first as well. */
static void find_outside(const struct group_meeting *meeting, char outside[NOTE_DEVICE_BYTES])
{
    char device[TCP_NAME_MAX];
    for (uint32_t rank = 1; rank < meeting->size && !*outside; rank++) {
        int fd = group_meeting_socket(meeting, rank);
        if (fd >= 0 && tcp_udp_device(fd, device, sizeof device) == 0 &&
            !group_address_is_loopback(device) && strlen(device) < NOTE_DEVICE_BYTES)
            strcpy(outside, device);
    }
}

/* *alone: this rank has a loopback address, and others do not, so that they could not reach it. Such a rank
 * reached rank 0 by loopback, so it is on the host of rank 0, whose address `outside` is. */
static int compare(struct group_meeting *meeting, const struct note *mine, bool *alone, struct note *common)
{
    uint8_t bytes[NOTE_BYTES];
    uint8_t *all = malloc((size_t)meeting->size * NOTE_BYTES);
    *common = *mine;
    *alone = false;
    if (!all)
        return lh_fail(LH_ENOMEM, "no memory for %u ranks", meeting->size);
    encode_note(mine, bytes);
    int error = group_meeting_exchange(meeting, bytes, sizeof bytes, all);
    for (uint32_t rank = 0; rank < meeting->size && !error; rank++) {
        struct note note;
        decode_note(all + (size_t)rank * NOTE_BYTES, &note);
        *alone |= mine->local && !note.local;
        common->mtu_bytes = note.mtu_bytes < common->mtu_bytes ? note.mtu_bytes : common->mtu_bytes;
        if (rank == 0)
            memcpy(common->outside, note.outside, sizeof note.outside);
    }
    free(all);
    return error;
}

int group_address_find(struct group_meeting *meeting, const char *interfaces, char *device, size_t size,
                       uint32_t *mtu_bytes)
{
    bool alone;
    struct note mine = {0}, common;
    int fd = group_meeting_socket(meeting, meeting->rank == 0), error = 0;
    snprintf(device, size, ALONE);
    if (fd >= 0)
        error = tcp_udp_device(fd, device, size);
    int family = strchr(device, '[') ? AF_INET6 : AF_INET;
    if (!error && *interfaces)
        error = chosen_device(interfaces, family, device, size);
    mine.local = group_address_is_loopback(device);
    mine.mtu_bytes = fd >= 0 ? tcp_path_mtu(fd) : 0;
    if (meeting->rank == 0)
        find_outside(meeting, mine.outside);
    if (!error)
        error = compare(meeting, &mine, &alone, &common);
    if (error)
        return error;
    if (alone && !*interfaces && *common.outside)
        snprintf(device, size, "%s", common.outside);
    *mtu_bytes = common.mtu_bytes;
    return 0;
}
