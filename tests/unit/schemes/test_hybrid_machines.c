/*
 * test_hybrid_machines.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemes/hybrid_groups.h"
#include "schemes/hybrid_scheme.h"
#include "wire/scheme_messages.h"

/* ---- test receiver --------------------------------------------------------------------------------- */

#define RTT    ((lh_time)8000)
#define WINDOW ((lh_time)1000)
#define CHUNKS 300u /* two submessages of 150: chunk c is of submessage c % 2, as extra chunk c */

struct bench {
    void *state;
    struct lh_stats stats;
    uint8_t chunks[CHUNKS];
    uint8_t extra[64];
    struct lh_receiver_view view;
    struct lh_actions actions;
};

static void setup(struct bench *bench)
{
    memset(bench, 0, sizeof *bench);
    struct lh_transfer transfer = {.chunks = CHUNKS, .chunk_bytes = 4096, .stats = &bench->stats};
    assert_int_equal(hybrid_parse("", transfer.params), 0);
    bench->state = malloc(hybrid_receiver_bytes(CHUNKS));
    memset(bench->state, 0xA5, hybrid_receiver_bytes(CHUNKS));
    bench->view = (struct lh_receiver_view){
        .now = 100000,
        .path = {.rtt_ns = RTT, .overdue_ns = RTT + RTT / 8, .reorder_window_ns = WINDOW},
        .chunk_bitmap = bench->chunks,
        .extra_bitmap = bench->extra,
        .last_arrival_ns = LH_TIME_NEVER,
        .later_seen_ns = LH_TIME_NEVER,
        .length_known = true,
        .chunks = CHUNKS,
    };
    hybrid_receiver_start(bench->state, &transfer, bench->view.now);
}

static void step(struct bench *bench)
{
    memset(&bench->actions, 0xA5, sizeof bench->actions);
    bench->actions.count = 0;
    hybrid_receiver_step(bench->state, &bench->view, &bench->actions);
}

/* All data but two chunks of submessage 0. */
static void arrive_data(struct bench *bench)
{
    memset(bench->chunks, 1, CHUNKS);
    bench->chunks[10] = bench->chunks[20] = 0;
    bench->view.chunks_arrived = CHUNKS - 2;
    bench->view.last_arrival_ns = bench->view.now;
    step(bench);
}

static void arrive_row(struct bench *bench, uint32_t extra)
{
    bench->extra[extra] = 1;
    bench->view.extra_arrived++;
    bench->view.last_arrival_ns = bench->view.now;
    step(bench);
}

static void hear_mark(struct bench *bench, uint32_t mark, uint32_t sent_through)
{
    uint8_t bytes[SR_MARK_BYTES];
    const struct sr_mark message = {.mark = mark, .sent_through = sent_through};
    hybrid_receiver_on_message(bench->state, bytes, sr_mark_encode(&message, bytes), &bench->view);
}

/* The ROWS of the last step; count 0: none. */
static struct hybrid_rows rows_of(const struct bench *bench)
{
    struct hybrid_rows rows = {0};
    for (uint32_t i = 0; i < bench->actions.count; i++) {
        const struct lh_action *action = &bench->actions.list[i];
        if (action->kind == LH_ACTION_SEND_MESSAGE &&
            hybrid_rows_decode(action->what.message.data, action->what.message.bytes, &rows) == 0)
            return rows;
    }
    return (struct hybrid_rows){0};
}

static void test_whole_without_parity(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench);
    memset(bench.chunks, 1, CHUNKS);
    bench.view.chunks_arrived = CHUNKS;
    step(&bench);
    assert_int_equal(bench.actions.count, 1);
    assert_int_equal(bench.actions.list[0].kind, LH_ACTION_COMPLETE);
    step(&bench);
    assert_int_equal(bench.actions.count, 0);
    free(bench.state);
}

/* Two rows of the submessage that lacks two, not of the other one. */
static void test_complete_when_decodable(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench);
    arrive_data(&bench);
    arrive_row(&bench, 0);
    arrive_row(&bench, 1); /* of submessage 1 */
    arrive_row(&bench, 3);
    assert_true(bench.actions.count == 0 || bench.actions.list[0].kind != LH_ACTION_COMPLETE);
    arrive_row(&bench, 4);
    assert_int_equal(bench.actions.list[0].kind, LH_ACTION_COMPLETE);
    free(bench.state);
}

