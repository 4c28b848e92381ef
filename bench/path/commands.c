/* SPDX-License-Identifier: BSD-3-Clause */
#include "commands.h"

#include "cli/path/path_line.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A state of /proc/net/tcp. */
#define TCP_LISTEN "0A"

/* What is measured comes before the other programs of this machine, where the kernel shares its processors
 * among sessions (CONFIG_SCHED_AUTOGROUP); elsewhere, and without the right to, it does not. */
static void start_session(void)
{
    static const char nice[] = "-20";
    setsid();
    int file = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return;
    ssize_t ignored = write(file, nice, sizeof nice - 1);
    (void)ignored;
    close(file);
}

pid_t path_command_start(const struct path_end *end, const cpu_set_t *processors, char **argv)
{
    pid_t process = fork();
    if (process)
        return process;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    start_session();
    path_processors_give(processors);
    if (setns(end->network, CLONE_NEWNET) == 0)
        execvp(argv[0], argv);
    fprintf(stderr, "longhaul-path: %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static bool listens(const char *path)
{
    char line[512], state[8] = "";
    FILE *file = fopen(path, "re");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file))
        found = sscanf(line, "%*s %*s %*s %7s", state) == 1 && !strcmp(state, TCP_LISTEN);
    if (file)
        fclose(file);
    return found;
}

bool path_command_listens(const struct path_end *end)
{
    int own = path_end_enter(end);
    bool found =
        own >= 0 && (listens("/proc/thread-self/net/tcp") || listens("/proc/thread-self/net/tcp6"));
    if (own >= 0)
        path_end_leave(own);
    return found;
}

void path_command_end(pid_t process)
{
    if (process <= 0)
        return;
    kill(-process, SIGTERM);
    for (int i = 0; i < 100; i++) {
        pid_t ended = waitpid(process, NULL, WNOHANG);
        if (ended == process || (ended < 0 && errno == ECHILD))
            break;
        usleep(10000);
    }
    kill(-process, SIGKILL);
    waitpid(process, NULL, 0);
}
