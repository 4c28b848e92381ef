/*
 * test_group_compare.c - ranks whose buffers have drifted apart are found by all, over a simulated network
 * that loses packets, and also where reliability is bounded; those that disagree about the buffers' number
 * are told.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/group_world.h"

#define BUFFERS  3u
#define BYTES    5000u
#define LIMIT_NS (60 * LH_NS_PER_S)

/* What one rank has, and what it learns. */
struct replica {
    uint8_t data[BUFFERS][BYTES];
    struct lh_buffer buffers[BUFFERS];
    bool differs[SIM_ENGINES_MAX * BUFFERS];
};
static struct replica replicas[SIM_ENGINES_MAX];

static void reset(uint32_t rank)
{
    struct replica *replica = &replicas[rank];
    memset(replica, 0, sizeof *replica);
    memset(replica->differs, true, sizeof replica->differs);
    for (uint32_t b = 0; b < BUFFERS; b++) {
        for (size_t i = 0; i < BYTES; i++)
            replica->data[b][i] = (uint8_t)(i * (b + 3));
        replica->buffers[b] = (struct lh_buffer){replica->data[b], BYTES - b};
    }
}

static void open_world(struct group_world *world, uint32_t size, const char *reliability)
{
    struct lh_group_attr attr;
    struct lh_attr connection;
    lh_group_attr_init(&attr);
    lh_attr_init(&connection);
    connection.reliability = reliability;
    attr.attr = &connection;
    group_world_open(world, "compare", size, "delay=100us,loss=1e-2", size, &attr, NULL);
    for (uint32_t r = 0; r < size; r++)
        reset(r);
}

static void compare(struct group_world *world, struct lh_collective_result results[SIM_ENGINES_MAX])
{
    struct lh_collective *ops[SIM_ENGINES_MAX];
    for (uint32_t r = 0; r < world->size; r++)
        sim_engines_must(
            lh_compare(world->groups[r], replicas[r].buffers, BUFFERS, replicas[r].differs, NULL, &ops[r]),
            "lh_compare");
    assert_true(group_world_run(world, ops, world->size, LIMIT_NS));
    for (uint32_t r = 0; r < world->size; r++) {
        assert_int_equal(lh_collective_test(ops[r], &results[r]), 1);
        lh_collective_free(ops[r]);
    }
}

/* Each rank knows that this one's buffer, or, with LH_NO_RANK, none, differs. */
static void check(struct group_world *world, uint32_t odd, uint32_t buffer)
{
    struct lh_collective_result results[SIM_ENGINES_MAX];
    compare(world, results);
    for (uint32_t r = 0; r < world->size; r++) {
        assert_int_equal(results[r].error, 0);
        for (uint32_t i = 0; i < world->size * BUFFERS; i++)
            assert_int_equal(replicas[r].differs[i], i / BUFFERS == odd && i % BUFFERS == buffer);
    }
}

static void run(uint32_t size, const char *reliability)
{
    struct group_world world;
    open_world(&world, size, reliability);
    check(&world, LH_NO_RANK, 0);
    for (uint32_t odd = size > 2 ? 0 : 1; odd < size; odd++) { /* of two, the lowest rank's counts */
        replicas[odd].data[odd % BUFFERS][odd * 10] ^= 0x40;
        check(&world, odd, odd % BUFFERS);
        reset(odd);
    }
    if (size > 1) {
        replicas[1].buffers[2].bytes--;
        check(&world, 1, 2);
    }
    group_world_close(&world);
}

static void test_drift(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= SIM_ENGINES_MAX; size++)
        run(size, NULL);
}

/* Digests come whole. */
static void test_bounded(void **state)
{
    (void)state;
    run(5, "bounded:deadline=1us");
}

static void test_number_of_buffers(void **state)
{
    struct group_world world;
    struct lh_collective *ops[SIM_ENGINES_MAX];
    struct lh_collective_result result;
    uint8_t byte = 0, in[16] = {0}, out[4 * sizeof in]; /* as of a digest */
    (void)state;
    open_world(&world, 4, NULL);
    for (uint32_t r = 0; r < 4; r++)
        sim_engines_must(lh_compare(world.groups[r], replicas[r].buffers, r == 2 ? BUFFERS - 1 : BUFFERS,
                                    replicas[r].differs, NULL, &ops[r]),
                         "lh_compare");
    assert_true(group_world_run(&world, ops, 4, LIMIT_NS));
    for (uint32_t r = 0; r < 4; r++) {
        assert_int_equal(lh_collective_test(ops[r], &result), 1);
        assert_int_equal(result.error, -LH_EPROTOCOL);
        assert_non_null(strstr(result.message, "buffers "));
        assert_non_null(strstr(result.message, "2 at rank 2"));
        lh_collective_free(ops[r]);
    }
    for (uint32_t r = 0; r < 4; r++) /* an all-gather of as many bytes is none */
        sim_engines_must(r == 2 ? lh_allgather(world.groups[r], in, out, sizeof in, LH_U8, NULL, &ops[r])
                                : lh_compare(world.groups[r], replicas[r].buffers, 1, replicas[r].differs,
                                             NULL, &ops[r]),
                         "calls");
    assert_true(group_world_run(&world, ops, 4, LIMIT_NS));
    for (uint32_t r = 0; r < 4; r++) {
        assert_int_equal(lh_collective_test(ops[r], &result), 1);
        assert_int_equal(result.error, -LH_EPROTOCOL);
        assert_non_null(strstr(result.message, "compare at rank "));
        lh_collective_free(ops[r]);
    }
    assert_int_equal(lh_compare(world.groups[0], NULL, 1, replicas[0].differs, NULL, &ops[0]), -LH_EINVAL);
    assert_int_equal(lh_compare(world.groups[0], &(struct lh_buffer){&byte, 1}, 1, NULL, NULL, &ops[0]),
                     -LH_EINVAL);
    assert_int_equal(
        lh_compare(world.groups[0], &(struct lh_buffer){NULL, 1}, 1, replicas[0].differs, NULL, &ops[0]),
        -LH_EINVAL);
    check(&world, LH_NO_RANK, 0); /* what comes after works */
    group_world_close(&world);
}

/* Its error is as of any collective, and nothing is said to differ. */
static void test_death(void **state)
{
    struct group_world world;
    struct lh_collective_result results[SIM_ENGINES_MAX];
    struct lh_collective *ops[SIM_ENGINES_MAX];
    (void)state;
    open_world(&world, 3, NULL);
    for (uint32_t r = 0; r < 3; r++)
        memset(replicas[r].differs, false, sizeof replicas[r].differs);
    group_world_kill(&world, 2);
    for (uint32_t r = 0; r < 2; r++)
        sim_engines_must(
            lh_compare(world.groups[r], replicas[r].buffers, BUFFERS, replicas[r].differs, NULL, &ops[r]),
            "lh_compare");
    assert_true(group_world_run(&world, ops, 2, LIMIT_NS));
    for (uint32_t r = 0; r < 2; r++) {
        assert_int_equal(lh_collective_test(ops[r], &results[r]), 1);
        assert_int_equal(results[r].error, -LH_EPEER);
        assert_int_equal(results[r].failed_rank, 2);
        for (uint32_t i = 0; i < 3 * BUFFERS; i++)
            assert_false(replicas[r].differs[i]);
        lh_collective_free(ops[r]);
    }
    group_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_number_of_buffers),
        cmocka_unit_test(test_death),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
