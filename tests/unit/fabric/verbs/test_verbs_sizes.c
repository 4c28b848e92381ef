/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/pure/tx_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define LEAST 128u
#define MOST  1024u

static void test_room(void **state)
{
    (void)state;
    struct tx_limit limit;
    tx_limit_init(&limit, LEAST, MOST);
    assert_int_equal(tx_limit_room(&limit, 0, LEAST), LEAST);
    assert_false(limit.reached);
    assert_int_equal(tx_limit_room(&limit, LEAST - 1, 2), 1);
    assert_true(limit.reached);
    assert_int_equal(tx_limit_room(&limit, LEAST, 1), 0);
    assert_int_equal(tx_limit_room(&limit, MOST, 1), 0);
}

static void test_grows_when_dry(void **state)
{
    (void)state;
    struct tx_limit limit;
    tx_limit_init(&limit, LEAST, MOST);
    lh_time now = LH_NS_PER_S;
    tx_limit_on_released(&limit, 0, 0, now); /* dry, but nobody had to wait */
    assert_int_equal(limit.writes, LEAST);
    for (uint32_t expected = 2 * LEAST; expected <= 4 * MOST; expected *= 2) {
        tx_limit_room(&limit, 0, MOST + 1);
        tx_limit_on_released(&limit, 0, 0, ++now);
        assert_int_equal(limit.writes, expected < MOST ? expected : MOST);
    }
}

static void test_falls_to_what_is_sent(void **state)
{
    (void)state;
    struct tx_limit limit;
    tx_limit_init(&limit, LEAST, MOST);
    limit.writes = MOST;
    lh_time now = LH_NS_PER_S;
    tx_limit_on_released(&limit, 1000, 0, now);
    tx_limit_on_released(&limit, 1100, 5, now + TX_LIMIT_NS - 1);
    assert_int_equal(limit.writes, MOST);
    tx_limit_on_released(&limit, 1300, 5, now + TX_LIMIT_NS);
    assert_int_equal(limit.writes, 300);
    tx_limit_on_released(&limit, 1900, 5, now + 3 * TX_LIMIT_NS); /* 600 in two spans */
    assert_int_equal(limit.writes, 300);
    tx_limit_on_released(&limit, 1901, 5, now + 4 * TX_LIMIT_NS);
    assert_int_equal(limit.writes, LEAST);
    tx_limit_on_released(&limit, 901901, 5, now + 5 * TX_LIMIT_NS);
    assert_int_equal(limit.writes, MOST);
}

/* A device with a rate of its own, and a worker who comes round every `round_ns`: bytes wait about as long as
 * they may, and the device is busy. */
static void run_device(uint64_t writes_per_ms, lh_time round_ns)
{
    struct tx_limit limit;
    tx_limit_init(&limit, LEAST, MOST);
    uint64_t taken = 0;
    uint64_t released = 0;
    uint64_t credit = 0; /* in writes x ns */
    uint64_t sent_late = 0;
    lh_time now = 0;
    for (uint32_t round = 0; now < 200 * LH_NS_PER_MS; round++) {
        now += round_ns;
        credit += writes_per_ms * round_ns;
        uint64_t able = credit / LH_NS_PER_MS;
        uint64_t sent = able < taken - released ? able : taken - released;
        released += sent;
        credit = sent < able ? 0 : credit - able * LH_NS_PER_MS;
        if (now > 100 * LH_NS_PER_MS)
            sent_late += sent;
        tx_limit_on_released(&limit, released, (uint32_t)(taken - released), now);
        taken += tx_limit_room(&limit, (uint32_t)(taken - released), 64);
        taken += tx_limit_room(&limit, (uint32_t)(taken - released), 64);
        taken += tx_limit_room(&limit, (uint32_t)(taken - released), 64);
        if (now > 100 * LH_NS_PER_MS && writes_per_ms < LEAST)
            assert_in_range(taken - released, 0, 2 * LEAST);
    }
    uint64_t possible = writes_per_ms * 100;
    assert_true(sent_late * 10 >= possible * 9);
}

static void test_devices(void **state)
{
    (void)state;
    run_device(10, 20 * LH_NS_PER_US);      /* Soft-RoCE, emulated */
    run_device(300, 20 * LH_NS_PER_US);     /* Soft-RoCE */
    run_device(3000, 20 * LH_NS_PER_US);    /* 100 Gbit/s of 4 KiB */
    run_device(12000, 10 * LH_NS_PER_US);   /* of 1 KiB */
    run_device(100, 3 * LH_NS_PER_MS / 10); /* a worker with much else to do */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_grows_when_dry),
        cmocka_unit_test(test_falls_to_what_is_sent),
        cmocka_unit_test(test_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
