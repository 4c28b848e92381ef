/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx_state.h"

#include <math.h>

#include "message/rx_receiver.h"
#include "unit/message/rx_part.h"

static int begin_whole(void **state)
{
    (void)state;
    return rx_part_begin_with(lh_schemes()[0], 0, true);
}

/* A chunk of a thousand was lost. */
static int begin(void **state)
{
    int error = begin_whole(state);
    path_estimate_on_chunks(&rx.automatic->estimate, 1000, 1, 1);
    return error;
}

static void plan(void)
{
    while (auto_scheme_plan(&rx))
        ;
    auto_scheme_planned(&rx, 0, 0);
}

static void test_nothing_when_the_scheme_was_named(void **state)
{
    (void)state;
    struct scheme_choice choice = rx.choice;
    auto_scheme_choose(&rx, SLOT, 0, &choice);
    assert_ptr_equal(choice.scheme, &fake_scheme);
    assert_true(auto_scheme_may_start(&rx));
    assert_false(auto_scheme_planning(&rx));
}

/* The scheme of the first messages, before anything is known. */
static void test_the_first_scheme_is_reported(void **state)
{
    (void)state;
    struct lh_scheme_report report;
    auto_scheme_report(&rx, &report);
    assert_true(report.automatic);
    assert_string_equal(report.scheme, lh_schemes()[0]->name);
    assert_string_equal(report.other, "");
    assert_true(report.chunks_seen == 0 && report.plans == 0);
    assert_true(report.rtt_ns == RTT_NS && report.expected_s == 0 && report.other_expected_s == 0);
}

static void test_nothing_is_planned_before_a_loss(void **state)
{
    (void)state;
    struct scheme_choice choice = rx.choice;
    path_estimate_on_chunks(&rx.automatic->estimate, 1000, 0, 0);
    uint64_t bytes = store_bytes(rx.store);
    auto_scheme_choose(&rx, 1 << 20, 0, &choice);
    assert_false(auto_scheme_planning(&rx));
    assert_ptr_equal(choice.scheme, rx.choice.scheme);
    assert_int_equal(store_bytes(rx.store), bytes);
    path_estimate_on_chunks(&rx.automatic->estimate, 1, 1, 1);
    auto_scheme_choose(&rx, 1 << 20, 0, &choice);
    assert_true(auto_scheme_planning(&rx));
}

/* An idle connection has no memory for plans, and knows what it had chosen. */
static void test_memory_is_given_back(void **state)
{
    (void)state;
    struct scheme_choice choice = rx.choice, again = rx.choice;
    uint64_t bytes = store_bytes(rx.store);
    path_estimate_on_chunks(&rx.automatic->estimate, 1000, 100, 100);
    auto_scheme_choose(&rx, SLOT / 2, 0, &choice);
    plan();
    auto_scheme_choose(&rx, SLOT / 2, 0, &choice);
    assert_ptr_not_equal(choice.scheme, rx.choice.scheme);
    auto_scheme_give_back(&rx);
    assert_int_equal(store_bytes(rx.store), bytes);
    struct lh_scheme_report report;
    auto_scheme_report(&rx, &report);
    assert_true(report.plans == 1 && report.expected_s > 0);
    auto_scheme_choose(&rx, SLOT / 2, 0, &again);
    assert_ptr_equal(again.scheme, choice.scheme);
    assert_memory_equal(again.params, choice.params, sizeof choice.params);
    assert_true(auto_scheme_planning(&rx)); /* the path may be another one by now */
}

/* Parity that nobody asked for is no reason for a message to end without memory. */
static void test_without_memory_for_parity(void **state)
{
    (void)state;
    struct scheme_choice choice = rx.choice;
    path_estimate_on_chunks(&rx.automatic->estimate, 1000, 100, 100);
    auto_scheme_choose(&rx, SLOT / 2, 0, &choice);
    plan();
    auto_scheme_choose(&rx, SLOT / 2, 0, &choice);
    assert_ptr_not_equal(choice.scheme, rx.choice.scheme);
    rx.store->limit_bytes = store_bytes(rx.store);
    lh_time next = LH_TIME_NEVER;
    recv_bytes(SLOT / 2, 0);
    receiver_post(&rx, 0, &next);
    assert_ptr_equal(rx_message_at(&rx, 0)->choice.scheme, rx.choice.scheme);
    rx.store->limit_bytes = UINT64_MAX;
    receiver_post(&rx, 0, &next);
    assert_ptr_equal(rx_message_at(&rx, 0)->choice.scheme, choice.scheme);
}

