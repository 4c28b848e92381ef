/*
 * test_message_control.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/message_control.h"

/* ---- test effects ---------------------------------------------------------------------------------- */

static void test_keeps_the_order_of_what_is_done(void **state)
{
    (void)state;
    struct effects effects = {0};
    struct message_request requests[3] = {{.result.started_ns = 4}};
    requests[2].next = &requests[0]; /* of an earlier use */
    for (uint32_t i = 0; i < 3; i++)
        effects_finish(&effects, &requests[i], -(int)i, 10 * i, i + 5);
    uint32_t count = 0;
    for (struct message_request *request = effects.finished; request; request = request->next)
        assert_ptr_equal(request, &requests[count++]);
    assert_int_equal(count, 3);
    assert_true(requests[0].result.started_ns == 4 && requests[0].result.ended_ns == 5);
    assert_true(requests[2].result.error == -2 && requests[2].result.bytes == 20);
    effects.finished = NULL; /* carried out */
    effects_finish(&effects, &requests[1], 0, 0, 0);
    assert_ptr_equal(effects.finished, &requests[1]);
    assert_null(requests[1].next);
}

/* The time of a round is that of its begin; a call may have started the request since. */
static void test_nothing_ends_before_it_started(void **state)
{
    (void)state;
    struct effects effects = {0};
    struct message_request request = {.result.started_ns = 9};
    effects_finish(&effects, &request, 0, 1, 5);
    assert_int_equal(request.result.ended_ns, 9);
}

static void test_the_first_failure_stays(void **state)
{
    (void)state;
    struct effects effects = {0};
    char reason[2 * REASON_MAX];
    memset(reason, 'x', sizeof reason - 1);
    reason[sizeof reason - 1] = '\0';
    effects_fail(&effects, LH_EPROTOCOL, reason);
    effects_fail(&effects, LH_EPATH, "later");
    assert_int_equal(effects.failure, LH_EPROTOCOL);
    assert_int_equal(strlen(effects_reason(&effects)), REASON_MAX - 1);
    free(effects.reason);
}

static int run_effects(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keeps_the_order_of_what_is_done),
        cmocka_unit_test(test_nothing_ends_before_it_started),
        cmocka_unit_test(test_the_first_failure_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test machine ---------------------------------------------------------------------------------- */

static void test_grows_when_it_must(void **state)
{
    (void)state;
    struct store store;
    void *machine = NULL;
    uint32_t has = 0;
    store_init(&store, 6000);
    assert_true(machine_hold(&machine, &has, &store, 0));
    assert_null(machine);
    assert_true(machine_hold(&machine, &has, &store, 1));
    assert_int_equal(has, MACHINE_BYTES_MIN);
    assert_int_equal((uintptr_t)machine % 64, 0);
    assert_true(machine_hold(&machine, &has, &store, 3000));
    assert_int_equal(has, 4096);
    void *before = machine;
    assert_true(machine_hold(&machine, &has, &store, 4096));
    assert_ptr_equal(machine, before);
    assert_false(machine_hold(&machine, &has, &store, 4097));
    assert_ptr_equal(machine, before);
    assert_int_equal(has, 4096);
    assert_int_equal(store_bytes(&store), 4096);
    store_give(&store, machine, has);
}

static int run_machine(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grows_when_it_must)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test timing ----------------------------------------------------------------------------------- */

static void test_doubles_six_times(void **state)
{
    (void)state;
    const struct lh_sdr_path path = {.overdue_ns = 10};
    assert_int_equal(timing_refresh_interval(&path, 0), 10);
    assert_int_equal(timing_refresh_interval(&path, 1), 20);
    assert_int_equal(timing_refresh_interval(&path, 6), 640);
    assert_int_equal(timing_refresh_interval(&path, 7), 640);
    assert_int_equal(timing_refresh_interval(&path, UINT32_MAX), 640);
}

static void test_before_a_round_trip_was_measured(void **state)
{
    (void)state;
    const struct lh_sdr_path path = {0};
    assert_int_equal(timing_refresh_interval(&path, 0), 100 * LH_NS_PER_MS);
}

static void test_path_view(void **state)
{
    (void)state;
    const struct lh_sdr_path path = {
        .rtt_ns = 1, .rtt_minimum_ns = 2, .overdue_ns = 3, .reorder_window_ns = 4};
    const struct lh_path_view view = timing_path_view(&path);
    assert_true(view.rtt_ns == 1 && view.rtt_minimum_ns == 2);
    assert_true(view.overdue_ns == 3 && view.reorder_window_ns == 4);
}

static int run_timing(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubles_six_times),
        cmocka_unit_test(test_before_a_round_trip_was_measured),
        cmocka_unit_test(test_path_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_effects() + run_machine() + run_timing();
}
