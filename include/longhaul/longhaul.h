/*
 * longhaul.h - the public headers of the transport, and the version.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_LONGHAUL_H
#define LONGHAUL_LONGHAUL_H

#include <sdr.h>
#include <sdr_mr.h>

#include <longhaul/connection.h>
#include <longhaul/device.h>
#include <longhaul/engine.h>
#include <longhaul/error.h>
#include <longhaul/link.h>
#include <longhaul/onesided.h>
#include <longhaul/probe.h>
#include <longhaul/queue.h>
#include <longhaul/scheme.h>
#include <longhaul/sdr_ext.h>
#include <longhaul/stats.h>
#include <longhaul/types.h>
#include <longhaul/units.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LH_VERSION_MAJOR 0
#define LH_VERSION_MINOR 2
#define LH_VERSION_PATCH 0

/* Returns the version of the loaded library: "0.2.0". */
LH_API const char *lh_version(void);

#ifdef __cplusplus
}
#endif
#endif
