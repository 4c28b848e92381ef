/*
 * test_qp_plan.c - defaults of a QP's attributes, which of two wins, and each limit at its boundary.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/qp_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "wire/qp_info.h"
#include "wire/roce.h"

static void test_defaults(void **state)
{
    (void)state;
    const struct sdr_qp_attr attr = {0};
    const struct lh_qp_attr more = {0};
    struct qp_plan plan;
    assert_int_equal(qp_plan_make(&attr, &more, &plan), 0);
    assert_int_equal(plan.shape.mtu_bytes, 4096);
    assert_int_equal(plan.shape.chunk_packets, 16);
    assert_int_equal(plan.shape.slots, 128);
    assert_int_equal(plan.shape.slot_bytes, 8u << 20);
    assert_int_equal(plan.shape.generations, 4);
    assert_int_equal(plan.shape.split.message_bits, 10);
    assert_int_equal(plan.shape.split.offset_bits, 18);
    assert_int_equal(plan.shape.split.fragment_bits, 4);
    assert_int_equal(plan.rate_bps, 0);
    assert_true(plan.send_enable && plan.recv_enable);
}

static void test_given_values(void **state)
{
    (void)state;
    const struct sdr_qp_attr attr = {.mtu = SDR_MTU_1024,
                                     .send_enable = 1,
                                     .rate_limit = 5,
                                     .max_log_num_msgs = 3,
                                     .max_in_flight_log_bytes = 20,
                                     .bitmap_chunk_size_log_bytes = 11};
    struct lh_qp_attr more = {0};
    struct qp_plan plan;
    assert_int_equal(qp_plan_make(&attr, &more, &plan), 0);
    assert_int_equal(plan.shape.mtu_bytes, 1024);
    assert_int_equal(plan.shape.chunk_packets, 2);
    assert_int_equal(plan.shape.slots, 8);
    assert_int_equal(plan.shape.slot_bytes, 1u << 17);
    assert_int_equal(plan.rate_bps, 5000000);
    assert_true(plan.send_enable && !plan.recv_enable);
    /* The extension wins over the SDK's attribute. */
    more = (struct lh_qp_attr){
        .mtu_bytes = 2048, .chunk_bytes = 8192, .slots = 1, .slot_bytes = 3000, .rate_bps = 7};
    assert_int_equal(qp_plan_make(&attr, &more, &plan), 0);
    assert_int_equal(plan.shape.mtu_bytes, 2048);
    assert_int_equal(plan.shape.chunk_packets, 4);
    assert_int_equal(plan.shape.slots, 1);
    assert_int_equal(plan.shape.slot_bytes, 3000);
    assert_int_equal(plan.rate_bps, 7);
}

static void expect(const struct lh_qp_attr *more, int error)
{
    const struct sdr_qp_attr attr = {0};
    struct qp_plan plan;
    memset(&plan, 0xA5, sizeof plan);
    assert_int_equal(qp_plan_make(&attr, more, &plan), error);
}

static void test_limits(void **state)
{
    (void)state;
    expect(&(struct lh_qp_attr){.mtu_bytes = ROCE_PAYLOAD_MIN}, 0);
    expect(&(struct lh_qp_attr){.mtu_bytes = ROCE_PAYLOAD_MIN / 2}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.mtu_bytes = 3000}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.mtu_bytes = 8192}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.chunk_bytes = 4096}, 0);
    expect(&(struct lh_qp_attr){.chunk_bytes = 2048}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.chunk_bytes = 4096 * 3}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.slots = 1024}, 0);
    expect(&(struct lh_qp_attr){.slots = 2048}, -LH_EINVAL); /* 10 bits of message ID */
    expect(&(struct lh_qp_attr){.slots = 3}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.slot_bytes = UINT64_C(4096) << 18}, 0);
    expect(&(struct lh_qp_attr){.slot_bytes = (UINT64_C(4096) << 18) + 1}, -LH_ERANGE);
    expect(&(struct lh_qp_attr){.slot_bytes = 4095}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.immediate_message_bits = 8, .immediate_fragment_bits = 2}, 0);
    expect(&(struct lh_qp_attr){.immediate_message_bits = 8, .immediate_fragment_bits = 3}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.generations = QP_INFO_GENERATIONS_MAX}, 0);
    expect(&(struct lh_qp_attr){.generations = QP_INFO_GENERATIONS_MAX + 1}, -LH_EINVAL);
}

static void test_log_limits(void **state)
{
    (void)state;
    const struct lh_qp_attr none = {0};
    struct qp_plan plan;
    assert_int_equal(qp_plan_make(&(struct sdr_qp_attr){.max_log_num_msgs = 17}, &none, &plan), -LH_EINVAL);
    assert_int_equal(qp_plan_make(&(struct sdr_qp_attr){.max_in_flight_log_bytes = 49}, &none, &plan),
                     -LH_EINVAL);
    assert_int_equal(qp_plan_make(&(struct sdr_qp_attr){.bitmap_chunk_size_log_bytes = 32}, &none, &plan),
                     -LH_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_given_values),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_log_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
