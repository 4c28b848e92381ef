/*
 * test_ec_receiver.c -
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
#include "schemes/ec_receiver.h"
#include "wire/scheme_messages.h"

/* ---- test asking ----------------------------------------------------------------------------------- */

#define RTT    ((lh_time)8000)
#define WINDOW ((lh_time)1000)

static const struct sr_timing timing = {
    .rtt_ns = RTT, .overdue_ns = RTT + RTT / 8, .window_ns = WINDOW, .measured = true};

static struct ec_asking asking;
static struct ec_path_seen path_seen; /* nothing is lost, unless a test says so */

static bool hear(uint32_t round, uint8_t flags, lh_time now)
{
    struct ec_mark mark = {.flags = flags, .mark = 1, .round = round, .injected = 100};
    return ec_asking_on_mark(&asking, &mark, 10, now);
}

static lh_time expiry(uint32_t beta, lh_time last_arrival)
{
    return ec_asking_fallback_expiry(&asking, beta, last_arrival, &timing);
}

static void ask(uint32_t count, lh_time now)
{
    for (uint32_t i = 0; i < count; i++)
        asking.runs[i] = (struct ec_run){i, 0, 1};
    ec_asking_on_fallback_expired(&asking, count, &path_seen, &timing, now);
}

/* Sends what is to be sent; returns how many parts. */
static uint32_t drain(void)
{
    static struct ec_request request;
    uint32_t parts = 0;
    for (; ec_asking_next(&asking, &request); parts++) {
        assert_int_equal(request.part, parts);
        assert_int_equal(request.round, asking.round);
        ec_asking_on_sent(&asking);
    }
    return parts;
}

static void test_beta_runs_from_the_end(void **state)
{
    (void)state;
    ec_asking_init(&asking);
    assert_int_equal(expiry(50, LH_TIME_NEVER), LH_TIME_NEVER);
    assert_true(hear(0, EC_FLAG_PROBE, 90));
    assert_int_equal(expiry(50, LH_TIME_NEVER), LH_TIME_NEVER);
    assert_true(hear(0, EC_FLAG_END, 100));
    assert_true(hear(0, EC_FLAG_END, 200)); /* repeated */
    assert_int_equal(expiry(50, LH_TIME_NEVER), 100 + RTT / 2);
    assert_int_equal(expiry(10000, LH_TIME_NEVER), 100 + 100 * RTT);
    assert_int_equal(expiry(13, LH_TIME_NEVER), 100 + RTT * 13 / 100);
    assert_int_equal(expiry(0, LH_TIME_NEVER), 100 + WINDOW); /* at least */
    assert_int_equal(expiry(50, 50 + RTT / 2), 50 + RTT / 2 + WINDOW);
    assert_int_equal(drain(), 0);
}

static void test_a_round(void **state)
{
    (void)state;
    ec_asking_init(&asking);
    hear(0, EC_FLAG_END, 100);
    ask(3, 5000);
    assert_int_equal(asking.round, 1);
    assert_int_equal(expiry(50, LH_TIME_NEVER), LH_TIME_NEVER);
    assert_int_equal(drain(), 1);
    hear(0, EC_FLAG_END, 13000);
    assert_int_equal(drain(), 0);
    hear(0, EC_FLAG_END | EC_FLAG_PROBE, 14000); /* asks, and knows nothing of the request */
    assert_int_equal(drain(), 1);
    hear(1, 0, 15000);
    hear(0, EC_FLAG_PROBE, 15001); /* an old one */
    assert_int_equal(drain(), 0);
    assert_int_equal(expiry(50, LH_TIME_NEVER), LH_TIME_NEVER);
    hear(1, EC_FLAG_END, 16000);
    assert_int_equal(expiry(50, LH_TIME_NEVER), 16000 + WINDOW); /* beta is for round 0 */
    assert_int_equal(expiry(50, 15900), 16000 + WINDOW);
    assert_int_equal(expiry(50, 16100), 16100 + WINDOW);
}

