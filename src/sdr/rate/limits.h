/*
 * limits.h - what kept a sender from sending more, and for how long. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_RATE_LIMITS_H
#define LH_SDR_RATE_LIMITS_H

#include <longhaul/types.h>

enum limit {
    LIMIT_IDLE,        /* nothing to send */
    LIMIT_HOST,        /* nothing but the speed of this host */
    LIMIT_RATE,        /* the pace */
    LIMIT_WINDOW,      /* the controller's window */
    LIMIT_USER_WINDOW, /* the largest window that the user allows */
    LIMIT_RECEIVER,    /* what the peer's sockets hold */
    LIMIT_CREDIT,
    LIMIT_FABRIC, /* it took no more */
    LIMITS,
};

struct limits {
    enum limit now;
    lh_time since_ns; /* 0: nothing noted yet */
    lh_time ns[LIMITS];
};

/* From now on it is this one. Cheap when nothing changes. */
static inline void limits_note(struct limits *limits, enum limit limit, lh_time now)
{
    if (limits->now == limit && limits->since_ns != 0)
        return;
    if (limits->since_ns != 0 && now > limits->since_ns)
        limits->ns[limits->now] += now - limits->since_ns;
    limits->now = limit;
    limits->since_ns = now;
}

#endif
