/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/min_max.h"
#include "wire/roce_packet.h"

/* Connections that the kernel completes ahead of accept(): thousands of strangers a second come, and one of
 * ours. */
#define BACKLOG 4096
/* Between attempts to connect to the addresses of a name: RFC 8305, section 5. */
#define ATTEMPT_DELAY_NS    (250 * LH_NS_PER_MS)
#define ATTEMPTS_MAX        16u
#define WAIT_MAX_NS         (3600 * LH_NS_PER_S)
#define TCP_HEADER_BYTES    20u
#define TCP_TIMESTAMP_BYTES 12u
#define IPV4_BYTES          20u
#define IPV6_BYTES          40u
#define LOOPBACK_NET        127u /* 127.0.0.0/8 */
/* A smaller segment is that of a small window. IPv6's smallest MTU, and tunnels are not below it. */
#define SEGMENT_MTU_MIN 1280u

/* NAT that is widely in use forgets an idle connection after 4 minutes. */
#define KEEP_IDLE_S     60
#define KEEP_INTERVAL_S 10
#define KEEP_COUNT      6
#define KEEP_UNHEARD_MS ((KEEP_IDLE_S + KEEP_INTERVAL_S * KEEP_COUNT) * 1000)

lh_time tcp_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (lh_time)now.tv_sec * LH_NS_PER_S + (lh_time)now.tv_nsec;
}

lh_time tcp_deadline(lh_time timeout_ns)
{
    lh_time now = tcp_now();
    return timeout_ns > LH_TIME_NEVER - now ? LH_TIME_NEVER : now + timeout_ns;
}

int tcp_wait(int fd, bool writable, lh_time deadline)
{
    struct pollfd wait = {.fd = fd, .events = writable ? POLLOUT : POLLIN};
    for (;;) { /* once more after each signal */
        lh_time now = tcp_now();
        lh_time span = deadline == LH_TIME_NEVER ? LH_NS_PER_S * 3600 : deadline > now ? deadline - now : 0;
        struct timespec timeout = {(time_t)(span / LH_NS_PER_S), (long)(span % LH_NS_PER_S)};
        int ready = ppoll(&wait, 1, &timeout, NULL);
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return lh_fail(LH_ESYSTEM, "poll: %s", strerror(errno));
        if (ready == 0 && deadline != LH_TIME_NEVER)
            return lh_fail(LH_ETIMEDOUT, "the remote side did not answer in time");
    }
}

int tcp_split(const char *where, char *host, size_t host_size, char *port, size_t port_size)
{
    const char *colon = where ? strrchr(where, ':') : NULL;
    if (!colon || colon[1] == '\0')
        return lh_fail(LH_EINVAL, "address \"%s\": no port (use HOST:PORT, [IPv6]:PORT or :PORT)",
                       where ? where : "");
    const char *begin = where;
    const char *end = colon;
    if (*begin == '[' && end > begin + 1 && end[-1] == ']') {
        begin++;
        end--;
    } else if (memchr(begin, ':', (size_t)(end - begin))) {
        return lh_fail(LH_EINVAL, "address \"%s\": write an IPv6 address in brackets, [IPv6]:PORT", where);
    }
    if ((size_t)(end - begin) >= host_size || strlen(colon + 1) >= port_size ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return lh_fail(LH_EINVAL, "address \"%s\": invalid (use HOST:PORT with a port from 0 to 65535)",
                       where);
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    memcpy(port, colon + 1, strlen(colon + 1) + 1);
    return 0;
}

/* ---- addresses --------------------------------------------------------------------------------------- */

/* family: of an empty passive host. */
static int resolve(const char *where, bool passive, int family, struct addrinfo **list)
{
    char host[256];
    char port[8];
    int error = tcp_split(where, host, sizeof host, port, sizeof port);
    if (error)
        return error;
    if (atol(port) > UINT16_MAX)
        return lh_fail(LH_EINVAL, "address \"%s\": the port must be 0 to 65535", where);
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    if (passive && host[0] == '\0') {
        hints.ai_family = family;
        hints.ai_flags |= AI_PASSIVE;
    }
    int failed =
        getaddrinfo(host[0] || passive ? (host[0] ? host : NULL) : "localhost", port, &hints, list);
    if (failed)
        return lh_fail(LH_EADDR, "%s: %s", where, gai_strerror(failed));
    return 0;
}

static int open_socket(const struct addrinfo *address, const char *where, int *fd)
{
    *fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd >= 0)
        return 0;
    if (errno == EAFNOSUPPORT && address->ai_family == AF_INET6)
        return lh_fail(LH_EADDR, "%s: IPv6 is not available on this host (use an IPv4 address)", where);
    return lh_fail(LH_ESYSTEM, "socket: %s", strerror(errno));
}

