/*
 * group_address.h - the address of this host that a rank gives to the others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_GROUP_GROUP_ADDRESS_H
#define LH_LAUNCH_GROUP_GROUP_ADDRESS_H

#include "launch/group/group_meeting.h"

/* Sets *mtu_bytes to the largest RoCE MTU that fits the paths of all ranks to rank 0; 0: not even the
 * smallest does, or this rank is alone. Writes a device, "udp:10.0.0.1": on the first interface of the filter
 * (interface_filter.h), when one was chosen; else with the address that the rendezvous uses. Where that is a
 * loopback address and another rank has none, as with a host whose name leads to 127.0.1.1: the address of
 * rank 0's host that a rank of another host has reached. All ranks call it, since it makes an exchange.
 * -LH_EADDR: no interface matches. */
int group_address_find(struct group_meeting *meeting, const char *interfaces, char *device, size_t size,
                       uint32_t *mtu_bytes);
/* Whether that device is reached from this host alone. */
bool group_address_is_loopback(const char *device);

#endif
