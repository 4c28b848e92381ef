/*
 * loss.c - trials of each payload size, and their statistics.
 *
 * Sizes take turns, so that what changes on the path in the meantime changes for all of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "probe/loss.h"

#include <assert.h>

#include "launch/tcp.h"
#include "probe/flow.h"
#include "probe/schedule.h"

/* Of a trial, besides its packets and round trips: the messages of two busy hosts. */
#define OVERHEAD_NS (10 * LH_NS_PER_MS)
/* What is measured is the path, not what happens when it is full. */
#define RATE_SHARE 2u
#define RATE_MIN   ((uint64_t)10000)
/* The RoCE payload that counts most, and its headers stand for themselves. */
#define DATA_BYTES 4096u
/* Its rounds have numbers of their own: an emulated link samples by them, and its samples must not depend on
 * how many rounds the other measurements took. */
#define ROUNDS_BEFORE 1000u

struct sums {
    struct model_loss_runs of_size[LH_PROBE_SIZES_MAX];
    uint64_t received_of_size[LH_PROBE_SIZES_MAX], reordered_of_size[LH_PROBE_SIZES_MAX];
    uint64_t received, duplicates, reordered, extent_sum;
    uint64_t flow_sent[LH_PROBE_FLOWS_MAX], flow_lost[LH_PROBE_FLOWS_MAX];
};

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static struct lh_probe_loss loss_of(const struct model_loss_runs *runs, const struct model_loss_runs *all)
{
    struct model_loss_fit fit = model_loss_runs_fit_part(runs, all);
    return (struct lh_probe_loss){
        .sent = runs->packets,
        .lost = runs->lost,
        .loss = fit.loss,
        .loss_low = fit.loss_low,
        .loss_high = fit.loss_high,
        .burst_packets = fit.burst_packets,
        .burst_low = fit.burst_low,
        .burst_high = fit.burst_high,
        .bursty = fit.bursty,
    };
}

/* Order is known of packets that arrived, so trials with drops at the end count for it. */
static void add_order(struct lh_probe_result *result, struct sums *sums, uint32_t size,
                      const uint64_t *numbers)
{
    uint64_t received = numbers[PROBE_REPORT_RECEIVED], reordered = numbers[PROBE_REPORT_REORDERED];
    sums->received += received;
    sums->received_of_size[size] += received;
    sums->reordered += reordered;
    sums->reordered_of_size[size] += reordered;
    sums->duplicates += numbers[PROBE_REPORT_DUPLICATES];
    sums->extent_sum += numbers[PROBE_REPORT_EXTENT_SUM];
    if (numbers[PROBE_REPORT_EXTENT_MAX] > result->reorder_extent_max)
        result->reorder_extent_max = numbers[PROBE_REPORT_EXTENT_MAX];
    if (numbers[PROBE_REPORT_LATE_MAX_NS] > result->reorder_late_max_ns)
        result->reorder_late_max_ns = numbers[PROBE_REPORT_LATE_MAX_NS];
}

static void add_flows(struct sums *sums, uint32_t flows, const struct flow_outcome *outcome)
{
    for (uint32_t flow = 0; flow < flows; flow++) {
        sums->flow_sent[flow] += outcome->sent / flows + (flow < outcome->sent % flows);
        sums->flow_lost[flow] += outcome->report.numbers[PROBE_REPORT_FLOW_LOST + flow];
    }
}

static void add_trial(struct probe_session *session, struct sums *sums, uint32_t size,
                      const struct flow_outcome *outcome)
{
    struct lh_probe_result *result = session->result;
    struct lh_probe_size *of = &result->sizes[size];
    struct lh_probe_trial *trial = &of->trials[of->trial_count++];
    const uint64_t *numbers = outcome->report.numbers;
    const struct model_loss_runs runs = probe_message_runs(&outcome->report);
    uint64_t drops = numbers[PROBE_REPORT_SOCKET_DROPS] + numbers[PROBE_REPORT_HOST_DROPS];
    *trial = (struct lh_probe_trial){.sent = runs.packets,
                                     .lost = runs.lost,
                                     .endpoint_drops = drops,
                                     .excluded = drops > 0 && runs.lost > 0};
    result->trials++;
    result->trials_excluded += trial->excluded;
    result->endpoint_drops_socket += numbers[PROBE_REPORT_SOCKET_DROPS];
    result->endpoint_drops_host += numbers[PROBE_REPORT_HOST_DROPS];
    result->sent += runs.packets;
    add_order(result, sums, size, numbers);
    if (trial->excluded)
        return;
    add_flows(sums, session->attr.flows, outcome);
    model_loss_runs_join(&sums->of_size[size], &runs);
}

