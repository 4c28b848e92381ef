/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/seats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define NONE UDP_SEATS_MAX

static void test_taken_left_taken(void **state)
{
    (void)state;
    static struct udp_seats seats;
    const lh_time now = LH_NS_PER_S;
    assert_int_equal(udp_seats_free(&seats, now), NONE);
    for (uint32_t i = 0; i < UDP_SEATS_MAX; i++) {
        udp_seats_add(&seats);
        assert_int_equal(udp_seats_free(&seats, now), i);
        udp_seats_take(&seats, i);
    }
    assert_int_equal(udp_seats_free(&seats, now), NONE);
    udp_seats_leave(&seats, 5, now);
    assert_int_equal(udp_seats_free(&seats, now), NONE);
    assert_int_equal(udp_seats_free(&seats, now + UDP_SEAT_REST_NS - 1), NONE);
    assert_int_equal(udp_seats_free(&seats, now + UDP_SEAT_REST_NS), 5);
}

/* Whoever was active since the last sweep stays; of the others the one that has been quiet longest goes,
 * once. */
static void test_the_quietest_leaves(void **state)
{
    (void)state;
    static struct udp_seats seats;
    lh_time now = LH_NS_PER_S;
    for (uint32_t i = 0; i < 3; i++) {
        udp_seats_add(&seats);
        udp_seats_take(&seats, i);
    }
    assert_int_equal(udp_seats_sweep(&seats, now), NONE); /* a new owner is active */
    udp_seat_mark_active(&seats.seats[0]);
    udp_seat_mark_active(&seats.seats[1]);
    assert_int_equal(udp_seats_sweep(&seats, now += 1), NONE); /* 2 is quiet from here */
    udp_seat_mark_active(&seats.seats[0]);
    assert_int_equal(udp_seats_sweep(&seats, now += 1), NONE); /* 1 */
    udp_seat_mark_active(&seats.seats[0]);
    assert_int_equal(udp_seats_sweep(&seats, now + UDP_SEAT_QUIET_NS - 2), NONE);
    udp_seat_mark_active(&seats.seats[0]);
    now += UDP_SEAT_QUIET_NS;
    assert_int_equal(udp_seats_sweep(&seats, now), 2);
    assert_int_equal(udp_seats_sweep(&seats, now), 1);
    assert_int_equal(udp_seats_sweep(&seats, now + 10 * UDP_SEAT_QUIET_NS), 0);
    assert_int_equal(udp_seats_sweep(&seats, now + 10 * UDP_SEAT_QUIET_NS),
                     NONE); /* all are asked already */
    udp_seats_leave(&seats, 2, now);
    udp_seats_take(&seats, 2);
    assert_int_equal(udp_seats_sweep(&seats, now + 20 * UDP_SEAT_QUIET_NS), NONE);
}

static void test_active_again(void **state)
{
    (void)state;
    static struct udp_seats seats;
    lh_time now = LH_NS_PER_S;
    udp_seats_add(&seats);
    udp_seats_take(&seats, 0);
    udp_seats_sweep(&seats, now);
    udp_seats_sweep(&seats, now + 1);
    udp_seat_mark_active(&seats.seats[0]);
    now += 2 * UDP_SEAT_QUIET_NS;
    assert_int_equal(udp_seats_sweep(&seats, now), NONE);
    assert_int_equal(udp_seats_sweep(&seats, now + 1), NONE); /* it counts from here */
    assert_int_equal(udp_seats_sweep(&seats, now + UDP_SEAT_QUIET_NS), NONE);
    assert_int_equal(udp_seats_sweep(&seats, now + 1 + UDP_SEAT_QUIET_NS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken_left_taken),
        cmocka_unit_test(test_the_quietest_leaves),
        cmocka_unit_test(test_active_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
