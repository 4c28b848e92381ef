/*
 * test_bbr.c - bbr on simulated bottlenecks: goodput, what it loses to its own queue, the first message.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/controllers.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/min_max.h"
#include "sdr/rate_control.h"
#include "support/bottleneck.h"
#include "support/rivals.h"

#define GBIT UINT64_C(1000000000)

struct trial {
    uint64_t rate_bps;
    lh_time rtt_ns;
    double queue_bdp;
    double loss;
};

static struct bottleneck *create(const struct trial *trial)
{
    double bdp = (double)trial->rate_bps * (double)trial->rtt_ns / 8e9;
    const struct bottleneck_path path = {.rate_bps = trial->rate_bps,
                                         .queue_bytes = (uint64_t)(trial->queue_bdp * bdp),
                                         .loss = trial->loss,
                                         .seed = 3};
    return bottleneck_create(&path);
}

/* Within 3 % of the path's rate, at most 1 % lost to our queue, which is short. */
static void test_endless(void **state)
{
    (void)state;
    const double queues[] = {1, 0.2}, losses[] = {0, 1e-3, 1e-2};
    for (uint32_t i = 0; i < 6; i++) {
        const struct trial trial = {2 * GBIT, 25 * LH_NS_PER_MS, queues[i / 3], losses[i % 3]};
        struct bottleneck *b = create(&trial);
        const struct bottleneck_flow_config config = {.controller = &bbr_congestion,
                                                      .rtt_ns = trial.rtt_ns};
        const struct bottleneck_flow *f = bottleneck_add(b, &config);
        bottleneck_run(b, 100 * trial.rtt_ns);
        double goodput = (double)f->arrived_bytes * 8e9 /
                         ((double)trial.rate_bps * (1 - trial.loss) * 100 * (double)trial.rtt_ns);
        double dropped = (double)f->queue_dropped_bytes / (double)f->sent_bytes;
        double delay = f->queue_ns_bytes / (double)f->queued_bytes / (double)trial.rtt_ns;
        printf("queue %.1f loss %g: goodput %.3f dropped %.4f delay %.3f\n", trial.queue_bdp, trial.loss,
               goodput, dropped, delay);
        assert_true(goodput > 0.97 && dropped < 0.01 && delay < 0.25);
        bottleneck_free(b);
    }
}

struct outcome {
    double goodput, dropped; /* of what the path carries, of what was sent */
};

/* From the first second on. */
static struct outcome run_endless(const struct bottleneck_path *path, lh_time rtt_ns)
{
    struct bottleneck *b = bottleneck_create(path);
    const struct bottleneck_flow_config config = {.controller = &bbr_congestion,
                                                  .rtt_ns = rtt_ns,
                                                  .mtu_bytes = 1024,
                                                  .report_ns = lh_max(rtt_ns / 8, ARRIVAL_REPORT_SPAN_NS)};
    const struct bottleneck_flow *f = bottleneck_add(b, &config);
    bottleneck_run(b, LH_NS_PER_S);
    uint64_t arrived = f->arrived_bytes, dropped = f->queue_dropped_bytes, sent = f->sent_bytes;
    bottleneck_run(b, 4 * LH_NS_PER_S);
    struct outcome outcome = {
        .goodput =
            (double)(f->arrived_bytes - arrived) * 8 / (3 * (double)path->rate_bps * (1 - path->loss)),
        .dropped = (double)(f->queue_dropped_bytes - dropped) / (double)(f->sent_bytes - sent)};
    bottleneck_free(b);
    return outcome;
}

/* Radio, satellites: as much is lost at every rate, so it costs the rate nothing. */
static void test_high_random_loss(void **state)
{
    (void)state;
    const double losses[] = {0.03, 0.1, 0.2, 0.3};
    const struct trial paths[] = {{100000000, 25 * LH_NS_PER_MS, 1, 0},
                                  {GBIT, 100 * LH_NS_PER_MS, 1, 0},
                                  {2 * GBIT, 25 * LH_NS_PER_MS, 1, 0},
                                  {200000000, LH_NS_PER_MS, 1, 0}};
    for (uint32_t i = 0; i < 16; i++) {
        const struct trial *trial = &paths[i / 4];
        const struct bottleneck_path path = {
            .rate_bps = trial->rate_bps,
            .queue_bytes = (uint64_t)((double)trial->rate_bps * fmax((double)trial->rtt_ns, 5e6) / 8e9),
            .loss = losses[i % 4],
            .seed = i + 1};
        struct outcome it = run_endless(&path, trial->rtt_ns);
        printf("%.0f Mbit/s %.0f ms loss %.2f: goodput %.3f dropped %.4f\n", (double)path.rate_bps / 1e6,
               (double)trial->rtt_ns / 1e6, path.loss, it.goodput, it.dropped);
        assert_true(it.goodput > 0.8 && it.dropped < 0.01);
    }
}

/* Messages of a few round trips with a tail of repairs: most rounds are not full, losses are reported later
 * than arrivals, and reports are lost. The rate fell to a few percent, by and by. */
