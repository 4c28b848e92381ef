/*
 * device_list.h - the addresses of this machine, as devices of the udp fabric.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_DEVICE_LIST_H
#define LH_FABRIC_UDP_DEVICE_LIST_H

#include "fabric/devices.h"

int udp_devices(struct fabric_device_list *list);

#endif
