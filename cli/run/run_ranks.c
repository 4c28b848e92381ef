/*
 * Timers: the grace of ranks that were asked to end, CLI_RUN_GRACE_S; the time in which the rank that caused
 * the failures of others may end after them, CLI_RUN_CAUSE_NS.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/run/ranks.h"

#include "cli/run/lines.h"
#include "cli/run/meeting.h"
#include "cli/run/process.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/output.h"
#include "cli/terminal/stop.h"
#include "cli/terminal/wait.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXIT_BY_SIGNAL 128
#define OUTPUTS        2u /* of a rank: standard output, standard error */

struct ranks {
    const struct cli_run_job *job;
    struct cli_run_process *processes;
    struct cli_lines *lines; /* OUTPUTS of each rank */
    struct pollfd *polls;    /* likewise */
    int *end_fds;            /* of each rank: readable when it has ended; -1: none */
    int ends;                /* an epoll of these, in the order of their ends; -1: none */
    uint32_t running;
    int status;      /* of the rank that failed first; 0: none */
    uint32_t failed; /* which that is */
    bool named;
    lh_time name_at; /* it is named at the latest; LH_TIME_NEVER: none has failed, or it is named */
    lh_time kill_at; /* the grace's end; LH_TIME_NEVER: nobody was asked to end */
    sigset_t mask;   /* of the process before */
};

static void signal_all(const struct ranks *ranks, int number)
{
    for (uint32_t rank = 0; rank < ranks->job->ranks; rank++)
        cli_run_signal(&ranks->processes[rank], number);
}

/* Asks them to end, once. */
static void end_all(struct ranks *ranks, int number)
{
    if (ranks->kill_at != LH_TIME_NEVER)
        return;
    signal_all(ranks, number);
    ranks->kill_at = cli_now() + CLI_RUN_GRACE_S * LH_NS_PER_S;
}

/* ---- output ------------------------------------------------------------------------------------------ */

/* Copies what is there, or a pipe's capacity: others have their turn. */
static void relay(struct cli_lines *lines, int *fd)
{
    char text[16384];
    ssize_t got = 1;
    for (unsigned i = 0; i < 4 && got > 0; i++) {
        got = read(*fd, text, sizeof text);
        if (got > 0)
            cli_lines_take(lines, text, (size_t)got);
    }
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    cli_lines_end(lines);
    close(*fd);
    *fd = -1;
}

static void relay_all(struct ranks *ranks)
{
    for (uint32_t i = 0; i < ranks->job->ranks * OUTPUTS; i++) {
        int *fd = &ranks->processes[i / OUTPUTS].out[i % OUTPUTS];
        if (*fd >= 0)
            relay(&ranks->lines[i], fd);
    }
    cli_output_flush();
    fflush(stderr);
}

/* ---- ends -------------------------------------------------------------------------------------------- */

/* The descriptor of a process that this system may not have, or not have to spare: then its end is seen,
 * but not before which. */
static void watch_end(struct ranks *ranks, uint32_t rank)
{
    struct rlimit limit = {0};
    int fd = (int)syscall(SYS_pidfd_open, ranks->processes[rank].pid, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = rank};
    getrlimit(RLIMIT_NOFILE, &limit);
    bool spare = fd >= 0 && (rlim_t)fd < limit.rlim_cur / 2; /* the lowest free number */
    if (fd >= 0 && (!spare || epoll_ctl(ranks->ends, EPOLL_CTL_ADD, fd, &event) != 0)) {
        close(fd);
        fd = -1;
    }
    ranks->end_fds[rank] = fd;
}

static bool by_signal(int status)
{
    return status > EXIT_BY_SIGNAL && status < 255; /* which is the remote shell's own */
}

