/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/perf/report.h"

#include "cli/results/json.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/table.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/wait.h"

#include <longhaul/units.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static const struct cli_column columns[] = {
    {"#bytes", 11, false},
    {"#iterations", 11, false},
    {"BW average[Gb/sec]", 18, false},
    {"MsgRate[Mpps]", 13, false},
    {"mean", 8, false},
    {"p50", 8, false},
    {"p99", 8, false},
    {"p99.9", 8, false},
    {"max", 8, false},
    {"ideal", 8, false},
    {"retrans", 7, false},
    {.title = NULL},
};

/* With --json - stdout has the object only. */
static FILE *table_out(const struct cli_perf_order *order)
{
    return order->json && !strcmp(order->json, "-") ? stderr : stdout;
}

static struct cli_table make_table(const struct cli_perf_order *order)
{
    FILE *out = table_out(order);
    return (struct cli_table){columns, out, " ", cli_terminal_colours(fileno(out))};
}

static const char *scheme_of(const struct cli_perf_order *order)
{
    return order->attr.reliability ? order->attr.reliability : "auto";
}

void cli_perf_report_titles(const struct cli_perf_order *order, const struct cli_perf_result *result)
{
    char link[LH_LINK_TEXT_MAX], window[LH_FORMAT_MAX], slot[LH_FORMAT_MAX];
    struct cli_table table = make_table(order);
    lh_format_size(result->agreed.window_bytes, window, sizeof window);
    lh_format_size(result->agreed.slot_bytes, slot, sizeof slot);
    fprintf(table.out, " fabric %s, reliability %s, link %s\n", result->fabric, scheme_of(order),
            lh_link_format(&order->attr.link, link, sizeof link));
    fprintf(table.out,
            " mtu %" PRIu32 ", chunk %" PRIu32 ", channels %" PRIu32 ", window %s, slots %" PRIu32
            " x %s, messages in flight %" PRIu32 ", warm-up %" PRIu32 "\n",
            result->agreed.mtu_bytes, result->agreed.chunk_bytes, result->agreed.channels, window,
            result->agreed.slots, slot, order->in_flight, order->warmup);
    cli_table_rule(&table);
    cli_table_titles(&table);
}

static void put_time(struct cli_cell *cell, double seconds)
{
    if (isfinite(seconds))
        lh_format_time(seconds, cell->text, sizeof cell->text);
    else
        snprintf(cell->text, sizeof cell->text, "-");
}

static double retransmitted_share(const struct lh_stats *stats)
{
    return stats->tx_bytes ? (double)stats->tx_retransmitted_bytes / (double)stats->tx_bytes : 0;
}

/* What coding did, when there was any: below the row that it belongs to. */
static void print_coding(const struct cli_perf_order *order, const struct cli_perf_result *result)
{
    char encoding[LH_FORMAT_MAX], decoding[LH_FORMAT_MAX];
    const struct lh_stats *local = &result->local, *peer = &result->peer;
    if (!local->parity_chunks_sent && !peer->chunks_recovered)
        return;
    lh_format_time((double)local->encode_ns / 1e9, encoding, sizeof encoding);
    lh_format_time((double)peer->decode_ns / 1e9, decoding, sizeof decoding);
    fprintf(table_out(order),
            " parity: %" PRIu64 " chunk%s sent, %" PRIu64 " chunk%s recovered, %" PRIu64
            " submessage%s failed in %" PRIu64 " fallback%s; encoding %s, decoding %s\n",
            local->parity_chunks_sent, cli_plural((double)local->parity_chunks_sent),
            peer->chunks_recovered, cli_plural((double)peer->chunks_recovered), peer->submessages_failed,
            cli_plural((double)peer->submessages_failed), peer->fallbacks,
            cli_plural((double)peer->fallbacks), encoding, decoding);
}

#define SHARE_UNITS 1e9

static double share(const struct cli_perf_result *result, enum cli_perf_tally_number number)
{
    return (double)result->tally[number] / SHARE_UNITS;
}

/* What came of messages with a deadline. */
static void print_delivered(const struct cli_perf_order *order, const struct cli_perf_result *result)
{
    uint64_t missing = result->tally[CLI_PERF_MISSING_RANGES],
             passed = result->tally[CLI_PERF_DEADLINE_HITS], preempted = result->tally[CLI_PERF_PREEMPTED];
    if (!result->deadline)
        return;
    fprintf(table_out(order),
            " delivered: %.4f %% of the bytes, %.4f %% of the worst message; %" PRIu64
            " missing range%s, %" PRIu64 " deadline%s passed, %" PRIu64 " message%s preempted\n",
            100 * share(result, CLI_PERF_SHARE_MEAN), 100 * share(result, CLI_PERF_SHARE_MIN), missing,
            cli_plural((double)missing), passed, cli_plural((double)passed), preempted,
            cli_plural((double)preempted));
}

static void put_delivered(struct cli_json *json, const struct cli_perf_result *result)
{
    if (!result->deadline)
        return;
    cli_json_number(json, "delivered_share", share(result, CLI_PERF_SHARE_MEAN));
    cli_json_number(json, "delivered_share_min", share(result, CLI_PERF_SHARE_MIN));
    cli_json_count(json, "missing_ranges", result->tally[CLI_PERF_MISSING_RANGES]);
    cli_json_count(json, "deadline_hits", result->tally[CLI_PERF_DEADLINE_HITS]);
    cli_json_count(json, "preempted", result->tally[CLI_PERF_PREEMPTED]);
}

