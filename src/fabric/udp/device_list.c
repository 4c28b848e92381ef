/*
 * devices.c - the local addresses that the udp fabric can use: those of every interface that is up.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/device_list.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "fabric/udp/address.h"
#include "fabric/udp/udp.h"
#include "wire/roce.h"

#define BITS_PER_MBIT ((uint64_t)1000000)

/* The largest RoCE MTU whose packets the interface sends whole. */
static uint32_t roce_mtu(const char *interface, bool ipv4)
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
    uint32_t fits = ROCE_MTU_MAX;
    while (fits >= ROCE_MTU_MIN && fits + overhead > (uint32_t)request.ifr_mtu)
        fits /= 2;
    return fits >= ROCE_MTU_MIN ? fits : 0;
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

static void add(struct fabric_device_list *list, const struct ifaddrs *entry)
{
    union udp_address address = {0};
    bool ipv4 = entry->ifa_addr->sa_family == AF_INET;
    memcpy(&address, entry->ifa_addr, ipv4 ? sizeof address.v4 : sizeof address.v6);
    udp_address_set_port(&address, 0);
    char text[UDP_ADDRESS_TEXT_MAX];
    udp_address_format(&address, text);
    struct lh_device *device = fabric_device_add(list, "udp");
    if (device == NULL)
        return;
    snprintf(device->name, sizeof device->name, "udp:%s", text);
    snprintf(device->interface, sizeof device->interface, "%s", entry->ifa_name);
    snprintf(device->address, sizeof device->address, "%.63s", text);
    snprintf(device->late_packets, sizeof device->late_packets, "slot table");
    snprintf(device->congestion, sizeof device->congestion, "by longhaul");
    device->mtu_bytes = roce_mtu(entry->ifa_name, ipv4);
    device->rate_bps = rate_of(entry->ifa_name);
    if (device->mtu_bytes == 0)
        snprintf(device->trouble, sizeof device->trouble,
                 "the MTU of %s is too small for the smallest RoCE packet (%u bytes): raise it",
                 entry->ifa_name, ROCE_MTU_MIN + ROCE_WRITE_IMM_OVERHEAD_V6);
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
