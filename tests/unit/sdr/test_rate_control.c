/*
 * test_rate_control.c - when a receiver reports: new arrivals, spans, a full buffer, the last one twice.
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

#include "base/prng.h"
#include "sdr/rate_control.h"

/* ---- test arrival report --------------------------------------------------------------------------- */

#define RTT (40 * LH_NS_PER_MS)
#define T0  (7 * LH_NS_PER_S)

static void test_nothing_new(void **state)
{
    (void)state;
    struct arrival_report report = {0};
    assert_false(arrival_report_due(&report, 0, RTT, T0));
    assert_int_equal(arrival_report_next(&report, 0, RTT), LH_TIME_NEVER);
}

static void test_first_at_once(void **state)
{
    (void)state;
    struct arrival_report report = {0};
    for (uint64_t packets = 1; packets <= ARRIVAL_REPORT_FIRST; packets++) {
        assert_true(arrival_report_due(&report, packets, RTT, T0));
        arrival_report_on_sent(&report, packets, T0);
    }
    assert_false(arrival_report_due(&report, ARRIVAL_REPORT_FIRST + 1, RTT, T0));
}

static void test_spans(void **state)
{
    (void)state;
    struct arrival_report report = {0};
    arrival_report_on_sent(&report, 5001, T0);
    assert_int_equal(arrival_report_next(&report, 5002, RTT), T0 + RTT / 8);
    assert_false(arrival_report_due(&report, 5002, RTT, T0 + RTT / 8 - 1));
    assert_true(arrival_report_due(&report, 5002, RTT, T0 + RTT / 8));
    assert_int_equal(arrival_report_next(&report, 5002, LH_NS_PER_US), T0 + ARRIVAL_REPORT_SPAN_NS);
}

static void test_early_ones_soon(void **state)
{
    (void)state;
    struct arrival_report report = {0};
    arrival_report_on_sent(&report, ARRIVAL_REPORT_FIRST, T0);
    assert_int_equal(arrival_report_next(&report, ARRIVAL_REPORT_EARLY - 1, RTT),
                     T0 + ARRIVAL_REPORT_SPAN_NS);
    assert_int_equal(arrival_report_next(&report, ARRIVAL_REPORT_EARLY, RTT), T0 + RTT / 8);
}

static void test_full_buffer(void **state)
{
    (void)state;
    struct arrival_report report = {.packets_max = 10};
    arrival_report_on_sent(&report, 1005, T0);
    assert_false(arrival_report_due(&report, 1015, RTT, T0));
    assert_true(arrival_report_due(&report, 1016, RTT, T0));
}

static void test_last_one_twice(void **state)
{
    (void)state;
    struct arrival_report report = {0};
    arrival_report_on_sent(&report, 5, T0);
    assert_int_equal(arrival_report_next(&report, 5, RTT), T0 + RTT);
    arrival_report_on_sent(&report, 5, T0 + RTT);
    assert_int_equal(arrival_report_next(&report, 5, RTT), LH_TIME_NEVER);
    arrival_report_on_sent(&report, 6, T0 + 2 * RTT);
    assert_int_equal(arrival_report_next(&report, 6, 0), T0 + 2 * RTT + 10 * LH_NS_PER_MS);
}