/* After one, two, four more windows, and so on up to eight overdue times. */
static void test_unheard_it_is_repeated(void **state)
{
    (void)state;
    lh_time now = 5000, span = WINDOW;
    ec_asking_init(&asking);
    hear(0, EC_FLAG_END, 100);
    ask(3, now);
    assert_int_equal(drain(), 1);
    for (uint32_t i = 0; i < 20; i++) {
        now += span;
        assert_int_equal(ec_asking_repeat_expiry(&asking), now);
        ec_asking_on_repeat_expired(&asking, &timing, now);
        assert_int_equal(drain(), 1);
        span = lh_min(2 * span, 8 * timing.overdue_ns);
    }
    assert_int_equal(span, 8 * timing.overdue_ns);
    hear(1, 0, now + 1);
    assert_int_equal(ec_asking_repeat_expiry(&asking), LH_TIME_NEVER);
}

/* Where much is lost, after each window until an answer could have come. */
static void test_where_much_is_lost_it_is_repeated_sooner(void **state)
{
    (void)state;
    lh_time now = 5000;
    ec_asking_init(&asking);
    hear(0, EC_FLAG_END, 100);
    path_seen = (struct ec_path_seen){.injected = 1600, .arrived = 1499};
    ask(3, now);
    path_seen = (struct ec_path_seen){0};
    while (now < 5000 + RTT) {
        now += WINDOW;
        assert_int_equal(ec_asking_repeat_expiry(&asking), now);
        ec_asking_on_repeat_expired(&asking, &timing, now);
    }
    assert_int_equal(ec_asking_repeat_expiry(&asking), now + 2 * WINDOW);
}

static void test_hearing_ends_the_repetition(void **state)
{
    (void)state;
    ec_asking_init(&asking);
    hear(0, EC_FLAG_END, 100);
    ask(1, 5000);
    hear(1, 0, 5100); /* before it was even written down */
    assert_int_equal(drain(), 0);
    assert_int_equal(ec_asking_repeat_expiry(&asking), LH_TIME_NEVER);
}

static void test_a_round_never_asked_for(void **state)
{
    (void)state;
    ec_asking_init(&asking);
    assert_false(hear(1, EC_FLAG_END, 100));
    assert_int_equal(expiry(50, LH_TIME_NEVER), LH_TIME_NEVER);
    hear(0, EC_FLAG_END, 100);
    ask(1, 5000);
    assert_false(hear(2, EC_FLAG_END, 6000));
    assert_false(asking.received);
    assert_true(hear(1, EC_FLAG_END, 6000));
}

static void test_parts(void **state)
{
    (void)state;
    static struct ec_request request;
    static const struct {
        uint32_t runs, parts;
    } sizes[] = {{1, 1}, {148, 1}, {149, 2}, {296, 2}, {8 * 148, 8}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        ec_asking_init(&asking);
        hear(0, EC_FLAG_END, 100);
        ask(sizes[i].runs, 5000);
        uint32_t runs = 0;
        for (uint32_t part = 0; part < sizes[i].parts; part++) {
            uint8_t bytes[EC_REQUEST_BYTES_MAX];
            assert_true(ec_asking_next(&asking, &request));
            assert_int_equal(request.parts, sizes[i].parts);
            assert_int_equal(request.runs[0].group, runs);
            assert_true(ec_request_encode(&request, bytes) <= sizeof(bytes));
            runs += request.count;
            ec_asking_on_sent(&asking);
        }
        assert_int_equal(runs, sizes[i].runs);
        assert_false(ec_asking_next(&asking, &request));
    }
}

/* A queue that is shorter than the request drops its end each time: seed 500000000000037393 of the fault
 * world. */
