/*
 * timing.h - when an unanswered message is sent again, and the path as scheme machines see it. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_CONTROL_TIMING_H
#define LH_MESSAGE_CONTROL_TIMING_H

#include <longhaul/scheme.h>
#include <longhaul/sdr_ext.h>

/* The interval after which an unanswered message is sent again, after that many retransmissions: an overdue
 * round trip, doubling. */
lh_time timing_refresh_interval(const struct lh_sdr_path *path, uint32_t retransmissions);
struct lh_path_view timing_path_view(const struct lh_sdr_path *path);

#endif
