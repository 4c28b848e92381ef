/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/sender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemes/bounded/params.h"
#include "wire/bounded_completion.h"

#define RTT     ((lh_time)8000)
#define OVERDUE ((lh_time)9000)
#define WINDOW  ((lh_time)2000)
#define CHUNKS  16u

struct bench {
    void *state;
    struct lh_stats stats;
    struct lh_sender_view view;
    struct lh_actions actions;
    uint32_t ends;
};

static void setup(struct bench *bench, const char *params)
{
    memset(bench, 0, sizeof *bench);
    struct lh_transfer transfer = {.chunks = CHUNKS, .chunk_bytes = 4096, .stats = &bench->stats};
    assert_int_equal(bounded_parse(params, transfer.params), 0);
    bench->state = malloc(bounded_sender_bytes(CHUNKS));
    memset(bench->state, 0xA5, bounded_sender_bytes(CHUNKS));
    bench->view =
        (struct lh_sender_view){.now = 100000,
                                .path = {.rtt_ns = RTT, .overdue_ns = OVERDUE, .reorder_window_ns = WINDOW},
                                .extra_open = true};
    bounded_sender_start(bench->state, &transfer, bench->view.now);
}

/* Returns the number of chunks that it injects, each of which is new. */
static uint32_t step(struct bench *bench, uint32_t budget, bool *sent)
{
    uint32_t chunks = 0;
    bench->actions.count = 0;
    bench->view.budget_chunks = budget;
    bounded_sender_step(bench->state, &bench->view, &bench->actions);
    *sent = false;
    for (uint32_t i = 0; i < bench->actions.count; i++) {
        const struct lh_action *action = &bench->actions.list[i];
        struct bounded_message end;
        assert_false(action->kind == LH_ACTION_SEND_CHUNKS && action->what.chunks.again);
        chunks += action->kind == LH_ACTION_SEND_CHUNKS ? action->what.chunks.count : 0;
        *sent |= action->kind == LH_ACTION_SENT;
        if (action->kind != LH_ACTION_SEND_MESSAGE)
            continue;
        assert_int_equal(
            bounded_message_decode(action->what.message.data, action->what.message.bytes, &end), 0);
        assert_int_equal(end.kind, BOUNDED_END);
        bench->ends++;
    }
    assert_true(bench->actions.next_ns > bench->view.now);
    return chunks;
}

static void acknowledge(struct bench *bench, uint32_t place)
{
    uint8_t bytes[BOUNDED_MESSAGE_BYTES];
    const struct bounded_message ack = {BOUNDED_ACK, place};
    bounded_sender_on_message(bench->state, bytes, bounded_message_encode(&ack, bytes), &bench->view);
}

static void test_each_chunk_once_and_then_end(void **state)
{
    (void)state;
    struct bench bench;
    bool sent;
    setup(&bench, "deadline=1s");
    assert_int_equal(step(&bench, 10, &sent), 10);
    assert_true(!sent && bench.ends == 0 && bench.actions.in_flight_chunks == 10);
    assert_int_equal(step(&bench, 10, &sent), 6);
    assert_true(sent && bench.ends == 1);
    /* END is repeated, nothing else. */
    for (uint32_t i = 0; i < 6; i++) {
        bench.view.now = bench.actions.next_ns;
        assert_int_equal(step(&bench, 10, &sent), 0);
        assert_false(sent);
    }
    assert_in_range(bench.ends, 3, 7);
    assert_true(bench.stats.probes_sent > 0);
    free(bench.state);
}

