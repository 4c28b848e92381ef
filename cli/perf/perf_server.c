/*
 * perf_server.c - the receiving side. All numbers of a client are validated.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "cli/file/file_blocks.h"
#include "cli/options/option_values.h"
#include "cli/options/peer_address.h"
#include "cli/perf/perf_messages.h"
#include "cli/terminal/terminal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Timeout for the order of a client, and for its connection. */
#define RUN_TIMEOUT_NS      (10 * LH_NS_PER_S)
#define CONNECT_PATIENCE_NS (30 * LH_NS_PER_S)

struct service {
    const struct cli_address *address;
    const struct lh_attr *attr;
    struct lh_connection *control;
    struct cli_perf_message run;
    char reason[CLI_PERF_TEXT_MAX + 1]; /* why a run cannot be, or failed */
};

/* Outstanding receives, in order, in a few buffers. */
struct intake {
    struct lh_connection *connection;
    struct lh_memory *registered;
    uint8_t *memory;
    size_t memory_bytes;
    uint64_t size_bytes, messages, posted, taken;
    uint32_t depth;
    struct lh_request **requests;
    struct cli_perf_tally *tally; /* of messages with a deadline; else NULL */
};

static bool because(struct service *service, int code)
{
    const char *reason = lh_last_error();
    snprintf(service->reason, sizeof service->reason, "%s", *reason ? reason : lh_strerror(code));
    return false;
}

static bool refuse(struct service *service, const char *reason)
{
    snprintf(service->reason, sizeof service->reason, "%s", reason);
    return false;
}

static bool check_run(struct service *service)
{
    const uint64_t *numbers = service->run.numbers;
    uint64_t size = numbers[CLI_PERF_SIZE_BYTES], in_flight = numbers[CLI_PERF_IN_FLIGHT];
    if (!size || size > CLI_PERF_MEMORY_MAX || !in_flight || in_flight > CLI_PERF_IN_FLIGHT_MAX ||
        size * in_flight > CLI_PERF_MEMORY_MAX)
        return refuse(service, "size times in-flight out of range (1B to 4GiB)");
    if (!numbers[CLI_PERF_MESSAGES] || numbers[CLI_PERF_MESSAGES] > CLI_PERF_MESSAGES_MAX)
        return refuse(service, "iterations out of range");
    for (unsigned i = CLI_PERF_CHANNELS; i <= CLI_PERF_SLOTS; i++)
        if (numbers[i] > UINT32_MAX)
            return refuse(service, "attribute out of range");
    if (numbers[CLI_PERF_CHANNELS] > 64 || numbers[CLI_PERF_WORKERS] > 64)
        return refuse(service, "channels or workers out of range (at most 64)");
    return true;
}

static struct lh_attr attr_of(const struct service *service)
{
    struct lh_attr attr = *service->attr;
    const uint64_t *numbers = service->run.numbers;
    attr.reliability = *service->run.text ? service->run.text : NULL;
    attr.channels = (uint32_t)numbers[CLI_PERF_CHANNELS];
    attr.workers = (uint32_t)numbers[CLI_PERF_WORKERS];
    attr.mtu_bytes = (uint32_t)numbers[CLI_PERF_MTU_BYTES];
    attr.chunk_bytes = (uint32_t)numbers[CLI_PERF_CHUNK_BYTES];
    attr.slots = (uint32_t)numbers[CLI_PERF_SLOTS];
    attr.slot_bytes = numbers[CLI_PERF_SLOT_BYTES];
    attr.window_bytes = numbers[CLI_PERF_WINDOW_BYTES];
    return attr;
}

static void intake_close(struct intake *intake)
{
    for (uint32_t i = 0; intake->requests && i < intake->depth; i++)
        lh_request_free(intake->requests[i]);
    free(intake->requests);
    if (intake->registered)
        lh_deregister(intake->registered);
    if (intake->memory)
        munmap(intake->memory, intake->memory_bytes);
}

