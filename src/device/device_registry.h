/*
 * open.h - from the name of a device to its fabric.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_DEVICE_OPEN_H
#define LH_DEVICE_OPEN_H

#include "fabric/fabric.h"

/* Opens the fabric that a device name picks: "udp:[::1]", "udp:127.0.0.1", "sim:<world>/<host>",
 * "verbs:<device>", "verbs" (any device); a bare "mlx5_0" or "rxe0" is verbs, too. -LH_EDEVICE names the
 * kinds there are. */
int fabric_open(const char *device, uint64_t receive_buffer_bytes, struct fabric **fabric);
/* What ops->mtu says, of a device that is opened for the question only; 0: the path decides. Or what
 * fabric_open() returns. */
int fabric_device_mtu(const char *device, uint32_t *mtu_bytes);

#endif