static int run_arrival_report(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_new),     cmocka_unit_test(test_first_at_once),
        cmocka_unit_test(test_spans),           cmocka_unit_test(test_full_buffer),
        cmocka_unit_test(test_early_ones_soon), cmocka_unit_test(test_last_one_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test credit grant ----------------------------------------------------------------------------- */

/* Credits to the peer: numbers, totals that only grow, no limit without a controller. */

#define MTU 4096u

static const struct lh_congestion *named(const char *name)
{
    const struct lh_congestion *const *all = lh_congestions();
    while (strcmp((*all)->name, name) != 0)
        all++;
    return *all;
}

static void test_numbers(void **state)
{
    (void)state;
    uint32_t granting = 0;
    for (uint32_t number = 0; number <= UINT8_MAX; number++) {
        const struct lh_congestion *controller = credit_grant_of((uint8_t)number);
        if (!controller)
            continue;
        assert_int_equal(credit_grant_number(controller), number);
        granting++;
    }
    assert_true(granting > 0);
    assert_ptr_equal(credit_grant_of(credit_grant_number(named("eqds"))), named("eqds"));
    assert_int_equal(credit_grant_number(named("bbr")), 0);
    assert_null(credit_grant_of(0));
}

static void test_no_limit(void **state)
{
    (void)state;
    struct credit_grant grant = {0};
    assert_true(credit_grant_renew(&grant, 10, 0, 5) == UINT64_MAX);
}

/* What arrived is granted again, a total that falls changes nothing. */
static void test_renewal(void **state)
{
    (void)state;
    const struct lh_congestion *eqds = named("eqds");
    const struct lh_congestion_path path = {.mtu_bytes = MTU,
                                            .rate_max_bps = LH_RATE_NONE,
                                            .window_max_bytes = 64 << 20,
                                            .rtt_ns = LH_NS_PER_MS};
    size_t bytes = (eqds->receiver_bytes + 63) / 64 * 64;
    void *memory = memset(aligned_alloc(64, bytes), 0, bytes);
    struct credit_grant grant;
    credit_grant_start(&grant, eqds, memory, &path, 0);
    lh_time now = LH_NS_PER_MS;
    uint64_t first = credit_grant_renew(&grant, 0, 0, now), credit = first;
    assert_true(first > 0 && first < UINT64_MAX);
    for (uint64_t packets = 1; packets <= 1000; packets++) {
        now += 100 * LH_NS_PER_US;
        uint64_t more = credit_grant_renew(&grant, packets, 0, now);
        assert_true(more >= credit && more < UINT64_MAX);
        credit = more;
    }
    assert_true(credit >= 1000 * MTU);
    assert_true(credit_grant_renew(&grant, 3, 7, now) >= credit);
    assert_int_equal(grant.arrived_packets, 1000);
    free(memory);
}

static int run_credit_grant(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_no_limit),
        cmocka_unit_test(test_renewal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test delay log -------------------------------------------------------------------------------- */

/* Delays above the minimum, and their quantiles. */

static void test_empty(void **state)
{
    (void)state;
    struct delay_log log = {.buckets = (uint32_t[DELAY_LOG_BUCKETS]){0}};
    assert_int_equal(delay_log_quantile(&log, 0.99), 0);
}

/* Each delay comes back at most a quarter of an octave too long, and never too short. */
static void test_precision(void **state)
{
    (void)state;
    for (lh_time delay = 0; delay < (lh_time)1 << 47; delay = delay * 9 / 8 + 1) {
        struct delay_log log = {.buckets = (uint32_t[DELAY_LOG_BUCKETS]){0}};
        delay_log_add(&log, 1000);
        for (uint32_t i = 0; i < 99; i++)
            delay_log_add(&log, 1000 + delay);
        lh_time found = delay_log_quantile(&log, 0.99);
        assert_true(found >= delay && found <= delay + delay / 4);
    }
}

static void test_quantiles(void **state)
{
    (void)state;
    struct delay_log log = {.buckets = (uint32_t[DELAY_LOG_BUCKETS]){0}};
    delay_log_add(&log, 500);
    for (uint32_t i = 1; i < 1000; i++)
        delay_log_add(&log, 500 + (i >= 985 ? 1000000 : 0));
    assert_int_equal(log.minimum_ns, 500);
    assert_int_equal(delay_log_quantile(&log, 0.98), 0);
    assert_true(delay_log_quantile(&log, 0.99) >= 1000000);
}

/* Those of before there were buckets are no part of the quantiles. */
static void test_buckets_that_come_later(void **state)
{
    (void)state;
    struct delay_log log = {0};
    for (uint32_t i = 0; i < 100; i++)
        delay_log_add(&log, 1000);
    assert_int_equal(delay_log_quantile(&log, 0.99), 0);
    log.buckets = (uint32_t[DELAY_LOG_BUCKETS]){0};
    assert_int_equal(delay_log_quantile(&log, 0.99), 0);
    for (uint32_t i = 0; i < 100; i++)
        delay_log_add(&log, 9000);
    assert_in_range(delay_log_quantile(&log, 0.99), 8000, 10000);
}

static void test_smoothed(void **state)
{
    (void)state;
    struct delay_log log = {.buckets = (uint32_t[DELAY_LOG_BUCKETS]){0}};
    delay_log_add(&log, 1000);
    for (uint32_t i = 0; i < 100; i++)
        delay_log_add(&log, 9000);
    assert_in_range(log.smoothed_ns, 7900, 8000);
    delay_log_add(&log, (lh_time)1 << 60); /* beyond the last bucket */
    assert_int_equal(log.samples, 102);
}

/* The shortest of the last samples: one that is not held up by jitter shows that no queue stands. */
static void test_standing(void **state)
{
    (void)state;
    struct delay_log log = {0};
    delay_log_add(&log, 1000);
    for (uint32_t i = 1; i < DELAY_LOG_RECENT; i++) {
        assert_int_equal(delay_log_standing(&log), 0);
        delay_log_add(&log, 9000);
    }
    assert_int_equal(delay_log_standing(&log), 0); /* of the first sample */
    for (uint32_t i = 0; i < DELAY_LOG_RECENT; i++)
        delay_log_add(&log, 9000 + i);
    assert_int_equal(delay_log_standing(&log), 8000);
    delay_log_add(&log, 1500);
    assert_int_equal(delay_log_standing(&log), 500);
    for (uint32_t i = 1; i < 2 * DELAY_LOG_RECENT; i++) {
        assert_int_equal(delay_log_standing(&log), 500);
        delay_log_add(&log, 9000);
    }
    assert_int_equal(delay_log_standing(&log), 8000);
}

static int run_delay_log(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),     cmocka_unit_test(test_precision),
        cmocka_unit_test(test_quantiles), cmocka_unit_test(test_buckets_that_come_later),
        cmocka_unit_test(test_smoothed),  cmocka_unit_test(test_standing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test limits ----------------------------------------------------------------------------------- */

/* Times of what limited a sender, and what of a pace's time was the host's. */

static void times_add_up(void **state)
{
    (void)state;
    struct limits limits = {0};
    assert_int_equal(limits_ns(&limits, LH_LIMIT_IDLE, 90), 0);
    limits_note(&limits, LH_LIMIT_RATE, 100);
    limits_note(&limits, LH_LIMIT_RATE, 110);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_RATE, 130), 30);
    limits_note(&limits, LH_LIMIT_WINDOW, 130);
    limits_note(&limits, LH_LIMIT_RATE, 170);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_RATE, 171), 31);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_WINDOW, 171), 40);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_IDLE, 171), 0);
}