static void test_a_dropped_end_goes_first_next_time(void **state)
{
    (void)state;
    static struct ec_request request;
    ec_asking_init(&asking);
    hear(0, EC_FLAG_END, 100);
    ask(8 * EC_RUNS_MAX, 5000);
    uint32_t heard = 0;
    for (uint32_t transmission = 0; transmission < 4; transmission++) {
        for (uint32_t sent = 0; ec_asking_next(&asking, &request); sent++) {
            if (sent < 2)
                heard |= 1u << request.part;
            ec_asking_on_sent(&asking);
        }
        hear(0, EC_FLAG_END | EC_FLAG_PROBE, 6000);
    }
    assert_int_equal(heard, 0xe3); /* 0 and 1, then 7, 6, 5 each with its successor */
    ec_asking_on_repeat_expired(&asking, &timing, asking.repeat_ns);
    assert_true(ec_asking_next(&asking, &request));
    assert_int_equal(request.part, 3);
}

/* Three rounds that bring nothing are patience; then it waits 2, 4, 8 round trips. */
static void test_rounds_that_bring_nothing_become_rarer(void **state)
{
    (void)state;
    static const lh_time waits[] = {0, 0, 0, 2, 4, 8, 8};
    lh_time now = 100;
    ec_asking_init(&asking);
    hear(0, EC_FLAG_END, now);
    for (size_t round = 0; round < 7; round++) {
        now += 2 * RTT;
        ask(1, now);
        hear((uint32_t)round + 1, EC_FLAG_END, now + RTT);
        lh_time settled = now + RTT + WINDOW;
        lh_time waited = now + waits[round] * RTT;
        assert_int_equal(expiry(50, LH_TIME_NEVER), settled > waited ? settled : waited);
        now = waited;
    }
}

