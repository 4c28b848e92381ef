/* SPDX-License-Identifier: BSD-3-Clause */
#include "names.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER "/run/netns"

static char named[PATH_ENDS][sizeof FOLDER + PATH_NAME_MAX + 8];
static int representative_pipe = -1;
static pid_t keepalive_member = -1;

static void remove_names(void)
{
    for (unsigned side = 0; side < PATH_ENDS; side++) {
        if (!*named[side])
            continue;
        umount2(named[side], MNT_DETACH);
        unlink(named[side]);
    }
}

/* Waits until the other end of the pipe is gone, which no signal can prevent. */
static _Noreturn void keep(int end)
{
    char nothing;
    ssize_t got;
    sigset_t all;
    setsid();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int fd = 0; fd < 64; fd++) {
        if (fd != end)
            close(fd);
    }
    do
        got = read(end, &nothing, 1);
    while (got < 0 && errno == EINTR);
    remove_names();
    _exit(0);
}

static bool start_representative(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    keepalive_member = fork();
    if (keepalive_member == 0)
        keep(ends[0]);
    close(ends[0]);
    representative_pipe = ends[1];
    return keepalive_member > 0;
}

static bool give_name(const struct path_end *end, const char *path)
{
    char network[64];
    snprintf(network, sizeof network, "/proc/self/fd/%d", end->network);
    int file = open(path, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0444);
    if (file < 0)
        return false;
    close(file);
    if (mount(network, path, "none", MS_BIND, NULL) == 0)
        return true;
    int error = errno;
    unlink(path);
    errno = error;
    return false;
}

/* As 'ip netns add' makes it. If that did so when the names are there already, it would mount them twice, and
 * they could not be removed. */
static void share_folder(void)
{
    mkdir(FOLDER, 0755);
    if (mount("", FOLDER, "none", MS_SHARED | MS_REC, NULL) == 0 || errno != EINVAL)
        return;
    if (mount(FOLDER, FOLDER, "none", MS_BIND | MS_REC, NULL) == 0)
        mount("", FOLDER, "none", MS_SHARED | MS_REC, NULL);
}

bool path_names_open(const struct path_end end[PATH_ENDS], const char *name, char *reason, size_t size)
{
    static const char *const sides[PATH_ENDS] = {"left", "right"};
    char path[sizeof named[0]];
    if (!*name || strlen(name) > PATH_NAME_MAX || strchr(name, '/')) {
        snprintf(reason, size, "name '%s' is not usable (at most %d characters, no '/')", name,
                 PATH_NAME_MAX);
        return false;
    }
    share_folder();
    bool done = true;
    for (unsigned side = 0; done && side < PATH_ENDS; side++) {
        snprintf(path, sizeof path, FOLDER "/%s-%s", name, sides[side]);
        done = give_name(&end[side], path);
        if (done)
            memcpy(named[side], path, sizeof path);
    }
    if (!done)
        snprintf(reason, size, "%s: %s", path, strerror(errno));
    if (done && !start_representative()) {
        snprintf(reason, size, "a second process: %s", strerror(errno));
        done = false;
    }
    if (!done)
        remove_names();
    return done;
}

void path_names_close(void)
{
    if (keepalive_member <= 0)
        return;
    close(representative_pipe);
    while (waitpid(keepalive_member, NULL, 0) < 0 && errno == EINTR)
        ;
    keepalive_member = -1;
}
