/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/connection_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "message/onesided_operations.h"

#define NOW_NS LH_NS_PER_S

/* A connection without a queue pair: whatever it would send ends the test. Its operations wait for the peer's
 * blob, if it asks; the peer has this side's. */
static struct lh_connection *with_exchange(bool asking)
{
    static struct lh_connection connection;
    memset(&connection, 0, sizeof connection);
    connection.path.overdue_ns = 10;
    connection.onesided_parent.exchange =
        (struct exchange){.open = true, .announced = true, .asking = asking, .refresh_at = NOW_NS + 50};
    return &connection;
}

/* Nothing is sent before it is due, and the connection is stepped when it is. */
static void test_an_exchange_that_is_not_due(void **state)
{
    (void)state;
    lh_time next = LH_TIME_NEVER;
    onesided_exchange_step(with_exchange(true), NOW_NS, &next);
    assert_int_equal(next, NOW_NS + 50);
    next = NOW_NS + 49; /* something else is due before */
    onesided_exchange_step(with_exchange(true), NOW_NS, &next);
    assert_int_equal(next, NOW_NS + 49);
}

static void test_no_exchange_without_operations(void **state)
{
    (void)state;
    lh_time next = LH_TIME_NEVER;
    onesided_exchange_step(with_exchange(false), NOW_NS, &next);
    assert_int_equal(next, LH_TIME_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_exchange_that_is_not_due),
        cmocka_unit_test(test_no_exchange_without_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
