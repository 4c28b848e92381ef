/*
 * device.h - opens the device, port and address of a name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_DEVICE_H
#define LH_FABRIC_VERBS_DEVICE_H

#include "fabric/verbs/device/verbs_fabric.h"
#include "fabric/verbs/pure/gid.h"

#define VERBS_GIDS_MAX 256u /* entries of a port's table that are read */
#define VERBS_NO_DEVICE                                                                                    \
    "this machine has no RDMA device (udp:ADDRESS needs none); with a NIC, load its driver and install "   \
    "ibverbs-providers; without, "                                                                         \
    "\"modprobe rdma_rxe; rdma link add rxe0 type rxe netdev IFACE\" makes one in software"

/* Opens the device, port and GID that fabric->name asks for. -LH_EDEVICE names the candidates. */
int verbs_device_open(struct verbs_fabric *fabric);
uint32_t verbs_mtu_bytes(enum ibv_mtu mtu);
/* The port's addresses, at most VERBS_GIDS_MAX; returns their number. */
uint32_t verbs_device_gids(struct ibv_context *context, uint8_t port, struct verbs_gid *gids);

#endif
