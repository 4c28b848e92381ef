/*
 * warning.h - what users should know of a connection that works: it will be slower than it could be. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_FORMAT_WARNING_H
#define LH_MESSAGE_FORMAT_WARNING_H

#include <longhaul/connection.h>

#define WARNING_MAX 512u

struct warning_facts {
    const char *fabric; /* its own warning, or NULL */
    lh_time rtt_ns;     /* 0: not known yet */
    uint32_t
        packet_bytes; /* of the packets that leave: below attr->mtu_bytes where the path takes no more */
};

/* Formats the warning of the fabric, that of a path which takes only smaller packets, and that of a window
 * below rate x round trip, where a rate was given and the round trip is known. NULL: there is none. */
const char *warning_format(const struct lh_attr *attr, const struct warning_facts *facts,
                           char out[WARNING_MAX]);

#endif
