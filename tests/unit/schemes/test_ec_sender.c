/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/sender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemes/ec/layout.h"
#include "wire/erasure_coding.h"

#define RTT    ((lh_time)8000)
#define WINDOW ((lh_time)1000)
#define CHUNKS 16u /* 4 groups of 4; parity 16 to 23, fresh rows 24 to 31 */

struct bench {
    void *state;
    struct lh_stats stats;
    struct lh_sender_view view;
    struct lh_actions actions;
};

static void setup(struct bench *bench, const char *params, uint32_t chunks)
{
    memset(bench, 0, sizeof(*bench));
    struct lh_transfer transfer = {.chunks = chunks, .chunk_bytes = 4096, .stats = &bench->stats};
    assert_int_equal(ec_mds_parse(params, transfer.params), 0);
    bench->state = malloc(ec_sender_bytes(chunks));
    memset(bench->state, 0xA5, ec_sender_bytes(chunks));
    ec_sender_start(bench->state, &transfer, 0);
    bench->view = (struct lh_sender_view){
        .now = 100000,
        .path = {.rtt_ns = RTT, .overdue_ns = RTT + RTT / 8, .reorder_window_ns = WINDOW},
        .budget_chunks = 1000,
        .extra_open = true,
    };
}

static void step(struct bench *bench)
{
    memset(&bench->actions, 0xA5, sizeof(bench->actions));
    bench->actions.count = 0;
    ec_sender_step(bench->state, &bench->view, &bench->actions);
}

/* How many actions of a kind the last step took. */
static uint32_t count_of(const struct bench *bench, enum lh_action_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < bench->actions.count; i++)
        count += bench->actions.list[i].kind == kind;
    return count;
}

static void assert_sends(const struct bench *bench, uint32_t index, uint32_t first, uint32_t count,
                         bool again)
{
    const struct lh_action *action = &bench->actions.list[index];
    assert_true(index < bench->actions.count);
    assert_int_equal(action->kind, LH_ACTION_SEND_CHUNKS);
    assert_int_equal(action->what.chunks.first, first);
    assert_int_equal(action->what.chunks.count, count);
    assert_int_equal(action->what.chunks.again, again);
}

static struct ec_mark mark_at(const struct bench *bench, uint32_t index)
{
    struct ec_mark mark;
    const struct lh_action *action = &bench->actions.list[index];
    assert_true(index < bench->actions.count);
    assert_int_equal(action->kind, LH_ACTION_SEND_MESSAGE);
    assert_int_equal(ec_mark_decode(action->what.message.data, action->what.message.bytes, &mark), 0);
    return mark;
}

static void hear_ack(struct bench *bench, uint32_t mark, uint32_t injected, uint32_t arrived)
{
    uint8_t bytes[EC_ACK_BYTES];
    struct ec_ack ack = {mark, injected, arrived};
    ec_sender_on_message(bench->state, bytes, ec_ack_encode(&ack, bytes), &bench->view);
}

static void hear_request(struct bench *bench, uint32_t round, struct ec_run run)
{
    uint8_t bytes[EC_REQUEST_BYTES_MAX];
    struct ec_request request = {.round = round, .parts = 1, .count = 1, .runs = {run}};
    ec_sender_on_message(bench->state, bytes, ec_request_encode(&request, bytes), &bench->view);
}

/* Through round 0: 24 injected, MARK 1 said so. */
static void setup_opened(struct bench *bench)
{
    setup(bench, "k=4,m=2", CHUNKS);
    step(bench);
    bench->view.encoded = 4;
    step(bench);
    assert_sends(bench, 0, 16, 8, false);
    struct ec_mark mark = mark_at(bench, 1);
    assert_true(mark.mark == 1 && mark.flags == EC_FLAG_END && mark.injected == 24 && mark.round == 0);
    step(bench);
    assert_int_equal(bench->actions.count, 0);
}