static void test_messages_of_lossy_path(void **state)
{
    (void)state;
    const struct trial paths[] = {{GBIT, 200 * LH_NS_PER_MS, 1, 0.1},
                                  {GBIT, 200 * LH_NS_PER_MS, 1, 0.2},
                                  {GBIT, 200 * LH_NS_PER_MS, 1, 0.3},
                                  {100000000, 50 * LH_NS_PER_MS, 1, 0.2},
                                  {GBIT, 100 * LH_NS_PER_MS, 1, 0.2}};
    for (uint32_t i = 0; i < 15; i++) {
        const struct trial *trial = &paths[i / 3];
        const double bdp = (double)trial->rate_bps * (double)trial->rtt_ns / 8e9;
        const double ideal_ns = (2.6 / (1 - trial->loss) + 1) * (double)trial->rtt_ns;
        const struct bottleneck_path path = {.rate_bps = trial->rate_bps,
                                             .queue_bytes = (uint64_t)bdp,
                                             .loss = trial->loss,
                                             .report_loss = trial->loss,
                                             .seed = 100 * i + 3};
        const struct bottleneck_flow_config config = {.controller = &bbr_congestion,
                                                      .rtt_ns = trial->rtt_ns,
                                                      .mtu_bytes = 1408,
                                                      .message_bytes = (uint64_t)(2.6 * bdp),
                                                      .report_ns = trial->rtt_ns / 8,
                                                      .gap_ns = trial->rtt_ns};
        struct bottleneck *b = bottleneck_create(&path);
        const struct bottleneck_flow *f = bottleneck_add(b, &config);
        assert_true(bottleneck_run_messages(b, 40, (lh_time)(200 * ideal_ns)));
        double mean_ns = 0;
        for (uint32_t n = 20; n < 40; n++)
            mean_ns += (double)f->times_ns[n] / 20;
        printf("messages, %.0f Mbit/s %.0f ms loss %.1f: %.2f of the ideal, dropped %.4f\n",
               (double)path.rate_bps / 1e6, (double)trial->rtt_ns / 1e6, path.loss, mean_ns / ideal_ns,
               (double)f->queue_dropped_bytes / (double)f->sent_bytes);
        assert_true(mean_ns < 3 * ideal_ns && f->queue_dropped_bytes == 0);
        bottleneck_free(b);
    }
}

/* What exceeds its rate is dropped once its bucket is empty; nothing ever waits. */
static void test_policer(void **state)
{
    (void)state;
    const uint64_t rates[] = {10000000, 200000000, GBIT};
    const lh_time rtts[] = {LH_NS_PER_MS / 10, LH_NS_PER_MS, 5 * LH_NS_PER_MS, 25 * LH_NS_PER_MS};
    for (uint32_t i = 0; i < 12; i++) {
        const struct bottleneck_path path = {
            .rate_bps = rates[i / 4], .bucket_bytes = 65536, .seed = i + 1};
        struct outcome it = run_endless(&path, rtts[i % 4]);
        printf("policer of %.0f Mbit/s %.1f ms: goodput %.3f dropped %.4f\n", (double)path.rate_bps / 1e6,
               (double)rtts[i % 4] / 1e6, it.goodput, it.dropped);
        bool slow = path.rate_bps == 10000000;
        assert_true(it.goodput > (slow ? 0.8 : 0.95) && it.dropped < (slow ? 0.2 : 0.06));
    }
}

/* The first train fits the bucket and shows the host's speed, and a message is over before a round trip that
 * the application does not limit: nearly all of it was dropped, again and again. */
static void test_policer_of_short_messages(void **state)
{
    (void)state;
    for (lh_time rtt_ns = 10 * LH_NS_PER_MS; rtt_ns <= 50 * LH_NS_PER_MS; rtt_ns += 40 * LH_NS_PER_MS) {
        const struct bottleneck_path path = {.rate_bps = 10000000, .bucket_bytes = 65536, .seed = 1};
        struct bottleneck *b = bottleneck_create(&path);
        const struct bottleneck_flow_config config = {.controller = &bbr_congestion,
                                                      .rtt_ns = rtt_ns,
                                                      .mtu_bytes = 1408,
                                                      .message_bytes = 1 << 20,
                                                      .gap_ns = 5 * LH_NS_PER_MS};
        const struct bottleneck_flow *f = bottleneck_add(b, &config);
        bottleneck_run(b, 20 * LH_NS_PER_S);
        double dropped = (double)f->queue_dropped_bytes / (double)f->sent_bytes;
        double goodput = (double)f->arrived_bytes * 8 / (20.0 * (double)path.rate_bps);
        printf("policer, 1 MiB, %.0f ms: goodput %.3f dropped %.4f\n", (double)rtt_ns / 1e6, goodput,
               dropped);
        assert_true(dropped < 0.25 && goodput > 0.8);
        bottleneck_free(b);
    }
}

