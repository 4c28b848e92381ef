/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/run/watch.h"

#include <errno.h>
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
}

int watch_add(struct watch *watch, struct run_entry *entry, const int *fds, uint32_t count)
{
    if (watch->fd < 0)
        watch->fd = epoll_create1(EPOLL_CLOEXEC);
    if (watch->fd < 0)
        return lh_fail(LH_ESYSTEM, "epoll_create: %s; raise the limit of open files", strerror(errno));
    for (uint32_t i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = entry};
        if (epoll_ctl(watch->fd, EPOLL_CTL_ADD, fds[i], &event) != 0 && errno != EEXIST)
            return lh_fail(LH_ESYSTEM, "cannot wait for a socket: %s; raise fs.epoll.max_user_watches",
                           strerror(errno));
    }
    return 0;
}

void watch_remove(struct watch *watch, const int *fds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        epoll_ctl(watch->fd, EPOLL_CTL_DEL, fds[i], NULL); /* it may be another's, and gone */
}

void watch_look(struct watch *watch, struct watch_report *report)
{
    struct epoll_event events[WATCH_BATCH];
    int count = watch->fd < 0 ? 0 : epoll_wait(watch->fd, events, WATCH_BATCH, 0);
    report->count = count > 0 ? (uint32_t)count : 0;
    for (uint32_t i = 0; i < report->count; i++)
        report->ready[i] = events[i].data.ptr;
}