static void test_encoding_follows_the_first_chunks(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "k=4,m=2", CHUNKS);
    step(&bench);
    assert_sends(&bench, 0, 0, 16, false);
    for (uint32_t group = 0; group < 4; group++) {
        const struct lh_action *action = &bench.actions.list[1 + group];
        assert_int_equal(action->kind, LH_ACTION_ENCODE);
        assert_int_equal(action->what.encode.group, group);
        assert_int_equal(action->what.encode.first_row, 0);
        assert_int_equal(action->what.encode.rows, 2);
    }
    assert_int_equal(bench.actions.count, 5);
    assert_int_equal(bench.actions.in_flight_chunks, 16);
    step(&bench);
    assert_int_equal(bench.actions.count, 0);
    bench.view.encoded = 2;
    step(&bench);
    assert_sends(&bench, 0, 16, 2, false);
    assert_int_equal(bench.stats.parity_chunks_sent, 2);
    bench.view.encoded = 4;
    bench.view.extra_open = false;
    step(&bench);
    assert_int_equal(bench.actions.count, 0);
    free(bench.state);
}

static void test_encodings_outstanding_are_bounded(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "k=4,m=2", 400);
    bench.view.budget_chunks = 0;
    uint32_t given = 0;
    do {
        step(&bench);
        given += count_of(&bench, LH_ACTION_ENCODE);
    } while (bench.actions.count == LH_ACTIONS_MAX);
    assert_int_equal(given, EC_ENCODINGS_AHEAD);
    bench.view.encoded = 1;
    step(&bench);
    assert_int_equal(count_of(&bench, LH_ACTION_ENCODE), 1);
    assert_int_equal(bench.actions.list[0].what.encode.group, EC_ENCODINGS_AHEAD);
    free(bench.state);
}

static void test_budget_is_kept(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "k=4,m=2", CHUNKS);
    bench.view.budget_chunks = 5;
    step(&bench);
    assert_sends(&bench, 0, 0, 5, false);
    assert_int_equal(count_of(&bench, LH_ACTION_SEND_CHUNKS), 1);
    bench.view.budget_chunks = 0;
    step(&bench);
    assert_int_equal(count_of(&bench, LH_ACTION_SEND_CHUNKS), 0);
    /* What is uncovered is covered a quarter of a round trip later. */
    assert_int_equal(bench.actions.next_ns, bench.view.now + RTT / 4);
    bench.view.now += RTT / 4 - 1;
    step(&bench);
    assert_int_equal(count_of(&bench, LH_ACTION_SEND_MESSAGE), 0);
    bench.view.now++;
    step(&bench);
    struct ec_mark mark = mark_at(&bench, 0);
    assert_true(mark.mark == 1 && mark.flags == 0 && mark.injected == 5);
    free(bench.state);
}

static void test_in_flight(void **state)
{
    (void)state;
    struct bench bench;
    setup_opened(&bench);
    assert_int_equal(bench.actions.in_flight_chunks, 24);
    hear_ack(&bench, 0, 0, 10);
    step(&bench);
    assert_int_equal(bench.actions.in_flight_chunks, 14);
    hear_ack(&bench, 0, 0, 8); /* an old one */
    step(&bench);
    assert_int_equal(bench.actions.in_flight_chunks, 14);
    hear_ack(&bench, 1, 24, 20); /* what is missing is lost */
    step(&bench);
    assert_int_equal(bench.actions.in_flight_chunks, 0);
    assert_int_equal(bench.stats.acks_received, 3);
    free(bench.state);
}

static void test_impossible_acks(void **state)
{
    (void)state;
    struct bench bench;
    setup_opened(&bench);
    hear_ack(&bench, 2, 24, 24);
    hear_ack(&bench, 1, 25, 24);
    hear_ack(&bench, 1, 24, 25);
    ec_sender_on_message(bench.state, (const uint8_t *)"what", 4, &bench.view);
    ec_sender_on_message(bench.state, (const uint8_t *)"", 0, &bench.view);
    assert_int_equal(bench.stats.bad_control, 5);
    step(&bench);
    assert_int_equal(bench.actions.in_flight_chunks, 24);
    free(bench.state);
}

static void test_the_end_is_repeated_then_probed(void **state)
{
    (void)state;
    struct bench bench;
    setup_opened(&bench);
    lh_time said = bench.view.now;
    static const lh_time after[] = {1, 3, 7};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(bench.actions.next_ns, said + after[i] * WINDOW);
        bench.view.now = said + after[i] * WINDOW;
        step(&bench);
        struct ec_mark mark = mark_at(&bench, 0);
        assert_true(mark.mark == 1 && mark.flags == EC_FLAG_END && mark.injected == 24);
    }
    assert_int_equal(bench.actions.next_ns, said + RTT + RTT / 8);
    bench.view.now = bench.actions.next_ns;
    step(&bench);
    struct ec_mark probe = mark_at(&bench, 0);
    assert_int_equal(probe.flags, EC_FLAG_END | EC_FLAG_PROBE);
    assert_int_equal(bench.stats.probes_sent, 1);
    free(bench.state);
}