/* A policer and loss at random: neither is certain, so the rate varies, but it does not collapse. */
static void test_policer_with_loss(void **state)
{
    (void)state;
    const struct bottleneck_path path = {
        .rate_bps = 200000000, .bucket_bytes = 65536, .loss = 0.1, .seed = 1};
    struct outcome it = run_endless(&path, 10 * LH_NS_PER_MS);
    printf("policer and loss: goodput %.3f dropped %.4f\n", it.goodput, it.dropped);
    assert_true(it.goodput > 0.4 && it.dropped < 0.05);
}

/* Eight flows at a policer, and at a queue that is too short to be seen: of the loss that all of them cause,
 * one changes little. */
static void test_many_flows_without_a_queue(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        const struct bottleneck_path path = {.rate_bps = 200000000,
                                             .bucket_bytes = i == 0 ? 65536 : 0,
                                             .queue_bytes = i == 0 ? 0 : 37500,
                                             .seed = 1};
        struct bottleneck *b = bottleneck_create(&path);
        struct bottleneck_flow *flows[8];
        for (lh_time k = 0; k < 8; k++) {
            const struct bottleneck_flow_config config = {.controller = &bbr_congestion,
                                                          .rtt_ns = 25 * LH_NS_PER_MS,
                                                          .mtu_bytes = 1024,
                                                          .start_ns = k * 50 * LH_NS_PER_MS};
            flows[k] = bottleneck_add(b, &config);
        }
        bottleneck_run(b, 20 * LH_NS_PER_S);
        double arrived = 0, dropped = 0, sent = 0;
        for (uint32_t k = 0; k < 8; k++) {
            arrived += (double)flows[k]->arrived_bytes;
            dropped += (double)flows[k]->queue_dropped_bytes;
            sent += (double)flows[k]->sent_bytes;
        }
        printf("8 flows at a %s: goodput %.3f dropped %.3f\n", i == 0 ? "policer" : "short queue",
               arrived * 8 / 200e6 / 20, dropped / sent);
        assert_true(arrived * 8 / 200e6 / 20 > 0.85 && dropped / sent < (i == 0 ? 0.3 : 0.15));
        bottleneck_free(b);
    }
}

/* Loss at random that is over is made up for no more: a queue would hide that it is. */
static void test_loss_that_ends(void **state)
{
    (void)state;
    const double losses[] = {0.3, 0.5, 0.9};
    for (uint32_t i = 0; i < 3; i++) {
        const struct bottleneck_path path = {
            .rate_bps = 200000000, .queue_bytes = 125000, .loss = losses[i], .seed = 1};
        struct bottleneck *b = bottleneck_create(&path);
        const struct bottleneck_flow_config config = {
            .controller = &bbr_congestion, .rtt_ns = 25 * LH_NS_PER_MS, .mtu_bytes = 1024};
        const struct bottleneck_flow *f = bottleneck_add(b, &config);
        bottleneck_run(b, 3 * LH_NS_PER_S);
        b->path.loss = 0;
        b->until_loss = UINT64_MAX;
        bottleneck_run(b, 13 * LH_NS_PER_S);
        uint64_t dropped = f->queue_dropped_bytes, sent = f->sent_bytes, arrived = f->arrived_bytes;
        bottleneck_run(b, 18 * LH_NS_PER_S);
        double share = (double)(f->queue_dropped_bytes - dropped) / (double)(f->sent_bytes - sent);
        double goodput = (double)(f->arrived_bytes - arrived) * 8 / 200e6 / 5;
        printf("loss of %.1f that ended: goodput %.3f dropped %.4f\n", losses[i], goodput, share);
        assert_true(share < 0.02 && goodput > 0.85);
        bottleneck_free(b);
    }
}

/* 16 MiB at 2 Gbit/s and 25 ms: the ideal is 92.1 ms. */
static void test_first_message(void **state)
{
    (void)state;
    const struct trial trial = {2 * GBIT, 25 * LH_NS_PER_MS, 1, 0};
    struct bottleneck *b = create(&trial);
    const struct bottleneck_flow_config config = {
        .controller = &bbr_congestion, .rtt_ns = trial.rtt_ns, .message_bytes = 16 << 20};
    const struct bottleneck_flow *f = bottleneck_add(b, &config);
    assert_true(bottleneck_run_messages(b, 1, LH_NS_PER_S));
    assert_true(f->times_ns[0] < 92 * LH_NS_PER_MS + 2 * trial.rtt_ns);
    assert_int_equal(f->queue_dropped_bytes, 0);
    bottleneck_free(b);
}

/* Hosts that run for a millisecond, then pause for up to half of one: longer than the first train takes. At
 * most 2 % lost to the queue, ideal + 3 round trips. */
