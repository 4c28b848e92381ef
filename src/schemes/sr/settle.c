/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/settle.h"

#include <assert.h>

void sr_settle_init(struct sr_settle *settle)
{
    settle->settled = (struct sr_sample){0};
    settle->newest = (struct sr_sample){0};
    settle->opened_ns = 0;
    settle->first = 0;
    settle->count = 0;
}

static struct sr_sample *last_entry(struct sr_settle *settle)
{
    assert(settle->count > 0 && settle->count <= SR_SAMPLES);
    return &settle->ring[(settle->first + settle->count - 1) % SR_SAMPLES];
}

void sr_settle_add(struct sr_settle *settle, uint32_t through, uint32_t mark,
                   const struct sr_timing *timing, lh_time now)
{
    struct sr_sample *newest = &settle->newest;
    if (through <= newest->through && mark <= newest->mark)
        return;
    newest->at_ns = now;
    if (through > newest->through)
        newest->through = through;
    if (mark > newest->mark)
        newest->mark = mark;
    bool shares = settle->count > 0 && now - settle->opened_ns < timing->window_ns / 16;
    if (!shares && settle->count < SR_SAMPLES) {
        settle->count++;
        settle->opened_ns = now;
    }
    *last_entry(settle) = *newest; /* its time is that of the newest it holds, so nothing settles early */
}

lh_time sr_settle_expiry(const struct sr_settle *settle, const struct sr_timing *timing)
{
    return settle->count == 0 ? LH_TIME_NEVER
                              : sr_after(settle->ring[settle->first].at_ns, timing->window_ns);
}

const struct sr_sample *sr_settle_oldest(const struct sr_settle *settle)
{
    assert(settle->count > 0);
    return &settle->ring[settle->first];
}

void sr_settle_on_expired(struct sr_settle *settle)
{
    settle->settled = *sr_settle_oldest(settle);
    settle->first = (settle->first + 1) % SR_SAMPLES;
    settle->count--;
    assert(settle->settled.through <= settle->newest.through &&
           settle->settled.mark <= settle->newest.mark);
}
