/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/run/run_ranks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/terminal/terminal.h"

/* ---- lines ----------------------------------------------------------------------------------------- */

static void print(struct cli_lines *lines, bool whole)
{
    if (lines->rank >= 0 && !lines->inside)
        fprintf(lines->out, "[%d] ", lines->rank);
    fwrite(lines->line, 1, lines->held, lines->out);
    lines->inside = !whole;
    lines->held = 0;
}

void cli_lines_take(struct cli_lines *lines, const char *text, size_t bytes)
{
    while (bytes > 0) { /* once a line, or a part of one */
        size_t room = sizeof lines->line - lines->held;
        size_t take = bytes < room ? bytes : room;
        const char *end = memchr(text, '\n', take);
        if (end)
            take = (size_t)(end - text) + 1;
        memcpy(lines->line + lines->held, text, take);
        lines->held += take;
        text += take;
        bytes -= take;
        if (end || lines->held == sizeof lines->line)
            print(lines, end != NULL);
    }
}

void cli_lines_end(struct cli_lines *lines)
{
    if (lines->held > 0 || lines->inside)
        cli_lines_take(lines, "\n", 1);
}

/* ---- variables ------------------------------------------------------------------------------------- */

uint32_t cli_run_site(const struct cli_run_job *job, uint32_t rank)
{
    return (uint32_t)((uint64_t)rank * job->sites / job->ranks);
}

/* The machine of a rank; NULL: this one. */
static const char *cli_run_host(const struct cli_run_job *job, uint32_t rank)
{
    return job->remotes ? job->remotes[rank].host : NULL;
}

static void set_count(const char *name, uint32_t value)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    setenv(name, text, 1);
}

/* Not what a launcher around this one has set: it places all ranks. */
static void set_or_not(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

void cli_run_set_variables(const struct cli_run_job *job, uint32_t rank)
{
    char site[24];
    snprintf(site, sizeof site, "site%u", cli_run_site(job, rank));
    set_count("RANK", rank);
    set_count("WORLD_SIZE", job->ranks);
    set_count("LOCAL_RANK", rank);
    set_count("LOCAL_WORLD_SIZE", job->ranks);
    setenv("MASTER_ADDR", job->master ? job->master : "127.0.0.1", 1);
    set_count("MASTER_PORT", job->port);
    setenv("LONGHAUL_SECRET", job->secret, 1);
    if (!job->remotes) {
        set_or_not("LONGHAUL_SITE", job->sites > 1 ? site : NULL);
        set_or_not("LONGHAUL_LINK", job->link);
    }
    unsetenv("TORCHELASTIC_USE_AGENT_STORE");
}

/* ---- meeting --------------------------------------------------------------------------------------- */

/* Where the ranks of a job meet, and the secret by which they know each other. */

/* Keeps a free port while the ranks run: nobody else gets it, and rank 0 may listen there, since neither
 * socket minds that the address is in use (SO_REUSEADDR), and this one does not listen. */
static int reserve_port(struct cli_run_job *job, int *fd)
{
    struct sockaddr_in any = {.sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(job->remotes ? INADDR_ANY : INADDR_LOOPBACK)};
    socklen_t size = sizeof any;
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd >= 0) {
        setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
        if (!bind(*fd, (struct sockaddr *)&any, size) &&
            !getsockname(*fd, (struct sockaddr *)&any, &size)) {
            job->port = ntohs(any.sin_port);
            return CLI_PROCEED;
        }
        close(*fd);
    }
    return cli_failed("no free port: %s", strerror(errno));
}

/* The user's, or a random one: others, such as other users of this machine, cannot join. */
static int make_secret(struct cli_run_job *job)
{
    uint8_t random[16];
    const char *given = getenv("LONGHAUL_SECRET");
    if (given && *given) {
        if (strlen(given) >= sizeof job->secret)
            return cli_failed("LONGHAUL_SECRET: longer than %zu bytes", sizeof job->secret - 1);
        strcpy(job->secret, given);
        return CLI_PROCEED;
    }
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return cli_failed("getrandom: %s", strerror(errno));
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(job->secret + 2 * i, 3, "%02x", random[i]);
    return CLI_PROCEED;
}

/* Sets the job's port and secret. CLI_PROCEED, and a descriptor to keep open while the ranks run; or
 * CLI_EXIT_FAILED. */
static int cli_meeting_choose(struct cli_run_job *job, int *fd)
{
    int status = make_secret(job);
    return status == CLI_PROCEED ? reserve_port(job, fd) : status;
}

/* ---- remote ---------------------------------------------------------------------------------------- */

/* The remote shell's words, with the host and "sh", and the script that this reads from standard input and
 * that runs the command there: no login shell has to understand it, and command lines, which all see, have no
 * secret. */
#define CLI_REMOTE_WORDS_MAX 32 /* of the remote shell; further ones are left out */
struct cli_remote_command {
    char *words[CLI_REMOTE_WORDS_MAX + 3];
    char *shell, *script;
};

