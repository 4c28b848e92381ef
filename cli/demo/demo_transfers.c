/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/demo/demo_transfers.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <longhaul/connection.h>

#include "cli/file/file_blocks.h"
#include "cli/options/option_values.h"
#include "cli/path/path_line.h"
#include "cli/path/path_loop.h"
#include "cli/terminal/terminal.h"

/* ---- run ------------------------------------------------------------------------------------------- */

/*
 * The parent forks the receiver, which reports its port through a pipe; then the sender. Each writes one
 * report into its pipe and ends. The parent itself never opens a connection, so it has no threads that a
 * fork would lose.
 */

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

/* Whether what has arrived is the data. */
static bool cli_demo_landing_right(const struct cli_demo_run *run)
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

/* Both sides' attributes. security must stay as long as they are used. */
static void start_attr(const char *code, struct lh_security *security, struct lh_attr *attr)
{
    lh_attr_init(attr);
    lh_security_init(security);
    security->code = code;
    attr->security = security;
}

static void receiver_process(const struct cli_demo_run *run, const char *secret, int parent)
{
    char reliability[128];
    struct lh_security security;
    struct lh_attr attr;
    struct lh_listener *listener;
    struct lh_connection *connection;
    struct report report = {0};
    start_attr(secret, &security, &attr);
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

static void sender_process(const struct cli_demo_run *run, const char *secret, const struct endpoint *point,
                           int parent)
{
    char where[32];
    struct lh_security security;
    struct lh_attr attr;
    struct lh_connection *connection;
    struct report report = {0};
    start_attr(secret, &security, &attr);
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
    char secret[LH_KEY_CODE_MAX] = "";
    int end = -1;
    *outcome = (struct cli_demo_outcome){0};
    lh_key_code(secret); /* without one the processes say why */
    if (start_child(&receiver, &end) == 0)
        receiver_process(run, secret, end);
    bool up = receiver.process > 0 && read_report(receiver.pipe, &point, sizeof point) && point.port;
    if (up && start_child(&sender, &end) == 0)
        sender_process(run, secret, &point, end);
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

/* ---- tcp ------------------------------------------------------------------------------------------- */

/*
 * A process makes both ends of the path and moves its packets; it forks the receiver and the sender,
 * each at its end. The sender reports to the demo itself; that process does when there is nothing to
 * report.
 */

#define PORT 47911
/* Of IP packets: as large as those of Longhaul with 4 KiB. TCP with timestamps has 52 bytes of
 * headers. */
#define MTU         4200
#define TCP_HEADERS 52
#define QUEUE_MIN   (64u << 10)
/* One core moves that much with time to spare. */
#define RATE_MAX 5000000000u

const char *const cli_demo_tcp_controls[] = {"cubic", "bbr", NULL};

enum state { DONE, LATE, FAILED, REFUSED };

struct tcp_report {
    enum state state;
    int64_t took_ns;
    uint64_t sent_bytes, again_bytes;
    char error[160];
};

/* A process that has no more to say than this, and ends. error: 0 for a reason that needs none. */
static _Noreturn void tcp_report(int pipe, enum state state, const char *reason, int error)
{
    struct tcp_report out = {.state = state};
    snprintf(out.error, sizeof out.error, "%s%s%s", reason, error ? ": " : "",
             error ? strerror(error) : "");
    _exit(write(pipe, &out, sizeof out) != (ssize_t)sizeof out);
}

static volatile sig_atomic_t child_ended;

static void on_child(int number)
{
    (void)number;
    child_ended = 1;
}

static void send_data(const struct cli_demo_run *run, const char *control, const struct path_end *left,
                      int pipe)
{
    struct tcp_report out = {.state = DONE};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (path_end_enter(left) < 0)
        tcp_report(pipe, REFUSED, "a network namespace", errno);
    int fd = path_tcp_connect(path_ipv4[PATH_RIGHT], PORT, NULL, control);
    if (fd < 0)
        tcp_report(pipe, errno == ENOENT || errno == EPERM ? REFUSED : FAILED, control, errno);
    if (!path_tcp_send(fd, run->data, run->bytes, &out.took_ns))
        tcp_report(pipe, FAILED, "sending", errno);
    path_tcp_sent(fd, &out.sent_bytes, &out.again_bytes);
    _exit(write(pipe, &out, sizeof out) != (ssize_t)sizeof out);
}

static void receive_data(const struct cli_demo_run *run, int listener)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = accept(listener, NULL, NULL);
    _exit(fd < 0 || !path_tcp_answer(fd, run->landing, run->bytes));
}

static int listen_at(const struct path_end *right)
{
    int own = path_end_enter(right);
    if (own < 0)
        return -1;
    int fd = path_tcp_listen(path_ipv4[PATH_RIGHT], PORT);
    path_end_leave(own);
    return fd;
}

static struct path_direction_config direction_of(const struct lh_link_spec *link, uint64_t seed)
{
    double bdp = (double)link->rate_bps / 8 * 2 * (double)link->delay_ns / (double)LH_NS_PER_S;
    struct path_direction_config config = {
        .line =
            {
                .rate_bps = link->rate_bps,
                .delay_ns = (int64_t)link->delay_ns,
                .queue_bytes = bdp > QUEUE_MIN ? (uint64_t)bdp : QUEUE_MIN,
                .mark_bytes = PATH_NO_LIMIT,
                .loss = link->loss,
                .seed = seed,
            },
    };
    return config;
}

/* The process that is the path. */
static _Noreturn void path_process(const struct cli_demo_run *run, const char *control, int pipe)
{
    char reason[128];
    struct path path;
    cpu_set_t processors;
    struct path_end end[PATH_ENDS];
    const struct path_direction_config config[PATH_ENDS] = {direction_of(&run->link, 1),
                                                            direction_of(&run->link, 2)};
    struct tcp_report late = {.state = LATE};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, on_child);
    if (!path_ends_open(end, MTU, reason, sizeof reason))
        tcp_report(pipe, REFUSED, reason, 0);
    if (!path_open(&path, end, config, MTU))
        tcp_report(pipe, REFUSED, "memory for the path", ENOMEM);
    int listener = listen_at(&end[PATH_RIGHT]);
    if (listener < 0)
        tcp_report(pipe, REFUSED, "listening", errno);
    path_processors_take(&processors);
    pid_t receiver = fork();
    if (receiver == 0) {
        path_processors_give(&processors);
        receive_data(run, listener);
    }
    pid_t sender = fork();
    if (sender == 0) {
        path_processors_give(&processors);
        send_data(run, control, &end[PATH_LEFT], pipe);
    }
    path_hurry();
    int64_t until_ns = path_now() + (int64_t)run->timeout_ns;
    while (sender > 0 && waitpid(sender, NULL, WNOHANG) != sender && path_now() < until_ns) {
        child_ended = 0;
        path_run(&path, path_now() + (int64_t)LH_NS_PER_S / 100, &child_ended);
    }
    _exit(write(pipe, &late, sizeof late) != (ssize_t)sizeof late);
}

