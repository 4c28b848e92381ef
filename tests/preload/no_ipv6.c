/*
 * no_ipv6.c - preloaded: a host whose kernel has no IPv6.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

int socket(int domain, int type, int protocol)
{
    if (domain == AF_INET6) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    int (*next)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
    return next(domain, type, protocol);
}
