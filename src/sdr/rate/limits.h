/*
 * limits.h - what kept a sender from sending more, and for how long. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_RATE_LIMITS_H
#define LH_SDR_RATE_LIMITS_H

#include <longhaul/congestion.h>

struct limits {
    enum lh_limit now;
    lh_time since_ns; /* 0: nothing noted yet */
    lh_time ns[LH_LIMITS];
};

/* From now on it is this one. Cheap when nothing changes. */
static inline void limits_note(struct limits *limits, enum lh_limit limit, lh_time now)
{
    if (limits->now == limit && limits->since_ns != 0)
        return;
    if (limits->since_ns != 0 && now > limits->since_ns)
        limits->ns[limits->now] += now - limits->since_ns;
    limits->now = limit;
    limits->since_ns = now;
}

/* The host came so late that the pace had let out all it ever does at once, at full_ns: since then it was
 * the host. To be called before limits_note(). */
static inline void limits_late(struct limits *limits, lh_time full_ns, lh_time now)
{
    if (limits->now == LH_LIMIT_RATE && limits->since_ns != 0 && full_ns < now)
        limits_note(limits, LH_LIMIT_HOST, full_ns > limits->since_ns ? full_ns : limits->since_ns);
}

/* How long it was this one, until now. */
static inline lh_time limits_ns(const struct limits *limits, enum lh_limit limit, lh_time now)
{
    bool is_now = limits->now == limit && limits->since_ns != 0 && now > limits->since_ns;
    return limits->ns[limit] + (is_now ? now - limits->since_ns : 0);
}

#endif