/* The first message of a size starts a plan, once there is a round trip. */
static void test_plans_once_the_path_is_known(void **state)
{
    (void)state;
    struct scheme_choice choice = rx.choice;
    qp.path.rtt_ns = 0;
    auto_scheme_choose(&rx, 1 << 20, 0, &choice);
    assert_false(auto_scheme_planning(&rx));
    qp.path.rtt_ns = RTT_NS;
    auto_scheme_choose(&rx, 1 << 20, 0, &choice);
    assert_true(auto_scheme_planning(&rx));
    uint32_t candidates = 1;
    for (; auto_scheme_plan(&rx); candidates++)
        auto_scheme_planned(&rx, 100, 1);
    auto_scheme_planned(&rx, 100, 1);
    assert_true(candidates > 1);
    assert_false(auto_scheme_planning(&rx));
    assert_int_equal(rx.stats->schemes_planned, 1);
    struct lh_scheme_report report;
    auto_scheme_report(&rx, &report);
    assert_true(report.automatic && report.plans == 1 && report.message_bytes == 1 << 20);
}

/* After a plan there is a rest, of a multiple of what it took. */
static void test_rests_after_a_plan(void **state)
{
    (void)state;
    struct scheme_choice choice = rx.choice;
    auto_scheme_choose(&rx, 1 << 20, 0, &choice);
    while (auto_scheme_plan(&rx))
        ;
    auto_scheme_planned(&rx, 1000, 50);
    const lh_time pause_until = 1000 + AUTO_CHOICE_PAUSE * 50;
    auto_scheme_choose(&rx, 100, pause_until - 1, &choice);
    assert_false(auto_scheme_planning(&rx));
    auto_scheme_choose(&rx, 100, pause_until, &choice);
    assert_true(auto_scheme_planning(&rx));
}

/* The bytes of open segments up to which the next message is decided. */
static void expect_ahead(uint64_t bytes)
{
    rx.segment_next = 1;
    *segment_at(0) = (struct rx_segment){.state = SEGMENT_OPEN, .bytes = (uint32_t)bytes - 1};
    assert_true(auto_scheme_may_start(&rx));
    segment_at(0)->bytes++;
    assert_false(auto_scheme_may_start(&rx));
    segment_at(0)->state = SEGMENT_DONE;
    assert_true(auto_scheme_may_start(&rx));
    rx.segment_next = 0;
}

/* One that is decided later is decided better: no further ahead than 16 MiB and twice what the path holds.
 * Where the first messages are coded it is 4 MiB; before the rate is known, this or what 1 Gbit/s holds. */
static void test_how_far_ahead(void **state)
{
    (void)state;
    assert_true(auto_scheme_may_start(&rx));
    qp.path.rtt_ns = 80 * LH_NS_PER_MS;
    rx.choice.max_overhead = 1;
    expect_ahead(16 << 20);
    rx.choice.max_overhead = INFINITY;
    expect_ahead(10000000);
    qp.path.rtt_ns = 0;
    expect_ahead(4 << 20);
    qp.path.rtt_ns = 8 * LH_NS_PER_MS;
    for (lh_time now = 0; now <= 4 * LH_NS_PER_MS; now += LH_NS_PER_MS)
        path_estimate_on_arrivals(&rx.automatic->estimate, now, 10, 125000, 2 * LH_NS_PER_MS);
    assert_true(path_estimate_rate_bps(&rx.automatic->estimate) == 1e9);
    expect_ahead((4 << 20) + 2 * 1000000);
    path_estimate_on_chunks(&rx.automatic->estimate, 32 * 1024, 0, 0);
    expect_ahead((16 << 20) + 2 * 1000000);
}