static void test_a_settled_end_is_not_repeated(void **state)
{
    (void)state;
    struct bench bench;
    setup_opened(&bench);
    bench.view.now += WINDOW / 2;
    hear_ack(&bench, 1, 24, 20);
    step(&bench);
    assert_int_equal(bench.actions.next_ns, bench.view.now + RTT + RTT / 8); /* the probe */
    free(bench.state);
}

static void test_a_request_is_answered_and_served(void **state)
{
    (void)state;
    struct bench bench;
    setup_opened(&bench);
    bench.view.budget_chunks = 0;
    hear_request(&bench, 1, (struct ec_run){2, 6, 2});
    step(&bench); /* heard, though nothing may leave yet */
    struct ec_mark mark = mark_at(&bench, 0);
    assert_true(mark.round == 1 && mark.flags == 0 && mark.mark == 1);
    assert_int_equal(bench.actions.list[1].kind, LH_ACTION_ENCODE);
    assert_int_equal(bench.actions.list[1].what.encode.first_row, 2);
    assert_int_equal(bench.actions.count, 2);
    assert_int_equal(bench.actions.in_flight_chunks, 0); /* all of round 0 has settled */
    hear_request(&bench, 1, (struct ec_run){2, 6, 2});
    step(&bench);
    assert_int_equal(mark_at(&bench, 0).round, 1);
    assert_int_equal(bench.actions.count, 1);
    bench.view.budget_chunks = 10;
    step(&bench);
    assert_int_equal(bench.actions.count, 0); /* not computed yet */
    bench.view.encoded = 5;
    step(&bench);
    assert_sends(&bench, 0, 16 + 8 + 2, 1, false);
    assert_sends(&bench, 1, 16 + 12 + 2, 1, false);
    mark = mark_at(&bench, 2);
    assert_true(mark.round == 1 && mark.flags == EC_FLAG_END && mark.mark == 2 && mark.injected == 26);
    hear_request(&bench, 1, (struct ec_run){2, 6, 2}); /* late: answered, and no more */
    step(&bench);
    assert_int_equal(bench.actions.count, 1);
    assert_int_equal(mark_at(&bench, 0).flags, EC_FLAG_END);
    hear_request(&bench, 2, (struct ec_run){2, 0, 1});
    step(&bench);
    assert_sends(&bench, 0, 2, 1, true);
    assert_int_equal(mark_at(&bench, 1).round, 2);
    assert_int_equal(bench.stats.nacks_received, 4);
    assert_int_equal(bench.stats.bad_control, 0);
    assert_int_equal(bench.stats.parity_chunks_sent, 8 + 2);
    free(bench.state);
}

static void test_a_request_before_the_end(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "k=4,m=2", CHUNKS);
    hear_request(&bench, 1, (struct ec_run){0, 0, 1});
    step(&bench);
    hear_request(&bench, 1, (struct ec_run){0, 0, 1});
    assert_int_equal(bench.stats.bad_control, 2);
    bench.view.encoded = 4;
    step(&bench);
    hear_request(&bench, 1, (struct ec_run){4, 0, 1}); /* no such group */
    hear_request(&bench, 2, (struct ec_run){0, 0, 1});
    assert_int_equal(bench.stats.bad_control, 4);
    hear_request(&bench, 1, (struct ec_run){0, 0, 1});
    assert_int_equal(bench.stats.nacks_received, 1);
    free(bench.state);
}

static void test_its_memory_does_not_grow(void **state)
{
    (void)state;
    assert_int_equal(ec_sender_bytes(1), ec_sender_bytes(1 << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encoding_follows_the_first_chunks),
        cmocka_unit_test(test_encodings_outstanding_are_bounded),
        cmocka_unit_test(test_budget_is_kept),
        cmocka_unit_test(test_in_flight),
        cmocka_unit_test(test_impossible_acks),
        cmocka_unit_test(test_the_end_is_repeated_then_probed),
        cmocka_unit_test(test_a_settled_end_is_not_repeated),
        cmocka_unit_test(test_a_request_is_answered_and_served),
        cmocka_unit_test(test_a_request_before_the_end),
        cmocka_unit_test(test_its_memory_does_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
