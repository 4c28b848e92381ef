/*
 * fabric.h - registering what moves packets, for libraries that bring a fabric of their own.
 *
 * liblonghaul has the fabrics "udp" and "verbs"; liblonghaul-sim registers "sim" when the first simulated
 * world is created. The interface behind struct fabric_ops is internal: both libraries are of the same
 * version.
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

/* Adds a fabric to those that a device name can pick, for the life of the process; `ops` and its name stay
 * valid as long. Registering the same ops again succeeds. From any thread. `interface_version` and
 * `ops_bytes` are those that the caller was compiled with. -LH_EVERSION: they are not the library's;
 * -LH_EINVAL: another fabric has that name; -LH_ENOMEM: LH_FABRICS_MAX fabrics are registered. */
LH_API int lh_fabric_register(const struct fabric_ops *ops, uint32_t interface_version, size_t ops_bytes);
#define LH_FABRICS_MAX 8

#ifdef __cplusplus
}
#endif
#endif
