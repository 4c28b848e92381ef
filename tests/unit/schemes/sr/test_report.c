/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHUNKS 128u

struct bench {
    struct sr_ledger ledger;
    struct sr_marker marker;
    uint64_t memory[256];
};

static struct bench *setup(void)
{
    static struct bench bench;
    struct sr_run run;
    assert_true(sr_ledger_bytes(CHUNKS) <= sizeof bench.memory);
    sr_ledger_init(&bench.ledger, CHUNKS, bench.memory);
    sr_marker_init(&bench.marker);
    bench.marker.mark = 3;
    assert_true(sr_ledger_take_new(&bench.ledger, 100, 1, &run));
    return &bench;
}

static void test_missing_before_the_horizon(void **state)
{
    struct bench *bench = setup();
    (void)state;
    const struct sr_ack ack = {.cumulative = 4, .horizon = 8, .arrived = 6, .words = 1, .bitmap = {0xaf}};
    assert_true(sr_report_possible(&bench->ledger, &bench->marker, &ack));
    sr_report_arrivals(&bench->ledger, &ack);
    assert_true(bench->ledger.acked == 6 && bench->ledger.arrived == 6 && bench->ledger.lost == 0);
    sr_report_losses(&bench->ledger, &ack);
    assert_int_equal(bench->ledger.lost, 2); /* 4 and 6; what follows is late */
    assert_int_equal(bench->ledger.lost_bits[0], 0x50);
}

/* A retransmitted chunk is lost once the MARK behind it has settled. */
static void test_repairs_wait_for_their_mark(void **state)
{
    struct bench *bench = setup();
    struct sr_run run;
    (void)state;
    struct sr_ack ack = {.cumulative = 4, .horizon = 5, .arrived = 4, .words = 1};
    sr_report_losses(&bench->ledger, &ack);
    assert_true(sr_ledger_take_lost(&bench->ledger, 1, 3, &run) && run.first == 0);
    ack.mark = 2;
    sr_report_losses(&bench->ledger, &ack);
    assert_int_equal(bench->ledger.lost_bits[0] & 1, 0);
    ack.mark = 3;
    sr_report_losses(&bench->ledger, &ack);
    assert_int_equal(bench->ledger.lost_bits[0] & 1, 1);
}

static void test_impossible(void **state)
{
    struct bench *bench = setup();
    (void)state;
    const struct sr_ack beyond = {.cumulative = 101, .arrived = 101}, more = {.arrived = 101},
                        mark = {.mark = 4};
    assert_false(sr_report_possible(&bench->ledger, &bench->marker, &beyond));
    assert_false(sr_report_possible(&bench->ledger, &bench->marker, &more));
    assert_false(sr_report_possible(&bench->ledger, &bench->marker, &mark));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_before_the_horizon),
        cmocka_unit_test(test_repairs_wait_for_their_mark),
        cmocka_unit_test(test_impossible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
