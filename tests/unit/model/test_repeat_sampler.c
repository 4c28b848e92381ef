/*
 * test_repeat_sampler.c - completion times of selective repeat drawn against chunk by chunk.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/repeat_sampler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct lh_prng prng;

/* Each chunk by itself, each transmission drawn. */
static double chunk_by_chunk(const struct model_repeat *repeat, double loss, unsigned chunks)
{
    double latest = 0;
    for (unsigned behind = 0; behind < chunks; behind++) {
        double losses = 0;
        while (lh_prng_chance(&prng, loss))
            losses++;
        if (losses > 0)
            latest = fmax(latest, losses * repeat->overhead - behind);
    }
    return latest;
}

/* Short and long beside the timeout. */
static void test_repeat_is_chunk_by_chunk(void **state)
{
    (void)state;
    static struct model_repeat repeat;
    const double overheads[] = {1, 3.3, 17.2, 1000.5};
    const double losses[] = {0.02, 0.3, 0.8};
    lh_prng_seed(&prng, 5);
    for (unsigned o = 0; o < 4; o++)
        for (unsigned l = 0; l < 3; l++) {
            struct model_loss loss = model_loss_of_chunks(losses[l], 0, 1);
            double sums[2] = {0, 0};
            double squares = 0;
            model_repeat_start(&repeat, &loss, overheads[o], 60);
            for (unsigned i = 0; i < 5000; i++) {
                double drawn = model_draw_repeat(&repeat, log(losses[l]), 60, &prng);
                double each = chunk_by_chunk(&repeat, losses[l], 60);
                sums[0] += drawn;
                sums[1] += each;
                squares += drawn * drawn + each * each;
            }
            double allowed = 5 * sqrt(squares) / 5000;
            assert_true(fabs(sums[0] - sums[1]) / 5000 <= allowed);
            assert_true(fabs(sums[0] / 5000 - model_repeat_excess(&repeat, 60)) <= allowed);
        }
}

/* Much is lost, and a timeout is a few chunks: each chunk that is counted once too often shows. */
static void test_dense_loss(void **state)
{
    (void)state;
    static struct model_repeat repeat;
    lh_prng_seed(&prng, 10);
    for (int bursty = 0; bursty < 2; bursty++) {
        struct model_loss loss = model_loss_of_packets(0.4, bursty ? 1 / 0.6 : 0, 1);
        const unsigned count = bursty ? 40000 : 400000;
        double sum = 0;
        double squares = 0;
        loss.bursty = false;
        model_repeat_start(&repeat, &loss, 2.5, 30);
        double wanted = model_repeat_excess(&repeat, 30);
        for (unsigned i = 0; i < count; i++) {
            double drawn = bursty ? model_draw_repeat_bursts(&repeat, &loss, 30, &prng)
                                  : model_draw_repeat(&repeat, log(0.4), 30, &prng);
            sum += drawn;
            squares += drawn * drawn;
        }
        double mean = sum / count;
        assert_true(fabs(mean - wanted) <= 4 * sqrt((squares / count - mean * mean) / count));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeat_is_chunk_by_chunk),
        cmocka_unit_test(test_dense_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
