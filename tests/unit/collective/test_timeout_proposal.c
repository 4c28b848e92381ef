/*
 * test_timeout_proposal.c - proposals on the wire: there and back, and nothing else is one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <longhaul/timeout.h>

static void test_bytes(void **state)
{
    (void)state;
    const struct lh_timeout_proposal sent = {
        .round = 0x01020304, .cost = 0x1112131415161718, .delivered = 0x000e0f10};
    const uint8_t expected[] = {1,    0,    0,    0,    1,    2,    3, 4,    0x11, 0x12,
                                0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 0x0e, 0x0f, 0x10};
    uint8_t wire[LH_TIMEOUT_PROPOSAL_BYTES];
    lh_timeout_proposal_encode(&sent, wire);
    assert_memory_equal(wire, expected, sizeof wire);
    struct lh_timeout_proposal got;
    assert_int_equal(lh_timeout_proposal_decode(wire, sizeof wire, &got), 0);
    assert_int_equal(got.round, sent.round);
    assert_int_equal(got.cost, sent.cost);
    assert_int_equal(got.delivered, sent.delivered);
}

static void assert_refused(unsigned byte, uint8_t value)
{
    const struct lh_timeout_proposal sent = {.round = 1, .cost = 1, .delivered = 1};
    struct lh_timeout_proposal got = {.round = 77};
    uint8_t wire[LH_TIMEOUT_PROPOSAL_BYTES];
    lh_timeout_proposal_encode(&sent, wire);
    assert_int_equal(lh_timeout_proposal_decode(wire, sizeof wire, &got), 0);
    wire[byte] = value;
    got.round = 77;
    assert_int_equal(lh_timeout_proposal_decode(wire, sizeof wire, &got), -LH_EINVAL);
    assert_int_equal(got.round, 77);
}

static void test_refused(void **state)
{
    (void)state;
    assert_refused(0, 2);  /* version */
    assert_refused(3, 1);  /* what must be zero */
    assert_refused(7, 0);  /* operation 0 */
    assert_refused(15, 0); /* no cost */
    assert_refused(16, 1); /* more than all was delivered */
    uint8_t wire[LH_TIMEOUT_PROPOSAL_BYTES + 1] = {1};
    struct lh_timeout_proposal got;
    assert_int_equal(lh_timeout_proposal_decode(wire, 0, &got), -LH_EINVAL);
    assert_int_equal(lh_timeout_proposal_decode(wire, sizeof wire, &got), -LH_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
