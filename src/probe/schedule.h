/*
 * schedule.h - how the time of a probe is divided: trials, packets and pace for each payload size.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_SCHEDULE_H
#define LH_PROBE_SCHEDULE_H

#include <longhaul/probe.h>

/* Small packets come no faster than any host can handle beside its other work. */
#define SCHEDULE_GAP_MIN_NS (20 * LH_NS_PER_US)
/* Shorter trials show little, so there are fewer of them then; and a trial has some packets. */
#define SCHEDULE_SPAN_MIN_NS (40 * LH_NS_PER_MS)
#define SCHEDULE_PACKETS_MIN 100u

struct schedule_wish {
    lh_time left_ns;       /* for all trials */
    lh_time overhead_ns;   /* of a trial: its first and last messages */
    uint64_t rate_bps;     /* not faster; above 0 */
    uint32_t header_bytes; /* below the payload: IP and UDP */
    uint32_t size_count;
    const uint32_t *payload_bytes;
    uint32_t trials;
    uint32_t packets; /* 0: what time allows */
};

struct schedule {
    uint32_t trials;
    uint32_t packets[LH_PROBE_SIZES_MAX]; /* of a trial */
    lh_time gap_ns[LH_PROBE_SIZES_MAX];
};

/* From one packet to the next, for that rate. */
lh_time schedule_gap_ns(uint64_t rate_bps, uint32_t wire_bytes);
struct schedule schedule_make(const struct schedule_wish *wish);

#endif
