/*
 * sdk_warning.h - lines on standard error for programs of the published SDK.
 *
 * sdr.h has no call that could return a warning, and its programs know no other header. So what they should
 * know is printed, each kind once a context. A context of lh_sdr_context_create() prints nothing: its
 * programs have lh_sdr_warning() and lh_sdr_stats().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_SDK_WARNING_H
#define LH_SDR_SDK_WARNING_H

#include "sdr/context.h"

enum sdk_warning {
    SDK_WARNING_DEFAULTS = 1, /* what fields of zero became */
    SDK_WARNING_POSTED = 2, /* receives exceed the socket buffers, and the kernel granted less than asked */
    SDK_WARNING_SENT = 4,   /* sends exceed the peer's socket buffers */
    SDK_WARNING_ALL = UINT32_MAX, /* of a context that prints nothing */
};

/* Whether that kind is still to be printed; without a lock. */
static inline bool sdk_warning_due(struct sdr_context *context, enum sdk_warning kind)
{
    return !(atomic_load_explicit(&context->warned, memory_order_relaxed) & (uint32_t)kind);
}

/* Prints "longhaul: ..." as one line, unless that kind was printed before. */
void sdk_warn(struct sdr_context *context, enum sdk_warning kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
