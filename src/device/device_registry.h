/*
 * device_registry.h - the fabrics of this process, and opening a device by its name.
 *
 * From any thread. A fabric that was seen once stays.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_DEVICE_DEVICE_REGISTRY_H
#define LH_DEVICE_DEVICE_REGISTRY_H

#include <longhaul/fabric.h>

#include "fabric/fabric.h"

/* Fabric number `index`, from 0 on; NULL: there are no more. */
const struct fabric_ops *fabric_at(size_t index);
/* The fabric whose name is these bytes, or NULL. */
const struct fabric_ops *fabric_named(const char *name, size_t bytes);

/* ---- open ------------------------------------------------------------------------------------------ */

/* From the name of a device to its fabric. */

/* Opens the fabric that a device name picks: "udp:[::1]", "xdp:eth0", "sim:<world>/<host>",
 * "verbs:<device>", "verbs" (any device); a bare "mlx5_0" or "rxe0" is verbs, too. -LH_EDEVICE names the
 * kinds there are. */
int fabric_open(const char *device, uint64_t receive_buffer_bytes, struct fabric **fabric);
/* What ops->mtu says, of a device that is opened for the question only; 0: the path decides. Or what
 * fabric_open() returns. */
int fabric_device_mtu(const char *device, uint32_t *mtu_bytes);
/* -LH_EUNSUPPORTED: its fabric does not encrypt, with the remedy. NULL and names of none: 0, the open
 * decides. */
int fabric_device_check_encrypts(const char *device);

#endif
