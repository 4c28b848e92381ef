/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/reach.h"

#include <assert.h>

void hybrid_reach_init(struct hybrid_reach *reach)
{
    *reach = (struct hybrid_reach){0};
}

void hybrid_reach_on_injection(struct hybrid_reach *reach, uint32_t stamp, lh_time rtt_ns, lh_time now)
{
    if (now < reach->next_ns)
        return;
    reach->stamps[reach->count++ % HYBRID_TAIL_MAX] = stamp;
    reach->next_ns = now + rtt_ns / 8;
}

uint32_t hybrid_reach_from(const struct hybrid_reach *reach, uint32_t eighths)
{
    if (eighths == 0)
        return UINT32_MAX;
    if (eighths == HYBRID_TAIL_ALL || reach->count < eighths)
        return 0;
    assert(eighths <= HYBRID_TAIL_MAX);
    return reach->stamps[(reach->count - eighths) % HYBRID_TAIL_MAX];
}
