/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/bottleneck.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/congestion.h>
#include <longhaul/connection.h>
#include <longhaul/units.h>

#include "base/units.h"
#include "message/attributes.h"
#include "message/tx_state.h"
#include "wire/roce_packet.h"

/* ---- bottleneck ------------------------------------------------------------------------------------ */

/* Retransmitted: a message of 16 MiB needs four rounds or more then. Codes with the parity that they have by
 * default leave nothing to retransmit until about twice that is lost. */
#define LOSS_SHARE 0.05
/* A queue stands that is this part of a round trip, and no scheduler's noise. What jitter, reordering and a
 * pace of a few packets a round trip add to some packets is no queue: the shortest delay counts. */
#define STANDING_SHARE    4u
#define STANDING_NS       LH_NS_PER_MS
#define COMPETITION_SHARE 2u /* of the best rate */
#define BOTTLENECKS       (LH_BOTTLENECK_HOST + 1)

/* ---- where the time went ----------------------------------------------------------------------------- */

/* The part of a time that is in proportion to one of two others. */
static lh_time part_of(lh_time whole, lh_time one, lh_time others)
{
    return one + others > 0 ? (lh_time)((double)whole * ((double)one / (double)(one + others))) : 0;
}

struct bottleneck_times bottleneck_times_of(const lh_time limited_ns[LH_LIMITS],
                                            const struct tx_waits *waits)
{
    const lh_time *waited = waits->ns;
    lh_time idle = limited_ns[LH_LIMIT_IDLE], window = limited_ns[LH_LIMIT_USER_WINDOW];
    lh_time known = waited[TX_WAIT_MESSAGE] + waited[TX_WAIT_ACKNOWLEDGEMENT] + waited[TX_WAIT_SLOTS] +
                    waited[TX_WAIT_RECEIVE];
    lh_time buffer = part_of(window, waited[TX_WAIT_BUFFER], waited[TX_WAIT_WINDOW]);
    struct bottleneck_times times = {
        .acknowledgement_ns =
            part_of(idle, waited[TX_WAIT_ACKNOWLEDGEMENT], known - waited[TX_WAIT_ACKNOWLEDGEMENT]),
        .window_ns = window - buffer,
        .slots_ns = part_of(idle, waited[TX_WAIT_SLOTS], known - waited[TX_WAIT_SLOTS]),
        .receiver_ns = limited_ns[LH_LIMIT_RECEIVER] + buffer +
                       part_of(idle, waited[TX_WAIT_RECEIVE], known - waited[TX_WAIT_RECEIVE]),
        .pace_ns = limited_ns[LH_LIMIT_RATE] + limited_ns[LH_LIMIT_WINDOW] + limited_ns[LH_LIMIT_CREDIT],
        .device_ns = limited_ns[LH_LIMIT_FABRIC],
        .cpu_ns = limited_ns[LH_LIMIT_HOST],
    };
    times.message_ns =
        known > 0 ? part_of(idle, waited[TX_WAIT_MESSAGE], known - waited[TX_WAIT_MESSAGE]) : idle;
    return times;
}

static enum lh_bottleneck of_the_pace(const struct bottleneck_facts *facts)
{
    if (facts->given || facts->at_most)
        return LH_BOTTLENECK_RATE;
    return facts->receiver_slow ? LH_BOTTLENECK_RECEIVER : LH_BOTTLENECK_PATH;
}

static void add_up(const struct bottleneck_times *times, const struct bottleneck_facts *facts,
                   lh_time spent[BOTTLENECKS])
{
    spent[LH_BOTTLENECK_APPLICATION] = times->message_ns + times->acknowledgement_ns;
    spent[LH_BOTTLENECK_WINDOW] = times->window_ns;
    spent[LH_BOTTLENECK_SLOTS] = times->slots_ns;
    spent[LH_BOTTLENECK_RECEIVER] = times->receiver_ns;
    spent[of_the_pace(facts)] += times->pace_ns;
    spent[facts->emulated ? LH_BOTTLENECK_RATE : LH_BOTTLENECK_HOST] += times->device_ns;
    spent[LH_BOTTLENECK_HOST] += times->cpu_ns;
}

static enum lh_bottleneck largest_of(const lh_time spent[BOTTLENECKS], lh_time *total)
{
    enum lh_bottleneck largest = LH_BOTTLENECK_NONE;
    *total = 0;
    for (unsigned i = 0; i < BOTTLENECKS; i++) {
        *total += spent[i];
        if (spent[i] > spent[largest])
            largest = (enum lh_bottleneck)i;
    }
    return largest;
}

/* ---- what is behind it ------------------------------------------------------------------------------- */

static bool queue_stands(const struct bottleneck_facts *facts, const struct lh_bottleneck_report *report)
{
    return facts->queue_known && facts->standing_ns >= STANDING_NS &&
           facts->standing_ns >= report->rtt_ns / STANDING_SHARE;
}

/* A load beside ours, or a path that became slower: of the queue, packets of ours are as large a part as of
 * what comes through. */
static bool others_fill_the_queue(const struct bottleneck_facts *facts,
                                  const struct lh_bottleneck_report *report)
{
    return queue_stands(facts, report) && report->rate_bps > 0 &&
           report->rate_bps <= report->rate_best_bps / COMPETITION_SHARE;
}

/* Not by a queue of our own or a policer, as far as is known: a flood without rate and controller loses,
 * too. */
