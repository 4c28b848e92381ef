/*
 * The parent forks the receiver, which reports its port through a pipe; then the sender. Each writes one
 * report into its pipe and ends. The parent itself never opens a connection, so it has no threads that a
 * fork would lose.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/demo/run.h"

#include "cli/file/digest.h"
#include "cli/options/deadline.h"
#include "cli/terminal/wait.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* For what takes milliseconds on a machine that works. */
#define SETUP_TIMEOUT_NS (10 * LH_NS_PER_S)

/* What a process reports to the parent when it ends. */
struct report {
    int code; /* 0, or a negative lh_error */
    bool digest_right;
    uint64_t missing_bytes;
    double completion_s;
    double worst_s;
    struct lh_stats stats;
    char error[160];
};

/* Where the receiver listens, reported to the parent first. */
struct endpoint {
    uint16_t port; /* 0: nowhere */
    char loopback[16];
};

struct child {
    pid_t process;
    int pipe; /* the parent's end */
};

static void explain(struct report *report, const char *step, int code)
{
    const char *reason = lh_last_error();
    report->code = code;
    snprintf(report->error, sizeof report->error, "%s: %.120s", step, *reason ? reason : lh_strerror(code));
}

/* Writes all of it; a parent that is gone does not matter. */
static void write_report(int pipe, const void *data, size_t bytes)
{
    if (write(pipe, data, bytes) != (ssize_t)bytes)
        _exit(1);
}

/* Less than PIPE_BUF, so each arrives in one piece. */
_Static_assert(sizeof(struct report) <= 4096, "a report is written at once");

static bool read_report(int pipe, void *data, size_t bytes)
{
    ssize_t got;
    do
        got = read(pipe, data, bytes);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)bytes;
}

