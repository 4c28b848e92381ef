/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/qpn_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wire/roce.h"

#define ENDPOINTS 40u
#define QPS       256u

/* Stands for an endpoint, of which the table keeps the address only. */
static struct udp_endpoint *endpoint(uint32_t index)
{
    static uint8_t stand_in[ENDPOINTS];
    return (struct udp_endpoint *)(void *)&stand_in[index];
}

static void test_add_find_remove(void **state)
{
    (void)state;
    struct qpn_table table = {0};
    static uint32_t qpns[ENDPOINTS][QPS];
    assert_null(qpn_table_find(&table, 5));
    for (uint32_t e = 0; e < ENDPOINTS; e++) {
        for (uint32_t i = 0; i < QPS; i++) {
            struct udp_qp qp = {
                .endpoint = endpoint(e), .channel = (uint8_t)i, .generation = (uint8_t)(i % 7)};
            assert_int_equal(qpn_table_add(&table, &qp), 0);
            assert_in_range(qp.qpn, 2, ROCE_QPN_MASK - 1);
            qpns[e][i] = qp.qpn;
        }
    }
    assert_int_equal(table.count, ENDPOINTS * QPS);
    for (uint32_t removed = 0; removed <= ENDPOINTS; removed++) {
        for (uint32_t e = 0; e < ENDPOINTS; e++) {
            for (uint32_t i = 0; i < QPS; i++) {
                const struct udp_qp *found = qpn_table_find(&table, qpns[e][i]);
                if (e < removed) {
                    assert_null(found);
                    continue;
                }
                assert_non_null(found);
                assert_ptr_equal(found->endpoint, endpoint(e));
                assert_int_equal(found->channel, i);
                assert_int_equal(found->generation, i % 7);
            }
        }
        for (uint32_t i = 0; removed < ENDPOINTS && i < QPS; i++)
            qpn_table_remove(&table, qpns[removed][i]);
        if (removed < ENDPOINTS)
            qpn_table_remove(&table, qpns[removed][0]); /* it is gone already */
    }
    assert_int_equal(table.count, 0);
    assert_int_equal(table.capacity, 64); /* and the memory of the others */
    qpn_table_free(&table);
}

static void test_unused_numbers(void **state)
{
    (void)state;
    struct qpn_table table = {0};
    struct udp_qp qp = {.endpoint = endpoint(0)};
    assert_int_equal(qpn_table_add(&table, &qp), 0);
    assert_null(qpn_table_find(&table, 0));
    assert_null(qpn_table_find(&table, 1));
    assert_null(qpn_table_find(&table, ROCE_QPN_MASK));
    assert_null(qpn_table_find(&table, qp.qpn ^ 1));
    qpn_table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add_find_remove),
        cmocka_unit_test(test_unused_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
