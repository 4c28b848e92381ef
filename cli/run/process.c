/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/run/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_BY_SIGNAL 128

/* In the child. Returns when the command cannot be executed. */
static void become(const struct cli_run_job *job, uint32_t rank, char **command, const sigset_t *mask,
                   const int ends[2])
{
    static const int changed[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ, SIGCHLD};
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    dup2(ends[0], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0; i < sizeof changed / sizeof *changed; i++)
        signal(changed[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    cli_run_set_variables(job, rank);
    execvp(command[0], command);
}

static void close_both(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

/* The end that closes when the command is executed brings the errno when it is not. */
static int await_execution(int fd)
{
    int failed = 0;
    while (read(fd, &failed, sizeof failed) < 0 && errno == EINTR)
        continue;
    return failed;
}

int cli_run_start(const struct cli_run_job *job, uint32_t rank, char **command, const sigset_t *mask,
                  struct cli_run_process *process)
{
    int out[2], err[2], done[2];
    if (pipe2(out, O_CLOEXEC))
        return errno;
    if (pipe2(err, O_CLOEXEC)) {
        int failed = errno;
        close_both(out);
        return failed;
    }
    if (pipe2(done, O_CLOEXEC)) {
        int failed = errno;
        close_both(out);
        close_both(err);
        return failed;
    }
    pid_t pid = fork();
    if (pid == 0) {
        become(job, rank, command, mask, (const int[]){out[1], err[1]});
        int failed = errno;
        ssize_t ignored = write(done[1], &failed, sizeof failed);
        (void)ignored;
        _exit(127);
    }
    int failed = pid < 0 ? errno : 0;
    close(out[1]);
    close(err[1]);
    close(done[1]);
    if (!failed)
        failed = await_execution(done[0]);
    close(done[0]);
    if (failed) {
        if (pid > 0)
            waitpid(pid, NULL, 0);
        close(out[0]);
        close(err[0]);
        return failed;
    }
    setpgid(pid, pid); /* may be done already */
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    *process = (struct cli_run_process){.pid = pid, .group = pid, .out = {out[0], err[0]}};
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
