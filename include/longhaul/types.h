/*
 * types.h - the few types that every other public header uses.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_TYPES_H
#define LONGHAUL_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LH_API __attribute__((visibility("default")))
#else
#define LH_API
#endif

/* A time or a duration in nanoseconds. Times count from an arbitrary origin of one fabric's clock. */
typedef uint64_t lh_time;

/* Never: a time without end. */
#define LH_TIME_NEVER UINT64_MAX
/* Value of spin_ns: a waiting thread sleeps at once. */
#define LH_NO_SPIN LH_TIME_NEVER

/* A range of a message's bytes. */
struct lh_range {
    uint64_t offset;
    uint64_t bytes;
};

#define LH_NS_PER_US ((lh_time)1000)
#define LH_NS_PER_MS ((lh_time)1000000)
#define LH_NS_PER_S  ((lh_time)1000000000)

#ifdef __cplusplus
}
#endif
#endif