static void test_first_message_of_pausing_hosts(void **state)
{
    (void)state;
    double sum_ms = 0, worst_ms = 0, worst_dropped = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        const struct bottleneck_path path = {
            .rate_bps = 2 * GBIT, .queue_bytes = 6250000, .seed = seed}; /* 1 BDP */
        struct bottleneck *b = bottleneck_create(&path);
        const struct bottleneck_flow *f =
            bottleneck_add(b, &(struct bottleneck_flow_config){.controller = &bbr_congestion,
                                                               .rtt_ns = 25 * LH_NS_PER_MS,
                                                               .message_bytes = 16 << 20,
                                                               .run_ns = LH_NS_PER_MS,
                                                               .pause_ns = LH_NS_PER_MS / 2});
        assert_true(bottleneck_run_messages(b, 1, LH_NS_PER_S));
        double ms = (double)f->times_ns[0] / 1e6;
        double dropped = (double)f->queue_dropped_bytes / (double)f->sent_bytes;
        if (dropped > 0.02 || ms > 92.1 + 3 * 25)
            printf("seed %llu: %.1f ms, dropped %.3f\n", (unsigned long long)seed, ms, dropped);
        sum_ms += ms;
        worst_ms = ms > worst_ms ? ms : worst_ms;
        worst_dropped = dropped > worst_dropped ? dropped : worst_dropped;
        bottleneck_free(b);
    }
    printf("first message, hosts pause: mean %.1f ms, worst %.1f ms, dropped at most %.4f\n", sum_ms / 300,
           worst_ms, worst_dropped);
    assert_true(worst_dropped <= 0.02 && worst_ms <= 92.1 + 3 * 25);
}

/* Packets of the train itself are lost, and its spacing has the gaps of a sender without a window. */
static void test_first_message_of_lossy_path(void **state)
{
    (void)state;
    static const lh_time pauses[] = {0, 2 * LH_NS_PER_MS};
    for (unsigned i = 0; i < 2; i++) {
        double worst_ms = 0;
        for (uint64_t seed = 1; seed <= 300; seed++) {
            const struct bottleneck_path path = {
                .rate_bps = 2 * GBIT, .queue_bytes = 6250000, .loss = 0.01, .seed = seed};
            struct bottleneck *b = bottleneck_create(&path);
            const struct bottleneck_flow *f =
                bottleneck_add(b, &(struct bottleneck_flow_config){.controller = &bbr_congestion,
                                                                   .rtt_ns = 25 * LH_NS_PER_MS,
                                                                   .message_bytes = 16 << 20,
                                                                   .run_ns = 2 * pauses[i],
                                                                   .pause_ns = pauses[i]});
            assert_true(bottleneck_run_messages(b, 1, 2 * LH_NS_PER_S));
            worst_ms = fmax(worst_ms, (double)f->times_ns[0] / 1e6);
            bottleneck_free(b);
        }
        printf("first message, 1 %% of loss, pauses of up to %.0f ms: at most %.0f ms\n",
               (double)pauses[i] / 1e6, worst_ms);
        assert_true(worst_ms <= 92.1 + (i == 0 ? 4 : 6) * 25); /* two of them repair what was lost */
    }
}

static const struct trial ocean = {2 * GBIT, 25 * LH_NS_PER_MS, 1, 0};

static lh_time first_message_ns(uint64_t remembered_bps, uint64_t *dropped_bytes)
{
    struct bottleneck *b = create(&ocean);
    const struct bottleneck_flow_config config = {.controller = &bbr_congestion,
                                                  .rtt_ns = ocean.rtt_ns,
                                                  .message_bytes = 16 << 20,
                                                  .remembered_bps = remembered_bps};
    const struct bottleneck_flow *f = bottleneck_add(b, &config);
    assert_true(bottleneck_run_messages(b, 1, LH_NS_PER_S));
    lh_time time_ns = f->times_ns[0];
    *dropped_bytes = f->queue_dropped_bytes;
    bottleneck_free(b);
    return time_ns;
}

/* A path that is remembered saves half a round trip; one that got slower is no worse than an unknown one. */
static void test_remembered(void **state)
{
    (void)state;
    uint64_t dropped;
    lh_time ideal_ns = 92 * LH_NS_PER_MS;
    assert_true(first_message_ns(2 * GBIT, &dropped) < ideal_ns + 3 * ocean.rtt_ns / 4);
    assert_int_equal(dropped, 0);
    assert_true(first_message_ns(8 * GBIT, &dropped) < ideal_ns + 2 * ocean.rtt_ns);
    assert_true(dropped < (16 << 20) / 50);
}

/* Requests with idle time between them: what the application does not send lowers no estimate. */
static void test_idle_between_messages(void **state)
{
    (void)state;
    struct bottleneck *b = create(&ocean);
    const struct bottleneck_flow_config config = {.controller = &bbr_congestion,
                                                  .rtt_ns = ocean.rtt_ns,
                                                  .message_bytes = 1 << 20,
                                                  .gap_ns = 3 * ocean.rtt_ns};
    const struct bottleneck_flow *f = bottleneck_add(b, &config);
    assert_true(bottleneck_run_messages(b, 100, 100 * LH_NS_PER_S));
    for (uint32_t i = 1; i < 100; i++) /* ideal: 29.2 ms */
        assert_true(f->times_ns[i] < 30 * LH_NS_PER_MS);
    bottleneck_free(b);
}

