/*
 * record_sent.c - preloaded: a host on the path that records what this process sends over IP, packets of UDP
 * and bytes of TCP, one behind the other, in the file $LH_TEST_RECORD.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Whole, though threads send at the same time: appends. */
static void record(int fd, const struct msghdr *message)
{
    int domain = 0;
    socklen_t size = sizeof domain;
    const char *name = getenv("LH_TEST_RECORD");
    if (!name || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) ||
        (domain != AF_INET && domain != AF_INET6))
        return;
    int file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || writev(file, message->msg_iov, (int)message->msg_iovlen) < 0)
        abort();
    close(file);
}

ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    typedef ssize_t send_function(int, const void *, size_t, int);
    send_function *next = (send_function *)dlsym(RTLD_NEXT, "send");
    struct iovec iov = {(void *)(unsigned long)data, bytes};
    record(fd, &(struct msghdr){.msg_iov = &iov, .msg_iovlen = 1});
    return next(fd, data, bytes, flags);
}

ssize_t sendto(int fd, const void *data, size_t bytes, int flags, const struct sockaddr *to, socklen_t size)
{
    typedef ssize_t sendto_function(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
    sendto_function *next = (sendto_function *)dlsym(RTLD_NEXT, "sendto");
    struct iovec iov = {(void *)(unsigned long)data, bytes};
    record(fd, &(struct msghdr){.msg_iov = &iov, .msg_iovlen = 1});
    return next(fd, data, bytes, flags, to, size);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    typedef ssize_t sendmsg_function(int, const struct msghdr *, int);
    sendmsg_function *next = (sendmsg_function *)dlsym(RTLD_NEXT, "sendmsg");
    record(fd, message);
    return next(fd, message, flags);
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    typedef int sendmmsg_function(int, struct mmsghdr *, unsigned, int);
    sendmmsg_function *next = (sendmmsg_function *)dlsym(RTLD_NEXT, "sendmmsg");
    for (unsigned i = 0; i < count; i++)
        record(fd, &messages[i].msg_hdr);
    return next(fd, messages, count, flags);
}