/* ---- connecting: RFC 8305 ---------------------------------------------------------------------------- */

struct attempts {
    const char *where;
    const struct addrinfo *addresses[ATTEMPTS_MAX]; /* in the order in which they are tried */
    uint32_t address_count, next;
    struct pollfd polls[ATTEMPTS_MAX]; /* connections that are under way */
    uint32_t open;
    int error; /* of the last that failed */
};

static const struct addrinfo *next_of_family(const struct addrinfo *list, int family, bool same)
{
    while (list && (list->ai_family == family) != same)
        list = list->ai_next;
    return list;
}

/* The resolver's order, families in turns, that of its first address first: section 4. */
static void order_addresses(struct attempts *attempts, const struct addrinfo *list)
{
    if (!list)
        return;
    const int family = list->ai_family;
    const struct addrinfo *next[] = {list, next_of_family(list, family, false)};
    for (unsigned turn = 0; (next[0] || next[1]) && attempts->address_count < ATTEMPTS_MAX; turn = !turn) {
        if (!next[turn])
            continue;
        attempts->addresses[attempts->address_count++] = next[turn];
        next[turn] = next_of_family(next[turn]->ai_next, family, turn == 0);
    }
}

/* Nobody refused it: no host there, or one that drops what comes. */
static int not_answered(const char *where)
{
    return lh_fail(LH_ETIMEDOUT,
                   "%s did not answer in time: no host has this address, or a firewall drops TCP (let TCP "
                   "port %s through the firewalls of both hosts)",
                   where, strrchr(where, ':') + 1);
}

static int connect_failed(const struct attempts *attempts, int failed)
{
    if (failed == ETIMEDOUT)
        return not_answered(attempts->where);
    if (failed == ECONNRESET) /* of a listener that closed before it took the connection */
        failed = ECONNREFUSED;
    return lh_fail(LH_EPEER, "%s: %s: is the remote side listening there?", attempts->where,
                   strerror(failed));
}

static void begin_attempt(struct attempts *attempts)
{
    int fd;
    const struct addrinfo *to = attempts->addresses[attempts->next++];
    int error = open_socket(to, attempts->where, &fd);
    if (!error && connect(fd, to->ai_addr, to->ai_addrlen) && errno != EINPROGRESS) {
        error = connect_failed(attempts, errno);
        close(fd);
    }
    if (error)
        attempts->error = error;
    else
        attempts->polls[attempts->open++] = (struct pollfd){.fd = fd, .events = POLLOUT};
}

/* 0: nothing happened, or a signal; 1: something did; or -LH_ESYSTEM. */
static int await_attempts(struct attempts *attempts, lh_time until)
{
    lh_time now = tcp_now(), span = until > now ? until - now : 0;
    if (span > WAIT_MAX_NS)
        span = WAIT_MAX_NS;
    struct timespec timeout = {(time_t)(span / LH_NS_PER_S), (long)(span % LH_NS_PER_S)};
    int ready = ppoll(attempts->polls, attempts->open, &timeout, NULL);
    if (ready < 0 && errno != EINTR)
        return lh_fail(LH_ESYSTEM, "poll: %s", strerror(errno));
    return ready > 0;
}

/* Takes out what failed. True: *out is connected. */
static bool collect_attempts(struct attempts *attempts, int *out)
{
    for (uint32_t i = 0; i < attempts->open;) {
        int failed = 0;
        socklen_t size = sizeof failed;
        if (!attempts->polls[i].revents) {
            i++;
            continue;
        }
        *out = attempts->polls[i].fd;
        attempts->polls[i] = attempts->polls[--attempts->open];
        getsockopt(*out, SOL_SOCKET, SO_ERROR, &failed, &size);
        if (!failed)
            return true;
        attempts->error = connect_failed(attempts, failed);
        close(*out);
    }
    return false;
}

static int connect_first(struct attempts *attempts, lh_time deadline, int *out)
{
    lh_time next_ns = 0;
    for (;;) { /* until one is connected, all have failed, or the deadline */
        lh_time now = tcp_now();
        uint32_t before = attempts->open;
        bool more = attempts->next < attempts->address_count;
        if (more && (now >= next_ns || attempts->open == 0)) {
            begin_attempt(attempts);
            next_ns = attempts->open > before ? now + ATTEMPT_DELAY_NS : now;
            continue;
        }
        if (attempts->open == 0)
            return attempts->error;
        if (now >= deadline)
            return not_answered(attempts->where);
        int ready = await_attempts(attempts, more && next_ns < deadline ? next_ns : deadline);
        if (ready < 0)
            return ready;
        if (ready && collect_attempts(attempts, out))
            return 0;
        if (attempts->open < before)
            next_ns = 0;
    }
}

