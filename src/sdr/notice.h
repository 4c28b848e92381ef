/*
 * notice.h - lines on standard error for programs of the published SDK.
 *
 * sdr.h has no call that could return a warning, and its programs know no other header. So what they should
 * know is printed, each kind once a context. A context of lh_sdr_context_create() prints nothing: its
 * programs have lh_sdr_warning() and lh_sdr_stats().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_NOTICE_H
#define LH_SDR_NOTICE_H

#include "sdr/context.h"

enum notice {
    NOTICE_DEFAULTS = 1, /* what fields of zero became */
    NOTICE_POSTED = 2,   /* receives exceed the socket buffers, and the kernel granted less than asked */
    NOTICE_SENT = 4,     /* sends exceed the peer's socket buffers */
    NOTICE_ALL = UINT32_MAX, /* of a context that prints nothing */
};

/* Whether that kind is still to be printed; without a lock. */
static inline bool notice_due(struct sdr_context *context, enum notice kind)
{
    return !(atomic_load_explicit(&context->notices, memory_order_relaxed) & (uint32_t)kind);
}

/* Prints "longhaul: ..." as one line, unless that kind was printed before. */
void notice_print(struct sdr_context *context, enum notice kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
