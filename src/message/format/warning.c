/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/format/warning.h"

#include <stdbool.h>
#include <stdio.h>

#include <longhaul/units.h>

#define MIB ((uint64_t)1 << 20)

/* What this side sends at, as far as it was given; 0: it was not. */
static uint64_t rate_of(const struct lh_attr *attr)
{
    uint64_t link = attr->link.rate_bps;
    uint64_t own = attr->rate_bps;
    return own != 0 && (link == 0 || own < link) ? own : link;
}

static uint64_t whole_mib(uint64_t bytes)
{
    return bytes / MIB + (bytes % MIB != 0);
}

/* Which attributes hold less than the path does: false when none does. */
static bool limits(const struct lh_attr *attr, uint64_t needed, char *out, size_t size)
{
    bool window = attr->window_bytes < needed;
    bool slots = attr->slots * attr->slot_bytes < needed;
    uint64_t mib = whole_mib(needed), count = attr->slots;
    while (slots && count * attr->slot_bytes < needed && count < 1024)
        count *= 2;
    bool larger = slots && count * attr->slot_bytes < needed;
    char text[64] = "";
    if (window)
        snprintf(text, sizeof text, "--window %lluMiB%s", (unsigned long long)mib, slots ? " " : "");
    if (larger)
        snprintf(out, size, "%s--slot-size larger", text);
    else if (slots)
        snprintf(out, size, "%s--slots %llu", text, (unsigned long long)count);
    else
        snprintf(out, size, "%s", text);
    return window || slots;
}

const char *warning_format(const struct lh_attr *attr, lh_time rtt_ns, const char *fabric,
                           char out[WARNING_MAX])
{
    char rate[LH_FORMAT_MAX], time[LH_FORMAT_MAX], holds[LH_FORMAT_MAX], remedy[128];
    double bytes = (double)rate_of(attr) / 8 * (double)rtt_ns / (double)LH_NS_PER_S;
    uint64_t window = attr->slots * attr->slot_bytes;
    window = window < attr->window_bytes ? window : attr->window_bytes;
    uint64_t needed = bytes < (double)(UINT64_MAX / 2) ? (uint64_t)bytes : UINT64_MAX / 2;
    if (!limits(attr, needed, remedy, sizeof remedy))
        return fabric;
    snprintf(out, WARNING_MAX,
             "%s%swindow of %s below rate x round trip (%s x %s): at most %.0f %% of the rate (use %s)",
             fabric ? fabric : "", fabric ? "; " : "", lh_format_size(window, holds, sizeof holds),
             lh_format_rate((double)rate_of(attr), rate, sizeof rate),
             lh_format_time((double)rtt_ns / (double)LH_NS_PER_S, time, sizeof time),
             100 * (double)window / bytes, remedy);
    return out;
}