/* Forks; 0 in the child, whose end of the pipe is *end then. */
static pid_t start_child(struct child *child, int *end)
{
    int ends[2];
    if (pipe(ends))
        return -1;
    child->process = fork();
    if (child->process == 0) {
        /* Nobody waits for us when the parent is killed. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        *end = ends[1];
        return 0;
    }
    close(ends[1]);
    child->pipe = ends[0];
    return child->process;
}

static void end_child(struct child *child)
{
    if (child->process <= 0)
        return;
    close(child->pipe);
    kill(child->process, SIGKILL);
    while (waitpid(child->process, NULL, 0) < 0 && errno == EINTR)
        ;
}

static int wait_done(struct lh_request *request, lh_time timeout_ns, struct lh_result *result)
{
    int code = lh_wait(request, timeout_ns, result);
    return code ? code : result->error;
}

/* Stays until the sender closes: the last acknowledgement must reach it. */
static void linger(struct lh_connection *connection)
{
    char nothing;
    struct lh_request *request;
    if (lh_recv(connection, &nothing, sizeof nothing, NULL, &request))
        return;
    lh_wait(request, SETUP_TIMEOUT_NS, NULL);
    lh_request_free(request);
}

bool cli_demo_landing_right(const struct cli_demo_run *run)
{
    uint8_t found[CLI_DIGEST_BYTES];
    struct cli_digest digest;
    if (cli_digest_open(&digest))
        return false;
    cli_digest_add(&digest, run->landing, run->bytes);
    cli_digest_get(&digest, found);
    cli_digest_close(&digest);
    return !memcmp(found, run->digest, sizeof found);
}

/* Compared with the data itself: a digest says nothing about parts. */
static bool arrived_right(const struct cli_demo_run *run, struct lh_request *request)
{
    struct lh_range missing;
    uint64_t from = 0;
    for (uint64_t i = 0; lh_missing(request, i, &missing, 1) > 0; i++) {
        if (memcmp(run->landing + from, run->data + from, missing.offset - from) != 0)
            return false;
        from = missing.offset + missing.bytes;
    }
    return !memcmp(run->landing + from, run->data + from, run->bytes - from);
}

static bool message_right(const struct cli_demo_run *run, struct lh_request *request,
                          const struct lh_result *result)
{
    if (result->bytes != run->bytes)
        return false;
    return result->missing_bytes ? arrived_right(run, request) : cli_demo_landing_right(run);
}

/* A sender's request with a deadline is done when all has left: the time that compares with other schemes' is
 * that of this answer. Its acknowledgement comes while the next message is received. */
static int answer(struct lh_connection *connection, struct lh_request **answering)
{
    if (*answering)
        lh_wait(*answering, SETUP_TIMEOUT_NS, NULL);
    lh_request_free(*answering);
    *answering = NULL;
    return lh_send(connection, "", 0, NULL, answering);
}

static void receive(const struct cli_demo_run *run, struct lh_connection *connection, struct report *report)
{
    struct lh_memory *memory;
    struct lh_request *answering = NULL; /* to the end of the process: the sender has to get it */
    int code = lh_register(connection, run->landing, run->bytes, &memory);
    report->digest_right = true;
    for (uint32_t i = 0; !code && i < run->messages; i++) {
        struct lh_request *request;
        struct lh_result result;
        /* What an earlier message left here must not pass for what this one brings. */
        memset(run->landing, 0, run->bytes);
        code = lh_recv(connection, run->landing, run->bytes, memory, &request);
        if (!code)
            code = wait_done(request, run->timeout_ns + SETUP_TIMEOUT_NS, &result);
        if (!code && cli_has_deadline(run->scheme))
            code = answer(connection, &answering);
        report->digest_right &= !code && message_right(run, request, &result);
        if (code)
            break;
        report->missing_bytes += result.missing_bytes;
        lh_request_free(request);
    }
    if (code)
        explain(report, "receiving", code);
}

static void set_reliability(const struct cli_demo_run *run, struct lh_attr *attr, char *text, size_t size)
{
    attr->reliability = run->scheme;
    if (!run->deadline_ns)
        return;
    snprintf(text, size, "%s,deadline=%" PRIu64 "us", run->scheme, run->deadline_ns / LH_NS_PER_US);
    attr->reliability = text;
    /* Which a deadline must not exceed. */
    attr->peer_timeout_ns = run->deadline_ns + SETUP_TIMEOUT_NS;
}

static void receiver_process(const struct cli_demo_run *run, int parent)
{
    char reliability[128];
    struct lh_attr attr;
    struct lh_listener *listener;
    struct lh_connection *connection;
    struct report report = {0};
    lh_attr_init(&attr);
    set_reliability(run, &attr, reliability, sizeof reliability);
    struct endpoint point = {.loopback = "[::1]"};
    int code = lh_listen("[::1]:0", &attr, &listener);
    if (code) {
        /* A host without IPv6. */
        snprintf(point.loopback, sizeof point.loopback, "127.0.0.1");
        code = lh_listen("127.0.0.1:0", &attr, &listener);
    }
    if (!code)
        point.port = lh_listener_port(listener);
    write_report(parent, &point, sizeof point);
    if (!code)
        code = lh_accept(listener, SETUP_TIMEOUT_NS, &connection);
    if (code)
        explain(&report, "listening", code);
    else
        receive(run, connection, &report);
    write_report(parent, &report, sizeof report);
    if (!code)
        linger(connection);
    _exit(0);
}

static int take_answer(const struct cli_demo_run *run, struct lh_connection *connection,
                       struct lh_result *result)
{
    struct lh_request *request;
    struct lh_result answered;
    int code = lh_recv(connection, NULL, 0, NULL, &request);
    if (code)
        return code;
    code = wait_done(request, run->timeout_ns, &answered);
    if (!code)
        result->ended_ns = answered.ended_ns;
    lh_request_free(request);
    return code;
}

static void send_all(const struct cli_demo_run *run, struct lh_connection *connection,
                     struct report *report)
{
    struct lh_memory *memory;
    /* The library only reads it. */
    int code = lh_register(connection, (void *)(uintptr_t)run->data, run->bytes, &memory);
    for (uint32_t i = 0; !code && i < run->messages; i++) {
        struct lh_request *request;
        struct lh_result result;
        code = lh_send(connection, run->data, run->bytes, memory, &request);
        if (!code)
            code = wait_done(request, run->timeout_ns, &result);
        if (!code && cli_has_deadline(run->scheme))
            code = take_answer(run, connection, &result);
        if (code)
            break;
        lh_request_free(request);
        double completion_s = cli_seconds(result.ended_ns - result.started_ns);
        report->completion_s += completion_s / run->messages;
        report->worst_s = completion_s > report->worst_s ? completion_s : report->worst_s;
    }
    if (code)
        explain(report, "sending", code);
    lh_connection_stats(connection, &report->stats);
}

static void sender_process(const struct cli_demo_run *run, const struct endpoint *point, int parent)
{
    char where[32];
    struct lh_attr attr;
    struct lh_connection *connection;
    struct report report = {0};
    lh_attr_init(&attr);
    attr.link = run->link;
    snprintf(where, sizeof where, "%s:%u", point->loopback, point->port);
    int code = lh_connect(where, &attr, SETUP_TIMEOUT_NS, &connection);
    if (code)
        explain(&report, "connecting", code);
    else
        send_all(run, connection, &report);
    write_report(parent, &report, sizeof report);
    /* After a timeout what is in flight is of no interest. */
    if (!code && !report.code)
        lh_close(connection);
    _exit(0);
}

static void conclude(const struct report *sent, const struct report *received,
                     struct cli_demo_outcome *outcome)
{
    outcome->completion_s = sent->completion_s;
    outcome->worst_s = sent->worst_s;
    outcome->stats = sent->stats;
    outcome->late = sent->code == -LH_ETIMEDOUT;
    outcome->digest_right = received->digest_right;
    outcome->missing_bytes = received->missing_bytes;
    outcome->whole = !sent->code && !received->code && received->digest_right;
    snprintf(outcome->error, sizeof outcome->error, "%s", sent->code ? sent->error : received->error);
}

void cli_demo_run(const struct cli_demo_run *run, struct cli_demo_outcome *outcome)
{
    struct child receiver = {0}, sender = {0};
    struct report sent = {0}, received = {0};
    struct endpoint point = {0};
    int end = -1;
    *outcome = (struct cli_demo_outcome){0};
    if (start_child(&receiver, &end) == 0)
        receiver_process(run, end);
    bool up = receiver.process > 0 && read_report(receiver.pipe, &point, sizeof point) && point.port;
    if (up && start_child(&sender, &end) == 0)
        sender_process(run, &point, end);
    bool reported = up && sender.process > 0 && read_report(sender.pipe, &sent, sizeof sent);
    /* A receiver that waits for what never comes has nothing to report. */
    if (reported && !sent.code)
        reported = read_report(receiver.pipe, &received, sizeof received);
    else if (receiver.process > 0 && !point.port)
        read_report(receiver.pipe, &received, sizeof received);
    if (reported)
        conclude(&sent, &received, outcome);
    else
        snprintf(outcome->error, sizeof outcome->error, "%s",
                 *received.error ? received.error : "a demo process ended early");
    end_child(&sender);
    end_child(&receiver);
}
