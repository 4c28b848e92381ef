/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/sender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemes/hybrid/params.h"
#include "wire/hybrid.h"
#include "wire/selective_repeat.h"

#define RTT    ((lh_time)8000)
#define WINDOW ((lh_time)1000)
#define CHUNKS 100u /* one submessage, of 240 at most, with 15 rows */

struct bench {
    void *state;
    struct lh_stats stats;
    struct lh_sender_view view;
    struct lh_actions actions;
};

static void setup(struct bench *bench, const char *params, uint32_t chunks)
{
    memset(bench, 0, sizeof *bench);
    struct lh_transfer transfer = {.chunks = chunks, .chunk_bytes = 4096, .stats = &bench->stats};
    assert_int_equal(hybrid_parse(params, transfer.params), 0);
    bench->state = malloc(hybrid_sender_bytes(chunks));
    memset(bench->state, 0xA5, hybrid_sender_bytes(chunks));
    hybrid_sender_start(bench->state, &transfer, 0);
    bench->view = (struct lh_sender_view){
        .now = 100000,
        .path = {.rtt_ns = RTT, .overdue_ns = RTT + RTT / 8, .reorder_window_ns = WINDOW},
        .budget_chunks = 1000,
        .extra_open = true,
    };
}

/* Returns the chunks that the step injected, of the message or (extra) of parity. */
static uint32_t step(struct bench *bench, bool extra)
{
    uint32_t count = 0;
    do {
        memset(&bench->actions, 0xA5, sizeof bench->actions);
        bench->actions.count = 0;
        hybrid_sender_step(bench->state, &bench->view, &bench->actions);
        for (uint32_t i = 0; i < bench->actions.count; i++) {
            const struct lh_action *action = &bench->actions.list[i];
            if (action->kind == LH_ACTION_SEND_CHUNKS && (action->what.chunks.first >= CHUNKS) == extra)
                count += action->what.chunks.count;
        }
    } while (bench->actions.count == LH_ACTIONS_MAX);
    return count;
}

static const struct lh_action *find(const struct bench *bench, enum lh_action_kind kind)
{
    for (uint32_t i = 0; i < bench->actions.count; i++)
        if (bench->actions.list[i].kind == kind)
            return &bench->actions.list[i];
    return NULL;
}

/* All before `arrived` have, but for `missing`. */
static void hear_ack(struct bench *bench, uint32_t mark, uint32_t missing, uint32_t arrived)
{
    uint8_t bytes[SR_ACK_BYTES_MAX];
    struct sr_ack ack = {.flags = SR_FLAG_NACK,
                         .mark = mark,
                         .cumulative = missing,
                         .base = missing / 64 * 64,
                         .horizon = arrived,
                         .arrived = arrived - 1,
                         .words = 2};
    for (uint32_t chunk = ack.base; chunk < arrived; chunk++)
        if (chunk != missing)
            ack.bitmap[(chunk - ack.base) / 64] |= (uint64_t)1 << chunk % 64;
    hybrid_sender_on_message(bench->state, bytes, sr_ack_encode(&ack, bytes), &bench->view);
}

static void hear_rows(struct bench *bench, uint32_t mark, uint8_t count)
{
    uint8_t bytes[HYBRID_ROWS_BYTES + 1];
    const struct hybrid_rows rows = {.mark = mark, .count = 1, .rows = {count}};
    hybrid_sender_on_message(bench->state, bytes, hybrid_rows_encode(&rows, bytes), &bench->view);
}

/* While data waits elsewhere, a loss is retransmitted and nothing is covered. */
static void test_repeats_while_data_waits(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench, "", CHUNKS);
    bench.view.data_waits = true;
    assert_int_equal(step(&bench, false), CHUNKS);
    hear_ack(&bench, 0, 40, 90);
    assert_int_equal(step(&bench, false), 1);
    const struct lh_action *sent = find(&bench, LH_ACTION_SEND_CHUNKS);
    assert_true(sent && sent->what.chunks.first == 40 && sent->what.chunks.again);
    assert_int_equal(step(&bench, true), 0);
    assert_int_equal(bench.stats.parity_chunks_sent, 0);
    free(bench.state);
}

static void test_parity_at_the_end(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench, "", CHUNKS);
    assert_int_equal(step(&bench, false), CHUNKS);
    const struct lh_action *encode = find(&bench, LH_ACTION_ENCODE);
    assert_true(encode && encode->what.encode.group == 0 && encode->what.encode.first_row == 0);
    uint32_t rows = encode->what.encode.rows;
    assert_in_range(rows, 2, 4); /* 0.1 losses in the mean, 1e-4 */
    assert_int_equal(step(&bench, true), 0);
    bench.view.encoded = 1;
    bench.view.extra_open = false;
    assert_int_equal(step(&bench, true), 0);
    bench.view.extra_open = true;
    assert_int_equal(step(&bench, true), rows);
    assert_int_equal(bench.actions.in_flight_chunks, CHUNKS + rows);
    assert_int_equal(bench.stats.parity_chunks_sent, rows);
    free(bench.state);
}

