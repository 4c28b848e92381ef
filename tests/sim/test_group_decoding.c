/*
 * test_group_decoding.c - a rank that leaves while another one's coders have its last block, over a simulated
 * network. Not in test_group_failures.c: this one has threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coding/encoder.h"
#include "group/group.h"
#include "message/engine.h"
#include "support/collective_case.h"

static sem_t gate, coded;

static void wait_at(sem_t *at)
{
    while (sem_wait(at) != 0)
        continue; /* a signal */
}

static void wait_at_gate(struct work *work)
{
    (void)work;
    wait_at(&gate);
}

static void tell_that_all_is_coded(struct work *work)
{
    (void)work;
    sem_post(&coded);
}

/* A rank has sent all, knows that it has arrived, and leaves. Its last block waits for a coder here: all are
 * busy. */
static void test_left_while_decoding(void **state)
{
    (void)state;
    struct group_world world;
    struct lh_group_attr attr;
    struct lh_attr connection;
    struct work work = {.run = wait_at_gate}, last = {.run = tell_that_all_is_coded};
    struct collective_case first = {.collective = COLLECTIVE_ALLREDUCE, .type = LH_I32, .count = 9000};
    struct collective_case c = {
        .collective = COLLECTIVE_BROADCAST, .type = LH_I32, .count = 40000, .root = 1};
    lh_attr_init(&connection);
    connection.reliability = "ec:mds,k=4,m=4";
    connection.rate_bps = 1000000000;
    lh_group_attr_init(&attr);
    attr.block_bytes = 16384;
    attr.buffer_bytes = 131072;
    attr.attr = &connection;
    lh_collective_options_init(&first.options);
    lh_collective_options_init(&c.options);
    sem_init(&gate, 0, 0);
    sem_init(&coded, 0, 0);
    group_world_open(&world, "decoding", 19, "delay=1ms,rate=10Gbit,loss=0.1", 2, &attr, NULL);
    collective_cases_run(&world, &first, 1, 60 * LH_NS_PER_S);
    struct coder_threads *coders = &world.net.engines[0]->coders;
    coders->pool = work_pool_create(1, NULL);
    assert_non_null(coders->pool);
    coders->started = true;
    coders->count = 1;
    work_pool_give(coders->pool, &work);
    collective_case_start(&c, &world);
    assert_true(group_world_run(&world, &c.ops[1], 1, 60 * LH_NS_PER_S));
    assert_false(group_world_run(&world, c.ops, 1, 100 * LH_NS_PER_MS)); /* all has arrived */
    lh_collective_free(c.ops[1]);
    c.ops[1] = NULL;
    group_world_leave(&world, 1);
    assert_int_equal(lh_group_error(world.groups[0], 1), -LH_ECLOSED);
    collective_case_check(&c, 0);
    sem_post(&gate);
    work_pool_give(coders->pool, &last);
    wait_at(&coded); /* the coder may have been asleep all the time: its pool ends without work */
    collective_case_free(&c);
    group_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_left_while_decoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
