/* SPDX-License-Identifier: BSD-3-Clause */
#include <longhaul/connection.h>

#include "connection/attr.h"
#include "launch/rendezvous.h"
#include "launch/tcp.h"

int lh_connect(const char *where, const struct lh_attr *given, lh_time timeout_ns,
               struct lh_connection **connection)
{
    struct lh_attr attr;
    int fd;
    int error = attr_check(given, &attr);
    if (error)
        return error;
    lh_time deadline = tcp_deadline(timeout_ns);
    error = tcp_connect(where, deadline, &fd);
    return error ? error : rendezvous_connect(fd, &attr, deadline, connection);
}