/* A loss that parity covers is not retransmitted; when parity is lost, too, there is more of it. */
static void test_further_parity(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench, "target=0.01", CHUNKS);
    step(&bench, false);
    uint32_t rows = find(&bench, LH_ACTION_ENCODE)->what.encode.rows;
    bench.view.encoded = 1;
    assert_int_equal(step(&bench, true), rows); /* MARK 2 covers it */
    bench.view.now += RTT;
    hear_ack(&bench, 1, 40, CHUNKS);
    assert_int_equal(step(&bench, false), 0);
    hear_rows(&bench, 2, 0);
    step(&bench, false);
    assert_int_equal(bench.stats.fallbacks, 1);
    const struct lh_action *again = find(&bench, LH_ACTION_SEND_CHUNKS); /* no row was ready */
    assert_true(again && again->what.chunks.first == 40);
    const struct lh_action *encode = find(&bench, LH_ACTION_ENCODE);
    assert_true(!encode || encode->what.encode.first_row == rows);
    free(bench.state);
}

/* All before 128 have arrived, but for the first `missing`, which are lost. */
static void hear_first_lost(struct bench *bench, uint32_t missing)
{
    uint8_t bytes[SR_ACK_BYTES_MAX];
    const struct sr_ack ack = {.flags = SR_FLAG_NACK,
                               .horizon = 128,
                               .arrived = 128 - missing,
                               .words = 2,
                               .bitmap = {~(uint64_t)0 << missing, ~(uint64_t)0}};
    hybrid_sender_on_message(bench->state, bytes, sr_ack_encode(&ack, bytes), &bench->view);
}

/* Parity of one submessage that has to wait does not hold up what another one has lost. */
static void test_repeats_pass_parity_that_waits(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench, "", 480); /* two submessages */
    step(&bench, false);
    bench.view.encoded = 2;
    bench.view.data_waits = true;
    hear_first_lost(&bench, 2);
    assert_int_equal(step(&bench, false), 2);
    assert_int_equal(bench.stats.parity_chunks_sent, 0);
    free(bench.state);
}

/* What a report said while data waited is thought of again when none does. */
static void test_parity_that_waited_leaves(void **state)
{
    struct bench bench;
    uint8_t bytes[SR_ACK_BYTES_MAX];
    const struct sr_ack ack = {.cumulative = 20, .horizon = 20, .arrived = 20};
    (void)state;
    setup(&bench, "", CHUNKS);
    step(&bench, false);
    bench.view.encoded = 1;
    bench.view.data_waits = true;
    hybrid_sender_on_message(bench.state, bytes, sr_ack_encode(&ack, bytes), &bench.view);
    assert_int_equal(step(&bench, true), 0);
    assert_int_equal(bench.stats.acks_received, 1);
    bench.view.data_waits = false;
    assert_true(step(&bench, true) > 0);
    free(bench.state);
}

static void test_decodable_ends_it(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench, "", CHUNKS);
    step(&bench, false);
    bench.view.encoded = 1;
    step(&bench, true);
    bench.view.now += RTT;
    hear_rows(&bench, 2, HYBRID_DECODABLE);
    hear_ack(&bench, 2, 40, CHUNKS);
    assert_int_equal(step(&bench, false) + step(&bench, true), 0);
    free(bench.state);
}

static void test_no_tail_no_parity(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench, "tail=0", CHUNKS);
    step(&bench, false);
    bench.view.encoded = find(&bench, LH_ACTION_ENCODE) ? 1 : 0;
    assert_int_equal(step(&bench, true), 0);
    bench.view.now += RTT;
    hear_ack(&bench, 1, 40, CHUNKS);
    assert_int_equal(step(&bench, false), 1);
    free(bench.state);
}

static void test_a_single_chunk_is_copied(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench, "", 1);
    assert_int_equal(step(&bench, false), 2);
    assert_int_equal(bench.stats.parity_chunks_sent, 1);
    free(bench.state);
}

static void test_impossible_messages_are_counted(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench, "", CHUNKS);
    hear_ack(&bench, 0, 3, 10); /* nothing was sent */
    step(&bench, false);
    hear_ack(&bench, 7, 3, 10); /* nor this MARK */
    hear_rows(&bench, 1, 3);    /* nor any row */
    hybrid_sender_on_message(bench.state, (const uint8_t *)"x", 1, &bench.view);
    assert_int_equal(bench.stats.bad_control, 4);
    free(bench.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeats_while_data_waits),
        cmocka_unit_test(test_parity_at_the_end),
        cmocka_unit_test(test_further_parity),
        cmocka_unit_test(test_repeats_pass_parity_that_waits),
        cmocka_unit_test(test_parity_that_waited_leaves),
        cmocka_unit_test(test_decodable_ends_it),
        cmocka_unit_test(test_no_tail_no_parity),
        cmocka_unit_test(test_a_single_chunk_is_copied),
        cmocka_unit_test(test_impossible_messages_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