/* A few close together, then evenly, then ever more seldom. */
static void test_ends_are_close_at_first(void **state)
{
    (void)state;
    struct bench bench;
    bool sent;
    setup(&bench, "deadline=1s");
    bench.view.path.rtt_ns = 8 * LH_NS_PER_MS;
    bench.view.path.overdue_ns = 9 * LH_NS_PER_MS;
    step(&bench, CHUNKS, &sent);
    assert_int_equal(bench.ends, 1);
    for (uint32_t ends = 1; ends < 70; ends++) {
        lh_time even_ns = bench.view.path.overdue_ns / (ends <= 4 ? 128 : 8);
        lh_time wait_ns = ends <= 65 ? even_ns : even_ns << (ends - 65);
        bench.view.now += wait_ns - 1;
        step(&bench, 0, &sent);
        assert_int_equal(bench.ends, ends);
        bench.view.now++;
        step(&bench, 0, &sent);
        assert_int_equal(bench.ends, ends + 1);
    }
    free(bench.state);
}

static void test_in_flight(void **state)
{
    (void)state;
    struct bench bench;
    bool sent;
    setup(&bench, "deadline=1s");
    step(&bench, 10, &sent);
    acknowledge(&bench, 11); /* was not sent */
    assert_int_equal(bench.stats.bad_control, 1);
    acknowledge(&bench, 4);
    acknowledge(&bench, 2);
    step(&bench, 0, &sent);
    assert_int_equal(bench.actions.in_flight_chunks, 6);
    /* Nothing comes back any more: what was sent an overdue round trip ago has passed, or is lost. */
    bench.view.now += OVERDUE;
    step(&bench, 0, &sent);
    bench.view.now += OVERDUE;
    step(&bench, 0, &sent);
    assert_int_equal(bench.actions.in_flight_chunks, 0);
    assert_int_equal(bench.stats.acks_received, 2);
    free(bench.state);
}

/* The receiver takes nothing after that. With auto only it knows when. */
static void test_gives_up_behind_the_deadline(void **state)
{
    (void)state;
    struct bench bench;
    bool sent;
    setup(&bench, "deadline=1ms");
    step(&bench, 4, &sent);
    bench.view.now += LH_NS_PER_MS + OVERDUE - 1;
    assert_int_equal(step(&bench, 1, &sent), 1);
    bench.view.now++;
    assert_int_equal(step(&bench, 10, &sent), 0);
    assert_true(sent && bench.ends == 1);
    free(bench.state);
    setup(&bench, "deadline=auto");
    step(&bench, 4, &sent);
    bench.view.now += 3600 * LH_NS_PER_S;
    assert_int_equal(step(&bench, 10, &sent), 10);
    free(bench.state);
}

/* What was injected is all that leaves, and END says so. */
static void test_withdrawn(void **state)
{
    (void)state;
    struct bench bench;
    bool sent;
    setup(&bench, "deadline=none");
    assert_int_equal(step(&bench, 4, &sent), 4);
    assert_false(sent);
    bench.view.withdrawn = true;
    assert_int_equal(step(&bench, 10, &sent), 0);
    assert_true(sent && bench.ends == 1);
    bench.view.now += RTT;
    assert_int_equal(step(&bench, 10, &sent), 0);
    assert_false(sent);
    free(bench.state);
}

static void test_parity_follows(void **state)
{
    (void)state;
    struct bench bench;
    bool sent;
    uint32_t chunks = 0;
    setup(&bench, "deadline=1s,code=mds,k=4,m=2");
    for (uint32_t i = 0; i < 8; i++) {
        chunks += step(&bench, 100, &sent);
        for (uint32_t a = 0; a < bench.actions.count; a++)
            bench.view.encoded += bench.actions.list[a].kind == LH_ACTION_ENCODE;
        assert_int_equal(sent, chunks == CHUNKS + 8);
        if (sent)
            break;
    }
    assert_int_equal(chunks, CHUNKS + 8);
    assert_int_equal(bench.stats.parity_chunks_sent, 8);
    free(bench.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_chunk_once_and_then_end),
        cmocka_unit_test(test_ends_are_close_at_first),
        cmocka_unit_test(test_in_flight),
        cmocka_unit_test(test_gives_up_behind_the_deadline),
        cmocka_unit_test(test_withdrawn),
        cmocka_unit_test(test_parity_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