static void the_host_came_late(void **state)
{
    (void)state;
    struct limits limits = {0};
    limits_late(&limits, 50, 90); /* nothing was noted yet */
    limits_note(&limits, LH_LIMIT_RATE, 100);
    limits_late(&limits, 140, 140); /* just in time */
    assert_int_equal(limits.now, LH_LIMIT_RATE);
    limits_late(&limits, 140, 150);
    limits_note(&limits, LH_LIMIT_RATE, 150);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_RATE, 150), 40);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_HOST, 150), 10);
    limits_late(&limits, 120, 160); /* full since before: no time counts twice */
    limits_note(&limits, LH_LIMIT_IDLE, 160);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_RATE, 160), 40);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_HOST, 160), 20);
    limits_late(&limits, 165, 170); /* no pace held it */
    assert_int_equal(limits.now, LH_LIMIT_IDLE);
}

static int run_limits(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_add_up),
        cmocka_unit_test(the_host_came_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test rate control ----------------------------------------------------------------------------- */

/*
 * What may leave: pace, windows, the peer's buffer, silence; and what a peer that lies
 * can reach.
 */

#define RATE_CONTROL_MTU 1000u
#define RATE_CONTROL_RTT (20 * LH_NS_PER_MS)
#define MBIT             UINT64_C(1000000)

/* A controller that does as it is told, and keeps what it heard. */
struct puppet {
    struct lh_congestion_decision decision;
    struct lh_congestion_feedback feedback;
    uint32_t feedbacks, sents, timers;
    lh_time start_rtt_ns;
};

static void puppet_start(void *state, const struct lh_congestion_path *path,
                         const uint8_t params[LH_CONGESTION_PARAMS], lh_time now)
{
    (void)params, (void)now;
    ((struct puppet *)state)->start_rtt_ns = path->rtt_ns;
}

static void puppet_on_sent(void *state, uint64_t bytes, uint64_t in_flight_bytes, lh_time now)
{
    (void)bytes, (void)in_flight_bytes, (void)now;
    ((struct puppet *)state)->sents++;
}

static void puppet_on_feedback(void *state, const struct lh_congestion_feedback *feedback)
{
    ((struct puppet *)state)->feedback = *feedback;
    ((struct puppet *)state)->feedbacks++;
}

static void puppet_on_timer(void *state, lh_time now)
{
    (void)now;
    ((struct puppet *)state)->timers++;
    ((struct puppet *)state)->decision.next_ns = LH_TIME_NEVER;
}

static void puppet_decide(const void *state, lh_time now, struct lh_congestion_decision *decision)
{
    (void)now;
    *decision = ((const struct puppet *)state)->decision;
}

static const struct lh_congestion puppet_congestion = {
    .name = "puppet",
    .state_bytes = sizeof(struct puppet),
    .start = puppet_start,
    .on_sent = puppet_on_sent,
    .on_feedback = puppet_on_feedback,
    .on_timer = puppet_on_timer,
    .decide = puppet_decide,
};

struct world {
    struct rate_control rate;
    struct puppet puppet;
    struct flight_entry ring[RATE_FLIGHT_ENTRIES];
    struct lh_congestion_path path;
    struct rate_path measured;
    lh_time now;
    uint64_t key;
    uint64_t arrived;
};

static struct world world;

static void begin(uint64_t receiver_bytes)
{
    static const uint8_t params[LH_CONGESTION_PARAMS];
    world = (struct world){
        .puppet.decision = {LH_RATE_NONE, UINT64_MAX, UINT64_MAX, 0, LH_TIME_NEVER},
        .path = {.mtu_bytes = RATE_CONTROL_MTU,
                 .rate_max_bps = LH_RATE_NONE,
                 .window_max_bytes = 1000 * RATE_CONTROL_MTU},
        .measured = {RATE_CONTROL_RTT, 2 * RATE_CONTROL_RTT, RATE_CONTROL_RTT / 8},
        .now = LH_NS_PER_S,
    };
    rate_control_init_controlled(&world.rate, &puppet_congestion, &world.puppet, world.ring);
    assert_int_equal(rate_control_room(&world.rate, world.now).bytes, 0); /* not before the start */
    rate_control_start(&world.rate, &world.path, params, receiver_bytes, &world.measured, world.now);
}

/* Sends full packets as long as there is room, `most` at most; returns how many. */
static uint32_t send_all(uint32_t maximum)
{
    uint32_t sent = 0;
    for (; sent < maximum; sent++) {
        struct rate_room room = rate_control_room(&world.rate, world.now);
        if (room.bytes < RATE_CONTROL_MTU || room.packets == 0)
            break;
        rate_control_reserve(&world.rate, 1, RATE_CONTROL_MTU, world.now);
        rate_control_on_run(&world.rate, world.key++, 1, RATE_CONTROL_MTU, world.now);
        rate_control_on_sent(&world.rate, RATE_CONTROL_MTU, RATE_CONTROL_MTU, world.now);
    }
    return sent;
}

static uint64_t reach_now(void)
{
    struct rate_room room = rate_control_room(&world.rate, world.now);
    return rate_control_reach(&world.rate, &room);
}

static bool report_with_key(uint64_t key, uint64_t arrived, uint64_t dropped)
{
    world.arrived = arrived;
    const struct flight_report report = {
        .key = key,
        .arrived_packets = arrived,
        .dropped_packets = dropped,
        .credit_bytes = UINT64_MAX,
        .arrived_ns = world.now + 5 * LH_NS_PER_S,
    };
    return rate_control_on_report(&world.rate, &report, 0, &world.measured, world.now);
}

static bool report(uint64_t arrived, uint64_t dropped)
{
    return report_with_key(arrived - 1 + dropped, arrived, dropped);
}

static enum lh_limit limit_now(void)
{
    return rate_control_room(&world.rate, world.now).limit;
}

static void test_without_control(void **state)
{
    (void)state;
    struct rate_control rate;
    rate_control_init(&rate, 0, 0);
    assert_int_equal(rate_control_room(&rate, 5).bytes, UINT64_MAX);
    assert_int_equal(rate_control_next(&rate), LH_TIME_NEVER);
    const lh_time packet_ns = 250 * LH_NS_PER_US;
    rate_control_init(&rate, RATE_CONTROL_MTU * 8 * LH_NS_PER_S / packet_ns, RATE_CONTROL_MTU);
    rate_control_reserve(&rate, 4, 4 * RATE_CONTROL_MTU,
                         5); /* a millisecond, for a worker that comes late */
    assert_int_equal(rate_control_room(&rate, 5).bytes, 0);
    rate_control_on_refused(&rate, 1, RATE_CONTROL_MTU);
    assert_int_equal(rate_control_room(&rate, 5).bytes, RATE_CONTROL_MTU);
    assert_int_equal(rate_control_room(&rate, 5 + packet_ns).bytes, 2 * RATE_CONTROL_MTU);
    rate_control_reserve(&rate, 1, RATE_CONTROL_MTU, 5);
    /* Half a burst of at least two packets, or what is queued. */
    assert_int_equal(rate_control_ready(&rate, LH_LIMIT_RATE, 5, 100 * RATE_CONTROL_MTU, 0), 5 + packet_ns);
    assert_int_equal(rate_control_ready(&rate, LH_LIMIT_RATE, 5, RATE_CONTROL_MTU / 2, 0),
                     5 + packet_ns / 2);
    /* An empty packet, while nothing may leave, is no reason to ask again at once. */
    assert_int_equal(rate_control_ready(&rate, LH_LIMIT_RATE, 5, 0, 0), 5 + packet_ns / RATE_CONTROL_MTU);
    /* What others have to send before goes first, also when it is more than may leave at once. */
    assert_int_equal(
        rate_control_ready(&rate, LH_LIMIT_RATE, 5, 100 * RATE_CONTROL_MTU, 100 * RATE_CONTROL_MTU),
        5 + 101 * packet_ns);
}

static void test_windows(void **state)
{
    (void)state;
    begin(0);
    world.puppet.decision.window_bytes = 10 * RATE_CONTROL_MTU;
    assert_int_equal(send_all(1), 1); /* from here on it is decided */
    assert_int_equal(send_all(100), 9);
    assert_int_equal(limit_now(), LH_LIMIT_WINDOW);
    assert_int_equal(rate_control_ready(&world.rate, LH_LIMIT_WINDOW, world.now, RATE_CONTROL_MTU, 0),
                     LH_TIME_NEVER);
    world.now += RATE_CONTROL_RTT;
    assert_true(report(4, 0));
    assert_int_equal(send_all(100), 4);
    world.puppet.decision.window_bytes = UINT64_MAX;
    world.now += RATE_CONTROL_RTT;
    assert_true(report(14, 0));
    assert_int_equal(send_all(2000), 1000);
    assert_int_equal(limit_now(), LH_LIMIT_USER_WINDOW);
}

/* What leaves while a report is held is in flight beside the window; not in a train that is measured. */
static void test_exact_window(void **state)
{
    (void)state;
    for (uint32_t exact = 0; exact < 2; exact++) {
        begin(0);
        world.puppet.decision.rate_bps = 8000 * MBIT;
        world.puppet.decision.window_bytes = 10 * RATE_CONTROL_MTU;
        world.puppet.decision.window_is_exact = exact;
        assert_int_equal(send_all(1), 1);
        assert_int_equal(send_all(100), 9);
        world.now += RATE_CONTROL_RTT;
        assert_true(report(4, 0));
        assert_int_equal(send_all(100), exact ? 4 : 4 + 4);
    }
}

/* Nothing that is taken moves the reach: what a worker leaves behind is there for another one. */
static void test_reach(void **state)
{
    (void)state;
    begin(0);
    world.puppet.decision.window_bytes = 10 * RATE_CONTROL_MTU;
    assert_int_equal(send_all(1), 1);
    uint64_t reach = reach_now();
    assert_int_equal(reach, 10 * RATE_CONTROL_MTU);
    assert_int_equal(send_all(3), 3);
    assert_int_equal(reach_now(), reach);
    rate_control_reserve(&world.rate, 4, 4 * RATE_CONTROL_MTU, world.now);
    assert_int_equal(reach_now(), reach);
    rate_control_on_refused(&world.rate, 4, 4 * RATE_CONTROL_MTU);
    assert_int_equal(reach_now(), reach);
    rate_control_on_dropped(&world.rate, 2 * RATE_CONTROL_MTU); /* it takes no room */
    assert_int_equal(reach_now(), reach + 2 * RATE_CONTROL_MTU);
    world.now += RATE_CONTROL_RTT;
    assert_true(report(3, 0));
    assert_int_equal(reach_now(), reach + 5 * RATE_CONTROL_MTU);
}

static void test_credit(void **state)
{
    (void)state;
    begin(0);
    world.puppet.decision.total_bytes = 3 * RATE_CONTROL_MTU;
    assert_int_equal(send_all(1) + send_all(100), 3);
    assert_int_equal(limit_now(), LH_LIMIT_CREDIT);
    /* All arrived, and the report that grants more got lost: one packet asks. */
    world.now += RATE_CONTROL_RTT;
    report(3, 0);
    assert_int_equal(send_all(100), 1);
    assert_int_equal(limit_now(), LH_LIMIT_CREDIT);
}

static void test_pace_and_burst(void **state)
{
    (void)state;
    begin(0);
    world.puppet.decision.rate_bps = 800 * MBIT; /* 250 us are 25 packets */
    assert_int_equal(send_all(1), 1);
    assert_int_equal(world.rate.burst_bytes, 25 * RATE_CONTROL_MTU);
    world.now += RATE_CONTROL_RTT; /* a worker that comes late makes up for a sixteenth of a round trip */
    const uint32_t arrears = (uint32_t)(RATE_CONTROL_RTT / 16 * 800 / (8000 * RATE_CONTROL_MTU));
    assert_in_range(send_all(1000), arrears - 1, arrears + 1);
    assert_int_equal(limit_now(), LH_LIMIT_RATE);
    assert_int_equal(rate_control_ready(&world.rate, LH_LIMIT_RATE, world.now, 100 * RATE_CONTROL_MTU, 0),
                     world.now + 125 * LH_NS_PER_US);
    world.puppet.decision.rate_bps = MBIT; /* two packets at least */
    world.now += RATE_CONTROL_RTT;
    assert_true(report(1, 0));
    assert_int_equal(world.rate.burst_bytes, 2 * RATE_CONTROL_MTU);
}

/* Without anything to send nothing is made up for: what comes then is a burst, as any. */
static void test_burst_after_idle_time(void **state)
{
    (void)state;
    begin(0);
    world.puppet.decision.rate_bps = 800 * MBIT;
    assert_int_equal(send_all(1), 1);
    rate_control_reserve(&world.rate, 1, RATE_CONTROL_MTU, world.now);
    rate_control_on_run(&world.rate, world.key++, 1, RATE_CONTROL_MTU, world.now);
    rate_control_on_sent(&world.rate, RATE_CONTROL_MTU, 0, world.now);
    world.now += RATE_CONTROL_RTT;
    assert_int_equal(rate_control_room(&world.rate, world.now).bytes, 25 * RATE_CONTROL_MTU);
    assert_int_equal(send_all(1000), 25);
    world.now += RATE_CONTROL_RTT; /* more waits: a worker that was late makes up for it */
    assert_true(send_all(1000) > 25);
}

/* The first round trip may have been long by chance. Once a packet is timed, the controller knows better. */
static void test_shorter_round_trip(void **state)
{
    (void)state;
    begin(0);
    struct rate_path measured = {RATE_CONTROL_RTT, 2 * RATE_CONTROL_RTT, RATE_CONTROL_RTT / 8};
    rate_control_on_measured(&world.rate, &measured, world.now);
    assert_int_equal(world.puppet.start_rtt_ns, RATE_CONTROL_RTT);
    measured.minimum_ns = 2 * RATE_CONTROL_RTT;
    rate_control_on_measured(&world.rate, &measured, world.now);
    assert_int_equal(world.puppet.start_rtt_ns, RATE_CONTROL_RTT);
    measured.minimum_ns = RATE_CONTROL_RTT / 2;
    assert_int_equal(send_all(1), 1);
    rate_control_on_measured(&world.rate, &measured, world.now);
    assert_int_equal(world.puppet.start_rtt_ns, RATE_CONTROL_RTT / 2);
    world.now += RATE_CONTROL_RTT;
    assert_true(report(1, 0));
    measured.minimum_ns = RATE_CONTROL_RTT / 4;
    rate_control_on_measured(&world.rate, &measured, world.now);
    assert_int_equal(world.puppet.start_rtt_ns, RATE_CONTROL_RTT / 2);
}

/* What a host measures while it does not keep up with its rate is not taken for the path's. */
static void test_late_host(void **state)
{
    (void)state;
    begin(0);
    world.puppet.decision.rate_bps = 800 * MBIT;
    send_all(10);
    world.now += RATE_CONTROL_RTT / 2;
    send_all(10);
    assert_true(world.rate.flight.limited_until_packets > 0);
}

/* Nor what is delivered while less than a packet waits. */
static void test_little_to_send(void **state)
{
    (void)state;
    begin(0);
    assert_int_equal(send_all(1), 1);
    world.now += RATE_CONTROL_RTT;
    assert_true(report(1, 0));
    assert_true(world.rate.flight.limited_until_packets == 0);
    rate_control_reserve(&world.rate, 1, 0, world.now);
    rate_control_on_run(&world.rate, world.key++, 1, 0, world.now);
    rate_control_on_sent(&world.rate, 0, 1, world.now);
    assert_true(world.rate.flight.limited_until_packets == 2);
}

/* On a short path no more is in flight than half of the peer's buffer. */
static void test_receiver_short_path(void **state)
{
    (void)state;
    begin(64 * RATE_CONTROL_MTU);
    world.measured.minimum_ns = 50 * LH_NS_PER_US;
    send_all(1);
    world.now += RATE_CONTROL_RTT;
    report(1, 0);
    assert_int_equal(send_all(100), 32);
    assert_int_equal(limit_now(), LH_LIMIT_RECEIVER);
    /* Short packets take as much memory as full ones. */
    world.now += RATE_CONTROL_RTT;
    report(world.key, 0);
    for (uint32_t i = 0; i < 32; i++) {
        rate_control_reserve(&world.rate, 1, 1, world.now);
        rate_control_on_run(&world.rate, world.key++, 1, 1, world.now);
        rate_control_on_sent(&world.rate, 1, RATE_CONTROL_MTU, world.now);
    }
    assert_int_equal(rate_control_room(&world.rate, world.now).packets, 0);
}

/* On a long one what the rate puts on the path is beside that. */
static void test_receiver_long_path(void **state)
{
    (void)state;
    begin(64 * RATE_CONTROL_MTU);
    world.puppet.decision.rate_bps = 80 * MBIT; /* 10 packets a millisecond */
    world.puppet.decision.burst_bytes = 1000 * RATE_CONTROL_MTU;
    send_all(1);
    world.now += RATE_CONTROL_RTT;
    report(1, 0);
    assert_int_equal(send_all(1000), 32 + 195);
}

/* The same round trip on one host is that of busy processors: all waits in the peer's socket. */
static void test_receiver_busy_host(void **state)
{
    (void)state;
    begin(64 * RATE_CONTROL_MTU);
    world.rate.same_host = true;
    world.rate.no_path = true;
    world.puppet.decision.rate_bps = 80 * MBIT;
    world.puppet.decision.burst_bytes = 1000 * RATE_CONTROL_MTU;
    send_all(1);
    world.now += RATE_CONTROL_RTT;
    report(1, 0);
    assert_int_equal(send_all(1000), 32);
    assert_int_equal(limit_now(), LH_LIMIT_RECEIVER);
}

/* On the same host no controller starts slowly: at first a few packets, then as many more as have arrived,
 * up to half of the buffer. */
static void test_receiver_at_first(void **state)
{
    (void)state;
    begin(1000 * RATE_CONTROL_MTU);
    world.rate.same_host = true;
    world.measured.minimum_ns = 50 * LH_NS_PER_US;
    world.rate.min_rtt_ns = 50 * LH_NS_PER_US;
    assert_int_equal(send_all(1000), 64);
    assert_int_equal(limit_now(), LH_LIMIT_RECEIVER);
    world.now += RATE_CONTROL_RTT;
    report(64, 0);
    assert_int_equal(send_all(1000), 128);
    for (uint32_t i = 0; i < 3; i++) {
        world.now += RATE_CONTROL_RTT;
        report(world.key, 0);
        send_all(1000);
    }
    world.now += RATE_CONTROL_RTT;
    report(world.key, 0);
    assert_int_equal(send_all(1000), 500);
}

/* Drops in the peer's socket: at most what it reads, less in its buffer; and back after a while. */
static void test_drain(void **state)
{
    (void)state;
    begin(64 * RATE_CONTROL_MTU);
    world.puppet.decision.rate_bps = 800 * MBIT;
    world.now += RATE_CONTROL_RTT;
    send_all(20);
    world.now += RATE_CONTROL_RTT;
    report(10, 0);
    world.now += RATE_CONTROL_RTT;
    report(12, 5);
    assert_true(world.puppet.feedback.dropped_bytes == 5 * RATE_CONTROL_MTU);
    assert_true(world.rate.pacer.rate_bps <= 400 * MBIT);
    assert_int_equal(world.rate.receiver_packets, 24);
    for (uint32_t i = 0; i < 400; i++) {
        send_all(1);
        world.now += 2 * RATE_CONTROL_RTT;
        report(world.arrived + 1, 5);
    }
    assert_int_equal(world.rate.pacer.rate_bps, 800 * MBIT);
    assert_int_equal(world.rate.receiver_packets, 32);
}

/* What is in flight is overdue by the round trip as it is measured now, though no report comes. */
/* A receiver whose host did not run for a minute has read nearly nothing: that is not its rate. */
static void test_drain_falls_by_eight_at_most(void **state)
{
    (void)state;
    begin(64 * RATE_CONTROL_MTU);
    world.puppet.decision.rate_bps = 800 * MBIT;
    world.now += RATE_CONTROL_RTT;
    send_all(10);
    world.now += LH_NS_PER_MS;
    send_all(10);
    world.now += RATE_CONTROL_RTT;
    report(1, 0);
    world.now += 60 * LH_NS_PER_S;
    report(12, 5);
    assert_true(world.puppet.feedback.rate_bps > 0 && world.puppet.feedback.rate_bps < MBIT / 100);
    assert_int_equal(world.rate.pacer.rate_bps, 100 * MBIT);
}

static void test_overdue_as_measured(void **state)
{
    (void)state;
    begin(0);
    struct rate_path measured = {RATE_CONTROL_RTT, 100 * RATE_CONTROL_RTT, RATE_CONTROL_RTT / 8};
    rate_control_on_measured(&world.rate, &measured, world.now);
    send_all(5);
    lh_time before = rate_control_next(&world.rate) - world.now;
    measured.overdue_ns = 2 * RATE_CONTROL_RTT;
    rate_control_on_measured(&world.rate, &measured, world.now);
    lh_time after = rate_control_next(&world.rate) - world.now;
    assert_int_equal(before, 50 * after);
    assert_true(rate_control_on_time(&world.rate, world.now + after));
}

/* After silence one packet at a time, more and more rarely; a report ends it. */
static void test_silence(void **state)
{
    (void)state;
    begin(0);
    assert_int_equal(send_all(20), 20);
    lh_time last = 0;
    for (uint32_t i = 0; i < 5; i++) {
        lh_time next = rate_control_next(&world.rate);
        assert_true(next != LH_TIME_NEVER && (i < 2 || next - world.now == 2 * last));
        last = next - world.now;
        world.now = next;
        assert_true(rate_control_on_time(&world.rate, world.now));
        assert_int_equal(world.puppet.feedback.arrived_bytes, 0);
        assert_int_equal(send_all(20), 1);
    }
    world.now += RATE_CONTROL_RTT;
    assert_true(report(21, 0));
    assert_int_equal(send_all(20), 20);
}

/* The last packet of a message may be lost at random: the next message need not wait for an answer. Where
 * many are lost more are needed to tell, and to ask. */
static void test_chance_is_no_silence(void **state)
{
    (void)state;
    static const struct {
        uint32_t lost, vanish, ask; /* of 100; so many that vanish are silence; a probe then */
    } paths[] = {{0, 2, 1}, {9, 3, 2}, {30, 6, 3}, {70, 10, 4}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        begin(0);
        assert_int_equal(send_all(100), 100);
        world.now += RATE_CONTROL_RTT;
        report_with_key(99, 100 - paths[i].lost, 0);
        assert_int_equal(send_all(1), 1);
        world.now += RATE_CONTROL_RTT; /* past any reordering: what of them is missing is lost */
        report_with_key(100, 101 - paths[i].lost, 0);
        world.now += RATE_CONTROL_RTT;
        assert_int_equal(send_all(1), 1);
        world.now += RATE_CONTROL_RTT;
        report_with_key(101, 102 - paths[i].lost, 0);
        assert_int_equal(send_all(paths[i].vanish - 1), paths[i].vanish - 1);
        world.now = rate_control_next(&world.rate);
        assert_true(rate_control_on_time(&world.rate, world.now));
        assert_false(world.rate.silent);
        assert_int_equal(send_all(paths[i].vanish), paths[i].vanish);
        world.now = rate_control_next(&world.rate);
        assert_true(rate_control_on_time(&world.rate, world.now));
        assert_true(world.rate.silent);
        assert_int_equal(rate_control_room(&world.rate, world.now).packets, paths[i].ask);
    }
}

/* Between two sockets of one host the peer may not have run for long: it takes longer until all in flight is
 * lost. What asks after that is no burden, and does not wait so long. */
static void test_silence_no_path(void **state)
{
    (void)state;
    const uint32_t sends = 20, probes = 20;
    begin(0);
    world.measured =
        (struct rate_path){RATE_CONTROL_RTT / 1000, RATE_CONTROL_RTT / 500, RATE_CONTROL_RTT / 8000};
    rate_control_on_measured(&world.rate, &world.measured, world.now);
    lh_time path_ns = rate_control_silence_ns(&world.rate);
    world.rate.no_path = true;
    assert_int_equal(rate_control_silence_ns(&world.rate), 25 * path_ns);
    assert_int_equal(send_all(sends), sends);
    lh_time began = world.now;
    for (uint32_t i = 0; i < probes; i++) {
        world.now = rate_control_next(&world.rate);
        assert_true(rate_control_on_time(&world.rate, world.now));
        assert_int_equal(send_all(sends), 1);
    }
    assert_true(world.now - began < (25 + 8 * probes) * path_ns);
    assert_true(report(1, 0));
    assert_int_equal(send_all(sends), sends);
    assert_int_equal(rate_control_silence_ns(&world.rate), 25 * path_ns);
}

/* What was sent over some time is overdue over the same time, and not after waits that double: nothing has
 * been asked since. */
static void test_silence_of_many_sends(void **state)
{
    (void)state;
    begin(0);
    const uint32_t sends = 10;
    for (uint32_t i = 0; i < sends; i++) {
        assert_int_equal(send_all(1), 1);
        world.now += RATE_CONTROL_RTT / 10;
    }
    lh_time silence_ns = rate_control_silence_ns(&world.rate), last_ns = world.now - RATE_CONTROL_RTT / 10;
    for (uint32_t i = 0; i < sends; i++) {
        world.now = rate_control_next(&world.rate);
        assert_true(rate_control_on_time(&world.rate, world.now));
        if (i > 0) /* a single packet is no silence yet */
            assert_int_equal(send_all(1), i == sends - 1);
    }
    assert_int_equal(world.now, last_ns + silence_ns);
    assert_int_equal(rate_control_next(&world.rate), world.now + silence_ns / 2);
}

static void test_timer(void **state)
{
    (void)state;
    begin(0);
    world.puppet.decision.next_ns = world.now + 77;
    send_all(1);
    assert_int_equal(rate_control_next(&world.rate), world.now + 77);
    assert_false(rate_control_on_time(&world.rate, world.now + 76));
    assert_true(rate_control_on_time(&world.rate, world.now + 77));
    assert_int_equal(world.puppet.timers, 1);
}

/* A peer that reports whatever helps it most, at any time, gets the user's window a round trip, and the
 * highest rate that the user allows: however large the controller's window is. */
static void lie(uint64_t rate_max_bps, uint64_t bound_bytes, lh_time span)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, 3);
    begin(64 * RATE_CONTROL_MTU);
    world.rate.path.rate_max_bps = rate_max_bps;
    uint64_t sent = 0;
    for (lh_time end = world.now + span; world.now < end;
         world.now += 1 + lh_prng_below(&prng, RATE_CONTROL_RTT / 50)) {
        const struct flight_report lies = {
            .key = world.key - lh_prng_below(&prng, 3000),
            .arrived_packets = lh_prng_below(&prng, 2) ? UINT64_MAX : world.key,
            .marked_packets = lh_prng_next(&prng),
            .dropped_packets = lh_prng_below(&prng, 9) ? 0 : lh_prng_next(&prng),
            .credit_bytes = lh_prng_below(&prng, 2) ? UINT64_MAX : lh_prng_next(&prng),
            .arrived_ns = lh_prng_next(&prng),
            .held_ns = lh_prng_below(&prng, 2) ? lh_prng_next(&prng) : RATE_CONTROL_RTT,
        };
        rate_control_on_report(&world.rate, &lies, (uint32_t)lh_prng_below(&prng, 2), &world.measured,
                               world.now);
        rate_control_on_time(&world.rate, world.now);
        sent += send_all(UINT32_MAX) * (uint64_t)RATE_CONTROL_MTU;
    }
    assert_true(sent > bound_bytes / 10);
    assert_true(sent <= bound_bytes);
}