/* With slots of 4 MiB, which hold a segment of any code, and chunks of that many bytes. */
static const char *chosen_of(uint32_t slots, uint32_t chunk_bytes, uint64_t bytes)
{
    struct scheme_choice choice = rx.choice;
    const struct lh_attr *kept = rx.attr;
    struct lh_attr wide = *rx.attr;
    wide.slots = slots;
    wide.slot_bytes = (uint64_t)4 << 20;
    wide.chunk_bytes = chunk_bytes;
    rx.attr = &wide;
    auto_scheme_choose(&rx, bytes, 0, &choice);
    rx.attr = kept;
    return choice.scheme->name;
}

static const char *chosen(uint64_t bytes)
{
    return chosen_of(64, 4096, bytes);
}

/* A path that is not known yet: short messages come by a code, thinner once 1024 chunks have come, and none
 * once 32768 have. What is short follows from the round trip and, when it is known, the rate. */
static void test_an_unknown_path(void **state)
{
    (void)state;
    struct path_estimate *estimate = &rx.automatic->estimate;
    rx.choice.max_overhead = INFINITY;
    rx.peer_announced = scheme_announcements();
    qp.path.rtt_ns = 0;
    assert_string_equal(chosen(1 << 20), "ec:mds");
    assert_string_equal(chosen((1 << 20) + 1), "sr-nack");
    qp.path.rtt_ns = 8 * LH_NS_PER_MS;
    assert_string_equal(chosen(1000000), "ec:mds");
    assert_string_equal(chosen(1000001), "sr-nack");
    for (lh_time now = 0; now <= 4 * LH_NS_PER_MS; now += LH_NS_PER_MS)
        path_estimate_on_arrivals(estimate, now, 10, 12500, 2 * LH_NS_PER_MS);
    assert_string_equal(chosen(100000), "ec:mds");
    assert_string_equal(chosen(100001), "sr-nack");
    path_estimate_on_chunks(estimate, 1023, 0, 0);
    assert_string_equal(chosen(65536), "ec:mds");
    path_estimate_on_chunks(estimate, 1, 0, 0);
    assert_string_equal(chosen(65536), "hybrid");
    rx.peer_announced = 0; /* an older release, which has none */
    assert_string_equal(chosen(65536), "sr-nack");
    rx.peer_announced = scheme_announcements();
    path_estimate_on_chunks(estimate, 31 * 1024 - 1, 0, 0);
    assert_string_equal(chosen(65536), "hybrid");
    path_estimate_on_chunks(estimate, 1, 0, 0);
    assert_string_equal(chosen(65536), "sr-nack");
}

/* Where a user limits the overhead, few chunks would have much parity, or others need the slots. */
static void test_where_an_unknown_path_is_not_coded_for(void **state)
{
    (void)state;
    rx.choice.max_overhead = 1;
    assert_string_equal(chosen(65536), "sr-nack");
    rx.choice.max_overhead = INFINITY;
    assert_string_equal(chosen(65536), "ec:mds");
    assert_string_equal(chosen(65535), "sr-nack"); /* 16 chunks */
    assert_string_equal(chosen(0), "sr-nack");
    qp.path.rtt_ns = LH_NS_PER_S;
    assert_string_equal(chosen_of(64, 16384, 1 << 20), "ec:mds");
    assert_string_equal(chosen_of(64, 16385, 1 << 20), "sr-nack");
    /* A segment takes two slots, of half of them; so does each that is open. */
    assert_string_equal(chosen_of(1, 4096, 0), "sr-nack");
    assert_string_equal(chosen_of(3, 4096, 1 << 20), "sr-nack");
    assert_string_equal(chosen_of(4, 4096, 3 << 20), "ec:mds");
    assert_string_equal(chosen_of(4, 4096, 6 << 20), "sr-nack");
    assert_string_equal(chosen_of(8, 4096, 6 << 20), "ec:mds");
    rx.segment_next = 1;
    assert_string_equal(chosen_of(8, 4096, 6 << 20), "sr-nack");
    assert_string_equal(chosen_of(10, 4096, 6 << 20), "ec:mds");
    rx.segment_next = 0;
}

