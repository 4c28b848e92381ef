/*
 * test_host_drops.c - packets that a full receive buffer drops are counted, every one, and no other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "probe/probe_port.h"

#include "fabric/fabric.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/own_network.h"

#define PACKETS 2000

static void test_full_buffer(void **state)
{
    (void)state;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof to;
    char payload[1000] = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){100000}, sizeof(int)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&to, &bytes), 0);
    assert_int_equal(socket_drops(fd), 0);
    for (unsigned i = 0; i < PACKETS; i++)
        assert_int_equal(sendto(fd, payload, sizeof payload, 0, (struct sockaddr *)&to, sizeof to),
                         sizeof payload);
    unsigned kept = 0;
    while (recv(fd, payload, sizeof payload, 0) > 0)
        kept++;
    assert_in_range(kept, 1, PACKETS - 1);
    assert_int_equal(socket_drops(fd), PACKETS - kept);
    close(fd);
}

static void test_what_is_no_socket(void **state)
{
    (void)state;
    assert_int_equal(socket_drops(-1), 0);
    assert_int_equal(socket_drops(STDIN_FILENO), 0);
    uint64_t before = host_drops_of_stack();
    assert_true(host_drops_of_stack() >= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_buffer),
        cmocka_unit_test(test_what_is_no_socket),
    };
    own_network();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