int tcp_connect_any(const struct addrinfo *list, const char *where, lh_time deadline, int *out)
{
    struct attempts attempts = {.where = where, .error = -LH_EADDR};
    order_addresses(&attempts, list);
    int error = connect_first(&attempts, deadline, out);
    for (uint32_t i = 0; i < attempts.open; i++)
        close(attempts.polls[i].fd);
    if (!error)
        setsockopt(*out, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return error;
}

int tcp_connect(const char *where, lh_time deadline, int *fd)
{
    struct addrinfo *list;
    int error = resolve(where, false, AF_UNSPEC, &list);
    if (error)
        return error;
    error = tcp_connect_any(list, where, deadline, fd);
    freeaddrinfo(list);
    return error;
}

/* ---- listening --------------------------------------------------------------------------------------- */

static int listen_one(const struct addrinfo *on, const char *where, int *out)
{
    int fd;
    int error = open_socket(on, where, &fd);
    if (error)
        return error;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (on->ai_family == AF_INET6) /* [::] takes IPv4 as well */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int));
    if (bind(fd, on->ai_addr, on->ai_addrlen) || listen(fd, BACKLOG)) {
        error = lh_fail(LH_EADDR, "%s: %s", where, strerror(errno));
        close(fd);
        return error;
    }
    *out = fd;
    return 0;
}

static int listen_any_of(const char *where, int family, int *fd)
{
    struct addrinfo *list;
    int error = resolve(where, true, family, &list);
    if (error)
        return error;
    error = -LH_EADDR;
    for (const struct addrinfo *on = list; on && error; on = on->ai_next)
        error = listen_one(on, where, fd);
    freeaddrinfo(list);
    return error;
}

/* Whether this host's kernel has IPv6 at all. */
static bool has_ipv6(void)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || errno != EAFNOSUPPORT;
}

int tcp_listen(const char *where, int *fd, uint16_t *port)
{
    int error = listen_any_of(where, has_ipv6() ? AF_INET6 : AF_INET, fd);
    if (error)
        return error;
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;
    getsockname(*fd, (struct sockaddr *)&bound, &size);
    *port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                              : ((struct sockaddr_in *)&bound)->sin_port);
    return 0;
}

bool tcp_is_exhausted(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* ---- connections ------------------------------------------------------------------------------------- */

void tcp_keep_alive(int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){KEEP_IDLE_S}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){KEEP_INTERVAL_S}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &(int){KEEP_COUNT}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &(int){KEEP_UNHEARD_MS}, sizeof(int));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
}

int tcp_write(int fd, const void *data, size_t bytes, lh_time deadline)
{
    const char *at = data;
    while (bytes > 0) { /* until all is written or the deadline passes */
        ssize_t done = send(fd, at, bytes, MSG_NOSIGNAL);
        if (done > 0) {
            at += done;
            bytes -= (size_t)done;
            continue;
        }
        if (done < 0 && errno != EAGAIN && errno != EINTR)
            return lh_fail(LH_EPEER, "connection to the remote side failed: %s", strerror(errno));
        int error = tcp_wait(fd, true, deadline);
        if (error)
            return error;
    }
    return 0;
}

int tcp_read(int fd, void *data, size_t bytes, lh_time deadline)
{
    char *at = data;
    while (bytes > 0) { /* until all is read or the deadline passes */
        int error = tcp_wait(fd, false, deadline);
        if (error)
            return error;
        ssize_t done = recv(fd, at, bytes, 0);
        if (done == 0)
            return lh_fail(LH_EPEER, "the remote side closed the connection");
        if (done < 0 && errno != EAGAIN && errno != EINTR)
            return lh_fail(LH_EPEER, "connection to the remote side failed: %s", strerror(errno));
        if (done > 0) {
            at += done;
            bytes -= (size_t)done;
        }
    }
    return 0;
}

/* An IPv4 address that a dual-stack socket shows as ::ffff:a.b.c.d becomes IPv4. */
static void unmap(struct sockaddr_storage *address)
{
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
    if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        return;
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = six->sin6_port};
    memcpy(&four.sin_addr, &six->sin6_addr.s6_addr[12], 4);
    memset(address, 0, sizeof *address);
    memcpy(address, &four, sizeof four);
}

static int end_address(int fd, bool peer, struct sockaddr_storage *address)
{
    socklen_t size = sizeof *address;
    memset(address, 0, sizeof *address);
    struct sockaddr *raw = (struct sockaddr *)address;
    if (peer ? getpeername(fd, raw, &size) : getsockname(fd, raw, &size))
        return lh_fail(LH_EPEER, "connection to the remote side failed: %s", strerror(errno));
    unmap(address);
    return 0;
}

