/*
 * xdp_route.h - interfaces, routes and neighbours, as the kernel has them (rtnetlink).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_XDP_XDP_ROUTE_H
#define LH_FABRIC_XDP_XDP_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/udp/udp_address.h"
#include "fabric/xdp/xdp_frame.h"

struct xdp_interface {
    char name[16];
    uint32_t index;
    uint32_t mtu_bytes; /* of IP packets */
    uint32_t queues;    /* receive queues, 1 where the driver does not report them */
    uint8_t mac[XDP_MAC_BYTES];
    bool is_up;
};

/* Reads what an interface is. -LH_EDEVICE: there is none of that name, it is no Ethernet, or the loopback. */
int xdp_interface_find(const char *name, struct xdp_interface *interface);

/* Finds the hardware address that packets to `to` leave the interface for: of the host itself, or of a
 * router. False: it is not known (yet), packets leave by another interface, or `to` is this host. */
bool xdp_route_find(uint32_t ifindex, const union udp_address *from, const union udp_address *to,
                    uint8_t mac[XDP_MAC_BYTES]);

#endif
