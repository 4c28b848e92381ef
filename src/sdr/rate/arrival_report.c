/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/rate/arrival_report.h"

#define REPORTS_A_ROUND_TRIP 8u
#define REPEAT_UNKNOWN_NS    (10 * LH_NS_PER_MS) /* while the round trip is not known */

lh_time arrival_report_span(lh_time rtt_ns)
{
    lh_time span_ns = rtt_ns / REPORTS_A_ROUND_TRIP;
    return span_ns > ARRIVAL_REPORT_SPAN_NS ? span_ns : ARRIVAL_REPORT_SPAN_NS;
}

static lh_time repeat_span(lh_time rtt_ns)
{
    lh_time span_ns = rtt_ns ? rtt_ns : REPEAT_UNKNOWN_NS;
    return span_ns > ARRIVAL_REPORT_SPAN_NS ? span_ns : ARRIVAL_REPORT_SPAN_NS;
}

lh_time arrival_report_next(const struct arrival_report *report, uint64_t packets, lh_time rtt_ns)
{
    uint64_t unreported = packets - report->packets;
    if (unreported > 0 && (report->packets < ARRIVAL_REPORT_FIRST ||
                           (report->packets_max > 0 && unreported > report->packets_max)))
        return 0;
    if (unreported > 0)
        return report->sent_ns +
               (packets < ARRIVAL_REPORT_EARLY ? ARRIVAL_REPORT_SPAN_NS : arrival_report_span(rtt_ns));
    return report->repeat ? report->sent_ns + repeat_span(rtt_ns) : LH_TIME_NEVER;
}

bool arrival_report_due(const struct arrival_report *report, uint64_t packets, lh_time rtt_ns, lh_time now)
{
    return arrival_report_next(report, packets, rtt_ns) <= now;
}

void arrival_report_on_sent(struct arrival_report *report, uint64_t packets, lh_time now)
{
    report->repeat = packets != report->packets;
    report->packets = packets;
    report->sent_ns = now;
}
