/*
 * fabric.h - registration of fabrics, the transports of packets, for libraries that provide one.
 *
 * liblonghaul has the fabrics "udp", "xdp" and "verbs"; liblonghaul-sim registers "sim" when the first
 * simulated world is created. The interface struct fabric_ops is internal: both libraries must have the
 * same version.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_FABRIC_H
#define LONGHAUL_FABRIC_H

#include <longhaul/error.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fabric_ops;

/* Registers a fabric, which device names can then select, for the life of the process. Any thread may call.
 * ops: it and its name stay valid for the life of the process; registering the same ops again succeeds.
 * interface_version, ops_bytes: those that the caller was compiled with. -LH_EVERSION: they differ from the
 * library's. -LH_EINVAL: another fabric has the name. -LH_ENOMEM: LH_FABRICS_MAX fabrics are registered. */
LH_API int lh_fabric_register(const struct fabric_ops *ops, uint32_t interface_version, size_t ops_bytes);
#define LH_FABRICS_MAX 8

#ifdef __cplusplus
}
#endif
#endif
