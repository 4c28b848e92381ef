/*
 * test_credit_grant.c - credits to the peer: numbers, totals that only grow, no limit without a controller.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/rate/credit_grant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MTU 4096u

static const struct lh_congestion *named(const char *name)
{
    const struct lh_congestion *const *all = lh_congestions();
    while (strcmp((*all)->name, name) != 0)
        all++;
    return *all;
}

static void test_numbers(void **state)
{
    (void)state;
    uint32_t granting = 0;
    for (uint32_t number = 0; number <= UINT8_MAX; number++) {
        const struct lh_congestion *controller = credit_grant_of((uint8_t)number);
        if (!controller)
            continue;
        assert_int_equal(credit_grant_number(controller), number);
        granting++;
    }
    assert_true(granting > 0);
    assert_ptr_equal(credit_grant_of(credit_grant_number(named("eqds"))), named("eqds"));
    assert_int_equal(credit_grant_number(named("bbr")), 0);
    assert_null(credit_grant_of(0));
}

static void test_no_limit(void **state)
{
    (void)state;
    struct credit_grant grant = {0};
    assert_true(credit_grant_renew(&grant, 10, 0, 5) == UINT64_MAX);
}

/* What arrived is granted again, a total that falls changes nothing. */
static void test_renewal(void **state)
{
    (void)state;
    const struct lh_congestion *eqds = named("eqds");
    const struct lh_congestion_path path = {.mtu_bytes = MTU,
                                            .rate_max_bps = LH_RATE_NONE,
                                            .window_max_bytes = 64 << 20,
                                            .rtt_ns = LH_NS_PER_MS};
    size_t bytes = (eqds->receiver_bytes + 63) / 64 * 64;
    void *memory = memset(aligned_alloc(64, bytes), 0, bytes);
    struct credit_grant grant;
    credit_grant_start(&grant, eqds, memory, &path, 0);
    lh_time now = LH_NS_PER_MS;
    uint64_t first = credit_grant_renew(&grant, 0, 0, now), credit = first;
    assert_true(first > 0 && first < UINT64_MAX);
    for (uint64_t packets = 1; packets <= 1000; packets++) {
        now += 100 * LH_NS_PER_US;
        uint64_t more = credit_grant_renew(&grant, packets, 0, now);
        assert_true(more >= credit && more < UINT64_MAX);
        credit = more;
    }
    assert_true(credit >= 1000 * MTU);
    assert_true(credit_grant_renew(&grant, 3, 7, now) >= credit);
    assert_int_equal(grant.arrived_packets, 1000);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_no_limit),
        cmocka_unit_test(test_renewal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
