/*
 * test_engine_process.c - an engine in a process that its own has forked, and the clock of a connection.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/connection.h>
#include <longhaul/engine.h>

#include "launch/tcp.h"
#include "support/loopback_engine.h"

/* An engine is of the process that made it: its threads are not in a child, which may have its own. */
static void a_child_has_no_engine(void **state)
{
    (void)state;
    struct lh_engine *engine = loopback_engine(1, LH_NO_WORKERS);
    uint32_t forks = engine_forks();
    int status;
    assert_int_equal(engine_check_process(engine), 0);
    pid_t child = fork();
    if (child == 0) {
        bool right = engine_is_inherited(engine) && engine_check_process(engine) == -LH_ESTATE &&
                     engine_forks() == forks + 1;
        struct lh_engine *own = loopback_engine(1, LH_NO_WORKERS);
        _exit(right && !engine_is_inherited(own) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(engine_forks(), forks);
    assert_false(engine_is_inherited(engine));
    assert_int_equal(lh_engine_destroy(engine), 0);
}

/* Sockets have the system's clock; nothing was sent, so there is nothing to warn of but what they say. */
static void the_clock_of_sockets(void **state)
{
    (void)state;
    struct lh_attr attr;
    struct lh_connection *connection;
    lh_attr_init(&attr);
    attr.device = "udp:127.0.0.1";
    attr.workers = LH_NO_WORKERS;
    attr.mtu_bytes = 1024;
    attr.slots = 2;
    attr.slot_bytes = 16384;
    assert_int_equal(lh_open(&attr, &connection), 0);
    lh_time before = tcp_now(), now = lh_now(connection), after = tcp_now();
    assert_in_range(now, before, after);
    const char *warning = lh_connection_warning(connection);
    assert_ptr_equal(warning, lh_connection_warning(connection));
    lh_close(connection);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_has_no_engine),
        cmocka_unit_test(the_clock_of_sockets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
