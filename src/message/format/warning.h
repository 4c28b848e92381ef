/*
 * warning.h - what users should know of a connection that works: it will be slower than it could be. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_FORMAT_WARNING_H
#define LH_MESSAGE_FORMAT_WARNING_H

#include <longhaul/connection.h>

#define WARNING_MAX 512u

/* Formats the warning of the fabric (or NULL), and that of a window below rate x round trip, where a rate was
 * given and the round trip (0: not yet) is known. NULL: there is none. */
const char *warning_format(const struct lh_attr *attr, lh_time rtt_ns, const char *fabric,
                           char out[WARNING_MAX]);

#endif