static bool link_fits(const struct lh_link_spec *link, struct cli_demo_outcome *outcome)
{
    const char *reason = NULL;
    if (!link->rate_bps || link->rate_bps > RATE_MAX)
        reason = "its path needs a rate of at most 5 Gbit/s";
    else if (link->jitter_ns || link->burst_packets > 1 || link->reorder > 0 || link->duplicate > 0 ||
             link->corrupt > 0)
        reason = "its path supports only a rate, a delay and random loss";
    if (reason)
        snprintf(outcome->error, sizeof outcome->error, "%s", reason);
    return !reason;
}

static void tcp_conclude(const struct cli_demo_run *run, const struct tcp_report *tcp_report,
                         struct cli_demo_outcome *outcome)
{
    outcome->late = tcp_report->state == LATE;
    outcome->completion_s = outcome->worst_s = (double)tcp_report->took_ns / (double)LH_NS_PER_S;
    outcome->digest_right = tcp_report->state == DONE && cli_demo_landing_right(run);
    outcome->whole = outcome->digest_right;
    outcome->stats.tx_bytes = tcp_report->sent_bytes;
    outcome->stats.tx_wire_bytes = (uint64_t)((double)tcp_report->sent_bytes * MTU / (MTU - TCP_HEADERS));
    if (tcp_report->state != DONE)
        snprintf(outcome->error, sizeof outcome->error, "%.150s", tcp_report->error);
}

bool cli_demo_tcp_run(const struct cli_demo_run *run, const char *control, struct cli_demo_outcome *outcome)
{
    int ends[2];
    ssize_t got;
    struct tcp_report tcp_report = {.state = FAILED, .error = "a demo process ended early"};
    *outcome = (struct cli_demo_outcome){0};
    if (!link_fits(&run->link, outcome) || pipe(ends))
        return false;
    memset(run->landing, 0, run->bytes);
    pid_t process = fork();
    if (process == 0)
        path_process(run, control, ends[1]);
    close(ends[1]);
    do
        got = read(ends[0], &tcp_report, sizeof tcp_report);
    while (got < 0 && errno == EINTR);
    close(ends[0]);
    if (process > 0) {
        kill(process, SIGKILL);
        while (waitpid(process, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    tcp_conclude(run, &tcp_report, outcome);
    return tcp_report.state != REFUSED;
}
