/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/groups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "schemes/hybrid/coding.h"
#include "schemes/hybrid/params.h"

#define CHUNKS 480u /* two submessages of 240, with 15 rows each */

struct bench {
    struct ec_layout layout;
    struct sr_ledger ledger;
    struct hybrid_groups groups;
    struct hybrid_rule rule;
    uint64_t ledger_memory[2048];
    struct hybrid_group group_memory[16];
};

static struct bench *setup(uint32_t chunks)
{
    static struct bench bench;
    uint8_t params[LH_SCHEME_PARAMS];
    struct sr_run run;
    bench = (struct bench){.rule = {.loss = {1e-3, 1}, .failure = 1e-6}};
    assert_int_equal(hybrid_parse("", params), 0);
    bench.layout = hybrid_layout_of(params, chunks);
    assert_true(sr_ledger_bytes(chunks) <= sizeof bench.ledger_memory);
    assert_true(hybrid_groups_bytes(chunks) <= sizeof bench.group_memory);
    sr_ledger_init(&bench.ledger, chunks, bench.ledger_memory);
    hybrid_groups_init(&bench.groups, &bench.layout, bench.group_memory);
    assert_true(sr_ledger_take_new(&bench.ledger, chunks, 1, &run));
    return &bench;
}

static void evaluate(struct bench *bench)
{
    hybrid_groups_evaluate(&bench->groups, &bench->ledger, 0, bench->layout.groups, &bench->rule);
}

static void acknowledge(struct bench *bench, uint32_t first, uint32_t end)
{
    for (uint32_t chunk = first; chunk < end; chunk++)
        sr_ledger_ack_word(&bench->ledger, chunk / 64, (uint64_t)1 << chunk % 64);
}

static void lose(struct bench *bench, uint32_t chunk)
{
    sr_ledger_lose_word(&bench->ledger, chunk / 64, (uint64_t)1 << chunk % 64);
}

static void inject_all(struct bench *bench, uint32_t index, uint32_t stamp)
{
    bench->groups.all[index].ready = bench->groups.all[index].want;
    while (hybrid_group_rows_due(&bench->groups.all[index]) > 0)
        hybrid_groups_take_row(&bench->groups, index, stamp);
}

/* `rows` of submessage 0. */
static bool report(struct bench *bench, uint8_t rows, uint32_t mark)
{
    const struct hybrid_rows message = {.mark = mark, .count = 1, .rows = {rows}};
    return hybrid_groups_on_rows(&bench->groups, &message);
}

static void test_parity_is_for_what_is_not_acknowledged(void **state)
{
    struct bench *bench = setup(CHUNKS);
    (void)state;
    evaluate(bench);
    uint32_t all = bench->groups.all[0].want;
    assert_int_equal(all, hybrid_strength(&bench->rule.loss, 240, 240, 1e-6, 15));
    assert_int_equal(bench->groups.all[1].want, all);
    acknowledge(bench, 0, 470); /* five of each are left */
    evaluate(bench);
    assert_int_equal(bench->groups.all[0].want, hybrid_strength(&bench->rule.loss, 5, 5, 1e-6, 15));
    assert_true(bench->groups.all[0].want < all);
    acknowledge(bench, 470, 480);
    evaluate(bench);
    assert_int_equal(bench->groups.all[0].want, 0);
    assert_int_equal(hybrid_groups_work(&bench->groups, true), bench->layout.groups);
}

static void test_a_known_loss_needs_a_row_more(void **state)
{
    struct bench *bench = setup(CHUNKS);
    (void)state;
    acknowledge(bench, 0, 470);
    evaluate(bench);
    uint32_t none = bench->groups.all[0].want;
    lose(bench, 470);
    bench->groups.all[0].ready = 15;
    evaluate(bench);
    assert_int_equal(bench->groups.all[0].want, none + 1);
    assert_int_equal(bench->groups.all[0].repeats, 0);
}

/* Where no row is there, or data waits, a lost chunk is retransmitted, and the margin comes as rows. */
static void test_what_is_certain_does_not_wait(void **state)
{
    struct bench *bench = setup(CHUNKS);
    (void)state;
    acknowledge(bench, 0, 470);
    lose(bench, 470);
    evaluate(bench);
    assert_int_equal(bench->groups.all[0].repeats, 1);
    assert_int_equal(hybrid_groups_lost_chunk(&bench->groups, &bench->ledger, 0), 470);
    assert_int_equal(hybrid_groups_work(&bench->groups, true), 0);
    bench->rule.waits = true;
    bench->groups.all[0].ready = 15;
    evaluate(bench);
    assert_int_equal(bench->groups.all[0].repeats, 1);
    assert_true(bench->groups.all[0].want > 0);
    assert_int_equal(bench->groups.all[1].repeats, 0); /* nothing of it is certain to fail */
}