static void name_failed(struct ranks *ranks)
{
    ranks->named = true;
    ranks->name_at = LH_TIME_NEVER;
    /* Those that a signal to this command ends are expected to end so. */
    if (cli_stopped())
        return;
    relay_all(ranks);
    const char *others = ranks->running > 0 ? "; ending the other ranks" : "";
    const char *host = cli_run_host(ranks->job, ranks->failed);
    const char *on = host ? " on " : "";
    host = host ? host : "";
    if (by_signal(ranks->status))
        cli_failed("rank %" PRIu32 "%s%s was ended by signal %d (%s)%s", ranks->failed, on, host,
                   ranks->status - EXIT_BY_SIGNAL, strsignal(ranks->status - EXIT_BY_SIGNAL), others);
    else
        cli_failed("rank %" PRIu32 "%s%s ended with exit status %d%s", ranks->failed, on, host,
                   ranks->status, others);
    end_all(ranks, SIGTERM);
}

/* One that a signal stops leaves its group in order, and so may end after those that fail for it: of all that
 * fail within a second it is the cause. */
static void on_end(struct ranks *ranks, uint32_t rank)
{
    int status = ranks->processes[rank].status;
    ranks->running--;
    if (status == 0 || ranks->named)
        return;
    if (ranks->status == 0)
        ranks->name_at = cli_now() + CLI_RUN_CAUSE_NS;
    if (ranks->status == 0 || (by_signal(status) && !by_signal(ranks->status))) {
        ranks->status = status;
        ranks->failed = rank;
    }
}

static void take_end(struct ranks *ranks, uint32_t rank)
{
    if (!cli_run_has_ended(&ranks->processes[rank]))
        return;
    if (ranks->end_fds[rank] >= 0)
        close(ranks->end_fds[rank]);
    ranks->end_fds[rank] = -1;
    on_end(ranks, rank);
}

static void collect(struct ranks *ranks)
{
    struct epoll_event events[CLI_RUN_RANKS_MAX];
    int count = epoll_wait(ranks->ends, events, CLI_RUN_RANKS_MAX, 0);
    for (int i = 0; i < count; i++)
        take_end(ranks, events[i].data.u32);
    for (uint32_t rank = 0; rank < ranks->job->ranks; rank++)
        if (ranks->end_fds[rank] < 0)
            take_end(ranks, rank);
    if (ranks->status != 0 && !ranks->named &&
        (by_signal(ranks->status) || ranks->running == 0 || cli_stopped() || cli_now() >= ranks->name_at))
        name_failed(ranks);
    if (cli_stopped())
        end_all(ranks, cli_stopped() - EXIT_BY_SIGNAL);
    if (cli_now() >= ranks->kill_at)
        signal_all(ranks, SIGKILL);
}

static lh_time next_timer(const struct ranks *ranks)
{
    return ranks->kill_at < ranks->name_at ? ranks->kill_at : ranks->name_at;
}

/* Until there is output, a signal, or a timer. What is open is polled alone: poll() takes no more entries
 * than a process may have descriptors. An errno is one of which no signal would be seen any more. */
static int sleep_for_more(struct ranks *ranks)
{
    nfds_t count = 0;
    for (uint32_t i = 0; i < ranks->job->ranks * OUTPUTS; i++) {
        int fd = ranks->processes[i / OUTPUTS].out[i % OUTPUTS];
        if (fd >= 0)
            ranks->polls[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    lh_time now = cli_now(), wake = next_timer(ranks), span = LH_NS_PER_S;
    if (wake != LH_TIME_NEVER && wake > now && wake - now < span)
        span = wake - now;
    struct timespec timeout = {(time_t)(span / LH_NS_PER_S), (long)(span % LH_NS_PER_S)};
    return ppoll(ranks->polls, count, &timeout, &ranks->mask) < 0 && errno != EINTR ? errno : 0;
}

/* ---- start ------------------------------------------------------------------------------------------- */

static void on_child(int number)
{
    (void)number; /* ends the sleep */
}

/* Signals come in ppoll() alone. */
static void hold_signals(struct ranks *ranks)
{
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGCHLD);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = on_child}, NULL);
    cli_stop_at_once(false);
    sigprocmask(SIG_BLOCK, &held, &ranks->mask);
}

