/*
 * rest.h - how long a worker leaves a QP's packets in the sockets, to read many at once. Pure.
 *
 * On a long path packets come one by one, evenly spaced. Whoever reads each when it comes does nothing else,
 * for nothing: a small part of the round trip later is as good. On a short path it is not, and there is no
 * rest, nor for the first packets, whose spacing shows the path's rate. What arrives meanwhile must be little
 * against the buffer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_REST_H
#define LH_SDR_REST_H

#include <longhaul/types.h>

#include "base/least.h"

#define REST_RTT_SHARE    256u
#define REST_MAX_NS       (250 * LH_NS_PER_US)
#define REST_MIN_NS       (20 * LH_NS_PER_US) /* less is not worth a system call */
#define REST_FIRST        128u                /* packets */
#define REST_BUFFER_SHARE 8u
#define REST_WINDOW_NS    LH_NS_PER_MS /* of the rate of arrival */

struct rest {
    lh_time since_ns;
    uint64_t packets;    /* in all, at since_ns */
    lh_time a_packet_ns; /* time between two, lately */
};

/* packets: that arrived in all; rtt_ns: the shortest, 0: unknown; buffer_packets: that the sockets hold.
 * 0: no rest. */
static inline lh_time rest_span(struct rest *rest, uint64_t packets, lh_time rtt_ns,
                                uint64_t buffer_packets, lh_time now)
{
    if (now >= rest->since_ns + REST_WINDOW_NS) {
        rest->a_packet_ns = (now - rest->since_ns) / (packets - rest->packets + 1);
        rest->since_ns = now;
        rest->packets = packets;
    }
    lh_time full_ns = rest->a_packet_ns * (buffer_packets / REST_BUFFER_SHARE);
    lh_time span_ns = lh_least(lh_least(rtt_ns / REST_RTT_SHARE, full_ns), REST_MAX_NS);
    return span_ns < REST_MIN_NS || packets < REST_FIRST ? 0 : span_ns;
}

#define REST_LATELY_NS (10 * LH_NS_PER_MS)

/* The rests of a worker's QPs. Those that were idle lately have no say. */
struct rest_lately {
    lh_time since_ns;
    lh_time least_ns;  /* of those that were busy since; LH_TIME_NEVER: none was */
    lh_time before_ns; /* likewise before that */
};

static inline void rest_lately_init(struct rest_lately *lately)
{
    *lately = (struct rest_lately){0, LH_TIME_NEVER, LH_TIME_NEVER};
}

static inline void rest_lately_pass(struct rest_lately *lately, lh_time now)
{
    if (now < lately->since_ns + REST_LATELY_NS)
        return;
    lately->before_ns = now < lately->since_ns + 2 * REST_LATELY_NS ? lately->least_ns : LH_TIME_NEVER;
    lately->least_ns = LH_TIME_NEVER;
    lately->since_ns = now;
}

/* A QP that allows that rest was busy. */
static inline void rest_on_busy(struct rest_lately *lately, lh_time rest_ns, lh_time now)
{
    rest_lately_pass(lately, now);
    lately->least_ns = lh_least(lately->least_ns, rest_ns);
}

/* What all of them allow. 0: no rest. */
static inline lh_time rest_of_all(struct rest_lately *lately, lh_time now)
{
    rest_lately_pass(lately, now);
    lh_time rest_ns = lh_least(lately->least_ns, lately->before_ns);
    return rest_ns == LH_TIME_NEVER ? 0 : rest_ns;
}

#endif
