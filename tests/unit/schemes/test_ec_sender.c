/*
 * test_ec_sender.c -
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

#include "schemes/ec_layout.h"
#include "schemes/ec_sender.h"
#include "wire/scheme_messages.h"

/* ---- test opening ---------------------------------------------------------------------------------- */

static struct ec_layout layout_of(bool mds, const char *text, uint32_t chunks)
{
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(mds ? ec_mds_parse(text, params) : ec_xor_parse(text, params), 0);
    return ec_layout_of(params, chunks);
}

static const struct ec_ready opening_all_ready = {.extra_open = true, .encoded = UINT32_MAX};

static void assert_takes(struct ec_opening *opening, const struct ec_layout *layout,
                         const struct ec_ready *ready, uint32_t limit, uint32_t first, uint32_t count)
{
    struct ec_sending sending;
    assert_true(ec_opening_take(opening, layout, ready, limit, &sending));
    assert_int_equal(sending.first, first);
    assert_int_equal(sending.count, count);
    assert_int_equal(sending.parity, first >= layout->chunks);
    assert_false(sending.again);
}

static void assert_waits(struct ec_opening *opening, const struct ec_layout *layout,
                         const struct ec_ready *ready, uint32_t limit)
{
    struct ec_sending sending;
    assert_false(ec_opening_take(opening, layout, ready, limit, &sending));
}

/* 2 blocks of 2 groups: 16 chunks and rows of 2 places, R = 4; then 5 chunks in 2 groups. */
static void test_data_then_parity_block_by_block(void **state)
{
    (void)state;
    struct ec_layout layout = layout_of(true, "k=4,m=2,spread=2", 8 + 5);
    struct ec_opening opening;
    ec_opening_init(&opening, &layout);
    assert_takes(&opening, &layout, &opening_all_ready, 10, 0, 10);
    assert_waits(&opening, &layout, &opening_all_ready, 0);
    assert_takes(&opening, &layout, &opening_all_ready, 10, 10, 3);
    assert_takes(&opening, &layout, &opening_all_ready, 3, 13, 3);
    assert_takes(&opening, &layout, &opening_all_ready, 3, 16, 1);
    assert_false(ec_opening_done(&opening, &layout));
    assert_takes(&opening, &layout, &opening_all_ready, 99, 13 + 8,
                 4); /* behind the places for fresh rows */
    assert_true(ec_opening_done(&opening, &layout));
    assert_waits(&opening, &layout, &opening_all_ready, 99);
}

static void test_parity_waits_for_the_encoder_and_for_room(void **state)
{
    (void)state;
    struct ec_layout layout = layout_of(true, "k=4,m=2,spread=2", 16);
    struct ec_opening opening;
    ec_opening_init(&opening, &layout);
    struct ec_ready ready = {.extra_open = true};
    assert_takes(&opening, &layout, &ready, 99, 0, 16);
    assert_waits(&opening, &layout, &ready, 99);
    ready.encoded = 1;
    ready.extra_open = false;
    assert_waits(&opening, &layout, &ready, 99);
    ready.extra_open = true;
    assert_takes(&opening, &layout, &ready, 99, 16, 1); /* row 0 of the first group */
    assert_waits(&opening, &layout, &ready, 99);        /* row 0 of the second */
    ready.encoded = 2;
    assert_takes(&opening, &layout, &ready, 99, 17, 3);
    assert_waits(&opening, &layout, &ready, 99);
    ready.encoded = 3;
    assert_takes(&opening, &layout, &ready, 99, 16 + 8, 1);
    ready.encoded = 4;
    assert_takes(&opening, &layout, &ready, 99, 16 + 9, 3);
    assert_true(ec_opening_done(&opening, &layout));
}

