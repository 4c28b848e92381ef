/*
 * test_pacer.c - the token bucket: burst, rate, and what the fabric gives back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/pacer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"

#define GBIT  UINT64_C(1000000000)
#define BURST UINT64_C(65536)

static void test_no_limit(void **state)
{
    (void)state;
    struct pacer pacer;
    pacer_init(&pacer, 0, 0);
    pacer_on_sent(&pacer, 5, UINT64_MAX);
    pacer_on_refused(&pacer, 77);
    assert_int_equal(pacer_allowance(&pacer, 5), UINT64_MAX);
    assert_int_equal(pacer_ready(&pacer, 5, 4096), 5);
}

static void test_burst_then_rate(void **state)
{
    (void)state;
    struct pacer pacer;
    pacer_init(&pacer, 8 * GBIT, BURST); /* a byte a nanosecond */
    assert_int_equal(pacer_allowance(&pacer, 1000), BURST);
    pacer_on_sent(&pacer, 1000, BURST);
    assert_int_equal(pacer_allowance(&pacer, 1000), 0);
    assert_int_equal(pacer_ready(&pacer, 1000, 4096), 1000 + 4096);
    assert_int_equal(pacer_ready(&pacer, 1000, BURST + 77), 1000 + BURST + 77); /* after a full burst */
    assert_int_equal(pacer_allowance(&pacer, 1000 + 4095), 4095);
    assert_int_equal(pacer_allowance(&pacer, 1000 + 4096), 4096);
    assert_int_equal(pacer_ready(&pacer, 1000 + 4096, 4096), 1000 + 4096);
    assert_int_equal(pacer_allowance(&pacer, 1000 + BURST), BURST);
    assert_int_equal(pacer_allowance(&pacer, 1000 + 10 * BURST), BURST); /* a pause saves up no more */
}

/* What may leave at once stays, within the new burst; what is lacking comes at the new rate. */
static void test_change(void **state)
{
    (void)state;
    struct pacer pacer;
    pacer_init(&pacer, 8 * GBIT, BURST); /* a byte a nanosecond */
    pacer_on_sent(&pacer, 1000, BURST - 4096);
    pacer_change(&pacer, 1000, GBIT, BURST);
    assert_int_equal(pacer_allowance(&pacer, 1000), 4096);
    assert_int_equal(pacer_allowance(&pacer, 1000 + 8000), 4096 + 1000);
    pacer_change(&pacer, 1000 + 8000, GBIT, 2 * BURST);
    assert_int_equal(pacer_allowance(&pacer, 1000 + 8000), 4096 + 1000);
    pacer_change(&pacer, 1000 + 8000, GBIT, 2048);
    assert_int_equal(pacer_allowance(&pacer, 1000 + 8000), 2048);
    pacer_change(&pacer, 1000 + 8000, 0, 2048);
    assert_int_equal(pacer_allowance(&pacer, 1000 + 8000), UINT64_MAX);
    pacer_change(&pacer, 1000 + 8000, GBIT, 2048);
    assert_int_equal(pacer_allowance(&pacer, 1000 + 8000), 2048);
}

/* However often the rate changes, no more leaves than at the highest rate. */
static void test_changes_give_nothing(void **state)
{
    (void)state;
    struct lh_prng prng;
    struct pacer pacer;
    lh_prng_seed(&prng, 2);
    pacer_init(&pacer, GBIT, 8192);
    uint64_t sent = 0;
    lh_time now = 1000;
    for (uint32_t i = 0; i < 20000; i++, now += lh_prng_below(&prng, 3000)) {
        pacer_change(&pacer, now, 1 + lh_prng_below(&prng, GBIT), 4096 + lh_prng_below(&prng, 4097));
        uint64_t bytes = pacer_allowance(&pacer, now);
        pacer_on_sent(&pacer, now, bytes);
        sent += bytes;
    }
    assert_true(sent > 100000);
    assert_true(sent <= 8192 + (now - 1000) / 8 + 4097); /* a larger burst only counts from there on */
}