/* ---- addresses --------------------------------------------------------------------------------------- */

/* Connecting a datagram socket sends nothing, and chooses the address. */
static const char *choose_address(const struct addrinfo *host, char address[CLI_RUN_ADDRESS_MAX])
{
    struct sockaddr_storage own;
    socklen_t size = sizeof own;
    const char *failure = NULL;
    int fd = socket(host->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, host->ai_addr, host->ai_addrlen) ||
        getsockname(fd, (struct sockaddr *)&own, &size))
        failure = strerror(errno);
    else if (getnameinfo((struct sockaddr *)&own, size, address, CLI_RUN_ADDRESS_MAX, NULL, 0,
                         NI_NUMERICHOST))
        failure = "no address";
    if (fd >= 0)
        close(fd);
    return failure;
}

const char *cli_remote_address(const char *host, int family, char address[CLI_RUN_ADDRESS_MAX],
                               bool *unknown)
{
    const struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_DGRAM};
    const char *at = strrchr(host, '@'), *failure = NULL;
    struct addrinfo *list;
    int failed = getaddrinfo(at ? at + 1 : host, "9", &hints, &list);
    *unknown = failed != 0;
    if (failed)
        return gai_strerror(failed);
    for (const struct addrinfo *one = list; one; one = one->ai_next) {
        failure = choose_address(one, address);
        if (!failure)
            break;
    }
    freeaddrinfo(list);
    return failure;
}

/* ---- the script -------------------------------------------------------------------------------------- */

/* As one word of a shell. */
static void put_quoted(FILE *out, const char *word)
{
    fputc('\'', out);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (const char[]){*word, '\0'}, out);
    fputc('\'', out);
}

static void put_variable(FILE *out, const char *name, const char *value)
{
    fprintf(out, "export %s=", name);
    put_quoted(out, value);
    fputc('\n', out);
}

/* What runs there, of a POSIX shell. */
static char *make_script(const struct cli_run_job *job, uint32_t rank, char **command)
{
    const char *interfaces = getenv("LONGHAUL_SOCKET_IFNAME");
    char *script = NULL;
    size_t size;
    FILE *out = open_memstream(&script, &size);
    if (!out)
        return NULL;
    fprintf(out, "export RANK=%" PRIu32 " WORLD_SIZE=%" PRIu32 " MASTER_PORT=%u\n", rank, job->ranks,
            job->port);
    put_variable(out, "MASTER_ADDR", job->remotes[rank].master);
    put_variable(out, "LONGHAUL_SECRET", job->secret);
    if (interfaces)
        put_variable(out, "LONGHAUL_SOCKET_IFNAME", interfaces);
    fputs("exec", out);
    for (; *command; command++) {
        fputc(' ', out);
        put_quoted(out, *command);
    }
    fputs("\n", out);
    fclose(out);
    return script;
}

static void cli_remote_free(struct cli_remote_command *remote);

/* False: no memory. */
static bool cli_remote_make(const struct cli_run_job *job, uint32_t rank, char **command,
                            struct cli_remote_command *remote)
{
    size_t count = 0;
    char *rest;
    remote->shell = strdup(job->shell);
    remote->script = make_script(job, rank, command);
    if (!remote->shell || !remote->script) {
        cli_remote_free(remote);
        return false;
    }
    for (char *word = strtok_r(remote->shell, " \t", &rest); word && count < CLI_REMOTE_WORDS_MAX;
         word = strtok_r(NULL, " \t", &rest))
        remote->words[count++] = word;
    remote->words[count++] = (char *)job->remotes[rank].host;
    remote->words[count++] = (char *)"sh";
    remote->words[count] = NULL;
    return true;
}

static void cli_remote_free(struct cli_remote_command *remote)
{
    free(remote->shell);
    free(remote->script);
}

/* ---- process --------------------------------------------------------------------------------------- */

/* A rank's process, in a process group of its own, and the pipes of its output. */

struct cli_run_process {
    pid_t pid;   /* 0: not started, or it has ended */
    pid_t group; /* stays */
    int status;  /* after its end: its exit status, or 128 and the signal's number */
    int out[2];  /* read ends: standard output, standard error; -1: closed, or not taken */
};

#define EXIT_BY_SIGNAL 128

/* What a child gets: read end of its input, write ends of its output; -1: nothing, and as this process. */
struct ends {
    int in, out, err;
};