static int run_asking(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beta_runs_from_the_end),
        cmocka_unit_test(test_a_round),
        cmocka_unit_test(test_unheard_it_is_repeated),
        cmocka_unit_test(test_where_much_is_lost_it_is_repeated_sooner),
        cmocka_unit_test(test_hearing_ends_the_repetition),
        cmocka_unit_test(test_a_round_never_asked_for),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_a_dropped_end_goes_first_next_time),
        cmocka_unit_test(test_rounds_that_bring_nothing_become_rarer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test margin ----------------------------------------------------------------------------------- */

/* P(fewer than `needed` of `sent` arrive), summed the other way round than the code does. */
static double too_few(uint32_t sent, uint32_t needed, double loss)
{
    double sum = 0;
    for (uint32_t come = 0; come < needed; come++) {
        double term = 1;
        for (uint32_t i = 0; i < come; i++)
            term *= (double)(sent - i) / (i + 1) * (1 - loss);
        for (uint32_t i = 0; i < sent - come; i++)
            term *= loss;
        sum += term;
    }
    return sum;
}

static void test_the_smallest_that_is_enough(void **state)
{
    (void)state;
    static const uint32_t arrived[] = {500, 800, 900, 990, 999};
    static const uint32_t missing_work[] = {1, 2, 3, 5, 8, 17, 32};
    for (size_t a = 0; a < 5; a++)
        for (size_t i = 0; i < 7; i++) {
            double loss = (1000.0 - arrived[a]) / 1000;
            if (loss < 1.0 / 1024)
                loss = 1.0 / 1024;
            uint32_t margin = ec_margin(missing_work[i], 1000, arrived[a]);
            assert_true(too_few(missing_work[i] + margin, missing_work[i], loss) <= 1.001e-6);
            assert_true(margin == 0 ||
                        too_few(missing_work[i] + margin - 1, missing_work[i], loss) > 0.999e-6);
        }
}

static void test_the_loss_has_limits(void **state)
{
    (void)state;
    assert_int_equal(ec_margin(1, 1000, 1000), ec_margin(1, 1024, 1023)); /* nothing seems to be lost */
    assert_int_equal(ec_margin(1, 10, 20), ec_margin(1, 1000, 1000));
    assert_int_equal(ec_margin(1, 0, 0), ec_margin(1, 1000, 1000));
    assert_int_equal(ec_margin(1, 1000, 1000), 1);
    assert_int_equal(ec_margin(4, 1000, 0), ec_margin(4, 1000, 500)); /* all is lost */
    assert_int_equal(ec_margin(1, 1000, 500), 19);                    /* 2^-20 < 1e-6 */
    assert_true(ec_margin(255, 1000, 0) <= EC_MARGIN_MAX);
}

static void test_more_for_more(void **state)
{
    (void)state;
    for (uint32_t missing_work = 1; missing_work < 100; missing_work++)
        for (uint32_t lost = 0; lost < 500; lost += 10) {
            uint32_t margin = ec_margin(missing_work, 1000, 1000 - lost);
            assert_true(margin <= ec_margin(missing_work, 1000, 990 - lost));
            assert_true(margin <= ec_margin(missing_work + 1, 1000, 1000 - lost));
        }
}

static int run_margin(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_smallest_that_is_enough),
        cmocka_unit_test(test_the_loss_has_limits),
        cmocka_unit_test(test_more_for_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test needs ------------------------------------------------------------------------------------ */

#define CHUNKS 400u
#define ROOM   1000u

/* What a receiver has, as a test sets it up. */
struct has {
    uint8_t params[LH_SCHEME_PARAMS];
    struct ec_layout layout;
    struct ec_needs needs;
    uint8_t asked[CHUNKS];
    uint8_t chunks[CHUNKS];
    uint8_t extra[4 * CHUNKS];
    struct ec_bitmaps bitmaps;
    struct ec_run runs[ROOM];
    uint32_t failed;
};

static void start(struct has *has, bool mds, const char *text, uint32_t chunks)
{
    memset(has, 0, sizeof(*has));
    assert_int_equal(mds ? ec_mds_parse(text, has->params) : ec_xor_parse(text, has->params), 0);
    has->layout = ec_layout_of(has->params, chunks);
    assert_true(chunks <= CHUNKS && ec_layout_extra(&has->layout) <= sizeof(has->extra));
    memset(has->asked, 0xA5, sizeof(has->asked));
    ec_needs_init(&has->needs, chunks, has->asked);
    has->bitmaps = (struct ec_bitmaps){has->chunks, has->extra};
    memset(has->chunks, 1, chunks);
    for (uint32_t group = 0; group < has->layout.groups; group++) {
        struct ec_group of = ec_layout_group(&has->layout, group);
        for (uint32_t r = 0; r < of.rows; r++)
            has->extra[of.first_place + r * of.stride] = 1;
    }
}

static void set(struct has *has, uint32_t group, uint32_t place, uint8_t there)
{
    struct ec_group of = ec_layout_group(&has->layout, group);
    if (place < of.size)
        has->chunks[of.first_chunk + place * of.stride] = there;
    else
        has->extra[of.first_place + (place - of.size) * of.stride] = there;
}

/* The first `count` places from `place` on are missing. */
static void lose(struct has *has, uint32_t group, uint32_t place, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        set(has, group, place + i, 0);
}

static bool met(struct has *has)
{
    return ec_needs_met(&has->needs, &has->layout, &has->bitmaps);
}

/* At the smallest loss: where one is lacking the margin is 1, where two or three are it is 2. */
static uint32_t needs_ask(struct has *has, uint32_t room)
{
    struct ec_path_seen seen = {1000, 1000};
    return ec_needs_ask(&has->needs, &has->layout, &has->bitmaps, &seen, has->runs, room, &has->failed);
}

static void assert_run(const struct has *has, uint32_t index, uint32_t group, uint32_t first,
                       uint32_t count)
{
    assert_int_equal(has->runs[index].group, group);
    assert_int_equal(has->runs[index].first, first);
    assert_int_equal(has->runs[index].count, count);
}

static void test_any_k_of_mds_are_enough(void **state)
{
    (void)state;
    struct has has;
    start(&has, true, "k=8,m=3", 64);
    assert_true(met(&has));
    for (uint32_t data = 0; data <= 4; data++) {
        start(&has, true, "k=8,m=3", 64);
        lose(&has, 5, 2, data);
        lose(&has, 5, 8, 3 - (data < 3 ? data : 3));
        assert_int_equal(met(&has), data <= 3);
        assert_int_equal(has.needs.first_unmet, data <= 3 ? 8 : 5);
        if (data == 4) { /* a row that was asked for counts as well */
            set(&has, 5, 8 + 3, 1);
            assert_true(met(&has));
        }
    }
    start(&has, true, "k=8,m=3", 64);
    has.bitmaps.extra = NULL;
    assert_true(met(&has));
    start(&has, true, "k=8,m=3", 64);
    has.bitmaps.extra = NULL;
    lose(&has, 0, 0, 1);
    assert_false(met(&has));
}

static void test_one_of_each_class_of_xor(void **state)
{
    (void)state;
    struct has has;
    start(&has, false, "k=8,m=4", 64);
    lose(&has, 3, 0, 4);
    assert_true(met(&has));
    start(&has, false, "k=8,m=4", 64);
    set(&has, 3, 1, 0);
    set(&has, 3, 5, 0); /* the same class */
    assert_false(met(&has));
    start(&has, false, "k=8,m=4", 64);
    set(&has, 3, 1, 0);
    set(&has, 3, 8 + 1, 0); /* and its parity */
    assert_false(met(&has));
    set(&has, 3, 8 + 1, 1);
    set(&has, 3, 8 + 2, 0); /* that of another */
    assert_true(met(&has));
    assert_int_equal(has.needs.first_unmet, has.layout.groups);
}

static void test_nothing_and_one_chunk(void **state)
{
    (void)state;
    struct has has;
    start(&has, true, "", 0);
    assert_true(met(&has));
    for (int mds = 0; mds < 2; mds++) {
        start(&has, mds, "", 1);
        assert_true(met(&has));
        start(&has, mds, "", 1);
        lose(&has, 0, 0, 1);
        assert_false(met(&has));
        assert_int_equal(needs_ask(&has, ROOM), 1);
        assert_run(&has, 0, 0, 0, 1);
        set(&has, 0, 0, 1);
        assert_true(met(&has));
    }
}

static void test_mds_asks_for_fresh_rows_then_data(void **state)
{
    (void)state;
    struct has has;
    start(&has, true, "k=8,m=3", 64); /* fresh rows: 3, places 11 to 13 */
    lose(&has, 1, 0, 4);
    lose(&has, 6, 1, 6);
    assert_false(met(&has));
    assert_int_equal(needs_ask(&has, ROOM), 3);
    assert_int_equal(has.failed, 2);
    assert_run(&has, 0, 1, 11, 2); /* lacks 1, and a margin of 1 */
    assert_run(&has, 1, 6, 1, 2);  /* lacks 3, and a margin of 2: 3 rows, and the first data */
    assert_run(&has, 2, 6, 11, 3);
    /* Nothing of it comes. Rows are not asked for again; of the first group one is left. */
    assert_int_equal(needs_ask(&has, ROOM), 3);
    assert_int_equal(has.failed, 2);
    assert_run(&has, 0, 1, 0, 1);
    assert_run(&has, 1, 1, 13, 1);
    assert_run(&has, 2, 6, 1, 5);
    assert_int_equal(needs_ask(&has, ROOM), 2);
    assert_run(&has, 0, 1, 0, 2);
    assert_run(&has, 1, 6, 1, 5);
    /* Some comes: what is there is not asked for. */
    set(&has, 1, 13, 1);
    set(&has, 6, 3, 1);
    assert_int_equal(needs_ask(&has, ROOM), 2);
    assert_run(&has, 0, 6, 1, 2);
    assert_run(&has, 1, 6, 4, 2);
    assert_int_equal(has.failed, 2);
    /* Not more data than is missing, however much is lost. */
    struct ec_path_seen bad = {1000, 500};
    assert_int_equal(ec_needs_ask(&has.needs, &has.layout, &has.bitmaps, &bad, has.runs, ROOM, &has.failed),
                     2);
    assert_run(&has, 0, 6, 1, 2);
    assert_run(&has, 1, 6, 4, 3);
}

static void test_xor_asks_for_the_data_of_failed_classes(void **state)
{
    (void)state;
    struct has has;
    start(&has, false, "k=8,m=4", 64);
    set(&has, 2, 0, 0); /* alone in its class */
    set(&has, 2, 1, 0);
    set(&has, 2, 5, 0);
    set(&has, 2, 3, 0);
    set(&has, 2, 8 + 3, 0);
    assert_int_equal(needs_ask(&has, ROOM), 3);
    assert_run(&has, 0, 2, 1, 1);
    assert_run(&has, 1, 2, 3, 1);
    assert_run(&has, 2, 2, 5, 1);
    assert_int_equal(has.failed, 1);
}

static void test_selective_repeat_asks_for_all_then_for_the_rest(void **state)
{
    (void)state;
    struct has has;
    for (int mds = 0; mds < 2; mds++) {
        start(&has, mds, "k=8,m=2,fallback=sr", 64);
        lose(&has, 4, 0, 3);
        assert_false(met(&has));
        assert_int_equal(needs_ask(&has, ROOM), 1);
        assert_run(&has, 0, 4, 0, 8);
        set(&has, 4, 0, 1); /* enough to decode, but it fell back */
        assert_false(met(&has));
        assert_int_equal(needs_ask(&has, ROOM), 1);
        assert_run(&has, 0, 4, 1, 2);
        set(&has, 4, 1, 1);
        set(&has, 4, 2, 1);
        assert_true(met(&has));
        assert_int_equal(has.failed, 1);
    }
}

/* A group that does not fit waits whole, and counts as failed only when it is asked for. */
static void test_a_full_request(void **state)
{
    (void)state;
    struct has has;
    start(&has, false, "k=3,m=1", 300);
    for (uint32_t group = 0; group < 100; group++) { /* two runs each */
        set(&has, group, 0, 0);
        set(&has, group, 2, 0);
    }
    assert_int_equal(needs_ask(&has, 129), 128);
    assert_int_equal(has.failed, 64);
    assert_run(&has, 127, 63, 2, 1);
    memset(has.chunks, 1, 64); /* these have come, of groups 0 to 63 */
    for (uint32_t group = 0; group < 64; group++)
        set(&has, group, 2, 1);
    assert_false(met(&has));
    assert_int_equal(has.needs.first_unmet, 64);
    assert_int_equal(needs_ask(&has, 129), 72);
    assert_int_equal(has.failed, 100);
}

static int run_needs(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_k_of_mds_are_enough),
        cmocka_unit_test(test_one_of_each_class_of_xor),
        cmocka_unit_test(test_nothing_and_one_chunk),
        cmocka_unit_test(test_mds_asks_for_fresh_rows_then_data),
        cmocka_unit_test(test_xor_asks_for_the_data_of_failed_classes),
        cmocka_unit_test(test_selective_repeat_asks_for_all_then_for_the_rest),
        cmocka_unit_test(test_a_full_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test receiver --------------------------------------------------------------------------------- */

#define RECEIVER_ROOM 40u
#define RECEIVER_CHUNKS                                                                                    \
    16u /* 4 groups of 4, chunk c is of group c % 4; row r of group g is extra chunk 4 * r + g */

struct bench {
    void *state;
    struct lh_stats stats;
    uint8_t chunks[RECEIVER_ROOM];
    uint8_t extra[4 * RECEIVER_ROOM];
    struct lh_receiver_view view;
    struct lh_actions actions;
};

static void setup(struct bench *bench, const char *params)
{
    memset(bench, 0, sizeof(*bench));
    struct lh_transfer transfer = {.chunks = RECEIVER_ROOM, .chunk_bytes = 4096, .stats = &bench->stats};
    assert_int_equal(ec_mds_parse(params, transfer.params), 0);
    bench->state = malloc(ec_receiver_bytes(RECEIVER_ROOM));
    memset(bench->state, 0xA5, ec_receiver_bytes(RECEIVER_ROOM));
    bench->view = (struct lh_receiver_view){
        .now = 100000,
        .path = {.rtt_ns = RTT, .overdue_ns = RTT + RTT / 8, .reorder_window_ns = WINDOW},
        .chunk_bitmap = bench->chunks,
        .extra_bitmap = bench->extra,
        .last_arrival_ns = LH_TIME_NEVER,
        .later_seen_ns = LH_TIME_NEVER,
        .chunks = RECEIVER_ROOM,
    };
    ec_receiver_start(bench->state, &transfer, bench->view.now);
}

static void know_length(struct bench *bench)
{
    bench->view.length_known = true;
    bench->view.chunks = RECEIVER_CHUNKS;
}

/* Chunks first … end - 1; from CHUNKS on they are extra. */
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
    memset(&bench->actions, 0xA5, sizeof(bench->actions));
    bench->actions.count = 0;
    ec_receiver_step(bench->state, &bench->view, &bench->actions);
}

static void receiver_hear(struct bench *bench, uint32_t mark, uint32_t round, uint8_t flags,
                          uint32_t injected)
{
    uint8_t bytes[EC_MARK_BYTES];
    struct ec_mark received = {flags, mark, round, injected};
    ec_receiver_on_message(bench->state, bytes, ec_mark_encode(&received, bytes), &bench->view);
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
    arrive(&bench, 2, RECEIVER_CHUNKS); /* chunks 0 and 1 are missing */
    arrive(&bench, RECEIVER_CHUNKS + 2, RECEIVER_CHUNKS + 8);
    step(&bench);
    assert_false(completes(&bench)); /* how long the message is nobody has said */
    bench.extra[4] = bench.extra[5] = 0;
    bench.view.extra_arrived -= 2;
    know_length(&bench);
    step(&bench);
    assert_false(completes(&bench)); /* 18 are there, and yet groups 0 and 1 lack one */
    arrive(&bench, RECEIVER_CHUNKS, RECEIVER_CHUNKS + 1);
    step(&bench);
    assert_false(completes(&bench));
    arrive(&bench, RECEIVER_CHUNKS + 5, RECEIVER_CHUNKS + 6);
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
    arrive(&bench, 0, RECEIVER_CHUNKS - 1);
    step(&bench);
    assert_false(completes(&bench));
    arrive(&bench, RECEIVER_CHUNKS - 1, RECEIVER_CHUNKS);
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
    memset(bench.chunks + RECEIVER_CHUNKS, 1, RECEIVER_ROOM - RECEIVER_CHUNKS);
    bench.view.chunks_arrived = RECEIVER_ROOM - RECEIVER_CHUNKS;
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
    receiver_hear(&bench, 1, 0, EC_FLAG_PROBE, 6);
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
    receiver_hear(&bench, 1, 0, 0, 6);
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
    arrive(bench, 5, RECEIVER_CHUNKS);
    arrive(bench, RECEIVER_CHUNKS + 1, RECEIVER_CHUNKS + 8);
    receiver_hear(bench, 1, 0, EC_FLAG_END, 24);
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
    arrive(&bench, RECEIVER_CHUNKS + 8, RECEIVER_CHUNKS + 9); /* row 2 of group 0 */
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
    receiver_hear(&bench, 2, 1, EC_FLAG_END, 26);
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
    receiver_hear(&bench, 1, 1, EC_FLAG_END | EC_FLAG_PROBE, 24); /* of a round that was not asked for */
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

static int run_receiver(void)
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

int main(void)
{
    return run_asking() + run_margin() + run_needs() + run_receiver();
}