static void print_limit(const struct cli_perf_order *order, const struct cli_perf_result *result)
{
    char words[LH_BOTTLENECK_WORDS_MAX];
    if (result->bottleneck.bottleneck != LH_BOTTLENECK_NONE)
        fprintf(table_out(order), " limited by: %s\n",
                lh_bottleneck_words(&result->bottleneck, words, sizeof words));
}

void cli_perf_report_row(const struct cli_perf_order *order, const struct cli_perf_result *result)
{
    struct cli_table table = make_table(order);
    struct cli_cell cells[sizeof columns / sizeof columns[0]] = {0};
    const double times[] = {result->mean_s, result->p50_s, result->p99_s,
                            result->p999_s, result->max_s, result->ideal_s};
    double messages_per_s = result->goodput_bps / 8 / (double)result->size_bytes;
    snprintf(cells[0].text, CLI_CELL_MAX, "%" PRIu64, result->size_bytes);
    snprintf(cells[1].text, CLI_CELL_MAX, "%" PRIu32, result->iterations);
    snprintf(cells[2].text, CLI_CELL_MAX, "%.3f", result->goodput_bps / 1e9);
    snprintf(cells[3].text, CLI_CELL_MAX, "%.6f", messages_per_s / 1e6);
    for (unsigned i = 0; i < sizeof times / sizeof times[0]; i++)
        put_time(&cells[4 + i], times[i]);
    snprintf(cells[10].text, CLI_CELL_MAX, "%.3f %%", 100 * retransmitted_share(&result->local));
    cli_table_row(&table, cells);
    print_coding(order, result);
    print_delivered(order, result);
    print_limit(order, result);
    if (*result->chosen)
        fprintf(table.out, " auto: %s\n", result->chosen);
}

static void put_stats(struct cli_json *json, const char *name, const struct lh_stats *stats)
{
    cli_json_open(json, name, '{');
    for (size_t i = 0; i < lh_stats_count(); i++)
        cli_json_count(json, lh_stats_name(i), lh_stats_value(stats, i));
    cli_json_close(json, '}');
}

/* NAN is null. */
static void put_control(struct cli_json *json, const struct cli_perf_result *result)
{
    const struct lh_congestion_report *congestion = &result->congestion;
    double queueing_s = cli_seconds(congestion->queueing_delay_p99_ns);
    double remembered_bps = (double)congestion->remembered_rate_bps;
    cli_json_text(json, "congestion", congestion->controller);
    cli_json_text(json, "limited_by", lh_bottleneck_name(result->bottleneck.bottleneck));
    bool timed = congestion->feedback && congestion->rtt_minimum_ns > 0;
    cli_json_number(json, "queueing_delay_p99_s", timed ? queueing_s : NAN);
    cli_json_number(json, "remembered_rate_bps", remembered_bps > 0 ? remembered_bps : NAN);
}

static void put_result(struct cli_json *json, const struct cli_perf_order *order,
                       const struct cli_perf_result *result)
{
    char link[LH_LINK_TEXT_MAX];
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "reliability", scheme_of(order));
    if (*result->chosen)
        cli_json_text(json, "chosen", result->chosen);
    cli_json_text(json, "fabric", result->fabric);
    cli_json_count(json, "size_bytes", result->size_bytes);
    cli_json_count(json, "iterations", result->iterations);
    cli_json_count(json, "in_flight", order->in_flight);
    cli_json_text(json, "link", lh_link_format(&order->attr.link, link, sizeof link));
    cli_json_number(json, "goodput_bps", result->goodput_bps);
    cli_json_number(json, "completion_mean_s", result->mean_s);
    cli_json_number(json, "completion_p50_s", result->p50_s);
    cli_json_number(json, "completion_p99_s", result->p99_s);
    cli_json_number(json, "completion_p999_s", result->p999_s);
    cli_json_number(json, "completion_max_s", result->max_s);
    cli_json_number(json, "first_s", result->first_s);
    cli_json_number(json, "ideal_s", result->ideal_s);
    put_delivered(json, result);
    put_control(json, result);
    cli_json_count(json, "wire_bytes", result->local.tx_wire_bytes);
    cli_json_count(json, "retransmitted_bytes", result->local.tx_retransmitted_bytes);
    cli_json_count(json, "bad_packets",
                   lh_stats_bad_packets(&result->local) + lh_stats_bad_packets(&result->peer));
    put_stats(json, "local", &result->local);
    put_stats(json, "peer", &result->peer);
    cli_json_close(json, '}');
}

int cli_perf_report_json(const struct cli_perf_order *order, const struct cli_perf_result *results)
{
    bool to_stdout = !strcmp(order->json, "-");
    struct cli_json json = {.out = to_stdout ? stdout : fopen(order->json, "w")};
    if (!json.out)
        return cli_failed("--json %s: %s", order->json, strerror(errno));
    if (order->sizes.count > 1)
        cli_json_open(&json, NULL, '[');
    for (unsigned i = 0; i < order->sizes.count; i++)
        put_result(&json, order, &results[i]);
    if (order->sizes.count > 1)
        cli_json_close(&json, ']');
    cli_json_end(&json);
    if (to_stdout)
        return CLI_PROCEED;
    bool broken = ferror(json.out) != 0;
    if (fclose(json.out) || broken)
        return cli_failed("--json %s: write failed", order->json);
    return CLI_PROCEED;
}
