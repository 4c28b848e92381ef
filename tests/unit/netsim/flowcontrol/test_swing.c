/*
 * test_swing.c - what a relay tells over the long link; and that one which forwards holds at most what the
 * link carries in a round trip.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"

static void forwarding_passes_on_what_changes(void **state)
{
    (void)state;
    struct lh_swing swing = {.forward = true, .thresholds = {1000, 1000, 0}};
    assert_int_equal(lh_swing_on_signal(&swing, 3, false), LH_FLOW_NONE);
    assert_int_equal(lh_swing_on_signal(&swing, 3, true), LH_FLOW_PAUSE);
    assert_int_equal(lh_swing_on_signal(&swing, 3, true), LH_FLOW_NONE);
    assert_int_equal(lh_swing_on_signal(&swing, 4, true), LH_FLOW_PAUSE);
    assert_int_equal(lh_swing_on_queue(&swing, 3, 5000), LH_FLOW_NONE);
    assert_int_equal(lh_swing_on_signal(&swing, 3, false), LH_FLOW_RESUME);
    assert_int_equal(swing.stopped, 1 << 4);
}

static void a_threshold_of_its_own(void **state)
{
    (void)state;
    struct lh_swing swing = {.thresholds = {1000, 1000, 0}};
    assert_int_equal(lh_swing_on_signal(&swing, 3, true), LH_FLOW_NONE);
    assert_int_equal(lh_swing_on_queue(&swing, 3, 1000), LH_FLOW_NONE);
    assert_int_equal(lh_swing_on_queue(&swing, 3, 1001), LH_FLOW_PAUSE);
    assert_int_equal(lh_swing_on_queue(&swing, 3, 1000), LH_FLOW_RESUME);
}

#define TRIP 64u /* steps of a round trip; a step carries one unit */

/* An upstream that always has something to send repeats, a round trip later, what the switch let the
 * relay do. Returns the most that the relay held; *dry counts steps in which it had nothing to give. */
static uint64_t relay_max(struct lh_prng *prng, unsigned mean_steps, unsigned *dry)
{
    struct lh_swing swing = {.forward = true};
    bool open[TRIP];
    uint64_t held = 0;
    uint64_t most = 0;
    bool paused = false;
    for (unsigned i = 0; i < TRIP; i++)
        open[i] = true;
    for (unsigned step = 0; step < 20000; step++) {
        if (lh_prng_below(prng, mean_steps) == 0) {
            paused = !paused;
            enum lh_flow_signal told = lh_swing_on_signal(&swing, 0, paused);
            assert_int_equal(told, paused ? LH_FLOW_PAUSE : LH_FLOW_RESUME);
        }
        held += open[step % TRIP] ? 1 : 0;
        open[step % TRIP] = swing.stopped == 0;
        if (held > most)
            most = held;
        *dry += !paused && held == 0;
        held -= !paused && held > 0 ? 1 : 0;
    }
    return most;
}

static void forwarding_needs_one_round_trip_and_never_runs_dry(void **state)
{
    (void)state;
    struct lh_prng prng;
    unsigned dry = 0;
    uint64_t most = 0;
    lh_prng_seed(&prng, 7);
    for (unsigned mean = 1; mean < 400; mean += 7) {
        uint64_t held = relay_max(&prng, mean, &dry);
        assert_true(held <= TRIP);
        most = held > most ? held : most;
    }
    assert_int_equal(dry, 0);
    assert_int_equal(most, TRIP); /* and no less: a pause of a round trip fills it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forwarding_passes_on_what_changes),
        cmocka_unit_test(a_threshold_of_its_own),
        cmocka_unit_test(forwarding_needs_one_round_trip_and_never_runs_dry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
