/*
 * device_list.h - every RDMA device of this machine.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_DEVICE_LIST_H
#define LH_FABRIC_VERBS_DEVICE_LIST_H

#include "fabric/devices.h"

int verbs_devices(struct fabric_device_list *list);

#endif
