/*
 * auto_deadline.h - deadline=auto: from what the messages before took, by the byte that came (OptiNIC,
 * section 3.1.2, within one connection; nothing is exchanged).
 *
 * The first is a share of the peer timeout: nothing is known. Each message that got something gives a
 * cost, its time by the bytes that came: one that was cut off counts as slow, so that the deadline grows
 * again. It is smoothed, and the deadline is 1.25 times what it makes for the buffer, two round trips,
 * and 50 us.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_AUTO_DEADLINE_H
#define LH_MESSAGE_RX_AUTO_DEADLINE_H

#include <longhaul/types.h>

struct auto_deadline {
    double cost_ns;   /* of a byte; 0: nothing is known */
    uint32_t nothing; /* messages in a row of which nothing came */
};

/* For a message of so many bytes; between 1 us and limit_ns. */
lh_time auto_deadline_of(const struct auto_deadline *automatic, uint64_t bytes, lh_time rtt_ns,
                         lh_time limit_ns);
/* A message has ended: the time from when its deadline counted, and the bytes that came. */
void auto_deadline_on_end(struct auto_deadline *automatic, lh_time took_ns, uint64_t arrived_bytes);

#endif