static void test_groups_are_encoded_in_order(void **state)
{
    (void)state;
    struct ec_layout layout = layout_of(false, "k=4,m=3,spread=2", 8 + 5);
    struct ec_opening opening;
    struct ec_encoding encoding;
    static const uint32_t rows[] = {3, 3, 3, 2}; /* the last group has 2 chunks */
    ec_opening_init(&opening, &layout);
    for (uint32_t group = 0; group < 4; group++) {
        assert_true(ec_opening_encode(&opening, &layout, &encoding));
        assert_int_equal(encoding.group, group);
        assert_int_equal(encoding.first_row, 0);
        assert_int_equal(encoding.rows, rows[group]);
    }
    assert_false(ec_opening_encode(&opening, &layout, &encoding));
    /* And 5 rows of the last block go out, not 6. */
    assert_takes(&opening, &layout, &opening_all_ready, 99, 0, 13);
    assert_takes(&opening, &layout, &opening_all_ready, 99, 13, 6);
    assert_takes(&opening, &layout, &opening_all_ready, 99, 19, 5);
    assert_true(ec_opening_done(&opening, &layout));
}

static void test_one_chunk_goes_out_again(void **state)
{
    (void)state;
    static const char *const params[] = {"k=4,m=1", "k=4,m=2", "k=4,m=3"};
    static const uint32_t copies[] = {1, 2, 2};
    for (size_t i = 0; i < 3; i++) {
        struct ec_layout layout = layout_of(true, params[i], 1);
        struct ec_opening opening;
        struct ec_encoding encoding;
        struct ec_sending sending;
        ec_opening_init(&opening, &layout);
        assert_false(ec_opening_encode(&opening, &layout, &encoding));
        assert_takes(&opening, &layout, &opening_all_ready, 99, 0, 1);
        for (uint32_t copy = 0; copy < copies[i]; copy++) {
            assert_false(ec_opening_done(&opening, &layout));
            assert_true(ec_opening_take(&opening, &layout, &opening_all_ready, 99, &sending));
            assert_true(sending.first == 0 && sending.count == 1 && sending.parity && !sending.again);
        }
        assert_true(ec_opening_done(&opening, &layout));
    }
}

static void test_nothing_to_send(void **state)
{
    (void)state;
    struct ec_layout layout = layout_of(true, "", 0);
    struct ec_opening opening;
    ec_opening_init(&opening, &layout);
    assert_true(ec_opening_done(&opening, &layout));
    assert_waits(&opening, &layout, &opening_all_ready, 99);
}

static int run_opening(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_then_parity_block_by_block),
        cmocka_unit_test(test_parity_waits_for_the_encoder_and_for_room),
        cmocka_unit_test(test_groups_are_encoded_in_order),
        cmocka_unit_test(test_one_chunk_goes_out_again),
        cmocka_unit_test(test_nothing_to_send),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test repairs ---------------------------------------------------------------------------------- */

static const struct ec_ready all_ready = {.extra_open = true, .encoded = UINT32_MAX};

/* 4 groups of 4; extra chunks from 16 on, row r of group g is 16 + 4 * r + g. Rows 0 and 1 were sent, rows 2
 * and 3 are fresh. */
static struct ec_layout four_by_four(void)
{
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(ec_mds_parse("k=4,m=2", params), 0);
    return ec_layout_of(params, 16);
}

static struct ec_request request_of(uint32_t round, const struct ec_run *runs, uint8_t count)
{
    struct ec_request request = {.round = round, .parts = 1, .count = count};
    memcpy(request.runs, runs, count * sizeof(*runs));
    return request;
}

static void repairs_assert_takes(struct ec_repairs *repairs, const struct ec_layout *layout,
                                 const struct ec_ready *ready, uint32_t chunk)
{
    struct ec_sending sending;
    assert_true(ec_repairs_take(repairs, layout, ready, 9, &sending));
    assert_int_equal(sending.first, chunk);
    assert_int_equal(sending.count, 1);
    assert_int_equal(sending.parity, chunk >= layout->chunks);
    assert_int_equal(sending.again, chunk < layout->chunks);
}

