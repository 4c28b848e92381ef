/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>
#include <longhaul/units.h>

#include <stdbool.h>
#include <stdio.h>

#define MIB ((uint64_t)1 << 20)

const char *lh_bottleneck_name(enum lh_bottleneck bottleneck)
{
    static const char *const names[] = {
#define NAME(constant, name, meaning) name,
        LH_BOTTLENECKS(NAME)
#undef NAME
    };
    return (size_t)bottleneck < sizeof names / sizeof names[0] ? names[bottleneck] : "unknown";
}

/* Bytes that fill the path, in MiB; 0: the path's rate is unknown. */
static uint64_t needed_mib(const struct lh_bottleneck_report *report)
{
    double rate_bps =
        (double)(report->rate_best_bps > report->rate_bps ? report->rate_best_bps : report->rate_bps);
    double bytes = rate_bps / 8 * (double)(report->rtt_ns + report->queueing_ns) / (double)LH_NS_PER_S;
    return bytes > 0 && bytes < 1e15 ? (uint64_t)(bytes / (double)MIB) + 1 : 0;
}

/* The next power of two, for acknowledgements that come in groups. */
static unsigned long long rounded_up(unsigned long long mib)
{
    unsigned long long rounded = 1;
    while (rounded < mib) /* at most 31 turns: see needed_mib() */
        rounded *= 2;
    return rounded;
}

static void format_window(const struct lh_bottleneck_report *report, char *out, size_t size)
{
    char window[LH_FORMAT_MAX];
    unsigned long long needed = needed_mib(report);
    lh_format_size(report->window_bytes, window, sizeof window);
    if (needed * MIB > report->window_bytes)
        snprintf(out, size, "--window %s (rate x round trip needs %lluMiB: --window %lluMiB)", window,
                 needed, rounded_up(needed));
    else
        snprintf(out, size, "--window %s (use a larger one)", window);
}

static void format_slots(const struct lh_bottleneck_report *report, char *out, size_t size)
{
    char slot[LH_FORMAT_MAX];
    unsigned long long needed = needed_mib(report), slots = report->slots ? report->slots : 1;
    while (slots * report->slot_bytes < needed * MIB && slots < 1024)
        slots *= 2;
    lh_format_size(report->slot_bytes, slot, sizeof slot);
    if (slots > report->slots && slots * report->slot_bytes >= needed * MIB)
        snprintf(out, size, "--slots %u of %s (rate x round trip needs %lluMiB: --slots %llu)",
                 report->slots, slot, needed, slots);
    else
        snprintf(out, size, "--slots %u of %s (use more or larger slots)", report->slots, slot);
}

/* What is known of the path in parentheses: nothing that was not measured. */
static void format_facts(const struct lh_bottleneck_report *report, char *out, size_t size)
{
    char rate[LH_FORMAT_MAX], rtt[LH_FORMAT_MAX], queueing[LH_FORMAT_MAX];
    lh_format_rate((double)report->rate_bps, rate, sizeof rate);
    lh_format_time((double)report->rtt_ns / (double)LH_NS_PER_S, rtt, sizeof rtt);
    lh_format_time((double)report->queueing_ns / (double)LH_NS_PER_S, queueing, sizeof queueing);
    bool rate_known = report->rate_bps != 0, rtt_known = report->rtt_ns != 0;
    out[0] = '\0';
    if (rate_known && rtt_known)
        snprintf(out, size, " (%s, round trip %s + %s of queueing)", rate, rtt, queueing);
    else if (rtt_known)
        snprintf(out, size, " (round trip %s + %s of queueing)", rtt, queueing);
    else if (rate_known)
        snprintf(out, size, " (%s)", rate);
}

static void format_competition(const struct lh_bottleneck_report *report, char *out, size_t size)
{
    char rate[LH_FORMAT_MAX], best[LH_FORMAT_MAX], queueing[LH_FORMAT_MAX];
    lh_format_rate((double)report->rate_bps, rate, sizeof rate);
    lh_format_rate((double)report->rate_best_bps, best, sizeof best);
    lh_format_time((double)report->queueing_ns / (double)LH_NS_PER_S, queueing, sizeof queueing);
    snprintf(out, size, "a competing load, or a path that became slower (%s of %s, %s of queueing)", rate,
             best, queueing);
}

static void format_rate(const struct lh_bottleneck_report *report, char *out, size_t size)
{
    char rate[LH_FORMAT_MAX];
    const char *what = report->emulated ? "the emulated link" : "the given rate";
    lh_format_rate((double)report->rate_bps, rate, sizeof rate);
    if (report->rate_bps != 0)
        snprintf(out, size, "%s (%s)", what, rate);
    else
        snprintf(out, size, "%s", what);
}

static void format_receiver(const struct lh_bottleneck_report *report, char *out, size_t size)
{
    if (report->receiver_drops)
        snprintf(out, size,
                 "the receiver's CPU (its sockets dropped %llu packets: raise net.core.rmem_max there, or "
                 "use --workers)",
                 (unsigned long long)report->receiver_drops);
    else
        snprintf(out, size, "the receiver (it reads, or posts receives, later than data could arrive)");
}

char *lh_bottleneck_words(const struct lh_bottleneck_report *report, char *out, size_t size)
{
    char facts[3 * LH_FORMAT_MAX + 32];
    switch (report->bottleneck) {
    case LH_BOTTLENECK_NONE:
        snprintf(out, size, "nothing known");
        break;
    case LH_BOTTLENECK_APPLICATION:
        snprintf(
            out, size,
            "the application (nothing to send for %.0f %% of the time: use larger messages, or more in "
            "flight)",
            100 * report->share);
        break;
    case LH_BOTTLENECK_RATE:
        format_rate(report, out, size);
        break;
    case LH_BOTTLENECK_PATH:
        format_facts(report, facts, sizeof facts);
        snprintf(out, size, "the path's queue%s", facts);
        break;
    case LH_BOTTLENECK_COMPETITION:
        format_competition(report, out, size);
        break;
    case LH_BOTTLENECK_LOSS:
        snprintf(out, size, "loss or reordering (%.2g %% retransmitted: use %s)",
                 100 * report->retransmitted,
                 report->coded ? "more parity" : "--reliability ec:mds at the receiver");
        break;
    case LH_BOTTLENECK_WINDOW:
        format_window(report, out, size);
        break;
    case LH_BOTTLENECK_SLOTS:
        format_slots(report, out, size);
        break;
    case LH_BOTTLENECK_RECEIVER:
        format_receiver(report, out, size);
        break;
    case LH_BOTTLENECK_HOST:
        snprintf(out, size, "%s",
                 report->device ? "this host's network device (it takes no more)"
                                : "this host's CPU (use --channels and --workers)");
        break;
    }
    return out;
}