static int host_of(int fd, bool peer, char *host, socklen_t host_size, char *port, socklen_t port_size,
                   bool *six)
{
    struct sockaddr_storage address;
    int error = end_address(fd, peer, &address);
    if (error)
        return error;
    *six = address.ss_family == AF_INET6;
    socklen_t size = *six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int failed = getnameinfo((struct sockaddr *)&address, size, host, host_size, port, port_size,
                             NI_NUMERICHOST | NI_NUMERICSERV);
    return failed ? lh_fail(LH_EADDR, "%s", gai_strerror(failed)) : 0;
}

static int name_of(int fd, bool peer, char *out, size_t size)
{
    char host[64];
    char port[8];
    bool six;
    int error = host_of(fd, peer, host, sizeof host, port, sizeof port, &six);
    if (!error)
        snprintf(out, size, six ? "[%s]:%s" : "%s:%s", host, port);
    return error;
}

int tcp_local_name(int fd, char *out, size_t size)
{
    return name_of(fd, false, out, size);
}

int tcp_peer_name(int fd, char *out, size_t size)
{
    return name_of(fd, true, out, size);
}

/* As tcp_peer_address(), of either end. */
static uint8_t address_of(int fd, bool peer, uint8_t bytes[16])
{
    struct sockaddr_storage address;
    memset(bytes, 0, 16);
    if (end_address(fd, peer, &address))
        return 0;
    bool six = address.ss_family == AF_INET6;
    if (six)
        memcpy(bytes, &((struct sockaddr_in6 *)&address)->sin6_addr, 16);
    else
        memcpy(bytes, &((struct sockaddr_in *)&address)->sin_addr, 4);
    return six ? 6 : 4;
}

uint8_t tcp_peer_address(int fd, uint8_t bytes[16])
{
    return address_of(fd, true, bytes);
}

bool tcp_peer_is_local(int fd)
{
    uint8_t peer[16], own[16];
    uint8_t family = address_of(fd, true, peer);
    if (family == 4 && peer[0] == LOOPBACK_NET)
        return true;
    if (family == 6 && !memcmp(peer, &in6addr_loopback, sizeof peer))
        return true;
    return family && family == address_of(fd, false, own) && !memcmp(peer, own, sizeof own);
}

int tcp_require_local(int fd, const char *reason)
{
    struct sockaddr_storage peer;
    if (tcp_peer_is_local(fd))
        return 0;
    int gone = end_address(fd, true, &peer);
    return gone ? gone : lh_fail(LH_EHANDSHAKE, "%s", reason);
}

int tcp_udp_device(int fd, char *out, size_t size)
{
    char host[64];
    char port[8];
    bool six;
    int error = host_of(fd, false, host, sizeof host, port, sizeof port, &six);
    if (!error)
        snprintf(out, size, six ? "udp:[%s]" : "udp:%s", host);
    return error;
}

/* Of IP packets, by what TCP's segments hold: a router on the path, a tunnel's, may have made it smaller than
 * this host's interface, and clamps those for that reason. UINT32_MAX: not known. */
static uint32_t segment_mtu(int fd, bool six)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) || info.tcpi_snd_mss == 0)
        return UINT32_MAX;
    uint32_t options = info.tcpi_options & TCPI_OPT_TIMESTAMPS ? TCP_TIMESTAMP_BYTES : 0;
    uint32_t bytes = info.tcpi_snd_mss + options + TCP_HEADER_BYTES + (six ? IPV6_BYTES : IPV4_BYTES);
    return bytes > SEGMENT_MTU_MIN ? bytes : SEGMENT_MTU_MIN;
}

uint32_t tcp_path_mtu(int fd, uint32_t extra_bytes)
{
    struct sockaddr_storage address;
    if (end_address(fd, false, &address))
        return 0;
    int mtu = 0;
    socklen_t size = sizeof mtu;
    bool six = address.ss_family == AF_INET6;
    /* A dual-stack socket with an IPv4 peer answers the IPv4 question as well. */
    if (getsockopt(fd, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_MTU : IP_MTU, &mtu, &size) || mtu <= 0)
        return ROCE_MTU_MIN;
    uint32_t overhead = six ? ROCE_WRITE_IMM_OVERHEAD_V6 : ROCE_WRITE_IMM_OVERHEAD_V4;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&address;
    bool is_ipv6 = six && !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
    return roce_payload_for((uint32_t)lh_min((uint32_t)mtu, segment_mtu(fd, is_ipv6)),
                            overhead + extra_bytes);
}