static void test_data_goes_before_parity(void **state)
{
    (void)state;
    struct ec_layout layout = four_by_four();
    struct ec_repairs repairs;
    struct ec_encoding encoding;
    struct ec_sending sending;
    static const struct ec_run runs[] = {{0, 1, 2}, {0, 6, 2}, {2, 7, 1}, {3, 0, 1}};
    struct ec_request request = request_of(1, runs, 4);
    ec_repairs_init(&repairs);
    assert_true(ec_repairs_done(&repairs));
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &request, 4), EC_REQUEST_COMPLETE);
    assert_int_equal(repairs.round, 1);
    assert_true(ec_repairs_encode(&repairs, &layout, &encoding));
    assert_true(encoding.group == 0 && encoding.first_row == 2 && encoding.rows == 2);
    assert_true(ec_repairs_encode(&repairs, &layout, &encoding));
    assert_true(encoding.group == 2 && encoding.first_row == 3 && encoding.rows == 1);
    assert_false(ec_repairs_encode(&repairs, &layout, &encoding));
    assert_false(ec_repairs_take(&repairs, &layout, &all_ready, 0, &sending));
    struct ec_ready ready = {.extra_open = true, .encoded = 4};
    repairs_assert_takes(&repairs, &layout, &ready, 4); /* position 1 of group 0 */
    repairs_assert_takes(&repairs, &layout, &ready, 8);
    repairs_assert_takes(&repairs, &layout, &ready, 3);
    assert_false(ec_repairs_take(&repairs, &layout, &ready, 9, &sending)); /* not encoded yet */
    ready.encoded = 5;
    repairs_assert_takes(&repairs, &layout, &ready, 16 + 8);
    repairs_assert_takes(&repairs, &layout, &ready, 16 + 12);
    assert_false(ec_repairs_take(&repairs, &layout, &ready, 9, &sending));
    ready.encoded = 6;
    ready.extra_open = false;
    assert_false(ec_repairs_take(&repairs, &layout, &ready, 9, &sending));
    ready.extra_open = true;
    assert_false(ec_repairs_done(&repairs));
    repairs_assert_takes(&repairs, &layout, &ready, 16 + 14);
    assert_true(ec_repairs_done(&repairs));
    assert_false(ec_repairs_take(&repairs, &layout, &ready, 9, &sending));
}

static void test_neighbours_go_together(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(ec_mds_parse("k=4,m=2,spread=1", params), 0);
    struct ec_layout layout = ec_layout_of(params, 16);
    struct ec_repairs repairs;
    struct ec_sending sending;
    static const struct ec_run runs[] = {{2, 0, 4}, {2, 6, 2}};
    struct ec_request request = request_of(1, runs, 2);
    ec_repairs_init(&repairs);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &request, 0), EC_REQUEST_COMPLETE);
    assert_true(ec_repairs_take(&repairs, &layout, &all_ready, 3, &sending));
    assert_true(sending.first == 8 && sending.count == 3);
    assert_true(ec_repairs_take(&repairs, &layout, &all_ready, 3, &sending));
    assert_true(sending.first == 11 && sending.count == 1);
    assert_true(ec_repairs_take(&repairs, &layout, &all_ready, 3, &sending));
    assert_true(sending.first == 16 + 2 * 4 + 2 && sending.count == 2);
    assert_true(ec_repairs_done(&repairs));
}

static void test_only_the_next_round_is_taken(void **state)
{
    (void)state;
    struct ec_layout layout = four_by_four();
    struct ec_repairs repairs;
    static const struct ec_run runs[] = {{0, 0, 1}};
    struct ec_request first = request_of(1, runs, 1);
    struct ec_request second = request_of(2, runs, 1);
    struct ec_request third = request_of(3, runs, 1);
    ec_repairs_init(&repairs);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &second, 0), EC_REQUEST_BAD);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &first, 0), EC_REQUEST_COMPLETE);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &first, 0), EC_REQUEST_AGAIN);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &second, 0), EC_REQUEST_BAD); /* too early */
    repairs_assert_takes(&repairs, &layout, &all_ready, 0);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &first, 0), EC_REQUEST_AGAIN);
    assert_true(ec_repairs_done(&repairs)); /* nothing is sent twice for it */
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &third, 0), EC_REQUEST_BAD);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &second, 0), EC_REQUEST_COMPLETE);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &first, 0), EC_REQUEST_OLD);
}