static int start_failed(const struct ranks *ranks, uint32_t rank, const char *command, int failed)
{
    struct rlimit limit = {0};
    const char *others = ranks->running > 0 ? "; ending the other ranks" : "";
    if (failed != EMFILE)
        return cli_failed("%s: %s%s", cli_run_host(ranks->job, rank) ? ranks->job->shell : command,
                          strerror(failed), others);
    getrlimit(RLIMIT_NOFILE, &limit);
    return cli_failed("rank %" PRIu32 ": no file descriptor left (limit %llu: raise it with ulimit -n)%s",
                      rank, (unsigned long long)limit.rlim_cur, others);
}

static int start_all(struct ranks *ranks, char **command)
{
    for (uint32_t rank = 0; rank < ranks->job->ranks; rank++) {
        int failed = cli_run_start(ranks->job, rank, command, &ranks->mask, &ranks->processes[rank]);
        if (failed) {
            end_all(ranks, SIGKILL);
            ranks->status = CLI_EXIT_FAILED; /* the others' ends are no failures of theirs */
            ranks->named = true;
            return start_failed(ranks, rank, command[0], failed);
        }
        ranks->running++;
        watch_end(ranks, rank);
    }
    return CLI_EXIT_OK;
}

static int run(struct ranks *ranks, char **command)
{
    hold_signals(ranks);
    int failed = start_all(ranks, command);
    while (ranks->running > 0) { /* until the last has ended; each can be killed */
        int broken = sleep_for_more(ranks);
        if (broken && !failed) {
            failed = cli_failed("poll: %s; ending all ranks", strerror(broken));
            end_all(ranks, SIGKILL);
        }
        relay_all(ranks);
        collect(ranks);
    }
    relay_all(ranks);
    /* What failed ranks have started, and left. */
    if (ranks->kill_at != LH_TIME_NEVER)
        signal_all(ranks, SIGKILL);
    if (failed)
        return failed;
    return cli_stopped() ? cli_stopped() : ranks->status;
}

static int run_with_memory(const struct cli_run_job *job, char **command, bool label)
{
    uint32_t outputs = job->ranks * OUTPUTS;
    int status = CLI_EXIT_FAILED;
    struct ranks ranks = {.job = job, .kill_at = LH_TIME_NEVER, .name_at = LH_TIME_NEVER};
    ranks.ends = epoll_create1(EPOLL_CLOEXEC);
    ranks.end_fds = calloc(job->ranks, sizeof *ranks.end_fds);
    ranks.processes = calloc(job->ranks, sizeof *ranks.processes);
    ranks.lines = calloc(outputs, sizeof *ranks.lines);
    ranks.polls = calloc(outputs, sizeof *ranks.polls);
    if (ranks.processes && ranks.lines && ranks.polls && ranks.end_fds) {
        for (uint32_t i = 0; i < outputs; i++) {
            ranks.lines[i].rank = label ? (int)(i / OUTPUTS) : -1;
            ranks.lines[i].out = i % OUTPUTS ? stderr : stdout;
            ranks.processes[i / OUTPUTS].out[i % OUTPUTS] = -1;
            ranks.end_fds[i / OUTPUTS] = -1;
        }
        status = run(&ranks, command);
    } else {
        cli_failed("no memory for %" PRIu32 " ranks", job->ranks);
    }
    if (ranks.ends >= 0)
        close(ranks.ends);
    free(ranks.end_fds);
    free(ranks.polls);
    free(ranks.lines);
    free(ranks.processes);
    return status;
}

int cli_run_ranks(struct cli_run_job *job, char **command, bool label)
{
    int fd, status = cli_meeting_choose(job, &fd);
    if (status != CLI_PROCEED)
        return status;
    status = run_with_memory(job, command, label);
    close(fd);
    return status;
}
