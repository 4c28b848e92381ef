/*
 * arrival_report.h - when a receiver reports what arrived. Pure.
 *
 * A report carries totals, so a lost one costs nothing but time. One is due when something new has arrived
 * and an eighth of a round trip has passed since the last one (at least ARRIVAL_REPORT_SPAN_NS), or at once
 * when what is not reported takes a good part of the socket buffer, for the sender counts it as waiting
 * there; and sooner while the first packets arrive, for their spacing is all that the sender knows of the
 * path's rate. The last one before a silence is sent twice, a round trip apart.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_RATE_ARRIVAL_REPORT_H
#define LH_SDR_RATE_ARRIVAL_REPORT_H

#include <longhaul/types.h>

#define ARRIVAL_REPORT_SPAN_NS (250 * LH_NS_PER_US)
#define ARRIVAL_REPORT_FIRST   128u  /* packets: each is reported at once, */
#define ARRIVAL_REPORT_EARLY   2048u /* and these after ARRIVAL_REPORT_SPAN_NS, whatever the round trip */

struct arrival_report {
    uint64_t packets_max; /* that may be unreported; 0: no limit */
    uint64_t packets;     /* the total that was last reported */
    lh_time sent_ns;      /* when that was */
    bool repeat;          /* it may have been the last one: once more */
};

/* The span between two reports; rtt_ns: smoothed, 0: unknown. */
lh_time arrival_report_span(lh_time rtt_ns);
bool arrival_report_due(const struct arrival_report *report, uint64_t packets, lh_time rtt_ns, lh_time now);
/* A report with that total was sent. */
void arrival_report_on_sent(struct arrival_report *report, uint64_t packets, lh_time now);
/* When the next one is due if nothing else arrives; LH_TIME_NEVER. */
lh_time arrival_report_next(const struct arrival_report *report, uint64_t packets, lh_time rtt_ns);

#endif
