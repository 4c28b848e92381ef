/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/message_control.h"

#include "unit/message/fake_sdr.h"

#define TIMEOUT_NS (8 * LH_NS_PER_S)
#define STEP_NS    (TIMEOUT_NS / 16)

static struct keepalive keepalive;
static struct keepalive_view view;
static struct keepalive_end end;
static int look_answer;
static const char *look_reason = "";
static uint32_t looks;

static int look(void *control_connection, uint8_t *last, size_t *bytes)
{
    (void)control_connection;
    looks++;
    *bytes = look_answer == -LH_ECLOSED ? 3 : strlen(look_reason);
    memset(last, 9, 3);
    if (look_answer == -LH_EPATH)
        memcpy(last, look_reason, *bytes);
    return look_answer;
}

static const struct control_connection_ops ops = {.look = look};

static int begin(void **state)
{
    (void)state;
    fake_sdr_reset();
    keepalive = (struct keepalive){0};
    view = (struct keepalive_view){.pending = true, .sends_open = true, .rtt_ns = RTT_NS};
    look_answer = 0;
    looks = 0;
    keepalive_start(&keepalive, &qp, TIMEOUT_NS, 0);
    return 0;
}

static bool gone_at(lh_time now, lh_time *next)
{
    *next = LH_TIME_NEVER;
    return keepalive_step(&keepalive, &view, now, next, &end);
}

/* Steps often enough to have listened all the time. */
static void listen_until(lh_time until)
{
    lh_time next;
    for (lh_time now = keepalive.stepped_ns; now < until; now += STEP_NS)
        assert_false(gone_at(now, &next));
}

static void test_pings_four_times_a_timeout_or_each_second(void **state)
{
    (void)state;
    assert_int_equal(qp.keepalive_ns, LH_NS_PER_S);
    keepalive_start(&keepalive, &qp, LH_NS_PER_S, 0);
    assert_int_equal(qp.keepalive_ns, LH_NS_PER_S / 4 + 1);
}

static void test_silence(void **state)
{
    (void)state;
    lh_time next;
    qp.path.last_heard_ns = 1000;
    listen_until(1000 + TIMEOUT_NS - 1);
    assert_false(gone_at(1000 + TIMEOUT_NS - 1, &next));
    assert_int_equal(next, 1000 + TIMEOUT_NS);
    assert_true(gone_at(1000 + TIMEOUT_NS, &next));
    assert_int_equal(end.error, LH_EPEER);
    assert_non_null(strstr(end.reason, "8000 ms"));
}

static void test_any_packet_ends_the_silence(void **state)
{
    (void)state;
    lh_time next;
    qp.path.last_heard_ns = 1000;
    listen_until(1000 + TIMEOUT_NS);
    qp.path.last_heard_ns = TIMEOUT_NS;
    assert_false(gone_at(1000 + TIMEOUT_NS, &next));
    assert_int_equal(keepalive.silent_at, 2 * TIMEOUT_NS);
}

/* With nothing pending a connection may be silent for ever. */
static void test_silence_counts_while_something_is_pending(void **state)
{
    (void)state;
    lh_time next;
    view.pending = false;
    for (lh_time now = 0; now < 3 * TIMEOUT_NS; now += STEP_NS)
        assert_false(gone_at(now, &next));
    assert_int_equal(next, LH_TIME_NEVER);
    assert_false(qp.keepalive_wanted);
    view.pending = true;
    const lh_time began = keepalive.since_ns;
    listen_until(began + TIMEOUT_NS - 1);
    assert_true(qp.keepalive_wanted);
    assert_true(gone_at(began + TIMEOUT_NS, &next));
}

/* Another queue pair asks for its peer: no steps, and no end, before that one has no answer. */
static void test_another_asks_for_it(void **state)
{
    (void)state;
    lh_time next;
    qp.keepalive_shared = true;
    assert_false(gone_at(0, &next));
    assert_int_equal(next, TIMEOUT_NS);
    qp.path.last_heard_ns = 6 * LH_NS_PER_S;
    assert_false(gone_at(TIMEOUT_NS, &next));
    assert_int_equal(next, TIMEOUT_NS + 6 * LH_NS_PER_S);
    /* Nobody has listened: it was stopped. */
    assert_false(gone_at(3 * TIMEOUT_NS, &next));
    assert_int_equal(next, 4 * TIMEOUT_NS);
    /* There was no answer twice: as long as the silence can have lasted by then. */
    qp.keepalive_shared = false;
    assert_false(gone_at(3 * TIMEOUT_NS + 5 * LH_NS_PER_S, &next));
    assert_int_equal(keepalive.since_ns, 3 * TIMEOUT_NS + 3 * LH_NS_PER_S);
    listen_until(4 * TIMEOUT_NS + 3 * LH_NS_PER_S - 1);
    assert_true(gone_at(4 * TIMEOUT_NS + 3 * LH_NS_PER_S, &next));
    assert_int_equal(end.error, LH_EPEER);
}

/* Time in which this process did not run does not count. */
static void test_a_process_that_was_stopped(void **state)
{
    (void)state;
    lh_time next;
    assert_false(gone_at(0, &next));
    assert_false(gone_at(TIMEOUT_NS / 8, &next));
    assert_int_equal(keepalive.since_ns, 0);
    assert_false(gone_at(5 * TIMEOUT_NS, &next));
    assert_int_equal(keepalive.since_ns, 5 * TIMEOUT_NS);
}