/* Without memory for its parity a message is not coded, and the report says so. */
static void test_the_report_of_a_message_without_parity(void **state)
{
    (void)state;
    struct scheme_choice choice;
    struct lh_scheme_report report;
    rx.choice.max_overhead = INFINITY;
    assert_string_equal(chosen(65536), "ec:mds");
    auto_scheme_report(&rx, &report);
    assert_string_equal(report.scheme, "ec:mds,k=32,m=8");
    auto_scheme_spare(&rx, &choice);
    assert_ptr_equal(choice.scheme, rx.choice.scheme);
    auto_scheme_report(&rx, &report);
    assert_string_equal(report.scheme, "sr-nack");
}

/* A gap that a later chunk shows counts as lost when the reordering window is over. */
static void test_counts_losses(void **state)
{
    (void)state;
    recv_bytes(SLOT, 0);
    (void)step_at(0);
    announce_lengths(0, 0, (uint32_t)SLOT, SLOT, 0, 1);
    fake_arrive(0, 0);
    fake_arrive(0, 2);
    (void)arrivals_poll(&rx, 1000);
    const lh_time mark_at = segment_at(0)->watch.mark_at;
    assert_int_equal(mark_at, 1000 + WINDOW_NS);
    (void)arrivals_poll(&rx, mark_at - 1);
    assert_int_equal(rx.automatic->estimate.chunks_lost, 0);
    (void)arrivals_poll(&rx, mark_at);
    assert_int_equal(rx.automatic->estimate.chunks_lost, 1);
}

/* Neither plans nor the parity that would only be better count as memory that is missing: not while a message
 * waits for a place, either. */
static void test_at_the_limit_of_memory(void **state)
{
    (void)state;
    struct scheme_choice choice = rx.choice;
    lh_time next = LH_TIME_NEVER;
    rx.store->limit_bytes = store_bytes(rx.store);
    auto_scheme_choose(&rx, SLOT / 2, 0, &choice);
    assert_false(auto_scheme_planning(&rx));
    assert_int_equal(rx.store->refusals, 0);
    rx.store->limit_bytes = UINT64_MAX;
    path_estimate_on_chunks(&rx.automatic->estimate, 1000, 100, 100);
    for (uint32_t i = 0; i < SLOTS; i++)
        recv_bytes(SLOT / 2, 0);
    receiver_post(&rx, 0, &next);
    plan();
    recv_bytes(SLOT / 2, 0);
    rx.store->limit_bytes = store_bytes(rx.store);
    receiver_post(&rx, 0, &next);
    assert_ptr_equal(rx_message_at(&rx, SLOTS)->choice.scheme, rx.choice.scheme);
    assert_int_equal(rx.store->refusals, 0);
    rx.store->limit_bytes = UINT64_MAX;
    receiver_post(&rx, 0, &next);
    assert_non_null(rx_message_at(&rx, SLOTS)->choice.scheme->coding);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RX_TEST(test_nothing_when_the_scheme_was_named),
        cmocka_unit_test_setup_teardown(test_the_first_scheme_is_reported, begin_whole, rx_part_end),
        cmocka_unit_test_setup_teardown(test_nothing_is_planned_before_a_loss, begin_whole, rx_part_end),
        cmocka_unit_test_setup_teardown(test_memory_is_given_back, begin, rx_part_end),
        cmocka_unit_test_setup_teardown(test_without_memory_for_parity, begin, rx_part_end),
        cmocka_unit_test_setup_teardown(test_at_the_limit_of_memory, begin, rx_part_end),
        cmocka_unit_test_setup_teardown(test_plans_once_the_path_is_known, begin, rx_part_end),
        cmocka_unit_test_setup_teardown(test_rests_after_a_plan, begin, rx_part_end),
        cmocka_unit_test_setup_teardown(test_how_far_ahead, begin_whole, rx_part_end),
        cmocka_unit_test_setup_teardown(test_an_unknown_path, begin_whole, rx_part_end),
        cmocka_unit_test_setup_teardown(test_where_an_unknown_path_is_not_coded_for, begin_whole,
                                        rx_part_end),
        cmocka_unit_test_setup_teardown(test_the_report_of_a_message_without_parity, begin_whole,
                                        rx_part_end),
        cmocka_unit_test_setup_teardown(test_counts_losses, begin_whole, rx_part_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
