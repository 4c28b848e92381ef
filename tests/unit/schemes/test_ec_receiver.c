/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/receiver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemes/ec/params.h"
#include "wire/erasure_coding.h"

#define RTT    ((lh_time)8000)
#define WINDOW ((lh_time)1000)
#define ROOM   40u
#define CHUNKS 16u /* 4 groups of 4, chunk c is of group c % 4; row r of group g is extra chunk 4 * r + g */

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
    memset(bench, 0, sizeof(*bench));
    struct lh_transfer transfer = {.chunks = ROOM, .chunk_bytes = 4096, .stats = &bench->stats};
    assert_int_equal(ec_mds_parse(params, transfer.params), 0);
    bench->state = malloc(ec_receiver_bytes(ROOM));
    memset(bench->state, 0xA5, ec_receiver_bytes(ROOM));
    bench->view = (struct lh_receiver_view){
        .now = 100000,
        .path = {.rtt_ns = RTT, .overdue_ns = RTT + RTT / 8, .reorder_window_ns = WINDOW},
        .chunk_bitmap = bench->chunks,
        .extra_bitmap = bench->extra,
        .last_arrival_ns = LH_TIME_NEVER,
        .later_seen_ns = LH_TIME_NEVER,
        .chunks = ROOM,
    };
    ec_receiver_start(bench->state, &transfer, bench->view.now);
}

static void know_length(struct bench *bench)
{
    bench->view.length_known = true;
    bench->view.chunks = CHUNKS;
}

/* Chunks first … end - 1; from CHUNKS on they are extra. */
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
    memset(&bench->actions, 0xA5, sizeof(bench->actions));
    bench->actions.count = 0;
    ec_receiver_step(bench->state, &bench->view, &bench->actions);
}

static void hear(struct bench *bench, uint32_t mark, uint32_t round, uint8_t flags, uint32_t injected)
{
    uint8_t bytes[EC_MARK_BYTES];
    struct ec_mark heard = {flags, mark, round, injected};
    ec_receiver_on_message(bench->state, bytes, ec_mark_encode(&heard, bytes), &bench->view);
}

static struct ec_ack ack_at(const struct bench *bench, uint32_t index)
{
    struct ec_ack ack;
    const struct lh_action *action = &bench->actions.list[index];
    assert_true(index < bench->actions.count);
    assert_int_equal(ec_ack_decode(action->what.message.data, action->what.message.bytes, &ack), 0);
    return ack;
}

static struct ec_request request_at(const struct bench *bench, uint32_t index)
{
    struct ec_request request;
    const struct lh_action *action = &bench->actions.list[index];
    assert_true(index < bench->actions.count);
    assert_int_equal(ec_request_decode(action->what.message.data, action->what.message.bytes, &request), 0);
    return request;
}

static bool completes(const struct bench *bench)
{
    return bench->actions.count == 1 && bench->actions.list[0].kind == LH_ACTION_COMPLETE;
}

static void test_complete_once_all_can_be_decoded(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "k=4,m=2");
    arrive(&bench, 2, CHUNKS); /* chunks 0 and 1 are missing */
    arrive(&bench, CHUNKS + 2, CHUNKS + 8);
    step(&bench);
    assert_false(completes(&bench)); /* how long the message is nobody has said */
    bench.extra[4] = bench.extra[5] = 0;
    bench.view.extra_arrived -= 2;
    know_length(&bench);
    step(&bench);
    assert_false(completes(&bench)); /* 18 are there, and yet groups 0 and 1 lack one */
    arrive(&bench, CHUNKS, CHUNKS + 1);
    step(&bench);
    assert_false(completes(&bench));
    arrive(&bench, CHUNKS + 5, CHUNKS + 6);
    step(&bench);
    assert_true(completes(&bench));
    assert_int_equal(bench.actions.next_ns, LH_TIME_NEVER);
    step(&bench);
    assert_int_equal(bench.actions.count, 0);
    free(bench.state);
}

static void test_complete_without_parity(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "k=4,m=2");
    bench.view.extra_bitmap = NULL;
    know_length(&bench);
    arrive(&bench, 0, CHUNKS - 1);
    step(&bench);
    assert_false(completes(&bench));
    arrive(&bench, CHUNKS - 1, CHUNKS);
    step(&bench);
    assert_true(completes(&bench));
    free(bench.state);
}

