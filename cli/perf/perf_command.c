/*
 * client.c - the side that sends and measures.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/perf/client.h"

#include "cli/file/little_endian.h"
#include "cli/options/connecting.h"
#include "cli/options/deadline.h"
#include "cli/perf/control.h"
#include "cli/perf/message.h"
#include "cli/perf/report.h"
#include "cli/perf/samples.h"
#include "cli/perf/tally.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/stop.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/wait.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* UDP 8, BTH 12, RETH 16, immediate 4, iCRC 4. */
#define ROCE_BYTES 44

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
    return (double)m->result->size_bytes + (double)packets * (ROCE_BYTES + (ipv6 ? 40 : 20));
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

int cli_perf_client(const struct cli_perf_order *order)
{
    struct lh_connection *control;
    struct lh_attr attr;
    /* What is asked for goes for the connection that is measured; this one is as plain as can be. */
    lh_attr_init(&attr);
    attr.device = order->attr.device;
    attr.peer_timeout_ns = order->attr.peer_timeout_ns;
    int status = cli_connect(&order->address, &attr, order->wait_ns,
                             "longhaul perf --server without --once serves several", &control);
    if (status != CLI_PROCEED)
        return status;
    cli_stop_at_once(false);
    status = measure_sizes(order, control);
    lh_close(control);
    return status;
}