static void test_what_does_not_fit_the_layout_is_refused(void **state)
{
    (void)state;
    static const struct {
        struct ec_run run;
        enum ec_request_result expected;
    } cases[] = {
        {{4, 0, 1}, EC_REQUEST_BAD}, /* no such group */
        {{UINT32_MAX, 0, 1}, EC_REQUEST_BAD}, {{3, 0, 4}, EC_REQUEST_COMPLETE},
        {{3, 0, 5}, EC_REQUEST_BAD}, /* data and parity in one */
        {{3, 4, 1}, EC_REQUEST_BAD}, /* a row that was sent */
        {{3, 5, 2}, EC_REQUEST_BAD},          {{3, 6, 2}, EC_REQUEST_COMPLETE},
        {{3, 6, 3}, EC_REQUEST_BAD}, /* past the rows */
        {{3, 254, 1}, EC_REQUEST_BAD},
    };
    struct ec_layout layout = four_by_four();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct ec_repairs repairs;
        struct ec_request request = request_of(1, &cases[i].run, 1);
        ec_repairs_init(&repairs);
        assert_int_equal(ec_repairs_on_request(&repairs, &layout, &request, 0), cases[i].expected);
        assert_int_equal(ec_repairs_done(&repairs), cases[i].expected == EC_REQUEST_BAD);
    }
}

static void test_xor_has_no_fresh_rows(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(ec_xor_parse("k=4,m=2", params), 0);
    struct ec_layout layout = ec_layout_of(params, 16);
    static const struct ec_run runs[] = {{0, 6, 1}};
    struct ec_request request = request_of(1, runs, 1);
    struct ec_repairs repairs;
    ec_repairs_init(&repairs);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &request, 0), EC_REQUEST_BAD);
}

/* Parts in any order, doubled; and those of another request do not mix in. */
static void test_parts(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(ec_mds_parse("k=4,m=2", params), 0);
    struct ec_layout layout = ec_layout_of(params, 4 * 400);
    static struct ec_request full, last;
    full = (struct ec_request){.round = 1, .part = 0, .parts = 2, .count = EC_RUNS_MAX};
    for (uint32_t i = 0; i < EC_RUNS_MAX; i++)
        full.runs[i] = (struct ec_run){i, 0, 1};
    last = (struct ec_request){.round = 1, .part = 1, .parts = 2, .count = 1, .runs = {{300, 2, 1}}};
    struct ec_request alone = request_of(1, last.runs, 1);
    static struct ec_repairs repairs;
    ec_repairs_init(&repairs);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &last, 0), EC_REQUEST_PART);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &last, 0), EC_REQUEST_PART);
    assert_true(ec_repairs_done(&repairs));
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &full, 0), EC_REQUEST_COMPLETE);
    assert_int_equal(repairs.chunks_left, EC_RUNS_MAX + 1);

    ec_repairs_init(&repairs);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &full, 0), EC_REQUEST_PART);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &alone, 0), EC_REQUEST_COMPLETE);
    assert_int_equal(repairs.chunks_left, 1);

    static struct ec_request middle;
    middle = full;
    middle.part = 1;
    middle.parts = 3;
    for (uint32_t i = 0; i < EC_RUNS_MAX; i++)
        middle.runs[i].group += 150;
    struct ec_request third = last;
    third.part = 2;
    third.parts = 3;
    ec_repairs_init(&repairs);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &full, 0), EC_REQUEST_PART);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &middle, 0), EC_REQUEST_PART);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &third, 0), EC_REQUEST_PART);
    full.parts = 3;
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &full, 0), EC_REQUEST_COMPLETE);
    assert_int_equal(repairs.chunks_left, 2 * EC_RUNS_MAX + 1);
    full.parts = 2;

    last.runs[0].group = 5; /* before the end of the first part */
    ec_repairs_init(&repairs);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &full, 0), EC_REQUEST_PART);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &last, 0), EC_REQUEST_BAD);
    assert_int_equal(ec_repairs_on_request(&repairs, &layout, &alone, 0), EC_REQUEST_COMPLETE);
}

static int run_repairs(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_goes_before_parity),
        cmocka_unit_test(test_neighbours_go_together),
        cmocka_unit_test(test_only_the_next_round_is_taken),
        cmocka_unit_test(test_what_does_not_fit_the_layout_is_refused),
        cmocka_unit_test(test_xor_has_no_fresh_rows),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test sender ----------------------------------------------------------------------------------- */

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

static int run_sender(void)
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

int main(void)
{
    return run_opening() + run_repairs() + run_sender();
}
