/*
 * test_bounded_machines.c -
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

#include <longhaul/error.h>

#include "schemes/bounded_scheme.h"
#include "schemes/ec_layout.h"
#include "wire/scheme_messages.h"

/* ---- test coding ----------------------------------------------------------------------------------- */

#define CHUNKS 20u /* 5 groups of 4: chunk c is of group c % 5 */
#define BYTES  64u

static void params_of(const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    assert_int_equal(bounded_parse(text, params), 0);
}

static void test_without_a_code(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS], recovered[CHUNKS], chunks[CHUNKS] = {0};
    params_of("deadline=1s", params);
    assert_int_equal(bounded_coding.transfer_chunks_max(params, 1), 1);
    assert_int_equal(bounded_coding.transfer_chunks_max(params, 1000), 1000);
    assert_int_equal(bounded_coding.extra_chunks(params, 1000), 0);
    assert_int_equal(bounded_coding.groups(params, 1000), 0);
    memset(recovered, 1, sizeof recovered);
    assert_int_equal(bounded_coding.recoverable(params, CHUNKS, chunks, NULL, recovered), 0);
    assert_memory_equal(recovered, chunks, sizeof chunks);
    struct bounded_params read = bounded_params_of(params);
    struct ec_layout layout = bounded_layout_of(&read, CHUNKS);
    assert_int_equal(bounded_layout_end(&layout), CHUNKS);
}

/* Group 0 lacks three of its chunks, group 1 two: it has two of parity. */
static void test_recovers_what_it_can(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS], chunks[CHUNKS], recovered[CHUNKS], message[CHUNKS * BYTES],
        wanted[CHUNKS * BYTES];
    uint8_t extra[256 * BYTES], extra_bitmap[256] = {0};
    params_of("deadline=1s,code=mds,k=4,m=2", params);
    uint32_t extras = bounded_coding.extra_chunks(params, CHUNKS);
    assert_in_range(extras, 10, 256);
    for (size_t i = 0; i < sizeof message; i++)
        wanted[i] = message[i] = (uint8_t)(i * 31 + i / 7);
    struct lh_coding coding = {.chunks = CHUNKS,
                               .chunk_bytes = BYTES,
                               .bytes = sizeof message,
                               .message = message,
                               .room = message,
                               .extra = extra};
    memcpy(coding.params, params, sizeof params);
    for (uint32_t g = 0; g < bounded_coding.groups(params, CHUNKS); g++)
        bounded_coding.encode(&coding, g, 0, 2);
    memset(chunks, 1, sizeof chunks);
    memset(extra_bitmap, 1, 10);
    static const uint8_t lost[] = {0, 5, 15, 1, 16};
    for (size_t i = 0; i < sizeof lost; i++) {
        chunks[lost[i]] = 0;
        memset(message + lost[i] * BYTES, 0xee, BYTES);
    }
    assert_int_equal(bounded_coding.recoverable(params, CHUNKS, chunks, extra_bitmap, recovered), 2);
    for (uint32_t c = 0; c < CHUNKS; c++)
        assert_int_equal(recovered[c], c == 1 || c == 16);
    uint32_t count = 0;
    for (uint32_t g = 0; g < 5; g++)
        count += bounded_coding.decode(&coding, g, chunks, extra_bitmap);
    assert_int_equal(count, 2);
    for (uint32_t c = 0; c < CHUNKS; c++) {
        bool missing = c == 0 || c == 5 || c == 15;
        assert_int_equal(memcmp(message + c * BYTES, wanted + c * BYTES, BYTES) == 0, !missing);
        assert_true(!missing || message[c * BYTES] == 0xee);
    }
    struct bounded_params read = bounded_params_of(params);
    struct ec_layout layout = bounded_layout_of(&read, CHUNKS);
    assert_int_equal(bounded_layout_end(&layout), CHUNKS + 10);
}