/* It has the connection stepped when there is something to see: no timer. */
static void test_the_control_connection_is_looked_at_in_each_step(void **state)
{
    (void)state;
    lh_time next;
    keepalive.control_connection_ops = &ops;
    view.pending = false;
    assert_false(gone_at(0, &next));
    assert_false(gone_at(1, &next));
    assert_int_equal(looks, 2);
    assert_int_equal(next, LH_TIME_NEVER);
}

/* Its packets alone count then, as if something was pending. */
static void test_a_lost_control_connection(void **state)
{
    (void)state;
    lh_time next;
    keepalive.control_connection_ops = &ops;
    view.pending = false;
    assert_false(gone_at(0, &next));
    look_answer = CONTROL_CONNECTION_LOST;
    qp.path.last_heard_ns = STEP_NS;
    listen_until(STEP_NS + TIMEOUT_NS - 1);
    assert_true(qp.keepalive_wanted);
    qp.path.last_heard_ns = TIMEOUT_NS;
    listen_until(2 * TIMEOUT_NS - 1);
    assert_true(gone_at(2 * TIMEOUT_NS, &next));
    assert_int_equal(end.error, LH_EPEER);
    assert_non_null(strstr(end.reason, "has failed"));
    /* Who wants no such timeout has nothing else to know it by. */
    keepalive_start(&keepalive, &qp, LH_TIME_NEVER, 0);
    assert_true(gone_at(0, &next));
    assert_int_equal(end.error, LH_EPEER);
}

static void test_what_the_control_connection_reports(void **state)
{
    (void)state;
    lh_time next;
    keepalive.control_connection_ops = &ops;
    look_answer = -LH_ECLOSED;
    assert_true(gone_at(0, &next));
    assert_true(end.error == LH_ECLOSED && end.last_bytes == 3 && end.last[2] == 9);
    look_answer = -LH_EPATH;
    assert_true(gone_at(LH_NS_PER_S, &next));
    assert_true(end.error == LH_EPATH && end.last_bytes == 0);
    assert_string_equal(end.reason, lh_strerror(LH_EPATH));
    look_reason = "too small";
    assert_true(gone_at(LH_NS_PER_S + STEP_NS, &next));
    assert_true(end.error == LH_EPATH && end.last_bytes == 0);
    assert_string_equal(end.reason, "too small");
    look_reason = "";
    look_answer = -LH_EPEER;
    assert_true(gone_at(2 * LH_NS_PER_S, &next));
    assert_int_equal(end.error, LH_EPEER);
}

/* Acknowledgements that were sent before may arrive after it: half a round trip. */
static void test_closed_by_packets(void **state)
{
    (void)state;
    lh_time next;
    qp.error = -LH_ECLOSED;
    assert_false(gone_at(100, &next));
    assert_int_equal(next, 100 + RTT_NS / 2);
    assert_false(gone_at(100 + RTT_NS / 2 - 1, &next));
    assert_true(gone_at(100 + RTT_NS / 2, &next));
    assert_int_equal(end.error, LH_ECLOSED);
}

static void test_closed_with_nothing_to_send(void **state)
{
    (void)state;
    lh_time next;
    qp.error = -LH_ECLOSED;
    view.sends_open = false;
    assert_true(gone_at(100, &next));
    assert_int_equal(end.error, LH_ECLOSED);
}

/* The control connection has the reason, and may be 10 ms later. */
static void test_closed_by_packets_with_a_control_connection(void **state)
{
    (void)state;
    lh_time next;
    keepalive.control_connection_ops = &ops;
    qp.error = -LH_ECLOSED;
    assert_false(gone_at(0, &next));
    assert_false(gone_at(RTT_NS / 2 + 10 * LH_NS_PER_MS - 1, &next));
    look_answer = -LH_EPATH;
    assert_true(gone_at(RTT_NS / 2 + 10 * LH_NS_PER_MS - 1, &next));
    assert_int_equal(end.error, LH_EPATH);
}

static void test_a_fabric_that_failed(void **state)
{
    (void)state;
    lh_time next;
    qp.error = -LH_EDEVICE;
    assert_true(gone_at(0, &next));
    assert_int_equal(end.error, LH_EDEVICE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_pings_four_times_a_timeout_or_each_second, begin),
        cmocka_unit_test_setup(test_silence, begin),
        cmocka_unit_test_setup(test_any_packet_ends_the_silence, begin),
        cmocka_unit_test_setup(test_silence_counts_while_something_is_pending, begin),
        cmocka_unit_test_setup(test_another_asks_for_it, begin),
        cmocka_unit_test_setup(test_a_process_that_was_stopped, begin),
        cmocka_unit_test_setup(test_the_control_connection_is_looked_at_in_each_step, begin),
        cmocka_unit_test_setup(test_a_lost_control_connection, begin),
        cmocka_unit_test_setup(test_what_the_control_connection_reports, begin),
        cmocka_unit_test_setup(test_closed_by_packets, begin),
        cmocka_unit_test_setup(test_closed_with_nothing_to_send, begin),
        cmocka_unit_test_setup(test_closed_by_packets_with_a_control_connection, begin),
        cmocka_unit_test_setup(test_a_fabric_that_failed, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