/* When it says ready, the bytes pass, and just before they do not: for odd rates too. */
static void test_ready_is_exact(void **state)
{
    (void)state;
    const uint64_t rates[] = {1000,      64000,      1000003,    7 * GBIT / 3,
                              10 * GBIT, 100 * GBIT, 400 * GBIT, 1600 * GBIT};
    /* A burst of less than a nanosecond: the part of one that is left is over in the next. */
    struct pacer fast;
    pacer_init(&fast, 100000 * GBIT, 2048);
    pacer_on_sent(&fast, 5, 2048);
    assert_int_equal(pacer_allowance(&fast, 5), 0);
    assert_int_equal(pacer_ready(&fast, 5, 1024), 6);
    assert_int_equal(pacer_allowance(&fast, 6), 2048);
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    for (uint32_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        struct pacer pacer;
        lh_time now = 123456789;
        pacer_init(&pacer, rates[r], BURST);
        for (uint32_t i = 0; i < 2000; i++) {
            uint64_t bytes = 1 + lh_prng_below(&prng, 4096);
            lh_time ready = pacer_ready(&pacer, now, bytes);
            assert_true(ready >= now);
            if (ready > now)
                assert_true(pacer_allowance(&pacer, now) < bytes || ready == now + 1);
            assert_true(pacer_allowance(&pacer, ready) >= bytes);
            now = ready;
            pacer_on_sent(&pacer, now, bytes);
        }
    }
}

/* Single small packets at a high rate last far less than a nanosecond each, but not nothing. */
static void test_long_run_keeps_the_rate(void **state)
{
    (void)state;
    const uint64_t rates[] = {GBIT, 100 * GBIT, 400 * GBIT, 1600 * GBIT, 3200 * GBIT + 7};
    for (uint32_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        for (uint64_t bytes = 64; bytes <= 4096; bytes *= 8) {
            struct pacer pacer;
            lh_time now = 0;
            uint64_t sent = 0;
            pacer_init(&pacer, rates[r], BURST);
            for (uint32_t i = 0; i < 100000; i++) {
                now = pacer_ready(&pacer, now, bytes);
                pacer_on_sent(&pacer, now, bytes);
                sent += bytes;
            }
            double expected_ns = (double)(sent - BURST) * 8e9 / (double)rates[r];
            assert_true((double)now >= expected_ns - 1);
            assert_true((double)now <= expected_ns * 1.0001 + 2);
        }
    }
}

/* What was not sent costs nothing. */
static void test_refused_bytes_come_back(void **state)
{
    (void)state;
    struct pacer taken, reserved;
    const uint64_t rates[] = {GBIT, 100 * GBIT, 1600 * GBIT + 1};
    for (uint32_t r = 0; r < 3; r++) {
        pacer_init(&taken, rates[r], BURST);
        pacer_init(&reserved, rates[r], BURST);
        for (lh_time now = 100; now < 100 + 1000 * 64; now += 64) {
            pacer_on_sent(&taken, now, 100);
            pacer_on_sent(&reserved, now, 400);
            pacer_on_refused(&reserved, 300);
            assert_int_equal(pacer_allowance(&taken, now), pacer_allowance(&reserved, now));
        }
        /* Never more than a burst, whatever is given back. */
        pacer_on_refused(&reserved, UINT32_MAX);
        assert_int_equal(pacer_allowance(&reserved, 100 + 64000), BURST);
        pacer_on_sent(&reserved, 100 + 64000, BURST);
        assert_int_equal(pacer_allowance(&reserved, 100 + 64000), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_limit),
        cmocka_unit_test(test_burst_then_rate),
        cmocka_unit_test(test_change),
        cmocka_unit_test(test_changes_give_nothing),
        cmocka_unit_test(test_ready_is_exact),
        cmocka_unit_test(test_long_run_keeps_the_rate),
        cmocka_unit_test(test_refused_bytes_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
