/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/run/process.h"

#include "cli/run/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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

int cli_run_start(const struct cli_run_job *job, uint32_t rank, char **command, const sigset_t *mask,
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

int cli_run_has_ended(struct cli_run_process *process)
{
    int status;
    if (!process->pid || waitpid(process->pid, &status, WNOHANG) != process->pid)
        return 0;
    process->status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_BY_SIGNAL + WTERMSIG(status);
    process->pid = 0;
    return 1;
}

void cli_run_signal(const struct cli_run_process *process, int number)
{
    if (process->group > 0)
        kill(-process->group, number);
}