static void test_lies(void **state)
{
    (void)state;
    lie(LH_RATE_NONE, (200 + 1) * 1000 * RATE_CONTROL_MTU, 200 * RATE_CONTROL_RTT);
    lie(80 * MBIT, 10 * RATE_CONTROL_MTU * (200 * RATE_CONTROL_RTT / LH_NS_PER_MS) + 5 * RATE_CONTROL_MTU,
        200 * RATE_CONTROL_RTT);
}

static int run_rate_control(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_control),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_exact_window),
        cmocka_unit_test(test_reach),
        cmocka_unit_test(test_credit),
        cmocka_unit_test(test_pace_and_burst),
        cmocka_unit_test(test_burst_after_idle_time),
        cmocka_unit_test(test_shorter_round_trip),
        cmocka_unit_test(test_late_host),
        cmocka_unit_test(test_little_to_send),
        cmocka_unit_test(test_receiver_short_path),
        cmocka_unit_test(test_receiver_long_path),
        cmocka_unit_test(test_receiver_busy_host),
        cmocka_unit_test(test_receiver_at_first),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_drain_falls_by_eight_at_most),
        cmocka_unit_test(test_overdue_as_measured),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_chance_is_no_silence),
        cmocka_unit_test(test_silence_no_path),
        cmocka_unit_test(test_silence_of_many_sends),
        cmocka_unit_test(test_timer),
        cmocka_unit_test(test_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_arrival_report() + run_credit_grant() + run_delay_log() + run_limits() + run_rate_control();
}