static void test_a_peer_that_sends_more_than_it_says(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "k=4,m=2");
    know_length(&bench);
    memset(bench.chunks + CHUNKS, 1, ROOM - CHUNKS);
    bench.view.chunks_arrived = ROOM - CHUNKS;
    step(&bench);
    assert_false(completes(&bench));
    free(bench.state);
}

static void test_a_probe_is_answered_at_once(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "k=4,m=2");
    know_length(&bench);
    arrive(&bench, 0, 5);
    step(&bench);
    assert_int_equal(bench.actions.count, 0);
    hear(&bench, 1, 0, EC_FLAG_PROBE, 6);
    step(&bench);
    struct ec_ack ack = ack_at(&bench, 0);
    assert_true(ack.mark == 0 && ack.injected == 0 && ack.arrived == 5); /* the MARK has not settled */
    assert_int_equal(bench.actions.count, 1);
    assert_int_equal(bench.stats.acks_sent, 1);
    free(bench.state);
}

static void test_a_settled_mark_shows_a_loss(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "k=4,m=2");
    know_length(&bench);
    arrive(&bench, 0, 5);
    hear(&bench, 1, 0, 0, 6);
    step(&bench);
    assert_int_equal(bench.actions.next_ns, bench.view.now + WINDOW);
    bench.view.now += WINDOW - 1;
    step(&bench);
    assert_int_equal(bench.actions.count, 0);
    bench.view.now++;
    bench.view.caught_up_ns = bench.view.now - 1; /* something may still wait on the host */
    step(&bench);
    assert_int_equal(bench.actions.count, 0);
    assert_true(bench.actions.next_ns > bench.view.now && bench.actions.next_ns < bench.view.now + WINDOW);
    bench.view.caught_up_ns = bench.view.now;
    step(&bench);
    struct ec_ack ack = ack_at(&bench, 0);
    assert_true(ack.mark == 1 && ack.injected == 6 && ack.arrived == 5);
    step(&bench);
    assert_int_equal(bench.actions.count, 0);
    free(bench.state);
}

/* Group 0 lacks two data chunks and a row: one too many. */
static void setup_failed(struct bench *bench)
{
    setup(bench, "k=4,m=2");
    know_length(bench);
    arrive(bench, 1, 4);
    arrive(bench, 5, CHUNKS);
    arrive(bench, CHUNKS + 1, CHUNKS + 8);
    hear(bench, 1, 0, EC_FLAG_END, 24);
}

static void test_what_fails_is_asked_for_after_beta(void **state)
{
    (void)state;
    struct bench bench;
    setup_failed(&bench);
    lh_time end = bench.view.now;
    bench.view.now = end + WINDOW;
    step(&bench); /* the loss shows */
    assert_int_equal(ack_at(&bench, 0).arrived, 21);
    bench.view.now = end + RTT / 2 - 1;
    step(&bench);
    assert_int_equal(bench.actions.count, 0);
    assert_int_equal(bench.actions.next_ns, end + RTT / 2);
    bench.view.now = end + RTT / 2;
    bench.view.caught_up_ns = bench.view.now - 1;
    step(&bench);
    assert_int_equal(bench.actions.count, 0);
    bench.view.caught_up_ns = 0;
    step(&bench);
    struct ec_request request = request_at(&bench, 0);
    assert_true(request.round == 1 && request.parts == 1);
    /* One and a margin, for a loss of 3 in 24; of which two rows are fresh. */
    assert_int_equal(request.runs[request.count - 1].group, 0);
    assert_int_equal(request.runs[request.count - 1].first, 6);
    assert_int_equal(request.runs[request.count - 1].count, 2);
    assert_int_equal(bench.stats.fallbacks, 1);
    assert_int_equal(bench.stats.submessages_failed, 1);
    assert_int_equal(bench.stats.nacks_sent, 1);
    /* Unheard, it is repeated. */
    assert_int_equal(bench.actions.next_ns, bench.view.now + WINDOW);
    bench.view.now += WINDOW;
    step(&bench);
    assert_int_equal(request_at(&bench, 0).round, 1);
    assert_int_equal(bench.stats.nacks_sent, 2);
    assert_int_equal(bench.stats.fallbacks, 1);
    free(bench.state);
}

