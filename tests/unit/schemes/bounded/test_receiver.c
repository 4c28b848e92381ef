/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/receiver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemes/bounded/params.h"
#include "wire/bounded_completion.h"

#define RTT    ((lh_time)8000)
#define WINDOW ((lh_time)1000)
#define ROOM   40u
#define CHUNKS 16u /* with a code 4 groups of 4; parity row r of group g is extra chunk 4 * r + g */

struct bench {
    void *state;
    struct lh_stats stats;
    uint8_t chunks[ROOM];
    uint8_t extra[4 * ROOM];
    struct lh_receiver_view view;
    struct lh_actions actions;
};

static void setup(struct bench *bench, const char *params)
{
    memset(bench, 0, sizeof *bench);
    struct lh_transfer transfer = {.chunks = ROOM, .chunk_bytes = 4096, .stats = &bench->stats};
    assert_int_equal(bounded_parse(params, transfer.params), 0);
    bench->state = malloc(bounded_receiver_bytes(ROOM));
    memset(bench->state, 0xA5, bounded_receiver_bytes(ROOM));
    bench->view = (struct lh_receiver_view){
        .now = 100000,
        .path = {.rtt_ns = RTT, .overdue_ns = RTT + RTT / 8, .reorder_window_ns = WINDOW},
        .chunk_bitmap = bench->chunks,
        .extra_bitmap = bench->extra,
        .last_arrival_ns = LH_TIME_NEVER,
        .later_seen_ns = LH_TIME_NEVER,
        .later_arrival_ns = LH_TIME_NEVER,
        .chunks = ROOM,
    };
    bounded_receiver_start(bench->state, &transfer, bench->view.now);
}

static void know_length(struct bench *bench)
{
    bench->view.length_known = true;
    bench->view.chunks = CHUNKS;
}

static void arrive(struct bench *bench, uint32_t first, uint32_t end)
{
    for (uint32_t chunk = first; chunk < end; chunk++) {
        uint8_t *bit = chunk < CHUNKS ? &bench->chunks[chunk] : &bench->extra[chunk - CHUNKS];
        *(chunk < CHUNKS ? &bench->view.chunks_arrived : &bench->view.extra_arrived) += *bit == 0;
        *bit = 1;
    }
    bench->view.last_arrival_ns = bench->view.now;
}

static void step(struct bench *bench)
{
    bench->actions.count = 0;
    bounded_receiver_step(bench->state, &bench->view, &bench->actions);
}

static void step_at(struct bench *bench, lh_time now)
{
    bench->view.now = now;
    step(bench);
}

static void hear(struct bench *bench, enum bounded_kind kind, uint32_t place)
{
    uint8_t bytes[BOUNDED_MESSAGE_BYTES];
    const struct bounded_message message = {kind, place};
    bounded_receiver_on_message(bench->state, bytes, bounded_message_encode(&message, bytes), &bench->view);
}

static bool does(const struct bench *bench, enum lh_action_kind kind)
{
    for (uint32_t i = 0; i < bench->actions.count; i++)
        if (bench->actions.list[i].kind == kind)
            return true;
    return false;
}

static void test_whole_is_complete_at_once(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "deadline=1s");
    arrive(&bench, 0, CHUNKS);
    step(&bench); /* is that all? */
    assert_false(does(&bench, LH_ACTION_COMPLETE));
    know_length(&bench);
    step(&bench);
    assert_true(does(&bench, LH_ACTION_COMPLETE));
    step(&bench);
    assert_int_equal(bench.actions.count, 0);
    assert_int_equal(bench.actions.next_ns, LH_TIME_NEVER);
    free(bench.state);
}

/* The last chunk ends it, a window after the last arrival. */
static void test_the_last_chunk_ends_it(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "deadline=1s");
    know_length(&bench);
    lh_time start = bench.view.now;
    arrive(&bench, 2, CHUNKS - 1);
    step(&bench);
    step_at(&bench, start + 100 * RTT);
    assert_false(does(&bench, LH_ACTION_FINISH)); /* its deadline is the connection's */
    start = bench.view.now;
    arrive(&bench, CHUNKS - 1, CHUNKS);
    step(&bench);
    assert_true(bench.actions.next_ns <= start + WINDOW);
    step_at(&bench, start + WINDOW - 1);
    arrive(&bench, 1, 2);
    step(&bench);
    step_at(&bench, start + WINDOW); /* something was late */
    assert_false(does(&bench, LH_ACTION_FINISH));
    step_at(&bench, start + 2 * WINDOW - 2);
    assert_false(does(&bench, LH_ACTION_FINISH));
    step_at(&bench, start + 2 * WINDOW - 1);
    assert_true(does(&bench, LH_ACTION_FINISH));
    free(bench.state);
}

