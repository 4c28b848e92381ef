/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/path/tcp_messages.h"

#include "cli/path/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE_BYTES  ((size_t)256 << 10)
#define HEADER_BYTES 8

static socklen_t parse_address(const char *text, uint16_t port, struct sockaddr_storage *out)
{
    struct sockaddr_in *in = (void *)out;
    struct sockaddr_in6 *in6 = (void *)out;
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        return sizeof *in;
    }
    if (inet_pton(AF_INET6, text, &in6->sin6_addr) != 1)
        return 0;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    return sizeof *in6;
}

static int close_with_error(int fd)
{
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int path_tcp_listen(const char *address, uint16_t port)
{
    struct sockaddr_storage at;
    socklen_t bytes = parse_address(address, port, &at);
    int fd = bytes ? socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    int yes = 1;
    if (!bytes)
        errno = EINVAL;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&at, bytes) != 0 || listen(fd, 64) != 0)
        return close_with_error(fd);
    return fd;
}

int path_tcp_connect(const char *address, uint16_t port, const char *from, const char *congestion)
{
    struct sockaddr_storage to, source;
    socklen_t bytes = parse_address(address, port, &to);
    socklen_t source_bytes = from ? parse_address(from, 0, &source) : 0;
    int fd = bytes ? socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    int yes = 1;
    if (!bytes || (from && !source_bytes))
        errno = EINVAL;
    if (fd < 0)
        return -1;
    if ((from && (!source_bytes || bind(fd, (struct sockaddr *)&source, source_bytes) != 0)) ||
        (congestion &&
         setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion)) != 0) ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0 ||
        connect(fd, (struct sockaddr *)&to, bytes) != 0)
        return close_with_error(fd);
    return fd;
}

static bool send_all(int fd, const uint8_t *data, uint64_t bytes)
{
    while (bytes) {
        ssize_t sent = send(fd, data, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return false;
        if (sent > 0) {
            data += sent;
            bytes -= (uint64_t)sent;
        }
    }
    return true;
}

/* False: broken; or, errno 0, closed by the peer. */
static bool receive_all(int fd, uint8_t *data, uint64_t bytes)
{
    while (bytes) {
        ssize_t got = recv(fd, data, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = 0;
        if (got <= 0)
            return false;
        data += got;
        bytes -= (uint64_t)got;
    }
    return true;
}

static bool receive_message(int fd, uint8_t *landing, uint64_t bytes)
{
    static uint8_t piece[PIECE_BYTES];
    if (landing)
        return receive_all(fd, landing, bytes);
    bool done = true;
    for (uint64_t part; done && bytes; bytes -= part) {
        part = bytes < sizeof piece ? bytes : sizeof piece;
        done = receive_all(fd, piece, part);
    }
    return done;
}

bool path_tcp_answer(int fd, uint8_t *landing, uint64_t landing_bytes)
{
    uint8_t header[HEADER_BYTES];
    while (receive_all(fd, header, sizeof header)) {
        uint64_t bytes = 0;
        for (unsigned i = 0; i < HEADER_BYTES; i++)
            bytes |= (uint64_t)header[i] << 8 * i;
        if (landing && bytes > landing_bytes) {
            errno = EMSGSIZE;
            return false;
        }
        if (!receive_message(fd, landing, bytes) || !send_all(fd, header, 1))
            return false;
    }
    return errno == 0;
}

bool path_tcp_send(int fd, const uint8_t *data, uint64_t bytes, int64_t *took_ns)
{
    static const uint8_t zeros[PIECE_BYTES];
    uint8_t header[HEADER_BYTES];
    int64_t started_ns = path_now();
    for (unsigned i = 0; i < HEADER_BYTES; i++)
        header[i] = (uint8_t)(bytes >> 8 * i);
    bool done = send_all(fd, header, sizeof header);
    if (data)
        done = done && send_all(fd, data, bytes);
    for (uint64_t part; !data && done && bytes; bytes -= part) {
        part = bytes < sizeof zeros ? bytes : sizeof zeros;
        done = send_all(fd, zeros, part);
    }
    done = done && receive_all(fd, header, 1);
    *took_ns = path_now() - started_ns;
    return done;
}

bool path_tcp_sent(int fd, uint64_t *bytes, uint64_t *again_bytes)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return false;
    *bytes = info.tcpi_bytes_sent;
    *again_bytes = info.tcpi_bytes_retrans;
    return true;
}