static void test_rows_in_flight_count(void **state)
{
    struct bench *bench = setup(CHUNKS);
    struct hybrid_group *group = &bench->groups.all[0];
    (void)state;
    evaluate(bench);
    uint32_t sent = group->want;
    inject_all(bench, 0, 5);
    assert_int_equal(bench->groups.rows_in_flight, sent);
    lose(bench, 0);
    acknowledge(bench, 2, 480);
    evaluate(bench);
    assert_int_equal(group->want, sent); /* they may all arrive */
    assert_true(report(bench, 0, 4));    /* before their MARK has settled */
    evaluate(bench);
    assert_int_equal(group->want, sent);
    assert_true(report(bench, 0, 5)); /* all of them are lost */
    assert_int_equal(bench->groups.rows_in_flight, 0);
    group->ready = 15;
    evaluate(bench);
    assert_true(group->want > sent);
    assert_int_equal(bench->groups.newly_failed, 1);
    inject_all(bench, 0, 6);
    assert_true(report(bench, 1, 5));
    evaluate(bench);
    assert_int_equal(group->want, group->sent); /* one has arrived, one was missing */
}

static void test_reports_must_be_possible(void **state)
{
    struct bench *bench = setup(CHUNKS);
    (void)state;
    assert_false(report(bench, 1, 0)); /* none was sent */
    assert_true(report(bench, 0, 0));
    assert_true(report(bench, HYBRID_DECODABLE, 0));
    assert_true(bench->groups.all[0].met);
    struct hybrid_rows beyond = {.first = 2, .count = 1};
    assert_false(hybrid_groups_on_rows(&bench->groups, &beyond));
    beyond = (struct hybrid_rows){.first = 1, .count = 2};
    assert_false(hybrid_groups_on_rows(&bench->groups, &beyond));
    evaluate(bench);
    assert_int_equal(bench->groups.all[0].want, 0); /* it can be decoded */
}

/* Parity that was interrupted is finished by the same bound, not by the one for further parity; and it is not
 * forgotten while other data passes it. */
static void test_an_interrupted_batch_is_finished(void **state)
{
    struct bench *bench = setup(CHUNKS);
    struct hybrid_group *group = &bench->groups.all[0];
    (void)state;
    evaluate(bench);
    uint32_t planned = group->want;
    assert_true(planned > 1);
    group->ready = (uint8_t)(planned - 1);
    while (hybrid_group_rows_due(group) > 0)
        hybrid_groups_take_row(&bench->groups, 0, 5);
    bench->rule.waits = true;
    evaluate(bench);
    bench->rule.waits = false;
    evaluate(bench);
    assert_int_equal(group->want, planned);
}

/* Of a burst of 8 every fifth chunk is of one submessage: it goes on for five more with (7/8)^5. */
static void test_interleaving(void **state)
{
    (void)state;
    const struct hybrid_loss loss = {0.01, 8}, alone = {0.01, 1};
    struct hybrid_loss of = hybrid_groups_loss(&loss, 5);
    assert_true(of.chunk == 0.01 && fabs(of.burst - 1 / (1 - pow(0.875, 5))) < 1e-12);
    assert_true(hybrid_groups_loss(&loss, 1).burst == 8);
    assert_true(hybrid_groups_loss(&alone, 5).burst == 1);
}

/* No chunk that was injected before a stamp is covered. */
static void test_reach(void **state)
{
    struct bench *bench = setup(CHUNKS);
    (void)state;
    bench->rule.from_stamp = 2;
    evaluate(bench);
    assert_int_equal(bench->groups.all[0].want, 0);
    lose(bench, 7);
    evaluate(bench);
    assert_int_equal(bench->groups.all[1].repeats, 1);
}

static void test_copies_of_an_only_chunk(void **state)
{
    struct bench *bench = setup(1);
    (void)state;
    evaluate(bench);
    assert_int_equal(bench->groups.all[0].want, 1); /* 1e-3 squared */
    assert_int_equal(hybrid_groups_take_row(&bench->groups, 0, 9), 0);
    hybrid_groups_settle_copies(&bench->groups, 8);
    assert_int_equal(bench->groups.rows_in_flight, 1);
    hybrid_groups_settle_copies(&bench->groups, 9);
    assert_int_equal(bench->groups.rows_in_flight, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parity_is_for_what_is_not_acknowledged),
        cmocka_unit_test(test_a_known_loss_needs_a_row_more),
        cmocka_unit_test(test_what_is_certain_does_not_wait),
        cmocka_unit_test(test_rows_in_flight_count),
        cmocka_unit_test(test_reports_must_be_possible),
        cmocka_unit_test(test_an_interrupted_batch_is_finished),
        cmocka_unit_test(test_interleaving),
        cmocka_unit_test(test_reach),
        cmocka_unit_test(test_copies_of_an_only_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