/* END may come first, twice, and without its length. */
static void test_end_ends_it(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "deadline=1s");
    lh_time start = bench.view.now;
    hear(&bench, BOUNDED_END, CHUNKS);
    step_at(&bench, start + 2 * WINDOW);
    assert_false(does(&bench, LH_ACTION_FINISH)); /* of what length? */
    hear(&bench, BOUNDED_END, CHUNKS);
    know_length(&bench);
    step(&bench);
    assert_true(does(&bench, LH_ACTION_FINISH)); /* the first END counts */
    assert_int_equal(bench.stats.bad_control, 0);
    free(bench.state);
}

static void test_a_later_message_ends_it(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "deadline=1s");
    know_length(&bench);
    bench.view.later_seen_ns = bench.view.now; /* an announcement may overtake packets */
    step_at(&bench, bench.view.now + 2 * RTT);
    assert_false(does(&bench, LH_ACTION_FINISH));
    bench.view.later_arrival_ns = bench.view.now;
    step_at(&bench, bench.view.now + WINDOW - 1);
    assert_false(does(&bench, LH_ACTION_FINISH));
    step_at(&bench, bench.view.now + 1);
    assert_true(does(&bench, LH_ACTION_FINISH));
    free(bench.state);
}

static void test_waits_until_arrivals_were_looked_at(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "deadline=1s");
    know_length(&bench);
    bench.view.caught_up_ns = bench.view.now;
    hear(&bench, BOUNDED_END, CHUNKS);
    step_at(&bench, bench.view.now + 2 * WINDOW);
    assert_false(does(&bench, LH_ACTION_FINISH));
    assert_true(bench.actions.next_ns > bench.view.now);
    bench.view.caught_up_ns = bench.view.now;
    step(&bench);
    assert_true(does(&bench, LH_ACTION_FINISH));
    free(bench.state);
}

static void test_parity_completes_or_ends_it(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "deadline=1s,code=mds,k=4,m=2");
    know_length(&bench);
    arrive(&bench, 2, CHUNKS);
    step_at(&bench, bench.view.now + 100 * RTT); /* parity follows */
    assert_false(does(&bench, LH_ACTION_FINISH));
    arrive(&bench, CHUNKS, CHUNKS + 2); /* groups 0 and 1 */
    step(&bench);
    assert_true(does(&bench, LH_ACTION_COMPLETE));
    free(bench.state);
    setup(&bench, "deadline=1s,code=mds,k=4,m=2");
    know_length(&bench);
    arrive(&bench, 2, CHUNKS);
    arrive(&bench, CHUNKS + 7, CHUNKS + 8); /* the last of all */
    step(&bench);
    step_at(&bench, bench.view.now + WINDOW);
    assert_true(does(&bench, LH_ACTION_FINISH));
    free(bench.state);
}

static void test_acknowledges_how_far_it_has_come(void **state)
{
    (void)state;
    struct bench bench;
    struct bounded_message ack;
    setup(&bench, "deadline=1s");
    arrive(&bench, 3, 7);
    step(&bench);
    step_at(&bench, bench.view.now + RTT / 4);
    assert_true(does(&bench, LH_ACTION_SEND_MESSAGE));
    const struct lh_action *action = &bench.actions.list[0];
    assert_int_equal(bounded_message_decode(action->what.message.data, action->what.message.bytes, &ack),
                     0);
    assert_true(ack.kind == BOUNDED_ACK && ack.place == 7);
    step(&bench);
    assert_int_equal(bench.actions.count, 0); /* once for the same arrivals */
    free(bench.state);
}

static void test_strange_messages_are_counted(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "deadline=1s");
    know_length(&bench);
    hear(&bench, BOUNDED_ACK, 3);
    bounded_receiver_on_message(bench.state, (const uint8_t *)"", 1, &bench.view);
    assert_int_equal(bench.stats.bad_control, 2);
    step_at(&bench, bench.view.now + 2 * WINDOW);
    assert_int_equal(bench.actions.count, 0);
    free(bench.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_is_complete_at_once),
        cmocka_unit_test(test_the_last_chunk_ends_it),
        cmocka_unit_test(test_end_ends_it),
        cmocka_unit_test(test_a_later_message_ends_it),
        cmocka_unit_test(test_waits_until_arrivals_were_looked_at),
        cmocka_unit_test(test_parity_completes_or_ends_it),
        cmocka_unit_test(test_acknowledges_how_far_it_has_come),
        cmocka_unit_test(test_strange_messages_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