static bool loses_too_much(const struct bottleneck_facts *facts, const struct lh_bottleneck_report *report)
{
    return report->retransmitted >= LOSS_SHARE && !queue_stands(facts, report) &&
           (!facts->loss_known || facts->random_loss >= LOSS_SHARE / 2) &&
           (facts->queue_known || facts->given);
}

static enum lh_bottleneck behind(enum lh_bottleneck largest, const struct bottleneck_times *times,
                                 const struct bottleneck_facts *facts,
                                 const struct lh_bottleneck_report *report)
{
    bool own = largest == LH_BOTTLENECK_HOST || largest == LH_BOTTLENECK_RECEIVER ||
               (largest == LH_BOTTLENECK_APPLICATION && times->message_ns > times->acknowledgement_ns);
    if (largest == LH_BOTTLENECK_PATH && others_fill_the_queue(facts, report))
        return LH_BOTTLENECK_COMPETITION;
    if (!own && report->receiver_drops == 0 && loses_too_much(facts, report))
        return LH_BOTTLENECK_LOSS;
    return largest;
}

void bottleneck_decide(const struct bottleneck_times *times, const struct bottleneck_facts *facts,
                       struct lh_bottleneck_report *report)
{
    lh_time spent[BOTTLENECKS] = {0}, total;
    add_up(times, facts, spent);
    enum lh_bottleneck largest = largest_of(spent, &total);
    report->bottleneck = behind(largest, times, facts, report);
    report->share = total > 0 ? (double)spent[largest] / (double)total : 0;
    report->device = !facts->emulated && times->device_ns > times->cpu_ns;
    report->emulated = facts->emulated && times->device_ns >= times->pace_ns;
}

/* ---- bottleneck format ----------------------------------------------------------------------------- */

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

static void format_path_limit(const struct lh_bottleneck_report *report, char *out, size_t size)
{
    char facts[3 * LH_FORMAT_MAX + 32], policed[LH_FORMAT_MAX];
    format_facts(report, facts, sizeof facts);
    lh_format_rate((double)report->policed_rate_bps, policed, sizeof policed);
    if (report->policed_rate_bps != 0)
        snprintf(out, size, "a policer on the path, which drops what exceeds %s", policed);
    else
        snprintf(out, size, "the path's queue%s", facts);
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
        snprintf(out, size, "the receiver (it reads, or posts receives, too late)");
}

char *lh_bottleneck_words(const struct lh_bottleneck_report *report, char *out, size_t size)
{
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
        format_path_limit(report, out, size);
        break;
    case LH_BOTTLENECK_COMPETITION:
        format_competition(report, out, size);
        break;
    case LH_BOTTLENECK_LOSS:
        snprintf(out, size, "loss or reordering (%.2g %% retransmitted%s)", 100 * report->retransmitted,
                 report->coded ? ", although parity was sent"
                               : ": use --reliability hybrid at the receiver");
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
        snprintf(out, size, "this host's %s",
                 report->device           ? "network device (its queue is full)"
                 : report->processor_left ? "CPU (use --channels and --workers)"
                                          : "CPU (no processor is left for more --workers)");
        break;
    }
    return out;
}

/* ---- scheme format --------------------------------------------------------------------------------- */

/* What is known of the path, in words: nothing that was not measured is a number. */
static void format_path(const struct lh_scheme_report *report, char *out, size_t size)
{
    char rtt[LH_FORMAT_MAX] = "not known yet", rate[LH_FORMAT_MAX] = "a rate not known yet";
    char planned[LH_FORMAT_MAX] = "";
    if (report->rtt_ns > 0)
        lh_format_time((double)report->rtt_ns / (double)LH_NS_PER_S, rtt, sizeof rtt);
    if (report->chunks_seen == 0) {
        snprintf(out, size, "round trip %s, no chunk received yet", rtt);
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
        snprintf(out, size, "%s, as requested", report->scheme);
        return out;
    }
    format_path(report, path, sizeof path);
    lh_format_size(report->message_bytes, bytes, sizeof bytes);
    lh_format_time(report->expected_s, seconds, sizeof seconds);
    lh_format_time(report->other_expected_s, other, sizeof other);
    if (report->chunks_lost == 0 && report->plans == 0)
        snprintf(out, size, "%s until %s; %s", report->scheme,
                 strcmp(report->scheme, SCHEME_NAME_PLAIN) == 0 ? "something is lost" : "the path is known",
                 path);
    else if (report->expected_s == 0)
        snprintf(out, size, "%s for messages of %s, not planned yet; %s", report->scheme, bytes, path);
    else if (report->other[0] == '\0')
        snprintf(out, size, "%s for messages of %s: %s expected; %s", report->scheme, bytes, seconds, path);
    else
        snprintf(out, size, "%s for messages of %s: %s expected, %s by %s; %s", report->scheme, bytes,
                 seconds, other, report->other, path);
    return out;
}

/* ---- warning --------------------------------------------------------------------------------------- */

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
    uint32_t pieces = attr->mtu_bytes / packet_bytes;
    snprintf(text, sizeof text,
             "packets of MTU %u no longer pass the path: each is sent as %u pieces of %u bytes (a link has "
             "a smaller MTU; use --mtu %u)",
             attr->mtu_bytes, pieces, packet_bytes, packet_bytes - packet_bytes % ROCE_PAYLOAD_STEP);
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