/* The share of 16 MiB messages that take a tenth longer than the path needs, after the first 20. */
static double share_of_slow_messages(double queue_bdp, uint64_t seed)
{
    const struct bottleneck_path path = {
        .rate_bps = ocean.rate_bps, .queue_bytes = (uint64_t)(queue_bdp * 6250000), .seed = seed};
    struct bottleneck *b = bottleneck_create(&path);
    const struct bottleneck_flow_config config = {.controller = &bbr_congestion,
                                                  .rtt_ns = ocean.rtt_ns,
                                                  .message_bytes = 16 << 20,
                                                  .gap_ns = ocean.rtt_ns / 2,
                                                  .run_ns = 2 * LH_NS_PER_MS,
                                                  .pause_ns = 300 * LH_NS_PER_US};
    const struct bottleneck_flow *f = bottleneck_add(b, &config);
    assert_true(bottleneck_run_messages(b, 220, 100 * LH_NS_PER_S));
    double slow = 0;
    for (uint32_t i = 20; i < 220; i++) /* ideal: 92.1 ms */
        slow += f->times_ns[i] > 101 * LH_NS_PER_MS;
    bottleneck_free(b);
    return slow / 200;
}

/* Hosts that do not run all the time let a rate seem higher than it is; a short queue forgives little. */
static void test_short_queue(void **state)
{
    (void)state;
    double slow = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        slow += share_of_slow_messages(0.2, seed) / 4;
        assert_true(share_of_slow_messages(1, seed) == 0);
    }
    printf("queue of 0.2, hosts pause: %.4f of the messages wait for what it dropped\n", slow);
    assert_true(slow < 0.01);
}

/* Messages of two packets, one after the other, are no train: their bytes add up, over many round trips. */
static void test_short_messages(void **state)
{
    (void)state;
    const struct trial lan = {GBIT, 2 * LH_NS_PER_MS, 1, 0};
    struct bottleneck *b = create(&lan);
    const struct bottleneck_flow_config config = {
        .controller = &bbr_congestion, .rtt_ns = lan.rtt_ns, .message_bytes = 8192, .gap_ns = lan.rtt_ns};
    const struct bottleneck_flow *f = bottleneck_add(b, &config);
    struct lh_congestion_view view;
    for (uint32_t i = 1; i <= BOTTLENECK_TIMES_MAX; i++) {
        assert_true(bottleneck_run_messages(b, i, 100 * LH_NS_PER_S));
        bbr_congestion.view(f->state, &view);
        assert_true(view.bandwidth_bps <= GBIT);
        assert_true(f->decision.window_bytes <= 128 << 10);
    }
    bottleneck_free(b);
}

/* The share of the link in round trips `from` to `until` after the rate was multiplied. With a short queue,
 * hosts pause, so that it has dropped packets before. */
static double share_after_change(double times, bool short_queue, uint32_t from, uint32_t until)
{
    const struct bottleneck_path path = {.rate_bps = GBIT,
                                         .queue_bytes = short_queue ? 625000 : 3125000, /* of 1 BDP */
                                         .seed = 3,
                                         .change_ns = 50 * ocean.rtt_ns,
                                         .change_bps = (uint64_t)(times * GBIT)};
    struct bottleneck *b = bottleneck_create(&path);
    const struct bottleneck_flow_config config = {.controller = &bbr_congestion,
                                                  .rtt_ns = ocean.rtt_ns,
                                                  .run_ns = short_queue ? 2 * LH_NS_PER_MS : 0,
                                                  .pause_ns = short_queue ? LH_NS_PER_MS : 0};
    const struct bottleneck_flow *f = bottleneck_add(b, &config);
    bottleneck_run(b, (50 + from) * ocean.rtt_ns);
    uint64_t before = f->arrived_bytes;
    bottleneck_run(b, (50 + until) * ocean.rtt_ns);
    double bits = (double)(f->arrived_bytes - before) * 8;
    bottleneck_free(b);
    return bits / ((double)path.change_bps * (until - from) * (double)ocean.rtt_ns / 1e9);
}

static void test_change_of_rate(void **state)
{
    (void)state;
    assert_true(share_after_change(4, false, 20, 40) > 0.97);
    assert_true(share_after_change(4, true, 20, 40) > 0.9);
    assert_true(share_after_change(0.25, false, 3, 20) > 0.9);
    assert_true(share_after_change(0.5, false, 3, 20) > 0.9);
}

