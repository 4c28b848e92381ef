/*
 * udp_address.h - IP addresses: text to socket address and back; the list of devices.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_UDP_ADDRESS_H
#define LH_FABRIC_UDP_UDP_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabric/fabric.h"

union udp_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Longest text of an address with brackets, scope and port, with the final zero. */
#define UDP_ADDRESS_TEXT_MAX 80

/* "127.0.0.1", "[::1]", "::1", "[fe80::1%eth0]": one unicast address of this machine, port 0. -LH_EADDR for
 * anything else, the wildcard too: the local address enters the iCRC of each packet, so it must be known.
 */
int udp_address_parse(const char *text, union udp_address *address);
/* family 4 or 6, bytes in network order; the scope is taken from `local`, which matters for link-local
 * peers. */
union udp_address udp_address_make(uint8_t family, const uint8_t bytes[16], uint16_t port,
                                   const union udp_address *local);

bool udp_address_is_ipv4(const union udp_address *address);
socklen_t udp_address_size(const union udp_address *address);
uint16_t udp_address_port(const union udp_address *address);
void udp_address_set_port(union udp_address *address, uint16_t port);
/* Network order; IPv4 in the first 4, the rest zero. */
void udp_address_bytes(const union udp_address *address, uint8_t bytes[16]);
/* Same host; ports do not count. */
bool udp_address_same_host(const union udp_address *a, const union udp_address *b);
/* "[::1]" or "127.0.0.1", with ":port" unless that is 0; returns out. */
char *udp_address_format(const union udp_address *address, char out[UDP_ADDRESS_TEXT_MAX]);

/* ---- device list ----------------------------------------------------------------------------------- */

/* The addresses of this machine, as devices of the udp fabric. */

int udp_devices(struct fabric_device_list *list);
/* Sets all but the name of a device of sockets on this address of an interface. */
void udp_device_describe(struct lh_device *device, const char *interface, const union udp_address *address);

#endif
