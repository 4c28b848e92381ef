/*
 * test_loss.c - what a loss of packets means for chunks, and back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/loss.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/near.h"

static void test_independent(void **state)
{
    (void)state;
    struct model_loss loss = model_loss_of_packets(1e-5, 0, 16);
    assert_near(loss.chunk, 1.5998800055995e-4, 1e-12); /* 1 - (1 - 1e-5)^16 */
    assert_near(loss.leaves, 1 - loss.chunk, 0);
    assert_near(model_loss_of_packets(1e-12, 0, 16).chunk, 1.6e-11, 1e-10);
    assert_near(model_loss_of_packets(0, 0, 64).chunk, 0, 0);
    assert_false(loss.bursty);
}

/* Bursts as long as chance makes them are no bursts. */
static void test_bursts_of_chance(void **state)
{
    (void)state;
    const double shares[] = {1e-9, 1e-3, 0.3};
    for (unsigned i = 0; i < 3; i++) {
        struct model_loss chance = model_loss_of_packets(shares[i], 0, 16);
        struct model_loss loss = model_loss_of_packets(shares[i], 1 / (1 - shares[i]), 16);
        assert_true(loss.bursty);
        assert_near(loss.enter, chance.enter, 1e-12);
        assert_near(loss.chunk, chance.chunk, 1e-12);
        assert_near(loss.leaves, chance.leaves, 1e-12);
        assert_near(model_loss_after(&loss, true, 1), shares[i], 1e-6);
    }
}

/* The longer the bursts, the fewer chunks share the same lost packets. */
static void test_bursts_hit_fewer_chunks(void **state)
{
    (void)state;
    struct model_loss loss = model_loss_of_packets(1e-3, 32, 16);
    /* 1e-3 / 32 bursts a packet; each takes what it overlaps: 1 + (32 + 15 - 1) / 16 chunks at 16 packets. */
    assert_near(loss.chunk, 1e-3 + (1 - 1e-3) * -expm1(15 * log1p(-1e-3 / (32 * 0.999))), 1e-12);
    assert_true(loss.chunk < 0.1 * model_loss_of_packets(1e-3, 0, 16).chunk);
    /* In the long run as many rows of lost chunks end as begin. */
    double begins = -expm1(16 * log1p(-loss.enter)) * (1 - loss.chunk);
    assert_near(loss.leaves * loss.chunk, begins, 1e-9);
    assert_near(model_loss_after(&loss, true, 1), 1 - 1.0 / 32, 1e-12);
    assert_near(model_loss_after(&loss, false, 1), loss.enter, 1e-9);
    assert_near(model_loss_after(&loss, true, 1e6), 1e-3, 1e-9);
}

static void test_told_by_chunk(void **state)
{
    (void)state;
    const double shares[] = {0, 1e-12, 1e-4, 0.5};
    const double bursts[] = {0, 8};
    for (unsigned b = 0; b < 2; b++)
        for (unsigned i = 0; i < 4; i++) {
            struct model_loss loss = model_loss_of_chunks(shares[i], bursts[b], 16);
            assert_near(loss.chunk, shares[i], 1e-9);
            assert_near(model_loss_of_packets(loss.packet, bursts[b], 16).chunk, shares[i], 1e-9);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_independent),
        cmocka_unit_test(test_bursts_of_chance),
        cmocka_unit_test(test_bursts_hit_fewer_chunks),
        cmocka_unit_test(test_told_by_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
