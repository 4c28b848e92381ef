/*
 * path.h - what a QP knows of the way to its peer: round trip from echoed times, silence, when to ping.
 * Pure.
 *
 * Timers:
 *   ping   until the first round-trip sample: after 1 ms, doubling up to the keepalive span; from then on
 * when nothing was heard for a while (4 overdue times, doubling up to the keepalive span).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_PATH_H
#define LH_SDR_PATH_H

#include "base/rtt.h"
#include "wire/control.h"

#define PATH_FIRST_PING_NS LH_NS_PER_MS

struct path {
    struct lh_rtt rtt;
    uint64_t newest_ns;      /* newest `sent` of the peer that was heard (its clock); 0: none */
    lh_time newest_heard_ns; /* when (our clock) */
    uint64_t last_echo_ns;   /* newest echo that gave a sample: each gives one */
    lh_time last_heard_ns;   /* 0: never */
    lh_time keepalive_ns;
    lh_time ping_at;
    lh_time ping_span;
};

void path_init(struct path *path, lh_time now, lh_time keepalive_ns);
/* The next ping is due after that span of silence at the latest. */
void path_keepalive_set(struct path *path, lh_time keepalive_ns);
/* A control message with a good token came. */
void path_on_heard(struct path *path, const struct control_header *header, lh_time now);
/* Something else of the peer came: a data packet. */
void path_on_traffic(struct path *path, lh_time now);
/* Fills the times of a header that is about to be sent. */
void path_stamp(const struct path *path, lh_time now, struct control_header *header);
/* True when a ping is due; the next one is then scheduled. */
bool path_ping_due(struct path *path, lh_time now);

#endif