/* A path that gets four times slower, at any time of a cycle: what its queue of 1 BDP drops. */
static void test_drops_of_a_slower_path(void **state)
{
    (void)state;
    double dropped_bdp = 0;
    for (uint32_t i = 0; i < 10; i++) {
        const struct bottleneck_path path = {.rate_bps = GBIT,
                                             .queue_bytes = 3125000,
                                             .seed = 3,
                                             .change_ns = 50 * ocean.rtt_ns + i * 7 * ocean.rtt_ns / 10,
                                             .change_bps = GBIT / 4};
        struct bottleneck *b = bottleneck_create(&path);
        const struct bottleneck_flow_config config = {.controller = &bbr_congestion,
                                                      .rtt_ns = ocean.rtt_ns};
        const struct bottleneck_flow *f = bottleneck_add(b, &config);
        bottleneck_run(b, path.change_ns + 80 * ocean.rtt_ns);
        dropped_bdp += (double)f->queue_dropped_bytes / (double)path.queue_bytes / 10;
        bottleneck_free(b);
    }
    printf("a fourth of the rate: %.2f BDP dropped\n", dropped_bdp);
    assert_true(dropped_bdp < 1.3);
}

/* Jain's index over the last tenth of that many round trips of the longest path. */
static double fairness(uint32_t flows, const lh_time *rtts_ns, lh_time stagger_ns, uint32_t rounds)
{
    lh_time rtt_ns = rtts_ns[flows - 1];
    const struct trial trial = {2 * GBIT, rtt_ns, 1, 0};
    struct bottleneck *b = create(&trial);
    for (uint32_t i = 0; i < flows; i++)
        bottleneck_add(b, &(struct bottleneck_flow_config){.controller = &bbr_congestion,
                                                           .rtt_ns = rtts_ns[i],
                                                           .start_ns = i * stagger_ns});
    uint64_t before[BOTTLENECK_FLOWS_MAX];
    bottleneck_run(b, rounds * 9 / 10 * rtt_ns);
    for (uint32_t i = 0; i < flows; i++)
        before[i] = b->flows[i].arrived_bytes;
    bottleneck_run(b, rounds * rtt_ns);
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < flows; i++) {
        double share = (double)(b->flows[i].arrived_bytes - before[i]);
        sum += share;
        squares += share * share;
    }
    bottleneck_free(b);
    printf("%u flows, start every %.1f ms: fairness %.3f\n", flows, (double)stagger_ns / 1e6,
           sum * sum / (flows * squares));
    return sum * sum / (flows * squares);
}

static void test_fairness(void **state)
{
    (void)state;
    lh_time rtts_ns[16];
    for (uint32_t i = 0; i < 16; i++)
        rtts_ns[i] = ocean.rtt_ns;
    assert_true(fairness(2, rtts_ns, 0, 200) > 0.95);
    assert_true(fairness(4, rtts_ns, 0, 200) > 0.95);
    assert_true(fairness(16, rtts_ns, 0, 200) > 0.95);
    assert_true(fairness(2, rtts_ns, 83 * LH_NS_PER_MS, 200) > 0.95);
    const lh_time mixed_ns[2] = {20 * LH_NS_PER_MS, 60 * LH_NS_PER_MS};
    assert_true(fairness(2, mixed_ns, 83 * LH_NS_PER_MS, 200) > 0.8);
}

/* Small windows, flows that join all the time, hosts that pause: Jain's index 200 round trips after the last
 * has joined, mean of some seeds. */
static double fairness_of_joining(uint32_t flows, lh_time pause_ns)
{
    const lh_time rtt_ns = 20 * LH_NS_PER_MS, joining_ns = 2 * LH_NS_PER_S;
    double mean = 0;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        const struct bottleneck_path path = {
            .rate_bps = GBIT / 2, .queue_bytes = 1250000 /* 1 BDP */, .seed = seed};
        struct bottleneck *b = bottleneck_create(&path);
        for (uint32_t i = 0; i < flows; i++)
            bottleneck_add(b, &(struct bottleneck_flow_config){.controller = &bbr_congestion,
                                                               .rtt_ns = rtt_ns,
                                                               .start_ns = i * joining_ns / flows,
                                                               .run_ns = rtt_ns,
                                                               .pause_ns = pause_ns});
        uint64_t before[BOTTLENECK_FLOWS_MAX];
        bottleneck_run(b, joining_ns + 200 * rtt_ns);
        for (uint32_t i = 0; i < flows; i++)
            before[i] = b->flows[i].arrived_bytes;
        bottleneck_run(b, joining_ns + 300 * rtt_ns);
        double sum = 0, squares = 0;
        for (uint32_t i = 0; i < flows; i++) {
            double share = (double)(b->flows[i].arrived_bytes - before[i]);
            sum += share;
            squares += share * share;
        }
        bottleneck_free(b);
        mean += sum * sum / (flows * squares) / 5;
    }
    printf("%u flows join, hosts pause for up to %.0f ms: fairness %.3f\n", flows, (double)pause_ns / 1e6,
           mean);
    return mean;
}

static void test_joining(void **state)
{
    (void)state;
    assert_true(fairness_of_joining(2, 0) > 0.95);
    assert_true(fairness_of_joining(4, 0) > 0.85);
    assert_true(fairness_of_joining(16, 0) > 0.6);
    assert_true(fairness_of_joining(2, 4 * LH_NS_PER_MS) > 0.9);
    assert_true(fairness_of_joining(16, 4 * LH_NS_PER_MS) > 0.5);
}

