/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/format/warning.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

static void add(char out[WARNING_MAX], const char *text)
{
    size_t used = strlen(out);
    snprintf(out + used, WARNING_MAX - used, "%s%s", used > 0 ? "; " : "", text);
}

static void add_packets(const struct lh_attr *attr, uint32_t packet_bytes, char out[WARNING_MAX])
{
    char text[WARNING_MAX];
    if (packet_bytes >= attr->mtu_bytes)
        return;
    snprintf(text, sizeof text,
             "packets of MTU %u do not pass the path any more: each travels in %u of %u bytes (a link that "
             "takes "
             "only smaller packets; use --mtu %u)",
             attr->mtu_bytes, attr->mtu_bytes / packet_bytes, packet_bytes, packet_bytes);
    add(out, text);
}

static void add_window(const struct lh_attr *attr, lh_time rtt_ns, char out[WARNING_MAX])
{
    char rate[LH_FORMAT_MAX], time[LH_FORMAT_MAX], holds[LH_FORMAT_MAX], remedy[128], text[WARNING_MAX];
    double bytes = (double)rate_of(attr) / 8 * (double)rtt_ns / (double)LH_NS_PER_S;
    uint64_t window = attr->slots * attr->slot_bytes;
    window = window < attr->window_bytes ? window : attr->window_bytes;
    uint64_t needed = bytes < (double)(UINT64_MAX / 2) ? (uint64_t)bytes : UINT64_MAX / 2;
    if (!limits(attr, needed, remedy, sizeof remedy))
        return;
    snprintf(text, sizeof text,
             "window of %s below rate x round trip (%s x %s): at most %.0f %% of the rate (use %s)",
             lh_format_size(window, holds, sizeof holds),
             lh_format_rate((double)rate_of(attr), rate, sizeof rate),
             lh_format_time((double)rtt_ns / (double)LH_NS_PER_S, time, sizeof time),
             100 * (double)window / bytes, remedy);
    add(out, text);
}

const char *warning_format(const struct lh_attr *attr, const struct warning_facts *facts,
                           char out[WARNING_MAX])
{
    out[0] = '\0';
    if (facts->fabric)
        add(out, facts->fabric);
    add_packets(attr, facts->packet_bytes, out);
    add_window(attr, facts->rtt_ns, out);
    return out[0] != '\0' ? out : NULL;
}
