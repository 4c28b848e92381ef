/*
 * own_network.c - own_network LOCK COMMAND...: runs a test in a network namespace of its own, whose loopback
 * interface nobody else uses: tests side by side do not share ports, queues or counters. Where the system
 * allows none, the test holds LOCK, a file, and so has the interface of the host to itself.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static bool write_file(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0)
        close(file);
    return written;
}

/* Whoever is not root needs a user namespace for it, and stays who it is there. */
static bool enter_as_user(void)
{
    char users[64], groups[64];
    snprintf(users, sizeof users, "%u %u 1\n", (unsigned)getuid(), (unsigned)getuid());
    snprintf(groups, sizeof groups, "%u %u 1\n", (unsigned)getgid(), (unsigned)getgid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 && write_file("/proc/self/setgroups", "deny") &&
           write_file("/proc/self/uid_map", users) && write_file("/proc/self/gid_map", groups);
}

static bool loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool up = any >= 0 && ioctl(any, SIOCSIFFLAGS, &request) == 0;
    if (any >= 0)
        close(any);
    return up;
}

static bool enter(void)
{
    return (unshare(CLONE_NEWNET) == 0 || enter_as_user()) && loopback_up();
}

/* In a process that ends: one that fails half way has left the host's network. */
static bool may_enter(void)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0)
        _exit(enter() ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s LOCK COMMAND [ARGUMENT...]\n", argv[0]);
        return 2;
    }
    if (!may_enter() || !enter()) {
        /* Held until the test and all that it started have ended. */
        int lock = open(argv[1], O_RDWR | O_CREAT, 0666);
        if (lock < 0 || flock(lock, LOCK_EX) != 0) {
            fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
            return 2;
        }
    }
    execvp(argv[2], argv + 2);
    fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
    return 127;
}
