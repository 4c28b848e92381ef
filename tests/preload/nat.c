/*
 * nat.c - preloaded: this process is behind NAT. It takes itself to be at 127.0.0.1, and what it sends comes
 * from 127.9.9.9: its UDP packets from other ports than those that it bound, its TCP connections too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#define OUTSIDE 0x7F090909u /* 127.9.9.9 */

static bool is_type(int fd, int wanted)
{
    int type = 0;
    socklen_t size = sizeof type;
    return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == wanted;
}

static int bind_outside(int fd)
{
    int (*next)(int, const struct sockaddr *, socklen_t) =
        (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind");
    const struct sockaddr_in outside = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(OUTSIDE)};
    return next(fd, (const struct sockaddr *)&outside, sizeof outside);
}

int bind(int fd, const struct sockaddr *address, socklen_t size)
{
    int (*next)(int, const struct sockaddr *, socklen_t) =
        (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind");
    if (address->sa_family == AF_INET && is_type(fd, SOCK_DGRAM))
        return bind_outside(fd);
    return next(fd, address, size);
}

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
    int (*next)(int, const struct sockaddr *, socklen_t) =
        (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
    if (address->sa_family == AF_INET && is_type(fd, SOCK_STREAM) && bind_outside(fd))
        return -1;
    return next(fd, address, size);
}

int getsockname(int fd, struct sockaddr *address, socklen_t *size)
{
    int (*next)(int, struct sockaddr *, socklen_t *) =
        (int (*)(int, struct sockaddr *, socklen_t *))dlsym(RTLD_NEXT, "getsockname");
    int result = next(fd, address, size);
    struct sockaddr_in *four = (struct sockaddr_in *)address;
    if (result == 0 && four->sin_family == AF_INET && ntohl(four->sin_addr.s_addr) == OUTSIDE)
        four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return result;
}