static int run_coding(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_code),
        cmocka_unit_test(test_recovers_what_it_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test params ----------------------------------------------------------------------------------- */

static void test_texts(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(bounded_parse("", params), 0);
    assert_true(bounded_params_valid(params));
    assert_int_equal(bounded_deadline(params), LH_DEADLINE_AUTO);
    assert_false(bounded_params_of(params).codes);
    assert_int_equal(bounded_parse("code=mds,deadline=20ms,m=2,k=32", params), 0);
    assert_true(bounded_params_valid(params));
    struct bounded_params read = bounded_params_of(params);
    assert_int_equal(read.deadline_ns, 20 * LH_NS_PER_MS);
    struct ec_params code = ec_params_of(read.code);
    assert_true(read.codes && code.kind == EC_MDS && code.k == 32 && code.m == 2 && code.spread == 0);
    assert_int_equal(bounded_parse("deadline=none", params), 0);
    assert_true(bounded_params_valid(params));
    assert_true(bounded_deadline(params) == LH_DEADLINE_NONE);
    assert_int_equal(bounded_parse("code=xor", params), 0);
    code = ec_params_of(bounded_params_of(params).code);
    assert_true(code.kind == EC_XOR && code.k == EC_K_DEFAULT && code.m == EC_M_DEFAULT);
}

static void test_bad_texts(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "deadline=0",
        "deadline=",
        "deadline=3",
        "deadline=61min",
        "deadline=999ns",
        "deadline=1s,deadline=1s",
        "code=",
        "code=mds,code=mds",
        "k=2",
        "m=2",
        "code=mds,k=200,m=200",
        "code=xor,k=2,m=3",
        "code=mds,k=2,k=2",
        "beta=1",
        "deadline=1s,",
        ",deadline=1s",
        "deadline",
        "code=mds,k=0",
        "code=mds,k=111111111111111111111111111111111111111111111111111111111111111111"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t params[LH_SCHEME_PARAMS];
        if (bounded_parse(bad[i], params) >= 0)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_true(lh_last_error()[0] != '\0');
    }
}

