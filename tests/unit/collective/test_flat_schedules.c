/*
 * test_flat_schedules.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collective/schedules.h"
#include "support/schedule_bounds.h"

/* ---- test bcube ------------------------------------------------------------------------------------ */

static void test_allgather(void **state)
{
    (void)state;
    schedule_check_all(&bcube_allgather);
}

static void test_reduce_scatter(void **state)
{
    (void)state;
    schedule_check_all(&bcube_reduce_scatter);
}

static void test_allreduce(void **state)
{
    (void)state;
    schedule_check_all(&bcube_allreduce);
}

static int run_bcube(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allgather),
        cmocka_unit_test(test_reduce_scatter),
        cmocka_unit_test(test_allreduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test bruck ------------------------------------------------------------------------------------ */

static void bruck_test_allgather(void **state)
{
    (void)state;
    schedule_check_all(&bruck_allgather);
}

static void bruck_test_reduce_scatter(void **state)
{
    (void)state;
    schedule_check_all(&bruck_reduce_scatter);
}

static void bruck_test_allreduce(void **state)
{
    (void)state;
    schedule_check_all(&bruck_allreduce);
}

static void test_alltoall(void **state)
{
    (void)state;
    schedule_check_all(&bruck_alltoall);
}

static int run_bruck(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bruck_test_allgather),
        cmocka_unit_test(bruck_test_reduce_scatter),
        cmocka_unit_test(bruck_test_allreduce),
        cmocka_unit_test(test_alltoall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test chain ------------------------------------------------------------------------------------ */

static void test_broadcast(void **state)
{
    (void)state;
    schedule_check_all(&chain_broadcast);
}

static void test_reduce(void **state)
{
    (void)state;
    schedule_check_all(&chain_reduce);
}

static int run_chain(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_reduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test direct ----------------------------------------------------------------------------------- */

static void direct_test_allreduce(void **state)
{
    (void)state;
    schedule_check_all(&direct_allreduce);
}

static int run_direct(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(direct_test_allreduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test dissemination ---------------------------------------------------------------------------- */

static void test_barrier(void **state)
{
    (void)state;
    schedule_check_all(&dissemination_barrier);
}

static int run_dissemination(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barrier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test pairwise --------------------------------------------------------------------------------- */

static void pairwise_test_alltoall(void **state)
{
    (void)state;
    schedule_check_all(&pairwise_alltoall);
}

static int run_pairwise(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairwise_test_alltoall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test ring ------------------------------------------------------------------------------------- */

static void ring_test_allreduce(void **state)
{
    (void)state;
    schedule_check_all(&ring_allreduce);
}

static void ring_test_reduce_scatter(void **state)
{
    (void)state;
    schedule_check_all(&ring_reduce_scatter);
}

static void ring_test_allgather(void **state)
{
    (void)state;
    schedule_check_all(&ring_allgather);
}

static int run_ring(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_test_allreduce),
        cmocka_unit_test(ring_test_reduce_scatter),
        cmocka_unit_test(ring_test_allgather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test sequential ------------------------------------------------------------------------------- */

static void sequential_test_broadcast(void **state)
{
    (void)state;
    schedule_check_all(&sequential_broadcast);
}

static void sequential_test_reduce(void **state)
{
    (void)state;
    schedule_check_all(&sequential_reduce);
}

static void test_scatter(void **state)
{
    (void)state;
    schedule_check_all(&sequential_scatter);
}

static void test_gather(void **state)
{
    (void)state;
    schedule_check_all(&sequential_gather);
}

static int run_sequential(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequential_test_broadcast),
        cmocka_unit_test(sequential_test_reduce),
        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_gather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_bcube() + run_bruck() + run_chain() + run_direct() + run_dissemination() + run_pairwise() +
           run_ring() + run_sequential();
}
