/*
 * flow.h - one round of a probe: packets of one size at an even pace, and the outcome.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_FLOW_H
#define LH_PROBE_FLOW_H

#include "probe/session.h"

struct flow_order {
    uint32_t payload_bytes;
    uint32_t packets;
    uint32_t flows; /* packets go to them by turns */
    lh_time gap_ns; /* from one packet to the next */
};

struct flow_outcome {
    uint32_t sent;   /* less than ordered when it took too long */
    lh_time span_ns; /* from the first send to the last */
    bool pushed_back;
    struct probe_message report;
};

int flow_run(struct probe_session *session, const struct flow_order *order, struct flow_outcome *outcome);

/* Bits per second on the wire, from the IP header up, of packets that follow each other in that span. */
double flow_rate_bps(const struct probe_session *session, const struct flow_order *order, uint64_t packets,
                     lh_time span_ns);

#endif