static void test_rows_are_reported_once_all_was_sent(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench);
    arrive_data(&bench);
    hear_mark(&bench, 1, CHUNKS - 1);
    bench.view.now += 2 * WINDOW;
    step(&bench);
    assert_int_equal(bench.stats.nacks_sent, 1);
    assert_int_equal(rows_of(&bench).count, 0);
    arrive_row(&bench, 0);
    hear_mark(&bench, 2, CHUNKS);
    bench.view.now += WINDOW;
    step(&bench);
    struct hybrid_rows rows = rows_of(&bench);
    assert_true(rows.count == 2 && rows.first == 0 && rows.mark == 2);
    assert_int_equal(rows.rows[0], 1);
    assert_int_equal(rows.rows[1], HYBRID_DECODABLE);
    free(bench.state);
}

/* A row that came after the MARK: those behind it may still be on this host. */
static void test_a_mark_waits_for_a_pause(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench);
    arrive_data(&bench);
    hear_mark(&bench, 1, CHUNKS);
    bench.view.now += WINDOW - 1;
    arrive_row(&bench, 0);
    bench.view.now += 1;
    step(&bench);
    struct hybrid_rows rows = rows_of(&bench);
    assert_true(rows.count == 2 && rows.mark == 0);
    free(bench.state);
}

static void test_bad_messages_are_counted(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench);
    hear_mark(&bench, 1, CHUNKS + 1);
    hybrid_receiver_on_message(bench.state, (const uint8_t *)"xx", 2, &bench.view);
    assert_int_equal(bench.stats.bad_control, 2);
    free(bench.state);
}

static int run_receiver(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_without_parity),
        cmocka_unit_test(test_complete_when_decodable),
        cmocka_unit_test(test_rows_are_reported_once_all_was_sent),
        cmocka_unit_test(test_a_mark_waits_for_a_pause),
        cmocka_unit_test(test_bad_messages_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test sender ----------------------------------------------------------------------------------- */

#define SENDER_CHUNKS 100u /* one submessage, of 240 at most, with 15 rows */

struct sender_bench {
    void *state;
    struct lh_stats stats;
    struct lh_sender_view view;
    struct lh_actions actions;
};

static void sender_setup(struct sender_bench *sender_bench, const char *params, uint32_t chunks)
{
    memset(sender_bench, 0, sizeof *sender_bench);
    struct lh_transfer transfer = {.chunks = chunks, .chunk_bytes = 4096, .stats = &sender_bench->stats};
    assert_int_equal(hybrid_parse(params, transfer.params), 0);
    sender_bench->state = malloc(hybrid_sender_bytes(chunks));
    memset(sender_bench->state, 0xA5, hybrid_sender_bytes(chunks));
    hybrid_sender_start(sender_bench->state, &transfer, 0);
    sender_bench->view = (struct lh_sender_view){
        .now = 100000,
        .path = {.rtt_ns = RTT, .overdue_ns = RTT + RTT / 8, .reorder_window_ns = WINDOW},
        .budget_chunks = 1000,
        .extra_open = true,
    };
}

/* Returns the chunks that the step injected, of the message or (extra) of parity. */
static uint32_t test_sender_step(struct sender_bench *sender_bench, bool extra)
{
    uint32_t count = 0;
    do {
        memset(&sender_bench->actions, 0xA5, sizeof sender_bench->actions);
        sender_bench->actions.count = 0;
        hybrid_sender_step(sender_bench->state, &sender_bench->view, &sender_bench->actions);
        for (uint32_t i = 0; i < sender_bench->actions.count; i++) {
            const struct lh_action *action = &sender_bench->actions.list[i];
            if (action->kind == LH_ACTION_SEND_CHUNKS &&
                (action->what.chunks.first >= SENDER_CHUNKS) == extra)
                count += action->what.chunks.count;
        }
    } while (sender_bench->actions.count == LH_ACTIONS_MAX);
    return count;
}

static const struct lh_action *find(const struct sender_bench *sender_bench, enum lh_action_kind kind)
{
    for (uint32_t i = 0; i < sender_bench->actions.count; i++)
        if (sender_bench->actions.list[i].kind == kind)
            return &sender_bench->actions.list[i];
    return NULL;
}

/* All before `arrived` have, but for `missing`. */
static void hear_ack(struct sender_bench *sender_bench, uint32_t mark, uint32_t missing, uint32_t arrived)
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
    hybrid_sender_on_message(sender_bench->state, bytes, sr_ack_encode(&ack, bytes), &sender_bench->view);
}

static void receive_rows(struct sender_bench *sender_bench, uint32_t mark, uint8_t count)
{
    uint8_t bytes[HYBRID_ROWS_BYTES + 1];
    const struct hybrid_rows rows = {.mark = mark, .count = 1, .rows = {count}};
    hybrid_sender_on_message(sender_bench->state, bytes, hybrid_rows_encode(&rows, bytes),
                             &sender_bench->view);
}

