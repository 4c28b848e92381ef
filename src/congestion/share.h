/*
 * share.h - amounts that let flows of one queue reach equal shares on every path, from 10 us to 300 ms and
 * from a packet in flight to a gigabyte. In doubles: bytes, nanoseconds, bits a second.
 *
 * Controllers of data centres grow by a packet a round trip, and want the same delay whatever a flow's
 * window: right for windows of some ten packets, while a long path holds tens of thousands. No flow knows the
 * path's whole rate, so no amount that all flows agree on suits every path. Two that depend on a flow's own
 * window do: a growth by its square root, which is relatively slower for the larger of two flows, and a delay
 * target that falls with its logarithm, so that the larger flow gives way first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_SHARE_H
#define LH_CONGESTION_SHARE_H

#include <longhaul/congestion.h>

#define SHARE_RATE_MAX_BPS 1e14 /* what any rate is bounded by: 100 Tbit/s */
#define SHARE_RATE_MIN_BPS 1e4

/* Growth a round trip: half the root of the window, both in packets, but a packet at least. */
double share_step_bytes(double window_bytes, uint32_t mtu_bytes);
/* 1 for a packet in flight, and less by a 20th with each doubling: 0 for 2^20 packets and more. */
double share_smallness(double window_bytes, uint32_t mtu_bytes);

/* Queueing delay that a flow aims at: base_ns for a large one, up to five times that for a packet in flight.
 * Swift's flow scaling (section 3.5 of its paper), by the logarithm instead of the inverse root, which is
 * flat above a hundred packets. */
double share_target_ns(double base_ns, double window_bytes, uint32_t mtu_bytes);

/* Before anything is known of the path, bytes: what its told rate fills, or half of what was found
 * earlier, or 10 packets (RFC 6928). */
double share_first_window_bytes(const struct lh_congestion_path *path);
/* Bytes that fill a time at a rate, and the rate that they need. rtt_ns above 0. */
double share_bytes_of(double rate_bps, double rtt_ns);
double share_rate_of(double bytes, double rtt_ns);

/* What the path delivered, if the feedback says it; else 0. What was sent slowly for another reason says
 * nothing about the path. */
double share_delivered_bps(const struct lh_congestion_feedback *feedback);

/* For decisions: as whole numbers, at most the path's. */
uint64_t share_rate_within(double rate_bps, const struct lh_congestion_path *path);
uint64_t share_window_within(double window_bytes, const struct lh_congestion_path *path);
/* At once leaves no more than a 16th of the window: on short paths the rate alone would let all of it. */
uint64_t share_burst_bytes(double window_bytes, const struct lh_congestion_path *path);

#endif