/* Twice as many receives as may be in flight, where memory allows, so that a sender never waits for one. */
static int intake_open(struct intake *intake, struct lh_connection *connection, const uint64_t *numbers)
{
    uint64_t size = numbers[CLI_PERF_SIZE_BYTES], depth = 2 * numbers[CLI_PERF_IN_FLIGHT];
    if (depth * size > CLI_PERF_MEMORY_MAX)
        depth = CLI_PERF_MEMORY_MAX / size;
    if (depth > numbers[CLI_PERF_MESSAGES])
        depth = numbers[CLI_PERF_MESSAGES];
    *intake = (struct intake){.connection = connection,
                              .size_bytes = size,
                              .messages = numbers[CLI_PERF_MESSAGES],
                              .depth = (uint32_t)depth,
                              .memory_bytes = (size_t)(size * depth)};
    assert(depth);
    /* All pages now: a page fault is no part of what is measured. */
    void *memory = mmap(NULL, intake->memory_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        return -LH_ENOMEM;
    intake->memory = memory;
    intake->requests = calloc(depth, sizeof *intake->requests);
    if (!intake->requests)
        return -LH_ENOMEM;
    return lh_register(connection, memory, intake->memory_bytes, &intake->registered);
}

static int intake_post(struct intake *intake)
{
    while (intake->posted < intake->messages && intake->posted - intake->taken < intake->depth) {
        uint64_t place = intake->posted % intake->depth;
        int code = lh_recv(intake->connection, intake->memory + place * intake->size_bytes,
                           intake->size_bytes, intake->registered, &intake->requests[place]);
        if (code)
            return code;
        intake->posted++;
    }
    return 0;
}

/* A message with a deadline: counted, and the client told. */
static int answer(struct intake *intake, struct lh_request *taken)
{
    struct lh_result result;
    struct lh_request *request;
    int code = cli_perf_tally_add(intake->tally, intake->taken, taken);
    if (!code)
        code = lh_send(intake->connection, "", 0, NULL, &request);
    if (code)
        return code;
    code = cli_perf_wait(intake->connection, request, &result);
    lh_request_free(request);
    return code ? code : result.error;
}

static int intake_take(struct intake *intake)
{
    struct lh_result result;
    struct lh_request **request = &intake->requests[intake->taken % intake->depth];
    int code = cli_perf_wait(intake->connection, *request, &result);
    if (!code)
        code = result.error;
    if (!code && result.bytes != intake->size_bytes)
        code = -LH_EPROTOCOL;
    if (!code && intake->tally)
        code = answer(intake, *request);
    if (code)
        return code;
    lh_request_free(*request);
    *request = NULL;
    intake->taken++;
    return 0;
}

/* The client is ready: it says how many messages are warm-up. */
static int take_beginning(struct lh_connection *connection, struct cli_perf_tally *tally)
{
    uint8_t warmup[8];
    struct lh_result result;
    struct lh_request *request;
    int code = lh_recv(connection, warmup, sizeof warmup, NULL, &request);
    if (code)
        return code;
    code = cli_perf_wait(connection, request, &result);
    lh_request_free(request);
    if (!code)
        code = result.error;
    if (!code && result.bytes != sizeof warmup)
        code = -LH_EPROTOCOL;
    if (!code)
        cli_perf_tally_init(tally, cli_get_u64(warmup));
    return code;
}

static int take_all(struct lh_connection *connection, const uint64_t *numbers, struct cli_perf_tally *tally)
{
    struct intake intake = {0};
    int code = intake_open(&intake, connection, numbers);
    intake.tally = tally;
    if (!code && tally)
        code = take_beginning(connection, tally);
    while (!code && intake.taken < intake.messages) {
        code = cli_stopped() ? -LH_ECANCELED : intake_post(&intake);
        if (!code)
            code = intake_take(&intake);
    }
    intake_close(&intake);
    return code;
}

/* Waits until the client closes: its last message may still need an acknowledgement. */
static void linger(struct lh_connection *connection)
{
    char nothing;
    struct lh_request *request;
    struct lh_result result;
    if (lh_recv(connection, &nothing, sizeof nothing, NULL, &request))
        return;
    cli_wait(request, RUN_TIMEOUT_NS, &result);
    lh_request_free(request);
}

/* Receives the ordered messages, with *result. False: failed, with the reason set. */
static bool measure(struct service *service, struct lh_connection *connection,
                    struct cli_perf_message *result)
{
    struct lh_stats stats;
    struct cli_perf_tally tally;
    bool deadline = cli_has_deadline(service->run.text);
    int code = take_all(connection, service->run.numbers, deadline ? &tally : NULL);
    if (!code)
        code = lh_connection_stats(connection, &stats);
    if (code)
        return refuse(service, cli_connection_strerror(connection, code));
    struct lh_scheme_report report;
    if (lh_connection_scheme(connection, &report) == 0 && report.plans > 0)
        lh_scheme_report_words(&report, result->text, sizeof result->text);
    result->count = (uint32_t)lh_stats_count();
    for (uint32_t i = 0; i < result->count; i++)
        result->numbers[i] = lh_stats_value(&stats, i);
    if (deadline)
        cli_perf_tally_write(&tally, result->numbers + result->count);
    result->count += deadline ? CLI_PERF_TALLY_NUMBERS : 0;
    return true;
}

static void send_refusal(struct service *service, enum cli_perf_kind kind)
{
    struct cli_perf_message no = {.kind = kind, .flags = CLI_PERF_NO};
    snprintf(no.text, sizeof no.text, "%s", service->reason);
    cli_note("%s: %s", lh_peer_name(service->control), service->reason);
    cli_perf_send(service->control, &no);
}

/* The client's connection for the run. One that ends instead must not keep the others waiting. */
static int accept_run(struct service *service, struct lh_listener *listener,
                      struct lh_connection **connection)
{
    lh_time waited = 0;
    int code;
    do {
        code = lh_accept(listener, CLI_SLICE_NS, connection);
        if (code != -LH_ETIMEDOUT)
            return code;
        code = lh_connection_error(service->control);
        waited += CLI_SLICE_NS;
    } while (!code && !cli_stopped() && waited < CONNECT_PATIENCE_NS);
    return code ? code : -LH_ETIMEDOUT;
}

/* Announces the port, waits for the client there, receives, and sends the result. */
static void run_on(struct service *service, struct lh_listener *listener)
{
    struct lh_connection *connection;
    struct cli_perf_message ready = {.kind = CLI_PERF_READY, .count = 1},
                            result = {.kind = CLI_PERF_RESULT};
    ready.numbers[0] = lh_listener_port(listener);
    int code = cli_perf_send(service->control, &ready);
    if (!code)
        code = accept_run(service, listener, &connection);
    if (code) {
        because(service, code);
        send_refusal(service, CLI_PERF_RESULT);
        return;
    }
    if (!measure(service, connection, &result)) {
        send_refusal(service, CLI_PERF_RESULT);
    } else if (!cli_perf_send(service->control, &result)) {
        linger(connection);
    }
    lh_close(connection);
}

/* One RUN, from its arrival to its RESULT. */
static void serve_run(struct service *service)
{
    struct lh_listener *listener;
    struct cli_address address = *service->address;
    struct lh_attr attr = attr_of(service);
    cli_address_set_port(&address, 0);
    bool possible = check_run(service);
    int code = possible ? lh_listen(address.where, &attr, &listener) : 0;
    if (code)
        possible = because(service, code);
    if (!possible) {
        send_refusal(service, CLI_PERF_READY);
        return;
    }
    run_on(service, listener);
    lh_listener_close(listener);
}

/* False: the peer was not a client. */
static bool serve_client(struct service *service)
{
    bool client = false;
    while (!cli_stopped()) {
        int code = cli_perf_receive(service->control, CLI_PERF_RUN, RUN_TIMEOUT_NS, &service->run);
        if (code) {
            const char *what = code == -LH_EPATH ? "" : "not a longhaul perf client: ";
            if (!client && !cli_stopped())
                cli_note("%s: %s%s", lh_peer_name(service->control), what,
                         cli_connection_strerror(service->control, code));
            break;
        }
        client = true;
        *service->reason = 0;
        serve_run(service);
    }
    return client;
}

int cli_perf_server(const struct cli_address *address, const struct lh_attr *attr, bool once)
{
    struct lh_listener *listener;
    bool served = false;
    int status = cli_listening_start(address, attr, &listener);
    if (status != CLI_PROCEED)
        return status;
    while (!(once && served)) {
        struct service service = {.address = address, .attr = attr};
        status = cli_listening_accept(listener, LH_TIME_NEVER, &service.control);
        if (status != CLI_PROCEED)
            break;
        served = serve_client(&service);
        lh_close(service.control);
    }
    lh_listener_close(listener);
    if (cli_stopped())
        return cli_stopped();
    return status == CLI_PROCEED ? CLI_EXIT_OK : status;
}
