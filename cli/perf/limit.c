/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/perf/limit.h"

#include "cli/options/limits.h"

#include <inttypes.h>
#include <stdio.h>

/* Of a window per round trip. Acknowledgements wait for each other a little, and losses take some; what the
 * rate limits stays below by more, unless window and link are about the same. */
#define WINDOW_FULL 0.8

/* Bytes that the link holds; 0: its rate is not known. */
static double link_bytes(const struct cli_perf_order *order, const struct cli_perf_result *result)
{
    return (double)order->attr.link.rate_bps / 8 * result->rtt_s;
}

/* While it was sent: the last round trip of a message brings only its acknowledgement. */
static double sent_bytes_per_s(const struct cli_perf_order *order, const struct cli_perf_result *result)
{
    double messages = (double)order->warmup + result->iterations;
    double bytes = (double)result->local.tx_bytes / messages; /* parity and retransmissions, too */
    if (order->in_flight > 1)
        return bytes / (double)result->size_bytes * result->goodput_bps / 8;
    double seconds = result->p50_s - result->rtt_s;
    return seconds > 0 ? bytes / seconds : 0;
}

/* The last slot of a message is not full. */
static uint64_t bytes_per_slot(const struct cli_perf_result *result)
{
    uint64_t slot = result->agreed.slot_bytes;
    return result->size_bytes / (result->size_bytes / slot + (result->size_bytes % slot != 0));
}

static uint64_t slots_hold(const struct cli_perf_result *result)
{
    return result->agreed.slots * bytes_per_slot(result);
}

uint64_t cli_perf_in_flight_max(const struct cli_perf_result *result)
{
    uint64_t slots = slots_hold(result);
    return slots < result->agreed.window_bytes ? slots : result->agreed.window_bytes;
}

const char *cli_perf_limited_by(const struct cli_perf_order *order, const struct cli_perf_result *result)
{
    double most = (double)cli_perf_in_flight_max(result);
    double holds = link_bytes(order, result);
    if ((double)result->size_bytes * order->in_flight <= most || (holds > 0 && holds <= most))
        return NULL;
    return sent_bytes_per_s(order, result) * result->rtt_s >= WINDOW_FULL * most ? "window" : NULL;
}

/* 0: there is no such number of slots. */
static uint64_t slots_needed(const struct cli_perf_result *result, uint64_t bytes)
{
    uint64_t slots = result->agreed.slots;
    while (slots <= CLI_SLOTS_MAX && slots * bytes_per_slot(result) < bytes)
        slots *= 2;
    return slots <= CLI_SLOTS_MAX ? slots : 0;
}

void cli_perf_remedy(const struct cli_perf_order *order, const struct cli_perf_result *result,
                     char out[CLI_PERF_REMEDY_MAX])
{
    uint64_t needed = (uint64_t)(link_bytes(order, result) / (double)CLI_MIB + 1) * CLI_MIB;
    uint64_t slots = slots_needed(result, needed);
    bool window = result->agreed.window_bytes < needed;
    char larger[40] = "";
    if (link_bytes(order, result) <= 0)
        snprintf(out, CLI_PERF_REMEDY_MAX, "%s",
                 result->agreed.window_bytes <= slots_hold(result) ? "raise --window"
                                                                   : "raise --slots or --slot-size");
    else if (!slots)
        snprintf(out, CLI_PERF_REMEDY_MAX, "raise --slot-size, or send larger messages");
    else {
        if (window)
            snprintf(larger, sizeof larger, "--window %" PRIu64 "MiB ", needed / CLI_MIB);
        if (slots > result->agreed.slots)
            snprintf(out, CLI_PERF_REMEDY_MAX, "%s--slots %" PRIu64 " fills the link", larger, slots);
        else
            snprintf(out, CLI_PERF_REMEDY_MAX, "%sfills the link", larger);
    }
}
