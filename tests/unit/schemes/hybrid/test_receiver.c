/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/receiver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemes/hybrid/coding.h"
#include "schemes/hybrid/params.h"
#include "wire/hybrid.h"
#include "wire/selective_repeat.h"

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

int main(void)
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
