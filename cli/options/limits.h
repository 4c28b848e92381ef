/*
 * limits.h - limits and defaults of the connection options, as longhaul(1) lists them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_LIMITS_H
#define LH_CLI_OPTIONS_LIMITS_H

#include <stdint.h>

#define CLI_KIB ((uint64_t)1 << 10)
#define CLI_MIB ((uint64_t)1 << 20)
#define CLI_GIB ((uint64_t)1 << 30)

#define CLI_WINDOW_DEFAULT (64 * CLI_MIB)
#define CLI_WINDOW_MAX     (64 * CLI_GIB)
#define CLI_SLOTS_DEFAULT  64u
#define CLI_SLOTS_MAX      1024u
#define CLI_SLOT_DEFAULT   (4 * CLI_MIB)
#define CLI_SLOT_MAX       CLI_GIB
#define CLI_RATE_MAX_BPS   UINT64_C(100000000000000)

#endif
