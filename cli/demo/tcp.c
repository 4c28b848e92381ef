/*
 * A process makes both ends of the path and moves its packets; it forks the receiver and the sender,
 * each at its end. The sender reports to the demo itself; that process does when there is nothing to
 * report.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/demo/tcp.h"

#include "cli/path/loop.h"
#include "cli/path/processors.h"
#include "cli/path/tcp_messages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

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

struct report {
    enum state state;
    int64_t took_ns;
    uint64_t sent_bytes, again_bytes;
    char error[160];
};

/* A process that has no more to say than this, and ends. error: 0 for a reason that needs none. */
static _Noreturn void report(int pipe, enum state state, const char *reason, int error)
{
    struct report out = {.state = state};
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
    struct report out = {.state = DONE};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (path_end_enter(left) < 0)
        report(pipe, REFUSED, "a network namespace", errno);
    int fd = path_tcp_connect(path_ipv4[PATH_RIGHT], PORT, NULL, control);
    if (fd < 0)
        report(pipe, errno == ENOENT || errno == EPERM ? REFUSED : FAILED, control, errno);
    if (!path_tcp_send(fd, run->data, run->bytes, &out.took_ns))
        report(pipe, FAILED, "sending", errno);
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
    struct report late = {.state = LATE};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, on_child);
    if (!path_ends_open(end, MTU, reason, sizeof reason))
        report(pipe, REFUSED, reason, 0);
    if (!path_open(&path, end, config, MTU))
        report(pipe, REFUSED, "memory for the path", ENOMEM);
    int listener = listen_at(&end[PATH_RIGHT]);
    if (listener < 0)
        report(pipe, REFUSED, "listening", errno);
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
        reason = "its path has a rate, a delay and random loss, and nothing else";
    if (reason)
        snprintf(outcome->error, sizeof outcome->error, "%s", reason);
    return !reason;
}

static void conclude(const struct cli_demo_run *run, const struct report *report,
                     struct cli_demo_outcome *outcome)
{
    outcome->late = report->state == LATE;
    outcome->completion_s = outcome->worst_s = (double)report->took_ns / (double)LH_NS_PER_S;
    outcome->digest_right = report->state == DONE && cli_demo_landing_right(run);
    outcome->whole = outcome->digest_right;
    outcome->stats.tx_bytes = report->sent_bytes;
    outcome->stats.tx_wire_bytes = (uint64_t)((double)report->sent_bytes * MTU / (MTU - TCP_HEADERS));
    if (report->state != DONE)
        snprintf(outcome->error, sizeof outcome->error, "%.150s", report->error);
}

bool cli_demo_tcp_run(const struct cli_demo_run *run, const char *control, struct cli_demo_outcome *outcome)
{
    int ends[2];
    ssize_t got;
    struct report report = {.state = FAILED, .error = "a demo process ended early"};
    *outcome = (struct cli_demo_outcome){0};
    if (!link_fits(&run->link, outcome) || pipe(ends))
        return false;
    memset(run->landing, 0, run->bytes);
    pid_t process = fork();
    if (process == 0)
        path_process(run, control, ends[1]);
    close(ends[1]);
    do
        got = read(ends[0], &report, sizeof report);
    while (got < 0 && errno == EINTR);
    close(ends[0]);
    if (process > 0) {
        kill(process, SIGKILL);
        while (waitpid(process, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    conclude(run, &report, outcome);
    return report.state != REFUSED;
}
