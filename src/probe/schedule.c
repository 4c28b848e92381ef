/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/schedule.h"

#include <assert.h>

#define BITS_PER_BYTE 8u

lh_time schedule_gap_ns(uint64_t rate_bps, uint32_t wire_bytes)
{
    assert(rate_bps > 0);
    return (lh_time)wire_bytes * BITS_PER_BYTE * LH_NS_PER_S / rate_bps;
}

static lh_time span_of(const struct schedule_wish *wish, uint32_t trials)
{
    lh_time each = wish->left_ns / (trials * wish->size_count);
    return each > wish->overhead_ns ? each - wish->overhead_ns : 0;
}

static uint32_t packets_in(lh_time span_ns, lh_time gap_ns)
{
    lh_time packets = span_ns / gap_ns;
    if (packets < SCHEDULE_PACKETS_MIN)
        return SCHEDULE_PACKETS_MIN;
    return packets < LH_PROBE_PACKETS_MAX ? (uint32_t)packets : LH_PROBE_PACKETS_MAX;
}

struct schedule schedule_make(const struct schedule_wish *wish)
{
    assert(wish->trials > 0 && wish->size_count > 0 && wish->size_count <= LH_PROBE_SIZES_MAX);
    struct schedule made = {.trials = wish->trials};
    while (wish->packets == 0 && made.trials > 1 && span_of(wish, made.trials) < SCHEDULE_SPAN_MIN_NS)
        made.trials--;
    for (uint32_t i = 0; i < wish->size_count; i++) {
        lh_time gap_ns = schedule_gap_ns(wish->rate_bps, wish->header_bytes + wish->payload_bytes[i]);
        made.gap_ns[i] = gap_ns > SCHEDULE_GAP_MIN_NS ? gap_ns : SCHEDULE_GAP_MIN_NS;
        made.packets[i] =
            wish->packets > 0 ? wish->packets : packets_in(span_of(wish, made.trials), made.gap_ns[i]);
    }
    return made;
}
