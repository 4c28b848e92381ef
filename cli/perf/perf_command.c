/*
 * perf_command.c - longhaul perf --server, longhaul perf HOST[:PORT]: the options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <longhaul/units.h>

#include "cli/file/file_blocks.h"
#include "cli/options/cli_options.h"
#include "cli/options/option_values.h"
#include "cli/options/peer_address.h"
#include "cli/perf/perf_messages.h"
#include "cli/results/json.h"
#include "cli/results/result_file.h"
#include "cli/terminal/terminal.h"

/* ---- report ---------------------------------------------------------------------------------------- */

/* Results of longhaul perf as a table and as JSON. */

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

/* What holds for all rows, and the titles of the columns. */
static void cli_perf_report_titles(const struct cli_perf_order *order, const struct cli_perf_result *result)
{
    char link[LH_LINK_TEXT_MAX], window[LH_FORMAT_MAX], slot[LH_FORMAT_MAX];
    struct cli_table table = make_table(order);
    lh_format_size(result->agreed.window_bytes, window, sizeof window);
    lh_format_size(result->agreed.slot_bytes, slot, sizeof slot);
    fprintf(table.out, " fabric %s, reliability %s, link %s", result->fabric, scheme_of(order),
            lh_link_format(&order->attr.link, link, sizeof link));
    if (order->attr.security)
        fprintf(table.out, ", encryption %s", cli_encryption_name(&order->attr));
    fputc('\n', table.out);
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

/* The options of this side apply to both: nothing is to be done at the receiver, as the library advises. */
static void print_limit(const struct cli_perf_order *order, const struct cli_perf_result *result)
{
    const struct lh_bottleneck_report *report = &result->bottleneck;
    char words[LH_BOTTLENECK_WORDS_MAX];
    if (report->bottleneck == LH_BOTTLENECK_NONE)
        return;
    lh_bottleneck_words(report, words, sizeof words);
    if (report->bottleneck == LH_BOTTLENECK_LOSS && !report->coded)
        snprintf(words, sizeof words,
                 "loss or reordering (%.2g %% retransmitted: use --reliability hybrid)",
                 100 * report->retransmitted);
    fprintf(table_out(order), " limited by: %s\n", words);
}

static void cli_perf_report_row(const struct cli_perf_order *order, const struct cli_perf_result *result)
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
    cli_json_text(json, "encryption", cli_encryption_name(&order->attr));
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

/* Into order->json: one object for one size, an array of objects for a sweep. CLI_PROCEED or
 * CLI_EXIT_FAILED. */
static int cli_perf_report_json(const struct cli_perf_order *order, const struct cli_perf_result *results)
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

/* ---- client ---------------------------------------------------------------------------------------- */

/*
 * The measuring side of longhaul perf.
 *
 * The side that sends and measures.
 */

/* UDP 8, BTH 12, RETH 16, immediate 4, iCRC 4. */
#define ROCE_BYTES 44
/* The header and ICV of an encrypted packet, which has no iCRC. */
#define SEALED_EXTRA_BYTES 28

/* The measurement of one size. */
struct measurement {
    const struct cli_perf_order *order;
    struct lh_connection *control;
    struct lh_connection *connection; /* the one that is measured */
    struct lh_memory *registered;
    uint8_t *payload;
    bool deadline;                /* messages have one */
    struct lh_request **requests; /* in_flight of them */
    double *completions_s;        /* of the measured messages */
    lh_time first_started_ns, last_ended_ns;
    struct cli_perf_result *result;
};

static int failed(const char *what, int code)
{
    if (code == -LH_ECANCELED && cli_stopped())
        return cli_stopped();
    return cli_failed("%s: %s", what, lh_strerror(code));
}

/* Of a call on one of the connections, or of a wait for it. */
static int connection_failed(const char *what, struct lh_connection *connection, int code)
{
    if (code == -LH_ECANCELED && cli_stopped())
        return cli_stopped();
    return cli_failed("%s: %s", what, cli_connection_strerror(connection, code));
}

static int refused(struct cli_perf_message *message)
{
    cli_text_clean(message->text, strlen(message->text));
    return cli_failed("refused by the server: %s", message->text);
}

/* Asks for a run; *port is where to connect for it. */
static int ask(struct measurement *m, uint16_t *port)
{
    const struct lh_attr *attr = &m->order->attr;
    struct cli_perf_message run = {.kind = CLI_PERF_RUN, .count = CLI_PERF_RUN_NUMBERS}, ready;
    run.numbers[CLI_PERF_SIZE_BYTES] = m->result->size_bytes;
    run.numbers[CLI_PERF_MESSAGES] = (uint64_t)m->order->warmup + m->order->iterations;
    run.numbers[CLI_PERF_IN_FLIGHT] = m->order->in_flight;
    run.numbers[CLI_PERF_CHANNELS] = attr->channels;
    run.numbers[CLI_PERF_WORKERS] = attr->workers;
    run.numbers[CLI_PERF_MTU_BYTES] = attr->mtu_bytes;
    run.numbers[CLI_PERF_CHUNK_BYTES] = attr->chunk_bytes;
    run.numbers[CLI_PERF_SLOTS] = attr->slots;
    run.numbers[CLI_PERF_SLOT_BYTES] = attr->slot_bytes;
    run.numbers[CLI_PERF_WINDOW_BYTES] = attr->window_bytes;
    snprintf(run.text, sizeof run.text, "%s", attr->reliability ? attr->reliability : "");
    int code = cli_perf_send(m->control, &run);
    if (!code)
        code = cli_perf_receive(m->control, CLI_PERF_READY, CLI_PERF_TIMEOUT_NS, &ready);
    if (code)
        return connection_failed("asking the server for a run", m->control, code);
    if (ready.flags & CLI_PERF_NO)
        return refused(&ready);
    if (!ready.numbers[0] || ready.numbers[0] > UINT16_MAX)
        return failed("the server's answer", -LH_EPROTOCOL);
    *port = (uint16_t)ready.numbers[0];
    return CLI_PROCEED;
}

static int connect_for_run(struct measurement *m)
{
    struct cli_address address = m->order->address;
    uint16_t port = 0;
    int status = ask(m, &port);
    if (status != CLI_PROCEED)
        return status;
    cli_address_set_port(&address, port);
    return cli_connect(&address, &m->order->attr, m->order->wait_ns,
                       "longhaul perf --server without --once serves several", &m->connection);
}

/* All messages are sent from one buffer: what is in it does not matter, only that it is not all the same
 * page. */
static int prepare(struct measurement *m)
{
    size_t bytes = (size_t)m->result->size_bytes;
    void *payload =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    m->requests = calloc(m->order->in_flight, sizeof *m->requests);
    m->completions_s = calloc(m->order->iterations, sizeof *m->completions_s);
    m->payload = payload == MAP_FAILED ? NULL : payload;
    if (!m->payload || !m->requests || !m->completions_s)
        return failed("memory for the messages", -LH_ENOMEM);
    for (size_t i = 0; i < bytes; i++)
        m->payload[i] = (uint8_t)(i * 167 + (i >> 12));
    int code = lh_register(m->connection, m->payload, bytes, &m->registered);
    return code ? failed("registering memory", code) : CLI_PROCEED;
}

/* Keeps what is worth keeping of the index-th message. */
static void note(struct measurement *m, uint64_t index, const struct lh_result *result)
{
    double seconds = cli_seconds(result->ended_ns - result->started_ns);
    if (!index)
        m->result->first_s = seconds;
    if (index < m->order->warmup)
        return;
    if (index == m->order->warmup)
        m->first_started_ns = result->started_ns;
    if (result->ended_ns > m->last_ended_ns)
        m->last_ended_ns = result->ended_ns;
    m->completions_s[index - m->order->warmup] = seconds;
}

/* Of a message with a deadline, whose send is done earlier: the server's answer. */
static int take_answer(struct measurement *m, struct lh_result *result)
{
    struct lh_request *request;
    struct lh_result answer;
    int code = lh_recv(m->connection, NULL, 0, NULL, &request);
    if (code)
        return code;
    code = cli_perf_wait(m->connection, request, &answer);
    lh_request_free(request);
    result->ended_ns = answer.ended_ns;
    return code ? code : answer.error;
}

/* Says that messages with a deadline follow now, so many of them warm-up. */
static int send_beginning(struct measurement *m)
{
    uint8_t warmup[8];
    struct lh_request *request;
    struct lh_result result;
    cli_put_u64(warmup, m->order->warmup);
    int code = lh_send(m->connection, warmup, sizeof warmup, NULL, &request);
    if (code)
        return code;
    code = cli_perf_wait(m->connection, request, &result);
    lh_request_free(request);
    return code ? code : result.error;
}

static int retire(struct measurement *m, uint64_t index)
{
    struct lh_result result;
    struct lh_request **request = &m->requests[index % m->order->in_flight];
    int code = cli_perf_wait(m->connection, *request, &result);
    if (!code)
        code = result.error;
    if (!code && m->deadline)
        code = take_answer(m, &result);
    if (code)
        return code;
    note(m, index, &result);
    lh_request_free(*request);
    *request = NULL;
    return 0;
}

/* Sends all, in_flight at a time. */
static int send_all(struct measurement *m)
{
    uint64_t sent = 0, done = 0, all = (uint64_t)m->order->warmup + m->order->iterations;
    int code = m->deadline ? send_beginning(m) : 0;
    while (done < all && !code) {
        if (cli_stopped())
            code = -LH_ECANCELED;
        else if (sent < all && sent - done < m->order->in_flight) {
            code = lh_send(m->connection, m->payload, m->result->size_bytes, m->registered,
                           &m->requests[sent % m->order->in_flight]);
            sent += !code;
        } else {
            code = retire(m, done);
            done += !code;
        }
    }
    /* Before the wait for the server's result, which is no idleness of the connection. */
    if (!code)
        code = lh_connection_bottleneck(m->connection, &m->result->bottleneck);
    const char *warning = lh_connection_warning(m->connection);
    if (warning)
        cli_note("%s", warning);
    return code ? connection_failed("sending", m->connection, code) : CLI_PROCEED;
}

static int receive_result(struct measurement *m)
{
    struct cli_perf_message message;
    uint64_t *counters = (uint64_t *)&m->result->peer;
    int code = cli_perf_receive(m->control, CLI_PERF_RESULT, CLI_PERF_TIMEOUT_NS, &message);
    if (code)
        return connection_failed("waiting for the server's counters", m->control, code);
    if (message.flags & CLI_PERF_NO)
        return refused(&message);
    uint32_t count = (uint32_t)lh_stats_count(), more = m->deadline ? CLI_PERF_TALLY_NUMBERS : 0;
    if (message.count != count + more || count * sizeof *counters != sizeof m->result->peer)
        return cli_failed("server counters differ: another version of longhaul");
    memcpy(counters, message.numbers, sizeof m->result->peer);
    memcpy(m->result->tally, message.numbers + count, more * sizeof *counters);
    m->result->deadline = m->deadline;
    snprintf(m->result->chosen, sizeof m->result->chosen, "%s", message.text);
    return CLI_PROCEED;
}

/* The message once on the wire, as RoCEv2 puts it there: whatever else a scheme sends is no part of it. */
static double wire_bytes(const struct measurement *m)
{
    bool ipv6 = *lh_peer_name(m->connection) == '[';
    uint64_t mtu_bytes = m->result->agreed.mtu_bytes;
    uint64_t packets = (m->result->size_bytes + mtu_bytes - 1) / mtu_bytes;
    const struct lh_security *security = m->order->attr.security;
    uint32_t extra = security && security->encryption == LH_ENCRYPTION_FULL ? SEALED_EXTRA_BYTES : 0;
    return (double)m->result->size_bytes + (double)packets * (ROCE_BYTES + extra + (ipv6 ? 40 : 20));
}

/* The same message on a lossless link: its bits on the wire / the link's rate + a round trip. */
static double ideal(const struct measurement *m)
{
    const struct lh_link_spec *link = &m->order->attr.link;
    double round_trip = link->delay_ns ? 2 * cli_seconds(link->delay_ns) : m->result->rtt_s;
    if (!link->rate_bps)
        return NAN;
    return wire_bytes(m) * 8 / (double)link->rate_bps + round_trip;
}

static int conclude(struct measurement *m)
{
    struct cli_perf_result *result = m->result;
    size_t count = m->order->iterations;
    double span = cli_seconds(m->last_ended_ns - m->first_started_ns);
    int code = lh_connection_stats(m->connection, &result->local);
    if (!code)
        code = lh_connection_attr(m->connection, &result->agreed);
    if (!code)
        code = lh_connection_congestion(m->connection, &result->congestion);
    if (code)
        return failed("reading the counters", code);
    const char *device = result->agreed.device ? result->agreed.device : "udp";
    snprintf(result->fabric, sizeof result->fabric, "%.*s", (int)strcspn(device, ":"), device);
    result->agreed.device = NULL; /* goes with the connection */
    result->agreed.congestion = NULL;
    result->agreed.path_file = NULL;
    result->iterations = m->order->iterations;
    result->mean_s = cli_samples_mean(m->completions_s, count);
    cli_samples_sort(m->completions_s, count);
    result->p50_s = cli_samples_percentile(m->completions_s, count, 0.5);
    result->p99_s = cli_samples_percentile(m->completions_s, count, 0.99);
    result->p999_s = cli_samples_percentile(m->completions_s, count, 0.999);
    result->max_s = m->completions_s[count - 1];
    result->goodput_bps = span > 0 ? 8 * (double)result->size_bytes * (double)count / span : 0;
    struct lh_path_view path;
    if (!lh_connection_path(m->connection, &path))
        result->rtt_s = cli_seconds(path.rtt_minimum_ns);
    result->ideal_s = ideal(m);
    return CLI_PROCEED;
}

static void measurement_end(struct measurement *m)
{
    for (uint32_t i = 0; m->requests && i < m->order->in_flight; i++)
        lh_request_free(m->requests[i]);
    if (m->registered)
        lh_deregister(m->registered);
    if (m->connection)
        lh_close(m->connection);
    if (m->payload)
        munmap(m->payload, (size_t)m->result->size_bytes);
    free(m->requests);
    free(m->completions_s);
}

static int measure(const struct cli_perf_order *order, struct lh_connection *control, uint64_t size_bytes,
                   struct cli_perf_result *result)
{
    struct measurement m = {.order = order,
                            .control = control,
                            .deadline = cli_has_deadline(order->attr.reliability),
                            .result = result};
    *result = (struct cli_perf_result){.size_bytes = size_bytes};
    int status = connect_for_run(&m);
    if (status == CLI_PROCEED)
        status = prepare(&m);
    if (status == CLI_PROCEED)
        status = send_all(&m);
    if (status == CLI_PROCEED)
        status = receive_result(&m);
    if (status == CLI_PROCEED)
        status = conclude(&m);
    measurement_end(&m);
    return status;
}

static int measure_sizes(const struct cli_perf_order *order, struct lh_connection *control)
{
    struct cli_perf_result *results = calloc(order->sizes.count, sizeof *results);
    int status = results ? CLI_PROCEED : failed("memory for the results", -LH_ENOMEM);
    for (unsigned i = 0; i < order->sizes.count && status == CLI_PROCEED; i++) {
        status = measure(order, control, order->sizes.bytes[i], &results[i]);
        if (status == CLI_PROCEED && !i)
            cli_perf_report_titles(order, &results[i]);
        if (status == CLI_PROCEED)
            cli_perf_report_row(order, &results[i]);
    }
    if (status == CLI_PROCEED && order->json)
        status = cli_perf_report_json(order, results);
    free(results);
    return status == CLI_PROCEED ? CLI_EXIT_OK : status;
}

/* Measures one size after the other against the server; returns the exit status. */
static int cli_perf_client(const struct cli_perf_order *order)
{
    struct lh_connection *control;
    struct lh_attr attr;
    /* What is asked for goes for the connection that is measured; this one is as plain as can be. */
    lh_attr_init(&attr);
    attr.device = order->attr.device;
    attr.peer_timeout_ns = order->attr.peer_timeout_ns;
    attr.security = order->attr.security;
    int status = cli_connect(&order->address, &attr, order->wait_ns,
                             "longhaul perf --server without --once serves several", &control);
    if (status != CLI_PROCEED)
        return status;
    cli_stop_at_once(false);
    status = measure_sizes(order, control);
    lh_close(control);
    return status;
}

/* ---- perf ------------------------------------------------------------------------------------------ */

struct settings {
    bool server, once;
    const char *listen_on, *sizes; /* NULL: not given */
    struct cli_perf_order order;
    struct cli_connection connection;
};

/* A sweep of an hour must not end in a file that cannot be written. */
static int check_json(const char *path)
{
    if (!path || !strcmp(path, "-"))
        return CLI_PROCEED;
    FILE *file = fopen(path, "a");
    if (!file)
        return cli_result_unwritable("--json ", path, errno);
    fclose(file);
    return CLI_PROCEED;
}

static int check_memory(const struct cli_perf_order *order)
{
    char size[LH_FORMAT_MAX], maximum[LH_FORMAT_MAX];
    for (unsigned i = 0; i < order->sizes.count; i++) {
        if (order->sizes.bytes[i] * order->in_flight <= CLI_PERF_MEMORY_MAX)
            continue;
        lh_format_size(order->sizes.bytes[i], size, sizeof size);
        lh_format_size(CLI_PERF_MEMORY_MAX, maximum, sizeof maximum);
        return cli_misused("--in-flight %" PRIu32 ": messages of %s exceed the %s that a server allocates",
                           order->in_flight, size, maximum);
    }
    return CLI_PROCEED;
}

static int run_server(const struct settings *settings, const struct cli_operands *operands)
{
    struct cli_address address;
    if (operands->count)
        return cli_misused("%s: unexpected argument: --server takes no host (use --listen [ADDR]:PORT)",
                           operands->text[0]);
    if (settings->order.json || settings->sizes)
        return cli_misused("--%s: option of the client", settings->order.json ? "json" : "size");
    const char *listen_on = settings->listen_on ? settings->listen_on : ":47911";
    int status = cli_address_parse("--listen", listen_on, CLI_PORT_PERF, true, &address);
    if (status != CLI_PROCEED)
        return status;
    bool once = settings->once || settings->connection.security.code;
    return cli_perf_server(&address, &settings->connection.attr, once);
}

static int run_client(struct settings *settings, const struct cli_operands *operands)
{
    struct cli_perf_order *order = &settings->order;
    if (!operands->count)
        return cli_misused(
            "missing HOST[:PORT] (usage: longhaul perf HOST[:PORT], or longhaul perf --server)");
    if (settings->listen_on || settings->once)
        return cli_misused("--%s: option of the server (longhaul perf --server)",
                           settings->once ? "once" : "listen");
    const char *sizes = settings->sizes ? settings->sizes : "8MiB";
    int status = cli_address_parse("HOST[:PORT]", operands->text[0], CLI_PORT_PERF, false, &order->address);
    if (status == CLI_PROCEED)
        status = cli_size_list_parse("size", sizes, CLI_PERF_MEMORY_MAX, &order->sizes);
    if (status == CLI_PROCEED)
        status = check_memory(order);
    if (status == CLI_PROCEED)
        status = check_json(order->json);
    if (status != CLI_PROCEED)
        return status;
    order->attr = settings->connection.attr;
    order->wait_ns = settings->connection.wait_ns;
    return cli_perf_client(order);
}

int cli_perf(int argc, char **argv)
{
    struct settings settings = {
        .order = {.iterations = 100, .warmup = 2, .in_flight = 1},
    };
    struct cli_perf_order *order = &settings.order;
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"server", NULL, "run as the receiving server", &settings.server, .kind = CLI_FLAG},
        {"listen", "[ADDR]:PORT", "server: listening address; port 0 picks a free one (:47911)",
         &settings.listen_on, .kind = CLI_TEXT},
        {"once", NULL, "server: exit after one client", &settings.once, .kind = CLI_FLAG},
        {"size", "SIZES", "message size: 64KiB, a list 64KiB,1MiB, or doubling 64KiB..64MiB (8MiB)",
         &settings.sizes, .kind = CLI_TEXT},
        {"iterations", "N", "measured messages of each size (100)", &order->iterations, .kind = CLI_COUNT,
         .min = 1, .max = CLI_PERF_MESSAGES_MAX / 2},
        {"warmup", "N", "unmeasured messages before (2)", &order->warmup, .kind = CLI_COUNT,
         .max = CLI_PERF_MESSAGES_MAX / 2},
        {"in-flight", "N", "outstanding messages; with 1 they do not overlap (1)", &order->in_flight,
         .kind = CLI_COUNT, .min = 1, .max = CLI_PERF_IN_FLIGHT_MAX},
        {"json", "FILE", "write results and all counters to FILE; - is standard output", &order->json,
         .kind = CLI_TEXT},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "perf",
        .operands = "--server | HOST[:PORT]",
        .about = "Measures bandwidth and completion time of messages to 'longhaul perf --server' on HOST "
                 "(port 47911).\n"
                 "The client's options apply to both sides.",
        .groups = {own, settings.connection.options},
        .operands_max = 1,
    };
    cli_connection_options(&settings.connection, CLI_RECEIVES | CLI_CONNECTS | CLI_PARTIAL);
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status == CLI_PROCEED)
        status = settings.server ? cli_connection_secure_listener(&settings.connection, "perf HOST")
                                 : cli_connection_secure(&settings.connection);
    if (status != CLI_PROCEED)
        return status;
    return settings.server ? run_server(&settings, &operands) : run_client(&settings, &operands);
}
