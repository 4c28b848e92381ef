/*
 * registry.h - the fabrics of this process: those of this library, then those that were registered.
 *
 * From any thread. A fabric that was seen once stays.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_DEVICE_REGISTRY_H
#define LH_DEVICE_REGISTRY_H

#include <longhaul/fabric.h>

#include "fabric/fabric.h"

/* Fabric number `index`, from 0 on; NULL: there are no more. */
const struct fabric_ops *fabric_at(size_t index);
/* The fabric whose name is these bytes, or NULL. */
const struct fabric_ops *fabric_named(const char *name, size_t bytes);

#endif