/* The share of the first of two flows, which the second joins at some time of its first round trips. */
static double share_of_first_once(const struct lh_congestion *first, const struct lh_congestion *second,
                                  lh_time join_ns)
{
    struct bottleneck *b = create(&ocean);
    bottleneck_add(b, &(struct bottleneck_flow_config){.controller = first, .rtt_ns = ocean.rtt_ns});
    bottleneck_add(b, &(struct bottleneck_flow_config){
                          .controller = second, .rtt_ns = ocean.rtt_ns, .start_ns = join_ns});
    bottleneck_run(b, 200 * ocean.rtt_ns);
    uint64_t before[2] = {b->flows[0].arrived_bytes, b->flows[1].arrived_bytes};
    bottleneck_run(b, 1000 * ocean.rtt_ns);
    double a = (double)(b->flows[0].arrived_bytes - before[0]);
    double c = (double)(b->flows[1].arrived_bytes - before[1]);
    bottleneck_free(b);
    return a / (a + c);
}

static double share_of_first(const struct lh_congestion *first, const struct lh_congestion *second)
{
    double mean = 0;
    for (uint32_t i = 0; i < 3; i++)
        mean += share_of_first_once(first, second, ocean.rtt_ns / 2 + i * ocean.rtt_ns / 3) / 3;
    printf("%s beside %s: share %.3f\n", first->name, second->name, mean);
    return mean;
}

static void test_rivals(void **state)
{
    (void)state;
    const struct lh_congestion *const rivals[] = {&rival_cubic, &rival_bbr1};
    for (uint32_t i = 0; i < 2; i++) {
        double first = share_of_first(&bbr_congestion, rivals[i]);
        double second = share_of_first(rivals[i], &bbr_congestion);
        assert_true(first > 0.25 && first < 0.75 && second > 0.25 && second < 0.75);
    }
}

/* All of the first train comes after a clock was set forward, and what follows cannot be timed: it is of no
 * use to the receiver. */
static void test_clock_that_was_set(void **state)
{
    (void)state;
    const uint32_t mtu = 2048, train = 65536;
    const lh_time rtt_ns = 100 * LH_NS_PER_MS, set_ns = 11 * LH_NS_PER_S;
    const struct lh_congestion_path path = {
        .mtu_bytes = mtu, .rtt_ns = rtt_ns, .rate_max_bps = LH_RATE_NONE, .window_max_bytes = UINT64_MAX};
    const uint8_t params[LH_CONGESTION_PARAMS] = {0};
    max_align_t memory[64];
    struct lh_congestion_decision decision;
    assert_true(bbr_congestion.state_bytes <= sizeof memory);
    bbr_congestion.start(memory, &path, params, 0);
    struct lh_congestion_feedback feedback = {
        .now = set_ns, .lost_bytes = train, .lost_total_bytes = train, .credit_bytes = UINT64_MAX};
    bbr_congestion.on_feedback(memory, &feedback);
    feedback = (struct lh_congestion_feedback){.now = set_ns + rtt_ns,
                                               .sent_ns = 1,
                                               .rtt_ns = set_ns + rtt_ns,
                                               .arrived_bytes = train,
                                               .arrived_total_bytes = train,
                                               .credit_bytes = UINT64_MAX};
    bbr_congestion.on_feedback(memory, &feedback);
    for (uint32_t i = 1; i <= 10; i++) {
        feedback = (struct lh_congestion_feedback){.now = set_ns + i * LH_NS_PER_S,
                                                   .arrived_bytes = mtu,
                                                   .arrived_total_bytes = train + i * mtu,
                                                   .credit_bytes = UINT64_MAX};
        bbr_congestion.on_feedback(memory, &feedback);
    }
    bbr_congestion.decide(memory, feedback.now, &decision);
    uint64_t packet_bps = 8ull * mtu * LH_NS_PER_S / rtt_ns; /* one a round trip */
    assert_true(decision.rate_bps > packet_bps);
}

/* After stalls everything that arrives is of no use to the receiver, and no report times it. A packet and
 * then another: the rate must not stay at two packets in 10 ms. */