/* While data waits elsewhere, a loss is retransmitted and nothing is covered. */
static void test_repeats_while_data_waits(void **state)
{
    struct sender_bench sender_bench;
    (void)state;
    sender_setup(&sender_bench, "", SENDER_CHUNKS);
    sender_bench.view.data_waits = true;
    assert_int_equal(test_sender_step(&sender_bench, false), SENDER_CHUNKS);
    hear_ack(&sender_bench, 0, 40, 90);
    assert_int_equal(test_sender_step(&sender_bench, false), 1);
    const struct lh_action *sent = find(&sender_bench, LH_ACTION_SEND_CHUNKS);
    assert_true(sent && sent->what.chunks.first == 40 && sent->what.chunks.again);
    assert_int_equal(test_sender_step(&sender_bench, true), 0);
    assert_int_equal(sender_bench.stats.parity_chunks_sent, 0);
    free(sender_bench.state);
}

static void test_parity_at_the_end(void **state)
{
    struct sender_bench sender_bench;
    (void)state;
    sender_setup(&sender_bench, "", SENDER_CHUNKS);
    assert_int_equal(test_sender_step(&sender_bench, false), SENDER_CHUNKS);
    const struct lh_action *encode = find(&sender_bench, LH_ACTION_ENCODE);
    assert_true(encode && encode->what.encode.group == 0 && encode->what.encode.first_row == 0);
    uint32_t rows = encode->what.encode.rows;
    assert_in_range(rows, 2, 4); /* 0.1 losses in the mean, 1e-4 */
    assert_int_equal(test_sender_step(&sender_bench, true), 0);
    sender_bench.view.encoded = 1;
    sender_bench.view.extra_open = false;
    assert_int_equal(test_sender_step(&sender_bench, true), 0);
    sender_bench.view.extra_open = true;
    assert_int_equal(test_sender_step(&sender_bench, true), rows);
    assert_int_equal(sender_bench.actions.in_flight_chunks, SENDER_CHUNKS + rows);
    assert_int_equal(sender_bench.stats.parity_chunks_sent, rows);
    free(sender_bench.state);
}

/* Behind all data there is a MARK of it, which asks for no report by itself. */
static void test_a_mark_behind_the_data(void **state)
{
    struct sender_bench sender_bench;
    struct sr_mark mark;
    (void)state;
    sender_setup(&sender_bench, "", SENDER_CHUNKS);
    assert_int_equal(test_sender_step(&sender_bench, false), SENDER_CHUNKS);
    const struct lh_action *sent = find(&sender_bench, LH_ACTION_SEND_MESSAGE);
    assert_true(sent && sr_mark_decode(sent->what.message.data, sent->what.message.bytes, &mark) == 0);
    assert_int_equal(mark.flags, 0);
    assert_int_equal(mark.mark, 1);
    assert_int_equal(mark.sent_through, SENDER_CHUNKS);
    free(sender_bench.state);
}

/* A loss that parity covers is not retransmitted; when parity is lost, too, there is more of it. */
static void test_further_parity(void **state)
{
    struct sender_bench sender_bench;
    (void)state;
    sender_setup(&sender_bench, "target=0.01", SENDER_CHUNKS);
    test_sender_step(&sender_bench, false);
    uint32_t rows = find(&sender_bench, LH_ACTION_ENCODE)->what.encode.rows;
    sender_bench.view.encoded = 1;
    assert_int_equal(test_sender_step(&sender_bench, true), rows); /* MARK 2 covers it */
    sender_bench.view.now += RTT;
    hear_ack(&sender_bench, 1, 40, SENDER_CHUNKS);
    assert_int_equal(test_sender_step(&sender_bench, false), 0);
    receive_rows(&sender_bench, 2, 0);
    test_sender_step(&sender_bench, false);
    assert_int_equal(sender_bench.stats.fallbacks, 1);
    const struct lh_action *again = find(&sender_bench, LH_ACTION_SEND_CHUNKS); /* no row was ready */
    assert_true(again && again->what.chunks.first == 40);
    const struct lh_action *encode = find(&sender_bench, LH_ACTION_ENCODE);
    assert_true(!encode || encode->what.encode.first_row == rows);
    free(sender_bench.state);
}

