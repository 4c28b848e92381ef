/* tcp_connect() to a name of several addresses, some of which are silent or refuse.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "launch/tcp.h"

#include <netdb.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/error.h>

/* Far beyond what any of these takes; a test that waits for it has failed. */
#define PATIENCE_NS (3600 * LH_NS_PER_S)
#define FILLERS     16

/* An address at which connections are neither accepted nor refused: the backlog of its listener is full. */
struct silent {
    struct sockaddr_in address;
    int listener, fillers[FILLERS];
};

static struct sockaddr_in bound_address(int fd)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    return address;
}

static int listen_at(struct sockaddr_in *address, int backlog)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof *address), 0);
    assert_int_equal(listen(fd, backlog), 0);
    *address = bound_address(fd);
    return fd;
}

static void silent_open(struct silent *silent)
{
    silent->listener = listen_at(&silent->address, 0);
    for (int i = 0; i < FILLERS; i++) {
        silent->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(silent->fillers[i], (struct sockaddr *)&silent->address, sizeof silent->address);
    }
}

static void silent_close(const struct silent *silent)
{
    for (int i = 0; i < FILLERS; i++)
        close(silent->fillers[i]);
    close(silent->listener);
}

/* A port that refuses: bound, and nobody listens. */
static int refuse_at(struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof *address), 0);
    *address = bound_address(fd);
    return fd;
}

static int connect_to(struct sockaddr_in *const *addresses, size_t count, lh_time timeout_ns, int *fd)
{
    struct addrinfo list[8];
    for (size_t i = 0; i < count; i++)
        list[i] = (struct addrinfo){.ai_family = AF_INET,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_addrlen = sizeof **addresses,
                                    .ai_addr = (struct sockaddr *)addresses[i],
                                    .ai_next = i + 1 < count ? &list[i + 1] : NULL};
    return tcp_connect_any(list, "name:1", tcp_deadline(timeout_ns), fd);
}

/* IPv6 is broken, say: the address behind is reached, long before the deadline. */
static void a_silent_address_comes_first(void **state)
{
    (void)state;
    int fd;
    struct silent silent[2];
    struct sockaddr_in good, peer;
    socklen_t size = sizeof peer;
    silent_open(&silent[0]);
    silent_open(&silent[1]);
    int listener = listen_at(&good, 1);
    struct sockaddr_in *addresses[] = {&silent[0].address, &silent[1].address, &good};
    assert_int_equal(connect_to(addresses, 3, PATIENCE_NS, &fd), 0);
    assert_int_equal(getpeername(fd, (struct sockaddr *)&peer, &size), 0);
    assert_int_equal(peer.sin_port, good.sin_port);
    close(fd);
    close(listener);
    silent_close(&silent[0]);
    silent_close(&silent[1]);
}

static void an_address_refuses(void **state)
{
    (void)state;
    int fd;
    struct sockaddr_in refusing, good;
    int first = refuse_at(&refusing), listener = listen_at(&good, 1);
    struct sockaddr_in *addresses[] = {&refusing, &refusing, &good};
    assert_int_equal(connect_to(addresses, 3, PATIENCE_NS, &fd), 0);
    close(fd);
    assert_int_equal(connect_to(addresses, 2, PATIENCE_NS, &fd), -LH_EPEER);
    assert_non_null(strstr(lh_last_error(), "name:1: Connection refused"));
    close(first);
    close(listener);
}

static void all_are_silent(void **state)
{
    (void)state;
    int fd;
    struct silent silent;
    silent_open(&silent);
    struct sockaddr_in *addresses[] = {&silent.address, &silent.address};
    assert_int_equal(connect_to(addresses, 2, LH_NS_PER_S, &fd), -LH_ETIMEDOUT);
    assert_non_null(strstr(lh_last_error(), "name:1"));
    silent_close(&silent);
}

static void no_address(void **state)
{
    (void)state;
    int fd;
    assert_int_equal(tcp_connect_any(NULL, "name:1", tcp_deadline(PATIENCE_NS), &fd), -LH_EADDR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silent_address_comes_first),
        cmocka_unit_test(an_address_refuses),
        cmocka_unit_test(all_are_silent),
        cmocka_unit_test(no_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