/* In the child. Returns when the command cannot be executed. */
static void become(const struct cli_run_job *job, uint32_t rank, char **command, const sigset_t *mask,
                   const struct ends *ends)
{
    static const int changed[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ, SIGCHLD};
    int in = ends->in >= 0 ? ends->in : open("/dev/null", O_RDONLY);
    if (in >= 0)
        dup2(in, STDIN_FILENO);
    if (ends->out >= 0)
        dup2(ends->out, STDOUT_FILENO);
    if (ends->err >= 0)
        dup2(ends->err, STDERR_FILENO);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0; i < sizeof changed / sizeof *changed; i++)
        signal(changed[i], SIG_DFL);
    if (ends->out < 0) /* from its process group it may write to the terminal */
        signal(SIGTTOU, SIG_IGN);
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (!cli_run_host(job, rank))
        cli_run_set_variables(job, rank);
    execvp(command[0], command);
}

static void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* The end that closes when the command is executed brings the errno when it is not. */
static int await_execution(int fd)
{
    int failed = 0;
    while (read(fd, &failed, sizeof failed) < 0 && errno == EINTR)
        continue;
    return failed;
}

/* 0, or the errno. */
static int start(const struct cli_run_job *job, uint32_t rank, char **command, const sigset_t *mask,
                 const struct ends *ends, pid_t *pid)
{
    int done[2];
    if (pipe2(done, O_CLOEXEC))
        return errno;
    *pid = fork();
    if (*pid == 0) {
        become(job, rank, command, mask, ends);
        int failed = errno;
        ssize_t ignored = write(done[1], &failed, sizeof failed);
        (void)ignored;
        _exit(127);
    }
    int failed = *pid < 0 ? errno : 0;
    close(done[1]);
    if (!failed)
        failed = await_execution(done[0]);
    close(done[0]);
    if (failed && *pid > 0)
        waitpid(*pid, NULL, 0);
    return failed;
}

/* What a pipe takes at once. */
static int make_input(const char *text, int *in)
{
    int ends[2];
    size_t length = strlen(text);
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    *in = ends[0];
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    bool whole = write(ends[1], text, length) == (ssize_t)length;
    close(ends[1]);
    return whole ? 0 : E2BIG;
}

static int start_there(const struct cli_run_job *job, uint32_t rank, char **command, const sigset_t *mask,
                       pid_t *pid)
{
    struct cli_remote_command remote;
    struct ends ends = {-1, -1, -1};
    if (!cli_remote_make(job, rank, command, &remote))
        return ENOMEM;
    int failed = make_input(remote.script, &ends.in);
    if (!failed)
        failed = start(job, rank, remote.words, mask, &ends, pid);
    close_if_open(ends.in);
    cli_remote_free(&remote);
    return failed;
}

/* Its output comes through pipes, whose ends to read are kept. */
static int start_piped(const struct cli_run_job *job, uint32_t rank, char **command, const sigset_t *mask,
                       struct cli_run_process *process)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1}, failed = 0;
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
        failed = errno;
    const struct ends ends = {-1, out[1], err[1]};
    if (!failed)
        failed = start(job, rank, command, mask, &ends, &process->pid);
    close_if_open(out[1]);
    close_if_open(err[1]);
    if (failed) {
        close_if_open(out[0]);
        close_if_open(err[0]);
        return failed;
    }
    process->out[0] = out[0];
    process->out[1] = err[0];
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    return 0;
}

/* Starts the command with the rank's variables, no standard input and this signal mask; on another machine,
 * as run_ranks.h does. 0, or the errno of what failed: ENOENT, EACCES of the command, or of the remote
 * shell. */
static int cli_run_start(const struct cli_run_job *job, uint32_t rank, char **command, const sigset_t *mask,
                         struct cli_run_process *process)
{
    struct cli_run_process started = {.out = {-1, -1}};
    const struct ends none = {-1, -1, -1};
    int failed;
    if (!job->remotes)
        failed = start_piped(job, rank, command, mask, &started);
    else if (cli_run_host(job, rank))
        failed = start_there(job, rank, command, mask, &started.pid);
    else
        failed = start(job, rank, command, mask, &none, &started.pid);
    if (failed)
        return failed;
    started.group = started.pid;
    setpgid(started.pid, started.pid); /* may be done already */
    *process = started;
    return 0;
}

/* Whether it has ended by now. */
static int cli_run_has_ended(struct cli_run_process *process)
{
    int status;
    if (!process->pid || waitpid(process->pid, &status, WNOHANG) != process->pid)
        return 0;
    process->status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_BY_SIGNAL + WTERMSIG(status);
    process->pid = 0;
    return 1;
}

/* To it and what it started. */
static void cli_run_signal(const struct cli_run_process *process, int number)
{
    if (process->group > 0)
        kill(-process->group, number);
}

/* ---- ranks ----------------------------------------------------------------------------------------- */

/*
 * Timers: the grace of ranks that were asked to end, CLI_RUN_GRACE_S; the time in which the rank that caused
 * the failures of others may end after them, CLI_RUN_CAUSE_NS.
 */

#define CLI_RUN_GRACE_S  5
#define CLI_RUN_CAUSE_NS LH_NS_PER_S

#define OUTPUTS 2u /* of a rank: standard output, standard error */

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