static void conclude_size(struct lh_probe_size *of, const struct sums *sums, uint32_t size,
                          const struct model_loss_runs *all)
{
    bool any = false;
    for (uint32_t i = 0; i < of->trial_count; i++) {
        double loss = share(of->trials[i].lost, of->trials[i].sent);
        if (of->trials[i].excluded)
            continue;
        of->trial_low = any && of->trial_low < loss ? of->trial_low : loss;
        of->trial_high = any && of->trial_high > loss ? of->trial_high : loss;
        any = true;
    }
    of->loss = loss_of(&sums->of_size[size], all);
    of->reorder = share(sums->reordered_of_size[size], sums->received_of_size[size]);
}

static bool depends_on_size(const struct lh_probe_result *result)
{
    for (uint32_t i = 0; i < result->size_count; i++)
        for (uint32_t j = 0; j < result->size_count; j++)
            if (result->sizes[i].loss.loss_low > result->sizes[j].loss.loss_high)
                return true;
    return false;
}

/* The largest that is no larger than what data packets carry; else the smallest. */
static uint32_t data_size(const struct lh_probe_result *result)
{
    uint32_t best = 0;
    for (uint32_t i = 0; i < result->size_count; i++) {
        uint32_t bytes = result->sizes[i].payload_bytes, best_bytes = result->sizes[best].payload_bytes;
        bool fits = bytes <= DATA_BYTES, best_fits = best_bytes <= DATA_BYTES;
        if (fits ? !best_fits || bytes > best_bytes : !best_fits && bytes < best_bytes)
            best = i;
    }
    return best;
}

static void conclude(struct probe_session *session, const struct sums *sums)
{
    struct lh_probe_result *result = session->result;
    struct model_loss_runs all = {0};
    for (uint32_t i = 0; i < result->size_count; i++)
        model_loss_runs_join(&all, &sums->of_size[i]);
    for (uint32_t i = 0; i < result->size_count; i++)
        conclude_size(&result->sizes[i], sums, i, &all);
    result->loss = loss_of(&all, &all);
    if (depends_on_size(result)) {
        const struct lh_probe_size *data = &result->sizes[data_size(result)];
        result->loss = data->loss;
        result->loss_payload_bytes = data->payload_bytes;
    }
    result->received = sums->received;
    result->reorder = share(sums->reordered, sums->received);
    result->reorder_extent_mean = share(sums->extent_sum, sums->reordered);
    result->duplicate = share(sums->duplicates, sums->received);
    result->flows = session->attr.flows;
    result->flow_loss_low = share(sums->flow_lost[0], sums->flow_sent[0]);
    for (uint32_t flow = 0; flow < result->flows; flow++) {
        double loss = share(sums->flow_lost[flow], sums->flow_sent[flow]);
        result->flow_loss_low = loss < result->flow_loss_low ? loss : result->flow_loss_low;
        result->flow_loss_high = loss > result->flow_loss_high ? loss : result->flow_loss_high;
    }
}

static struct schedule schedule_of(const struct probe_session *session)
{
    const struct lh_probe_result *result = session->result;
    uint32_t payload_bytes[LH_PROBE_SIZES_MAX];
    uint64_t rate_bps = (uint64_t)result->rate_bps / RATE_SHARE;
    lh_time now = tcp_now(), ends_ns = session->started_ns + session->attr.time_ns;
    for (uint32_t i = 0; i < result->size_count; i++)
        payload_bytes[i] = result->sizes[i].payload_bytes;
    const struct schedule_wish wish = {
        .left_ns = ends_ns > now ? ends_ns - now : 0,
        .overhead_ns = OVERHEAD_NS + 2 * result->rtt_ns + probe_session_drain_ns(session),
        .rate_bps = rate_bps > RATE_MIN ? rate_bps : RATE_MIN,
        .header_bytes = session->port.header_bytes,
        .size_count = result->size_count,
        .payload_bytes = payload_bytes,
        .trials = session->attr.trials,
        .packets = session->attr.packets,
    };
    return schedule_make(&wish);
}

int probe_measure_loss(struct probe_session *session)
{
    struct lh_probe_result *result = session->result;
    const struct schedule schedule = schedule_of(session);
    struct sums sums = {0};
    assert(session->round < ROUNDS_BEFORE);
    session->round = ROUNDS_BEFORE;
    for (uint32_t trial = 0; trial < schedule.trials; trial++) {
        for (uint32_t size = 0; size < result->size_count; size++) {
            struct flow_order order = {.payload_bytes = result->sizes[size].payload_bytes,
                                       .packets = schedule.packets[size],
                                       .flows = session->attr.flows,
                                       .gap_ns = schedule.gap_ns[size]};
            struct flow_outcome outcome;
            int error = flow_run(session, &order, &outcome);
            if (error != 0)
                return error;
            add_trial(session, &sums, size, &outcome);
        }
    }
    conclude(session, &sums);
    return 0;
}
