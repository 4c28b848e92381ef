/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf_limit.h"

#define MIB ((uint64_t)1 << 20)

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

const char *cli_perf_limited_by(const struct cli_perf_order *order, const struct cli_perf_result *result)
{
    double window = (double)result->agreed.window_bytes;
    double holds = link_bytes(order, result);
    if ((double)result->size_bytes * order->in_flight <= window || (holds > 0 && holds <= window))
        return NULL;
    return sent_bytes_per_s(order, result) * result->rtt_s >= WINDOW_FULL * window ? "window" : NULL;
}

uint64_t cli_perf_window_needed(const struct cli_perf_order *order, const struct cli_perf_result *result)
{
    double holds = link_bytes(order, result);
    return holds > 0 ? (uint64_t)(holds / (double)MIB) + 1 : 0;
}
