/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/run/watch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"

void watch_init(struct watch *watch)
{
    *watch = (struct watch){.fd = -1};
}

void watch_close(struct watch *watch)
{
    if (watch->fd >= 0)
        close(watch->fd);
    watch->fd = -1;
    free(watch->users);
    watch->users = NULL;
}

static bool is_among(int fd, const int *fds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (fds[i] == fd)
            return true;
    return false;
}

#define USERS_ROOM_MIN 64u

/* Entries are aligned: the lowest bit of a pointer tells them from the others. */
#define OTHER ((uintptr_t)1)

static int add(struct watch *watch, uintptr_t what, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = what};
    if (watch->fd < 0)
        watch->fd = epoll_create1(EPOLL_CLOEXEC);
    if (watch->fd < 0)
        return lh_fail(LH_ESYSTEM, "epoll_create: %s; raise the limit of open files", strerror(errno));
    if (epoll_ctl(watch->fd, EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST)
        return lh_fail(LH_ESYSTEM, "cannot wait for a socket: %s; raise fs.epoll.max_user_watches",
                       strerror(errno));
    return 0;
}

/* Descriptors are small numbers. False: no memory. */
static bool count_user(struct watch *watch, int fd)
{
    uint32_t at = (uint32_t)fd;
    if (at >= watch->users_room) {
        uint32_t room = watch->users_room ? watch->users_room : USERS_ROOM_MIN;
        while (room <= at)
            room *= 2;
        uint32_t *users = realloc(watch->users, room * sizeof *users);
        if (!users)
            return false;
        memset(users + watch->users_room, 0, (room - watch->users_room) * sizeof *users);
        watch->users = users;
        watch->users_room = room;
    }
    watch->users[at]++;
    return true;
}

static void remove_user(struct watch *watch, int fd)
{
    epoll_ctl(watch->fd, EPOLL_CTL_DEL, fd, NULL); /* it may be closed */
    assert(watch->users[fd] > 0);
    if (--watch->users[fd] == 0)
        return;
    assert(watch->removed_count < WATCH_REMOVED_MAX);
    watch->removed[watch->removed_count++] = fd;
}

int watch_set(struct watch *watch, struct run_entry *entry, struct watch_fds *registered, const int *fds,
              uint32_t count)
{
    const struct watch_fds before = *registered;
    int error = 0;
    assert(count <= WATCH_FDS_MAX);
    for (uint32_t i = 0; i < before.count; i++)
        if (!is_among(before.fds[i], fds, count))
            remove_user(watch, before.fds[i]);
    registered->count = 0;
    for (uint32_t i = 0; i < count && !error; i++) {
        bool counted = is_among(fds[i], before.fds, before.count) || count_user(watch, fds[i]);
        error = counted ? add(watch, (uintptr_t)entry, fds[i])
                        : lh_fail(LH_ENOMEM, "no memory to wait for a socket");
        if (counted)
            registered->fds[registered->count++] = fds[i];
    }
    return error;
}

int watch_add_other(struct watch *watch, struct watch_other *other)
{
    int error = add(watch, (uintptr_t)other | OTHER, other->fd);
    other->watched = !error;
    watch->others += !error;
    return error;
}

void watch_remove_other(struct watch *watch, struct watch_other *other)
{
    if (!other->watched)
        return;
    epoll_ctl(watch->fd, EPOLL_CTL_DEL, other->fd, NULL);
    other->watched = false;
    watch->others--;
}

void watch_writable(const struct watch *watch, struct watch_other *other, bool wanted)
{
    struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0),
                                .data.u64 = (uintptr_t)other | OTHER};
    epoll_ctl(watch->fd, EPOLL_CTL_MOD, other->fd, &event);
}

void watch_look(struct watch *watch, struct watch_report *report)
{
    struct epoll_event events[WATCH_BATCH];
    int count = watch->fd < 0 ? 0 : epoll_wait(watch->fd, events, WATCH_BATCH, 0);
    report->count = 0;
    report->other_count = 0;
    for (int i = 0; i < count; i++)
        if (events[i].data.u64 & OTHER)
            report->others[report->other_count++] =
                (struct watch_other *)(uintptr_t)(events[i].data.u64 & ~(uint64_t)OTHER);
        else
            report->ready[report->count++] = (struct run_entry *)(uintptr_t)events[i].data.u64;
}