static void test_arrivals_that_nothing_times(void **state)
{
    (void)state;
    const uint32_t mtu = 1024;
    const lh_time rtt_ns = LH_NS_PER_MS;
    const struct lh_congestion_path path = {
        .mtu_bytes = mtu, .rtt_ns = rtt_ns, .rate_max_bps = LH_RATE_NONE, .window_max_bytes = UINT64_MAX};
    const uint8_t params[LH_CONGESTION_PARAMS] = {0};
    max_align_t memory[64];
    struct lh_congestion_decision decision;
    lh_time now = rtt_ns;
    uint64_t arrived = 0, lost = 0;
    bbr_congestion.start(memory, &path, params, 0);
    struct lh_congestion_feedback feedback = {.now = now, .sent_ns = 1, .rtt_ns = rtt_ns};
    for (uint32_t i = 0; i < 40; i++) {
        if (i > 0)
            feedback = (struct lh_congestion_feedback){.now = now};
        bool is_stall = i > 0 && i < 12;
        feedback.arrived_bytes = is_stall ? 0 : mtu;
        feedback.lost_bytes = is_stall ? 64 * mtu : 0;
        feedback.arrived_total_bytes = arrived += feedback.arrived_bytes;
        feedback.lost_total_bytes = lost += feedback.lost_bytes;
        feedback.credit_bytes = UINT64_MAX;
        bbr_congestion.on_feedback(memory, &feedback);
        bbr_congestion.decide(memory, now, &decision);
        lh_time pause_ns = 8ull * mtu * LH_NS_PER_S / decision.rate_bps;
        now += is_stall ? 100 * rtt_ns : pause_ns;
    }
    assert_true(decision.rate_bps > 8ull * mtu * LH_NS_PER_S / rtt_ns); /* a packet a round trip */
}

/* After many round trips with a full queue, others' for the most part: the rate of a host that does not keep
 * up with it. A third of it arrives, and that share of it is lost. */
static uint64_t rate_of_late_host(double loss)
{
    const lh_time rtt_ns = 20 * LH_NS_PER_MS;
    const uint64_t rate_bps = 30000000, known_bps = 100000000;
    const struct lh_congestion_path path = {.mtu_bytes = 4096,
                                            .rtt_ns = rtt_ns,
                                            .rate_max_bps = LH_RATE_NONE,
                                            .window_max_bytes = UINT64_MAX,
                                            .remembered_rate_bps = known_bps,
                                            .remembered_rtt_ns = rtt_ns};
    const uint8_t params[LH_CONGESTION_PARAMS] = {0};
    max_align_t memory[64];
    struct lh_congestion_decision decision;
    bbr_congestion.start(memory, &path, params, 1);
    uint64_t arrived = 0, lost = 0, before = 0;
    for (uint32_t i = 1; i <= 200; i++) {
        bool first = i == 1;
        lh_time sees_ns = first ? rtt_ns : 2 * rtt_ns;
        uint64_t newly = (first ? known_bps : rate_bps) / 8 * sees_ns / LH_NS_PER_S;
        uint64_t gone = first ? 0 : (uint64_t)((double)newly * loss);
        arrived += newly;
        lost += gone;
        const struct lh_congestion_feedback feedback = {.now = i * 2 * rtt_ns,
                                                        .sent_ns = i * 2 * rtt_ns - sees_ns,
                                                        .rtt_ns = sees_ns,
                                                        .rate_bps = first ? known_bps : rate_bps,
                                                        .sends_bps = first ? known_bps : rate_bps,
                                                        .rate_is_limited = !first,
                                                        .arrived_bytes = newly,
                                                        .lost_bytes = gone,
                                                        .arrived_total_bytes = arrived,
                                                        .lost_total_bytes = lost,
                                                        .passed_total_bytes = arrived + lost,
                                                        .arrived_at_send_bytes = before,
                                                        .credit_bytes = UINT64_MAX};
        before = arrived;
        bbr_congestion.on_feedback(memory, &feedback);
    }
    bbr_congestion.decide(memory, 400 * rtt_ns, &decision);
    return decision.rate_bps;
}

/* It would be three times too fast for good, and so would its neighbours. */
static void test_late_host(void **state)
{
    (void)state;
    printf("%.1f and %.1f Mbit/s\n", (double)rate_of_late_host(0) / 1e6,
           (double)rate_of_late_host(0.1) / 1e6);
    assert_true(rate_of_late_host(0.1) < 50000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endless),
        cmocka_unit_test(test_high_random_loss),
        cmocka_unit_test(test_messages_of_lossy_path),
        cmocka_unit_test(test_policer),
        cmocka_unit_test(test_policer_of_short_messages),
        cmocka_unit_test(test_policer_with_loss),
        cmocka_unit_test(test_many_flows_without_a_queue),
        cmocka_unit_test(test_loss_that_ends),
        cmocka_unit_test(test_first_message),
        cmocka_unit_test(test_first_message_of_pausing_hosts),
        cmocka_unit_test(test_first_message_of_lossy_path),
        cmocka_unit_test(test_remembered),
        cmocka_unit_test(test_idle_between_messages),
        cmocka_unit_test(test_short_queue),
        cmocka_unit_test(test_short_messages),
        cmocka_unit_test(test_change_of_rate),
        cmocka_unit_test(test_drops_of_a_slower_path),
        cmocka_unit_test(test_late_host),
        cmocka_unit_test(test_fairness),
        cmocka_unit_test(test_rivals),
        cmocka_unit_test(test_joining),
        cmocka_unit_test(test_clock_that_was_set),
        cmocka_unit_test(test_arrivals_that_nothing_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