/* Of a hostile peer: every byte counts. */
static void test_bad_bytes(void **state)
{
    (void)state;
    uint8_t good[LH_SCHEME_PARAMS];
    assert_int_equal(bounded_parse("deadline=20ms,code=mds,k=32,m=2", good), 0);
    static const struct {
        size_t at;
        uint8_t value;
    } bad[] = {{0, 0xff}, {4, 3}, {4, 0}, {5, 0}, {6, 0}, {5, 254}, {7, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t params[LH_SCHEME_PARAMS];
        memcpy(params, good, sizeof params);
        params[bad[i].at] = bad[i].value;
        assert_false(bounded_params_valid(params));
    }
}

static int run_params(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_bad_texts),
        cmocka_unit_test(test_bad_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test receiver --------------------------------------------------------------------------------- */

#define RTT    ((lh_time)8000)
#define WINDOW ((lh_time)1000)
#define ROOM   40u
#define RECEIVER_CHUNKS                                                                                    \
    16u /* with a code 4 groups of 4; parity row r of group g is extra chunk 4 * r + g */

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
    bench->view.chunks = RECEIVER_CHUNKS;
}

static void arrive(struct bench *bench, uint32_t first, uint32_t end)
{
    for (uint32_t chunk = first; chunk < end; chunk++) {
        uint8_t *bit =
            chunk < RECEIVER_CHUNKS ? &bench->chunks[chunk] : &bench->extra[chunk - RECEIVER_CHUNKS];
        *(chunk < RECEIVER_CHUNKS ? &bench->view.chunks_arrived : &bench->view.extra_arrived) += *bit == 0;
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
    arrive(&bench, 0, RECEIVER_CHUNKS);
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
    arrive(&bench, 2, RECEIVER_CHUNKS - 1);
    step(&bench);
    step_at(&bench, start + 100 * RTT);
    assert_false(does(&bench, LH_ACTION_FINISH)); /* its deadline is the connection's */
    start = bench.view.now;
    arrive(&bench, RECEIVER_CHUNKS - 1, RECEIVER_CHUNKS);
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
    hear(&bench, BOUNDED_END, RECEIVER_CHUNKS);
    step_at(&bench, start + 2 * WINDOW);
    assert_false(does(&bench, LH_ACTION_FINISH)); /* of what length? */
    hear(&bench, BOUNDED_END, RECEIVER_CHUNKS);
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
    hear(&bench, BOUNDED_END, RECEIVER_CHUNKS);
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
    arrive(&bench, 2, RECEIVER_CHUNKS);
    step_at(&bench, bench.view.now + 100 * RTT); /* parity follows */
    assert_false(does(&bench, LH_ACTION_FINISH));
    arrive(&bench, RECEIVER_CHUNKS, RECEIVER_CHUNKS + 2); /* groups 0 and 1 */
    step(&bench);
    assert_true(does(&bench, LH_ACTION_COMPLETE));
    free(bench.state);
    setup(&bench, "deadline=1s,code=mds,k=4,m=2");
    know_length(&bench);
    arrive(&bench, 2, RECEIVER_CHUNKS);
    arrive(&bench, RECEIVER_CHUNKS + 7, RECEIVER_CHUNKS + 8); /* the last of all */
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

static int run_receiver(void)
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

/* ---- test sender ----------------------------------------------------------------------------------- */

#define OVERDUE       ((lh_time)9000)
#define SENDER_WINDOW ((lh_time)2000)
#define SENDER_CHUNKS 16u

struct sender_bench {
    void *state;
    struct lh_stats stats;
    struct lh_sender_view view;
    struct lh_actions actions;
    uint32_t ends;
};

static void sender_setup(struct sender_bench *sender_bench, const char *params)
{
    memset(sender_bench, 0, sizeof *sender_bench);
    struct lh_transfer transfer = {
        .chunks = SENDER_CHUNKS, .chunk_bytes = 4096, .stats = &sender_bench->stats};
    assert_int_equal(bounded_parse(params, transfer.params), 0);
    sender_bench->state = malloc(bounded_sender_bytes(SENDER_CHUNKS));
    memset(sender_bench->state, 0xA5, bounded_sender_bytes(SENDER_CHUNKS));
    sender_bench->view = (struct lh_sender_view){
        .now = 100000,
        .path = {.rtt_ns = RTT, .overdue_ns = OVERDUE, .reorder_window_ns = SENDER_WINDOW},
        .extra_open = true};
    bounded_sender_start(sender_bench->state, &transfer, sender_bench->view.now);
}

/* Returns the number of chunks that it injects, each of which is new. */
static uint32_t test_sender_step(struct sender_bench *sender_bench, uint32_t budget, bool *sent)
{
    uint32_t chunks = 0;
    sender_bench->actions.count = 0;
    sender_bench->view.budget_chunks = budget;
    bounded_sender_step(sender_bench->state, &sender_bench->view, &sender_bench->actions);
    *sent = false;
    for (uint32_t i = 0; i < sender_bench->actions.count; i++) {
        const struct lh_action *action = &sender_bench->actions.list[i];
        struct bounded_message end;
        assert_false(action->kind == LH_ACTION_SEND_CHUNKS && action->what.chunks.again);
        chunks += action->kind == LH_ACTION_SEND_CHUNKS ? action->what.chunks.count : 0;
        *sent |= action->kind == LH_ACTION_SENT;
        if (action->kind != LH_ACTION_SEND_MESSAGE)
            continue;
        assert_int_equal(
            bounded_message_decode(action->what.message.data, action->what.message.bytes, &end), 0);
        assert_int_equal(end.kind, BOUNDED_END);
        sender_bench->ends++;
    }
    assert_true(sender_bench->actions.next_ns > sender_bench->view.now);
    return chunks;
}

static void acknowledge(struct sender_bench *sender_bench, uint32_t place)
{
    uint8_t bytes[BOUNDED_MESSAGE_BYTES];
    const struct bounded_message ack = {BOUNDED_ACK, place};
    bounded_sender_on_message(sender_bench->state, bytes, bounded_message_encode(&ack, bytes),
                              &sender_bench->view);
}

static void test_each_chunk_once_and_then_end(void **state)
{
    (void)state;
    struct sender_bench sender_bench;
    bool sent;
    sender_setup(&sender_bench, "deadline=1s");
    assert_int_equal(test_sender_step(&sender_bench, 10, &sent), 10);
    assert_true(!sent && sender_bench.ends == 0 && sender_bench.actions.in_flight_chunks == 10);
    assert_int_equal(test_sender_step(&sender_bench, 10, &sent), 6);
    assert_true(sent && sender_bench.ends == 1);
    /* END is repeated, nothing else. */
    for (uint32_t i = 0; i < 6; i++) {
        sender_bench.view.now = sender_bench.actions.next_ns;
        assert_int_equal(test_sender_step(&sender_bench, 10, &sent), 0);
        assert_false(sent);
    }
    assert_in_range(sender_bench.ends, 3, 7);
    assert_true(sender_bench.stats.probes_sent > 0);
    free(sender_bench.state);
}

/* A few close together, then evenly, then ever more seldom. */
static void test_ends_are_close_at_first(void **state)
{
    (void)state;
    struct sender_bench sender_bench;
    bool sent;
    sender_setup(&sender_bench, "deadline=1s");
    sender_bench.view.path.rtt_ns = 8 * LH_NS_PER_MS;
    sender_bench.view.path.overdue_ns = 9 * LH_NS_PER_MS;
    test_sender_step(&sender_bench, SENDER_CHUNKS, &sent);
    assert_int_equal(sender_bench.ends, 1);
    for (uint32_t ends = 1; ends < 70; ends++) {
        lh_time even_ns = sender_bench.view.path.overdue_ns / (ends <= 4 ? 128 : 8);
        lh_time wait_ns = ends <= 65 ? even_ns : even_ns << (ends - 65);
        sender_bench.view.now += wait_ns - 1;
        test_sender_step(&sender_bench, 0, &sent);
        assert_int_equal(sender_bench.ends, ends);
        sender_bench.view.now++;
        test_sender_step(&sender_bench, 0, &sent);
        assert_int_equal(sender_bench.ends, ends + 1);
    }
    free(sender_bench.state);
}

static void test_in_flight(void **state)
{
    (void)state;
    struct sender_bench sender_bench;
    bool sent;
    sender_setup(&sender_bench, "deadline=1s");
    test_sender_step(&sender_bench, 10, &sent);
    acknowledge(&sender_bench, 11); /* was not sent */
    assert_int_equal(sender_bench.stats.bad_control, 1);
    acknowledge(&sender_bench, 4);
    acknowledge(&sender_bench, 2);
    test_sender_step(&sender_bench, 0, &sent);
    assert_int_equal(sender_bench.actions.in_flight_chunks, 6);
    /* Nothing comes back any more: what was sent an overdue round trip ago has passed, or is lost. */
    sender_bench.view.now += OVERDUE;
    test_sender_step(&sender_bench, 0, &sent);
    sender_bench.view.now += OVERDUE;
    test_sender_step(&sender_bench, 0, &sent);
    assert_int_equal(sender_bench.actions.in_flight_chunks, 0);
    assert_int_equal(sender_bench.stats.acks_received, 2);
    free(sender_bench.state);
}

/* The receiver takes nothing after that. With auto only it knows when. */
static void test_gives_up_behind_the_deadline(void **state)
{
    (void)state;
    struct sender_bench sender_bench;
    bool sent;
    sender_setup(&sender_bench, "deadline=1ms");
    test_sender_step(&sender_bench, 4, &sent);
    sender_bench.view.now += LH_NS_PER_MS + OVERDUE - 1;
    assert_int_equal(test_sender_step(&sender_bench, 1, &sent), 1);
    sender_bench.view.now++;
    assert_int_equal(test_sender_step(&sender_bench, 10, &sent), 0);
    assert_true(sent && sender_bench.ends == 1);
    free(sender_bench.state);
    sender_setup(&sender_bench, "deadline=auto");
    test_sender_step(&sender_bench, 4, &sent);
    sender_bench.view.now += 3600 * LH_NS_PER_S;
    assert_int_equal(test_sender_step(&sender_bench, 10, &sent), 10);
    free(sender_bench.state);
}

/* What was injected is all that leaves, and END says so. */
static void test_withdrawn(void **state)
{
    (void)state;
    struct sender_bench sender_bench;
    bool sent;
    sender_setup(&sender_bench, "deadline=none");
    assert_int_equal(test_sender_step(&sender_bench, 4, &sent), 4);
    assert_false(sent);
    sender_bench.view.withdrawn = true;
    assert_int_equal(test_sender_step(&sender_bench, 10, &sent), 0);
    assert_true(sent && sender_bench.ends == 1);
    sender_bench.view.now += RTT;
    assert_int_equal(test_sender_step(&sender_bench, 10, &sent), 0);
    assert_false(sent);
    free(sender_bench.state);
}

static void test_parity_follows(void **state)
{
    (void)state;
    struct sender_bench sender_bench;
    bool sent;
    uint32_t chunks = 0;
    sender_setup(&sender_bench, "deadline=1s,code=mds,k=4,m=2");
    for (uint32_t i = 0; i < 8; i++) {
        chunks += test_sender_step(&sender_bench, 100, &sent);
        for (uint32_t a = 0; a < sender_bench.actions.count; a++)
            sender_bench.view.encoded += sender_bench.actions.list[a].kind == LH_ACTION_ENCODE;
        assert_int_equal(sent, chunks == SENDER_CHUNKS + 8);
        if (sent)
            break;
    }
    assert_int_equal(chunks, SENDER_CHUNKS + 8);
    assert_int_equal(sender_bench.stats.parity_chunks_sent, 8);
    free(sender_bench.state);
}

static int run_sender(void)
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

int main(void)
{
    return run_coding() + run_params() + run_receiver() + run_sender();
}
