/* SPDX-License-Identifier: BSD-3-Clause */
#include <longhaul/connection.h>
#include <longhaul/units.h>

#include <stdio.h>

#include "base/decimal.h"

/* What is known of the path, in words: nothing that was not measured is a number. */
static void say_path(const struct lh_scheme_report *report, char *out, size_t size)
{
    char rtt[LH_FORMAT_MAX] = "not known yet", rate[LH_FORMAT_MAX] = "a rate not known yet";
    char planned[LH_FORMAT_MAX] = "";
    if (report->rtt_ns > 0)
        lh_format_time((double)report->rtt_ns / (double)LH_NS_PER_S, rtt, sizeof rtt);
    if (report->chunks_seen == 0) {
        snprintf(out, size, "round trip %s, nothing was received yet", rtt);
        return;
    }
    if (report->rate_bps > 0)
        lh_format_rate(report->rate_bps, rate, sizeof rate);
    if (report->chunks_lost == 0) {
        snprintf(out, size, "round trip %s, %s, none of %llu chunks lost", rtt, rate,
                 (unsigned long long)report->chunks_seen);
        return;
    }
    if (report->chunk_loss_planned > 0)
        snprintf(planned, sizeof planned, ", planned for %.1e", report->chunk_loss_planned);
    snprintf(out, size, "round trip %s, %s, %llu of %llu chunks lost in runs of %.1f%s", rtt, rate,
             (unsigned long long)report->chunks_lost, (unsigned long long)report->chunks_seen,
             report->run_chunks, planned);
}

char *lh_scheme_report_words(const struct lh_scheme_report *report, char *out, size_t size)
{
    char path[LH_SCHEME_WORDS_MAX / 2], bytes[LH_FORMAT_MAX], seconds[LH_FORMAT_MAX], other[LH_FORMAT_MAX];
    if (!report->automatic) {
        snprintf(out, size, "%s, as it was asked for", report->scheme);
        return out;
    }
    say_path(report, path, sizeof path);
    lh_format_size(report->message_bytes, bytes, sizeof bytes);
    lh_format_time(report->expected_s, seconds, sizeof seconds);
    lh_format_time(report->other_expected_s, other, sizeof other);
    if (report->chunks_lost == 0 && report->plans == 0)
        snprintf(out, size, "%s until something is lost; %s", report->scheme, path);
    else if (report->expected_s == 0)
        snprintf(out, size, "%s for messages of %s, not planned yet; %s", report->scheme, bytes, path);
    else if (report->other[0] == '\0')
        snprintf(out, size, "%s for messages of %s: %s expected; %s", report->scheme, bytes, seconds, path);
    else
        snprintf(out, size, "%s for messages of %s: %s expected, %s by %s; %s", report->scheme, bytes,
                 seconds, other, report->other, path);
    return out;
}