/* All before 128 have arrived, but for the first `missing`, which are lost. */
static void hear_first_lost(struct sender_bench *sender_bench, uint32_t missing)
{
    uint8_t bytes[SR_ACK_BYTES_MAX];
    const struct sr_ack ack = {.flags = SR_FLAG_NACK,
                               .horizon = 128,
                               .arrived = 128 - missing,
                               .words = 2,
                               .bitmap = {~(uint64_t)0 << missing, ~(uint64_t)0}};
    hybrid_sender_on_message(sender_bench->state, bytes, sr_ack_encode(&ack, bytes), &sender_bench->view);
}

/* Parity of one submessage that has to wait does not hold up what another one has lost. */
static void test_repeats_pass_parity_that_waits(void **state)
{
    struct sender_bench sender_bench;
    (void)state;
    sender_setup(&sender_bench, "", 480); /* two submessages */
    test_sender_step(&sender_bench, false);
    sender_bench.view.encoded = 2;
    sender_bench.view.data_waits = true;
    hear_first_lost(&sender_bench, 2);
    assert_int_equal(test_sender_step(&sender_bench, false), 2);
    assert_int_equal(sender_bench.stats.parity_chunks_sent, 0);
    free(sender_bench.state);
}

/* What a report said while data waited is thought of again when none does. */
static void test_parity_that_waited_leaves(void **state)
{
    struct sender_bench sender_bench;
    uint8_t bytes[SR_ACK_BYTES_MAX];
    const struct sr_ack ack = {.cumulative = 20, .horizon = 20, .arrived = 20};
    (void)state;
    sender_setup(&sender_bench, "", SENDER_CHUNKS);
    test_sender_step(&sender_bench, false);
    sender_bench.view.encoded = 1;
    sender_bench.view.data_waits = true;
    hybrid_sender_on_message(sender_bench.state, bytes, sr_ack_encode(&ack, bytes), &sender_bench.view);
    assert_int_equal(test_sender_step(&sender_bench, true), 0);
    assert_int_equal(sender_bench.stats.acks_received, 1);
    sender_bench.view.data_waits = false;
    assert_true(test_sender_step(&sender_bench, true) > 0);
    free(sender_bench.state);
}

static void test_decodable_ends_it(void **state)
{
    struct sender_bench sender_bench;
    (void)state;
    sender_setup(&sender_bench, "", SENDER_CHUNKS);
    test_sender_step(&sender_bench, false);
    sender_bench.view.encoded = 1;
    test_sender_step(&sender_bench, true);
    sender_bench.view.now += RTT;
    receive_rows(&sender_bench, 2, HYBRID_DECODABLE);
    hear_ack(&sender_bench, 2, 40, SENDER_CHUNKS);
    assert_int_equal(test_sender_step(&sender_bench, false) + test_sender_step(&sender_bench, true), 0);
    free(sender_bench.state);
}

static void test_no_tail_no_parity(void **state)
{
    struct sender_bench sender_bench;
    (void)state;
    sender_setup(&sender_bench, "tail=0", SENDER_CHUNKS);
    test_sender_step(&sender_bench, false);
    sender_bench.view.encoded = find(&sender_bench, LH_ACTION_ENCODE) ? 1 : 0;
    assert_int_equal(test_sender_step(&sender_bench, true), 0);
    sender_bench.view.now += RTT;
    hear_ack(&sender_bench, 1, 40, SENDER_CHUNKS);
    assert_int_equal(test_sender_step(&sender_bench, false), 1);
    free(sender_bench.state);
}

static void test_a_single_chunk_is_copied(void **state)
{
    struct sender_bench sender_bench;
    (void)state;
    sender_setup(&sender_bench, "", 1);
    assert_int_equal(test_sender_step(&sender_bench, false), 2);
    assert_int_equal(sender_bench.stats.parity_chunks_sent, 1);
    free(sender_bench.state);
}

static void test_impossible_messages_are_counted(void **state)
{
    struct sender_bench sender_bench;
    (void)state;
    sender_setup(&sender_bench, "", SENDER_CHUNKS);
    hear_ack(&sender_bench, 0, 3, 10); /* nothing was sent */
    test_sender_step(&sender_bench, false);
    hear_ack(&sender_bench, 7, 3, 10); /* nor this MARK */
    receive_rows(&sender_bench, 1, 3); /* nor any row */
    hybrid_sender_on_message(sender_bench.state, (const uint8_t *)"x", 1, &sender_bench.view);
    assert_int_equal(sender_bench.stats.bad_control, 4);
    free(sender_bench.state);
}

static int run_sender(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeats_while_data_waits),
        cmocka_unit_test(test_parity_at_the_end),
        cmocka_unit_test(test_a_mark_behind_the_data),
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

int main(void)
{
    return run_receiver() + run_sender();
}
