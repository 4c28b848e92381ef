/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/pure/sizing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include <longhaul/error.h>

static const struct verbs_limits rxe = {
    .max_qp_wr = 1048576, .max_srq = 917503, .max_srq_wr = 1048576, .max_cqe = 32767};

static void test_soft_roce(void **state)
{
    (void)state;
    struct verbs_sizes sizes;
    assert_int_equal(verbs_sizes_choose(&rxe, 1, 4, 1024, false, &sizes), 0);
    assert_true(sizes.shared);
    assert_int_equal(sizes.recv_depth, VERBS_RECV_DEPTH);
    assert_int_equal(sizes.recv_cqe, VERBS_RECV_DEPTH);
    assert_int_equal(sizes.send_depth, VERBS_SEND_DEPTH);
    assert_int_equal(verbs_sizes_choose(&rxe, 1, 4, 1024, true, &sizes), 0);
    assert_false(sizes.shared);
    assert_int_equal(sizes.recv_depth, VERBS_RECV_DEPTH / 4);
    assert_int_equal(sizes.recv_cqe, VERBS_RECV_DEPTH);
}

static void test_too_little(void **state)
{
    (void)state;
    struct verbs_sizes sizes;
    struct verbs_limits limits = rxe;
    limits.max_srq = 3;
    assert_int_equal(verbs_sizes_choose(&limits, 4, 4, 1024, false, &sizes), 0);
    assert_false(sizes.shared); /* one a channel or none */
    limits.max_cqe = 4 * VERBS_RECV_DEPTH_MIN;
    assert_int_equal(verbs_sizes_choose(&limits, 4, 4, 1024, false, &sizes), 0);
    assert_int_equal(sizes.recv_depth, VERBS_RECV_DEPTH_MIN);
    limits.max_cqe--;
    assert_int_equal(verbs_sizes_choose(&limits, 4, 4, 1024, false, &sizes), -LH_EDEVICE);
    limits = rxe;
    limits.max_qp_wr = VERBS_SEND_DEPTH_MIN - 1;
    assert_int_equal(verbs_sizes_choose(&limits, 4, 4, 1024, false, &sizes), -LH_EDEVICE);
}

/* Whatever the device: what is posted fits what completes. */
static void test_nothing_overflows(void **state)
{
    (void)state;
    for (uint32_t cqe = 512; cqe <= 1u << 22; cqe = cqe * 2 - 1)
        for (uint32_t wr = 512; wr <= 1u << 20; wr = wr * 2 - 1)
            for (uint32_t channels = 1; channels <= 32; channels *= 2)
                for (uint32_t generations = 1; generations <= 8; generations++)
                    for (uint32_t own = 0; own < 2; own++) {
                        struct verbs_limits limits = {wr, 64, wr, cqe};
                        struct verbs_sizes s;
                        int error = verbs_sizes_choose(&limits, channels, generations, 4096, own != 0, &s);
                        assert_int_equal(error, 0);
                        uint32_t posted = s.recv_depth * (s.shared ? 1 : generations);
                        assert_in_range(posted, VERBS_RECV_DEPTH_MIN, s.recv_cqe);
                        assert_in_range(s.recv_cqe, 1, cqe);
                        assert_in_range(s.send_depth, VERBS_SEND_DEPTH_MIN, s.send_cqe);
                        assert_in_range(s.send_cqe, 1, cqe);
                        assert_in_range(s.send_depth, 1, wr);
                        assert_in_range(s.recv_depth, 1, wr);
                        assert_int_equal(s.recv_depth & (s.recv_depth - 1), 0);
                        assert_int_equal(s.send_depth & (s.send_depth - 1), 0);
                        assert_true((uint64_t)s.send_depth * channels * 4096 <= VERBS_BOUNCE_BYTES_MAX ||
                                    s.send_depth == VERBS_SEND_DEPTH_MIN);
                    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_soft_roce),
        cmocka_unit_test(test_too_little),
        cmocka_unit_test(test_nothing_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