static void test_late_arrivals_make_it_wait(void **state)
{
    (void)state;
    struct bench bench;
    setup_failed(&bench);
    lh_time end = bench.view.now;
    bench.view.now = end + RTT / 2 - 1;
    bench.view.last_arrival_ns = bench.view.now;
    step(&bench);
    bench.view.now = end + RTT / 2 - 1 + WINDOW - 1;
    step(&bench);
    assert_int_equal(bench.stats.nacks_sent, 0);
    bench.view.now++;
    step(&bench);
    assert_int_equal(bench.stats.nacks_sent, 1);
    free(bench.state);
}

static void test_what_was_asked_for_completes(void **state)
{
    (void)state;
    struct bench bench;
    setup_failed(&bench);
    bench.view.now += RTT / 2;
    step(&bench);
    assert_int_equal(request_at(&bench, 0).round, 1);
    arrive(&bench, CHUNKS + 8, CHUNKS + 9); /* row 2 of group 0 */
    step(&bench);
    assert_true(completes(&bench));
    free(bench.state);
}

static void test_a_lost_repair_is_asked_for_again(void **state)
{
    (void)state;
    struct bench bench;
    setup_failed(&bench);
    bench.view.now += RTT / 2;
    step(&bench);
    bench.view.now += RTT;
    hear(&bench, 2, 1, EC_FLAG_END, 26);
    step(&bench);
    assert_int_equal(bench.stats.nacks_sent, 1);
    bench.view.now += WINDOW - 1;
    step(&bench);
    assert_int_equal(bench.stats.nacks_sent, 1);
    bench.view.now++;
    step(&bench);
    struct ec_request request = request_at(&bench, 0);
    assert_int_equal(request.round, 2);
    assert_int_equal(request.runs[0].first, 0); /* the fresh rows are used up: data */
    assert_int_equal(bench.stats.fallbacks, 1);
    assert_int_equal(bench.stats.submessages_failed, 1);
    free(bench.state);
}

static void test_bad_messages(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "k=4,m=2");
    know_length(&bench);
    hear(&bench, 1, 1, EC_FLAG_END | EC_FLAG_PROBE, 24); /* of a round that was not asked for */
    ec_receiver_on_message(bench.state, (const uint8_t *)"x", 1, &bench.view);
    ec_receiver_on_message(bench.state, (const uint8_t *)"", 0, &bench.view);
    assert_int_equal(bench.stats.bad_control, 3);
    bench.view.now += 100 * RTT;
    step(&bench);
    assert_int_equal(bench.actions.count, 0);
    free(bench.state);
}

static void test_acks_keep_the_window_open(void **state)
{
    (void)state;
    struct bench bench;
    setup(&bench, "k=4,m=2");
    know_length(&bench);
    arrive(&bench, 1, 3);
    step(&bench);
    assert_int_equal(bench.actions.count, 0);
    assert_int_equal(bench.actions.next_ns, bench.view.now + RTT / 4);
    bench.view.now += RTT / 4;
    step(&bench);
    assert_int_equal(ack_at(&bench, 0).arrived, 2);
    arrive(&bench, 3, 4);
    for (uint32_t first = 5; first < 24; first += 4) /* all but those of group 0 */
        arrive(&bench, first, first + 3);
    assert_int_equal(bench.view.chunks_arrived + bench.view.extra_arrived, 18);
    step(&bench);
    assert_int_equal(ack_at(&bench, 0).arrived, 18); /* 16 more */
    free(bench.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_complete_once_all_can_be_decoded),
        cmocka_unit_test(test_complete_without_parity),
        cmocka_unit_test(test_a_peer_that_sends_more_than_it_says),
        cmocka_unit_test(test_a_probe_is_answered_at_once),
        cmocka_unit_test(test_a_settled_mark_shows_a_loss),
        cmocka_unit_test(test_what_fails_is_asked_for_after_beta),
        cmocka_unit_test(test_late_arrivals_make_it_wait),
        cmocka_unit_test(test_what_was_asked_for_completes),
        cmocka_unit_test(test_a_lost_repair_is_asked_for_again),
        cmocka_unit_test(test_bad_messages),
        cmocka_unit_test(test_acks_keep_the_window_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
