/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/asking.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define RTT    ((lh_time)8000)
#define WINDOW ((lh_time)1000)

static const struct sr_timing timing = {
    .rtt_ns = RTT, .overdue_ns = RTT + RTT / 8, .window_ns = WINDOW, .measured = true};

static struct ec_asking asking;

static bool hear(uint32_t round, uint8_t flags, lh_time now)
{
    struct ec_mark mark = {.flags = flags, .mark = 1, .round = round, .injected = 100};
    return ec_asking_on_mark(&asking, &mark, 10, now);
}

static lh_time expiry(uint32_t beta, lh_time last_arrival)
{
    return ec_asking_fallback_expiry(&asking, beta, last_arrival, &timing);
}

static void ask(uint32_t count, lh_time now)
{
    for (uint32_t i = 0; i < count; i++)
        asking.runs[i] = (struct ec_run){i, 0, 1};
    ec_asking_on_fallback_expired(&asking, count, &timing, now);
}

/* Sends what is to be sent; returns how many parts. */
static uint32_t drain(void)
{
    static struct ec_request request;
    uint32_t parts = 0;
    for (; ec_asking_next(&asking, &request); parts++) {
        assert_int_equal(request.part, parts);
        assert_int_equal(request.round, asking.round);
        ec_asking_on_sent(&asking);
    }
    return parts;
}

static void test_beta_runs_from_the_end(void **state)
{
    (void)state;
    ec_asking_init(&asking);
    assert_int_equal(expiry(50, LH_TIME_NEVER), LH_TIME_NEVER);
    assert_true(hear(0, EC_FLAG_PROBE, 90));
    assert_int_equal(expiry(50, LH_TIME_NEVER), LH_TIME_NEVER);
    assert_true(hear(0, EC_FLAG_END, 100));
    assert_true(hear(0, EC_FLAG_END, 200)); /* repeated */
    assert_int_equal(expiry(50, LH_TIME_NEVER), 100 + RTT / 2);
    assert_int_equal(expiry(10000, LH_TIME_NEVER), 100 + 100 * RTT);
    assert_int_equal(expiry(13, LH_TIME_NEVER), 100 + RTT * 13 / 100);
    assert_int_equal(expiry(0, LH_TIME_NEVER), 100 + WINDOW); /* at least */
    assert_int_equal(expiry(50, 50 + RTT / 2), 50 + RTT / 2 + WINDOW);
    assert_int_equal(drain(), 0);
}

static void test_a_round(void **state)
{
    (void)state;
    ec_asking_init(&asking);
    hear(0, EC_FLAG_END, 100);
    ask(3, 5000);
    assert_int_equal(asking.round, 1);
    assert_int_equal(expiry(50, LH_TIME_NEVER), LH_TIME_NEVER);
    assert_int_equal(drain(), 1);
    /* After one, two more, four more windows. */
    static const lh_time after[] = {1, 3, 7};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(ec_asking_repeat_expiry(&asking), 5000 + after[i] * WINDOW);
        ec_asking_on_repeat_expired(&asking, 5000 + after[i] * WINDOW);
        assert_int_equal(drain(), 1);
    }
    assert_int_equal(ec_asking_repeat_expiry(&asking), LH_TIME_NEVER);
    hear(0, EC_FLAG_END, 13000);
    assert_int_equal(drain(), 0);
    hear(0, EC_FLAG_END | EC_FLAG_PROBE, 14000); /* asks, and knows nothing of the request */
    assert_int_equal(drain(), 1);
    hear(1, 0, 15000);
    hear(0, EC_FLAG_PROBE, 15001); /* an old one */
    assert_int_equal(drain(), 0);
    assert_int_equal(expiry(50, LH_TIME_NEVER), LH_TIME_NEVER);
    hear(1, EC_FLAG_END, 16000);
    assert_int_equal(expiry(50, LH_TIME_NEVER), 16000 + WINDOW); /* beta is for round 0 */
    assert_int_equal(expiry(50, 15900), 16000 + WINDOW);
    assert_int_equal(expiry(50, 16100), 16100 + WINDOW);
}

static void test_hearing_ends_the_repetition(void **state)
{
    (void)state;
    ec_asking_init(&asking);
    hear(0, EC_FLAG_END, 100);
    ask(1, 5000);
    hear(1, 0, 5100); /* before it was even written down */
    assert_int_equal(drain(), 0);
    assert_int_equal(ec_asking_repeat_expiry(&asking), LH_TIME_NEVER);
}

static void test_a_round_never_asked_for(void **state)
{
    (void)state;
    ec_asking_init(&asking);
    assert_false(hear(1, EC_FLAG_END, 100));
    assert_int_equal(expiry(50, LH_TIME_NEVER), LH_TIME_NEVER);
    hear(0, EC_FLAG_END, 100);
    ask(1, 5000);
    assert_false(hear(2, EC_FLAG_END, 6000));
    assert_false(asking.heard);
    assert_true(hear(1, EC_FLAG_END, 6000));
}

static void test_parts(void **state)
{
    (void)state;
    static struct ec_request request;
    static const struct {
        uint32_t runs, parts;
    } sizes[] = {{1, 1}, {148, 1}, {149, 2}, {296, 2}, {8 * 148, 8}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        ec_asking_init(&asking);
        hear(0, EC_FLAG_END, 100);
        ask(sizes[i].runs, 5000);
        uint32_t runs = 0;
        for (uint32_t part = 0; part < sizes[i].parts; part++) {
            uint8_t bytes[EC_REQUEST_BYTES_MAX];
            assert_true(ec_asking_next(&asking, &request));
            assert_int_equal(request.parts, sizes[i].parts);
            assert_int_equal(request.runs[0].group, runs);
            assert_true(ec_request_encode(&request, bytes) <= sizeof(bytes));
            runs += request.count;
            ec_asking_on_sent(&asking);
        }
        assert_int_equal(runs, sizes[i].runs);
        assert_false(ec_asking_next(&asking, &request));
    }
}

/* Three rounds that bring nothing are patience; then it waits 2, 4, 8 round trips. */
static void test_rounds_that_bring_nothing_become_rarer(void **state)
{
    (void)state;
    static const lh_time waits[] = {0, 0, 0, 2, 4, 8, 8};
    lh_time now = 100;
    ec_asking_init(&asking);
    hear(0, EC_FLAG_END, now);
    for (size_t round = 0; round < 7; round++) {
        now += 2 * RTT;
        ask(1, now);
        hear((uint32_t)round + 1, EC_FLAG_END, now + RTT);
        lh_time settled = now + RTT + WINDOW;
        lh_time waited = now + waits[round] * RTT;
        assert_int_equal(expiry(50, LH_TIME_NEVER), settled > waited ? settled : waited);
        now = waited;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beta_runs_from_the_end),
        cmocka_unit_test(test_a_round),
        cmocka_unit_test(test_hearing_ends_the_repetition),
        cmocka_unit_test(test_a_round_never_asked_for),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_rounds_that_bring_nothing_become_rarer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
