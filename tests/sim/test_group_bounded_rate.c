/*
 * test_group_bounded_rate.c - bounded collectives whose deadline is below the time that their bytes need, in
 * virtual time: what comes by it counts, down to the granule, and one operation leaves nothing in the way of
 * the next.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/group_world.h"

#define MS         LH_NS_PER_MS
#define LIMIT_NS   (60 * LH_NS_PER_S)
#define RATE_BPS   200000000u
#define DELAY_NS   (12500 * LH_NS_PER_US)
#define LINK       "delay=12.5ms,rate=200Mbit"
#define COUNT      524288u /* of f32: 2 MiB */
#define OPERATIONS 8u
#define SLACK      0.08 /* headers, and what waits in a queue at the end */

static void open_world(struct group_world *world, const char *reliability)
{
    struct lh_attr across;
    struct lh_group_attr attr;
    lh_attr_init(&across);
    across.rate_bps = RATE_BPS;
    across.reliability = reliability;
    lh_group_attr_init(&attr);
    attr.attr = &across;
    attr.attr_across = &across;
    group_world_open(world, "rate", 7, LINK, 2, &attr, NULL);
}

/* Tensors: all ranks have the same, so that each sum is known, whatever is missing of it. */
struct tensors {
    float *in;
    float *out[2][2]; /* by operation, in turns, and rank */
};

static void take_tensors(struct tensors *tensors)
{
    float **all[] = {&tensors->in, &tensors->out[0][0], &tensors->out[0][1], &tensors->out[1][0],
                     &tensors->out[1][1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *all[i] = calloc(COUNT, sizeof(float));
        assert_non_null(*all[i]);
    }
    for (size_t i = 0; i < COUNT; i++)
        tensors->in[i] = (float)(i % 1009) / 1009;
}

static void free_tensors(struct tensors *tensors)
{
    free(tensors->in);
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t r = 0; r < 2; r++)
            free(tensors->out[i][r]);
}

static void check_result(const struct tensors *tensors, const float *out)
{
    for (size_t i = 0; i < COUNT; i++)
        assert_true(fabsf(out[i] - tensors->in[i]) < 1e-5f);
}

/* Ranks begin so long one after the other. Share that the operation lacks, of both. */
static double missing_of(struct group_world *world, const char *schedule, const struct tensors *tensors,
                         float *const *out, lh_time deadline_ns, lh_time apart_ns)
{
    struct lh_collective_options options;
    struct lh_collective *ops[2];
    uint64_t missing = 0;
    lh_collective_options_init(&options);
    options.schedule = schedule;
    for (uint32_t r = 0; r < 2; r++) {
        lh_time until = group_world_now(world) + (r > 0 ? apart_ns : 0);
        while (group_world_now(world) < until)
            group_world_turn(world, until);
        sim_engines_must(
            lh_allreduce(world->groups[r], tensors->in, out[r], COUNT, LH_F32, LH_AVG, &options, &ops[r]),
            "lh_allreduce");
    }
    assert_true(group_world_run(world, ops, 2, LIMIT_NS));
    for (uint32_t r = 0; r < 2; r++) {
        struct lh_collective_result result;
        assert_int_equal(lh_collective_test(ops[r], &result), 1);
        assert_int_equal(result.error, 0);
        assert_true(result.ended_ns - result.started_ns <= deadline_ns + MS);
        missing += result.missing_bytes;
        check_result(tensors, out[r]);
        lh_collective_free(ops[r]);
    }
    return (double)missing / (2.0 * COUNT * sizeof(float));
}

/* Operations one after the other: from the second on, before which the ranks knew nothing of the path, each
 * lacks what does not come by the deadline at the rate of the link, and little more. Nothing changes what an
 * operation has returned. */
static void check(const char *schedule, uint32_t deadline_ms, lh_time apart_ns)
{
    struct group_world world;
    struct tensors tensors;
    char reliability[64];
    double due = 1 - ((double)(deadline_ms * MS) - DELAY_NS) * RATE_BPS / 8e9 / (COUNT * sizeof(float));
    snprintf(reliability, sizeof reliability, "bounded:deadline=%ums", deadline_ms);
    open_world(&world, reliability);
    take_tensors(&tensors);
    printf("%s, %u ms, ranks %.1f ms apart: due %.1f %%, missing", schedule, deadline_ms,
           (double)apart_ns / 1e6, 100 * due);
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        double missing =
            missing_of(&world, schedule, &tensors, tensors.out[i % 2], deadline_ms * MS, apart_ns);
        for (uint32_t r = 0; r < 2 && i > 0; r++)
            check_result(&tensors, tensors.out[(i + 1) % 2][r]);
        printf(" %.1f", 100 * missing);
        assert_true(i == 0 || (missing >= due - 0.01 && missing <= due + SLACK));
    }
    printf(" %%\n");
    free_tensors(&tensors);
    group_world_close(&world);
}

static void test_direct(void **state)
{
    static const uint32_t deadlines[] = {40, 60, 75, 90};
    (void)state;
    for (size_t i = 0; i < sizeof deadlines / sizeof *deadlines; i++) {
        check("direct", deadlines[i], 0);
        check("direct", deadlines[i], DELAY_NS);
    }
}

/* Of two steps, the first of which ends earlier: a deadline that it fits in. */
static void test_ring(void **state)
{
    (void)state;
    check("ring", 75, 0);
    check("ring", 75, DELAY_NS);
    check("ring", 90, 0);
    check("ring", 90, DELAY_NS);
}

/* Without workers nobody but the caller sends what a rank does at its deadline: it is told to come again at
 * once. */
static void test_progress_at_the_deadline(void **state)
{
    (void)state;
    struct group_world world;
    struct tensors tensors;
    struct lh_collective_options options;
    struct lh_collective *ops[2];
    lh_time due;
    open_world(&world, "bounded:deadline=60ms");
    take_tensors(&tensors);
    missing_of(&world, "direct", &tensors, tensors.out[0], 60 * MS, 0);
    lh_collective_options_init(&options);
    options.schedule = "direct";
    for (uint32_t r = 0; r < 2; r++)
        sim_engines_must(lh_allreduce(world.groups[r], tensors.in, tensors.out[1][r], COUNT, LH_F32, LH_AVG,
                                      &options, &ops[r]),
                         "lh_allreduce");
    lh_time until = group_world_now(&world) + 60 * MS;
    while (group_world_now(&world) < until)
        group_world_turn(&world, until);
    sim_engines_must(lh_group_progress(world.groups[0], &due), "lh_group_progress");
    assert_int_equal(due, group_world_now(&world));
    assert_true(group_world_run(&world, ops, 2, LIMIT_NS));
    for (uint32_t r = 0; r < 2; r++)
        lh_collective_free(ops[r]);
    free_tensors(&tensors);
    group_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_progress_at_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
