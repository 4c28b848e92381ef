/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/qp_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/min_max.h"
#include "history/path_history.h"
#include "sdr/sdr_state.h"
#include "wire/roce_packet.h"

#define PACE_CHANGE      16u /* a change by less than this part is not worth a system call */
#define PACE_SPAN_NS     LH_NS_PER_MS
#define GRANT_MAX_BYTES  ((uint64_t)1 << 30) /* of credit ahead of what arrived */
#define UNREPORTED_SHARE 4u                  /* of the sockets' buffer: reported at once */
#define DROPPED_ROUNDS   64u                 /* since sockets had to drop: it is a slower one */
#define PAUSE_ROUNDS     4u                  /* round trips without a read make no slower receiver */

/* ---- the start --------------------------------------------------------------------------------------- */

static int create_controlled(struct sdr_qp *qp)
{
    const struct lh_congestion *controller = qp->congestion.controller;
    qp->rate_memory = store_take(qp->store, controller->state_bytes);
    if (!qp->rate_memory)
        return -LH_ENOMEM;
    rate_control_init_controlled(&qp->rate, controller, qp->rate_memory, NULL);
    return 0;
}

int qp_rate_create(struct sdr_qp *qp, const struct qp_plan *plan)
{
    bool given = plan->rate_bps != 0 || qp->link_has_rate || !qp->context->fabric->ops->outruns_path;
    int error = qp_plan_congestion(plan, given, &qp->congestion);
    if (error)
        return error;
    qp->default_congestion = plan->congestion == NULL;
    qp->rate_bps = plan->rate_bps;
    qp->rate_max_bps = plan->rate_max_bps;
    qp->window_max_bytes = plan->window_bytes;
    if (qp->send_enable && !congestion_is_fixed(&qp->congestion))
        return create_controlled(qp);
    uint64_t rate_bps = plan->rate_bps ? plan->rate_bps : LH_RATE_NONE;
    rate_bps = rate_bps < plan->rate_max_bps ? rate_bps : plan->rate_max_bps;
    rate_control_init(&qp->rate, rate_bps == LH_RATE_NONE ? 0 : rate_bps, qp->shape.mtu_bytes);
    qp_note_pace(qp);
    return 0;
}

void qp_rate_free(struct sdr_qp *qp)
{
    if (qp->rate_memory)
        store_give(qp->store, qp->rate_memory, qp->congestion.controller->state_bytes);
    if (qp->grant_memory)
        store_give(qp->store, qp->grant_memory, credit_grant_of(qp->peer.credits)->receiver_bytes);
}

static struct rate_path measured_path(const struct sdr_qp *qp)
{
    const struct lh_rtt *rtt = &qp->path.rtt;
    return (struct rate_path){rtt->minimum_ns, lh_rtt_overdue_ns(rtt), lh_rtt_reorder_window_ns(rtt)};
}

void sdr_qp_remember(struct sdr_qp *qp, uint64_t rate_bps, lh_time rtt_ns, lh_time age_ns)
{
    qp->remembered_rate_bps = rate_bps;
    qp->remembered_rtt_ns = rtt_ns;
    qp->remembered_age_ns = age_ns;
}

/* An emulated link is its own, and behind NAT an address may be of several hosts. */
static bool shares_path(const struct sdr_qp *qp)
{
    return !qp->own_link && !qp->translated;
}

/* What other QPs of the context have measured is newer than any file. */
static void remember_others(struct sdr_qp *qp, lh_time now)
{
    struct sdr_context *context = qp->context;
    struct known_path known;
    if (!shares_path(qp))
        return;
    pthread_mutex_lock(&context->paths_lock);
    bool found = known_paths_take(&context->paths, qp->peer.family, qp->peer.address, now, &known);
    pthread_mutex_unlock(&context->paths_lock);
    if (found)
        sdr_qp_remember(qp, known.rate_bps, known.rtt_ns, now - known.measured_ns);
}

/* Another route, or a queue that stands already: what was remembered is no help. */
static void check_remembered(struct sdr_qp *qp)
{
    if (!path_history_rtt_agrees(qp->remembered_rtt_ns, qp->path.rtt.minimum_ns))
        sdr_qp_remember(qp, 0, 0, 0);
}

/* A peer that wants credits of a kind that is unknown here, or for which there is no memory, gets credit
 * without a limit: its own half bounds it. */
static void start_grant(struct sdr_qp *qp, lh_time now)
{
    const struct lh_congestion *controller = credit_grant_of(qp->peer.credits);
    if (!controller || !qp->recv_enable)
        return;
    qp->grant_memory = store_take_aligned(qp->store, controller->receiver_bytes);
    if (!qp->grant_memory)
        return;
    const struct lh_congestion_path path = {
        .mtu_bytes = qp->shape.mtu_bytes,
        .rate_max_bps = LH_RATE_NONE,
        .window_max_bytes = GRANT_MAX_BYTES,
        .rtt_ns = qp->path.rtt.minimum_ns,
    };
    memset(qp->grant_memory, 0, controller->receiver_bytes);
    credit_grant_start(&qp->grant, controller, qp->grant_memory, &path, now);
}

/* A configured rate does not change: one announcement to the fabric suffices. */
static void announce_fixed(struct sdr_qp *qp)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    if (ops->pace && qp->rate.pacer.rate_bps != 0)
        ops->pace(qp->endpoint, qp->rate.pacer.rate_bps);
}

void qp_rate_start(struct sdr_qp *qp, lh_time now)
{
    uint64_t buffer = qp->receive_buffer_bytes / qp->channel_count;
    qp->report.packets_max = buffer / UNREPORTED_SHARE / qp->shape.mtu_bytes;
    start_grant(qp, now);
    if (!rate_control_is_on(&qp->rate)) {
        announce_fixed(qp);
        return;
    }
    remember_others(qp, now);
    check_remembered(qp);
    const struct lh_congestion_path path = {
        .mtu_bytes = qp->shape.mtu_bytes,
        .rate_bps = qp->rate_bps,
        .rate_max_bps = qp->rate_max_bps,
        .window_max_bytes = qp->window_max_bytes,
        .rtt_ns = qp->path.rtt.minimum_ns,
        .remembered_rate_bps = qp->remembered_rate_bps,
        .remembered_rtt_ns = qp->remembered_rtt_ns,
        .remembered_age_ns = qp->remembered_age_ns,
    };
    const struct rate_path measured = measured_path(qp);
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    struct qp_info_endpoint own = {0};
    ops->endpoint_info(qp->endpoint, &own);
    /* Behind NAT its address is only what it says. */
    bool same_host = !qp->translated && memcmp(own.address, qp->peer.address, sizeof own.address) == 0;
    pthread_mutex_lock(&qp->pacer_lock);
    qp->rate.same_host = same_host && qp->default_congestion && ops->local_is_direct;
    qp->rate.no_path = qp->rate.same_host && ops->bundles_control;
    rate_control_start(&qp->rate, &path, qp->congestion.params,
                       qp->peer.receive_buffer_bytes / qp->channel_count, &measured, now);
    qp_note_pace(qp);
    pthread_mutex_unlock(&qp->pacer_lock);
}

/* ---- what can be asked ------------------------------------------------------------------------------- */

static void fill_controlled(const struct sdr_qp *qp, struct lh_congestion_report *report)
{
    const struct rate_control *rate = &qp->rate;
    struct lh_congestion_view view = {0};
    if (rate->started)
        rate->controller->view(rate->state, &view);
    if (view.state)
        snprintf(report->state, sizeof report->state, "%s", view.state);
    report->feedback = true;
    report->window_bytes = rate->decision.window_bytes;
    report->in_flight_bytes = flight_in_flight_bytes(&rate->flight);
    report->bandwidth_bps = view.bandwidth_bps;
    report->tells_loss = view.tells_loss;
    report->random_loss = view.random_loss;
    report->policed_rate_bps = view.policed_rate_bps;
    report->rtt_minimum_ns = rate->delays.minimum_ns;
    report->queueing_delay_ns = rate->delays.smoothed_ns;
    report->queueing_delay_p99_ns = delay_log_quantile(&rate->delays, 0.99);
    report->queueing_delay_min_ns = delay_log_standing(&rate->delays);
    report->sent_bytes = rate->flight.sent_bytes;
    report->arrived_bytes = rate->flight.arrived_bytes;
    report->lost_bytes = rate->flight.lost_bytes;
    report->marked_bytes = rate->marked_bytes;
    report->remembered_rate_bps = rate->started ? qp->remembered_rate_bps : 0;
    report->dropped_packets = rate->flight.dropped_packets;
    report->receiver_rate_bps = rate->read.receiver_bps;
    report->best_rate_bps = rate->read.best_bps;
}

/* Under the lock. */
static void fill_report(struct sdr_qp *qp, struct lh_congestion_report *report)
{
    uint32_t channels = qp->channel_count;
    lh_time now = qp->endpoint->fabric->ops->now(qp->endpoint->fabric);
    *report =
        (struct lh_congestion_report){.window_bytes = UINT64_MAX, .packet_bytes = sdr_qp_packet_bytes(qp)};
    snprintf(report->controller, sizeof report->controller, "%s", qp->congestion.controller->name);
    pthread_mutex_lock(&qp->pacer_lock);
    report->rate_bps = qp->rate.pacer.rate_bps ? qp->rate.pacer.rate_bps : LH_RATE_NONE;
    if (rate_control_is_on(&qp->rate))
        fill_controlled(qp, report);
    pthread_mutex_unlock(&qp->pacer_lock);
    for (uint32_t c = 0; c < channels; c++) {
        gate_enter(&qp->channels[c].gate);
        for (uint32_t i = 0; i < LH_LIMITS; i++)
            report->limited_ns[i] += limits_ns(&qp->channels[c].limits, (enum lh_limit)i, now) / channels;
        gate_leave(&qp->channels[c].gate);
    }
}

int lh_sdr_congestion(struct sdr_qp *qp, struct lh_congestion_report *report)
{
    qp_lock(qp);
    fill_report(qp, report);
    qp_unlock(qp);
    return 0;
}

/* ---- the sender's half ------------------------------------------------------------------------------- */

static void wake_channels(struct sdr_qp *qp, uint32_t channels)
{
    for (; channels != 0; channels &= channels - 1) /* at most QP_INFO_CHANNELS_MAX */
        qp_wake_channel(qp, (uint32_t)__builtin_ctz(channels));
}

/* The channels whose wait may be over, for a report or for a higher rate. Under the pacer's lock. */
static uint32_t take_waiting(struct sdr_qp *qp, lh_time now)
{
    uint32_t channels = qp->waiting_channels;
    qp->waiting_channels = 0;
    qp_note_pace(qp);
    for (uint32_t c = 0; c < qp->channel_count; c++)
        if (atomic_load_explicit(&qp->channels[c].paced_until_ns, memory_order_relaxed) > now &&
            !qp_is_paced_until(qp, c, now))
            channels |= (uint32_t)1 << c;
    return channels;
}

/* For QPs that come later. */
static void note_learned(struct sdr_qp *qp, lh_time now)
{
    struct sdr_context *context = qp->context;
    struct lh_congestion_report report;
    if (now < qp->learn_at_ns || !shares_path(qp))
        return;
    fill_report(qp, &report);
    bool learned = known_paths_is_learned(&report);
    qp->learn_at_ns = now + qp->path.rtt.smoothed_ns * (learned ? KNOWN_PATHS_TURN : 1);
    if (!learned)
        return;
    pthread_mutex_lock(&context->paths_lock);
    known_paths_put(&context->paths, qp->peer.family, qp->peer.address, &report, now);
    pthread_mutex_unlock(&context->paths_lock);
}

/* When what was read last had reached this host. While it waited for this host, it was not on its path. */
static lh_time reached_ns(const struct sdr_qp *qp, uint32_t channel, lh_time read_ns)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    lh_time arrived_ns = ops->arrived ? ops->arrived(qp->endpoint, channel) : 0;
    return arrived_ns != 0 ? lh_min(arrived_ns, read_ns) : read_ns;
}

bool qp_rate_on_feedback(struct sdr_qp *qp, const struct control_feedback *feedback, bool newest,
                         lh_time now)
{
    if (!rate_control_is_on(&qp->rate) || feedback->generation >= qp->shape.generations)
        return false;
    uint64_t seen = __atomic_load_n(&qp->stats.rx_congestion_notifications, __ATOMIC_RELAXED);
    const struct flight_report report = {
        .key = qp_packet_key(qp, feedback->immediate, feedback->generation),
        .arrived_packets = feedback->arrived_packets,
        .marked_packets = feedback->marked_packets,
        .dropped_packets = feedback->dropped_packets,
        .credit_bytes = feedback->credit_bytes,
        .arrived_ns = feedback->arrived_ns,
        .held_ns = feedback->held_ns + (now - reached_ns(qp, FABRIC_CONTROL, now)),
        .newest = newest,
    };
    const struct rate_path measured = measured_path(qp);
    uint32_t channels = 0;
    fabric_count(&qp->stats, feedback_received, 1);
    pthread_mutex_lock(&qp->pacer_lock);
    if (rate_control_on_report(&qp->rate, &report, (uint32_t)(seen - qp->notifications_noted), &measured,
                               now))
        channels = take_waiting(qp, now);
    pthread_mutex_unlock(&qp->pacer_lock);
    qp->notifications_noted = seen;
    wake_channels(qp, channels);
    note_learned(qp, now);
    return true;
}

void qp_rate_on_dropped(struct sdr_qp *qp, uint64_t bytes, lh_time now)
{
    pthread_mutex_lock(&qp->pacer_lock);
    rate_control_on_dropped(&qp->rate, bytes);
    uint32_t channels = take_waiting(qp, now);
    pthread_mutex_unlock(&qp->pacer_lock);
    wake_channels(qp, channels);
}

/* The kernel, or a device, spaces the packets of a burst: changes above PACE_CHANGE are announced to it. */
static void announce_pace(struct sdr_qp *qp, lh_time now)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    uint64_t pace_bps = atomic_load_explicit(&qp->pace_bps, memory_order_relaxed);
    uint64_t given_bps = qp->announced_pace_bps;
    uint64_t change_bps = pace_bps > given_bps ? pace_bps - given_bps : given_bps - pace_bps;
    if (!ops->pace || change_bps <= given_bps / PACE_CHANGE || now < qp->pace_announced_ns + PACE_SPAN_NS)
        return;
    qp->announced_pace_bps = pace_bps;
    qp->pace_announced_ns = now;
    ops->pace(qp->endpoint, pace_bps != 0 ? pace_bps : UINT64_MAX);
}

lh_time qp_rate_round(struct sdr_qp *qp, lh_time now)
{
    if (!rate_control_is_on(&qp->rate))
        return LH_TIME_NEVER;
    uint32_t channels = 0;
    const struct rate_path measured = measured_path(qp);
    pthread_mutex_lock(&qp->pacer_lock);
    bool anew = rate_control_on_measured(&qp->rate, &measured, now);
    if (rate_control_on_time(&qp->rate, now) || anew)
        channels = take_waiting(qp, now);
    lh_time next = rate_control_next(&qp->rate);
    pthread_mutex_unlock(&qp->pacer_lock);
    announce_pace(qp, now);
    wake_channels(qp, channels);
    return channels ? now : next;
}

/* ---- the receiver's half ----------------------------------------------------------------------------- */

static uint64_t packets_arrived(const struct sdr_qp *qp)
{
    uint64_t packets = qp_rate_late(qp);
    for (uint32_t c = 0; c < qp->channel_count; c++)
        packets += atomic_load_explicit(&qp->channels[c].arrivals.packets, memory_order_relaxed);
    return packets;
}

lh_time qp_rate_report_next(struct sdr_qp *qp)
{
    if (!qp->peer.wants_feedback)
        return LH_TIME_NEVER;
    lh_time rtt_ns = qp->path.rtt.smoothed_ns;
    lh_time next_ns = arrival_report_next(&qp->report, packets_arrived(qp), rtt_ns);
    if (!qp->grant.controller || qp->grant.next_ns == LH_TIME_NEVER)
        return next_ns;
    /* Credits come with the reports, and are worth one of their own as often. */
    lh_time min_ns = qp->report.sent_ns + arrival_report_span(rtt_ns);
    return lh_earlier(next_ns, qp->grant.next_ns > min_ns ? qp->grant.next_ns : min_ns);
}

bool qp_rate_report_due(struct sdr_qp *qp, lh_time now)
{
    return qp_rate_report_next(qp) <= now;
}

/* A receiver that reads late by less than that paused; one that is later, or whose sockets had to drop, is
 * slower than the path, and what the sender is to follow is how fast it reads. Packets of one datagram came
 * at one time: each is reported as later than the last one, or it seems to follow a pause.
 * Under the channel's gate. */
static void note_reached(const struct sdr_qp *qp, uint32_t channel, struct qp_arrivals *arrivals)
{
    lh_time read_ns = arrivals->newest_ns, pause_ns = PAUSE_ROUNDS * qp->path.rtt.minimum_ns;
    bool dropped =
        qp->dropped_ns != 0 && read_ns < qp->dropped_ns + DROPPED_ROUNDS * qp->path.rtt.minimum_ns;
    if (read_ns == arrivals->reached_ns || dropped)
        return;
    lh_time min_ns = lh_max(lh_sub_sat(read_ns, pause_ns), arrivals->reached_ns + 1);
    arrivals->newest_ns = arrivals->reached_ns = lh_max(reached_ns(qp, channel, read_ns), min_ns);
}

struct control_feedback qp_rate_report(struct sdr_qp *qp, lh_time now)
{
    struct control_feedback report = {
        .marked_packets = __atomic_load_n(&qp->stats.rx_marked_packets, __ATOMIC_RELAXED),
        .dropped_packets = __atomic_load_n(&qp->stats.rx_socket_drops, __ATOMIC_RELAXED),
    };
    uint64_t late = qp_rate_late(qp), late_then = 0;
    if (report.dropped_packets != qp->dropped_noted)
        qp->dropped_ns = now;
    qp->dropped_noted = report.dropped_packets;
    for (uint32_t c = 0; c < qp->channel_count; c++) {
        struct qp_arrivals *arrivals = &qp->channels[c].arrivals;
        gate_enter(&qp->channels[c].gate);
        report.arrived_packets += atomic_load_explicit(&arrivals->packets, memory_order_relaxed);
        note_reached(qp, c, arrivals);
        if (arrivals->newest_ns > report.arrived_ns) {
            report.arrived_ns = arrivals->newest_ns;
            late_then = arrivals->late;
            report.immediate = arrivals->newest_immediate;
            report.generation = arrivals->newest_generation;
        }
        gate_leave(&qp->channels[c].gate);
    }
    /* The late ones that came after a newest packet, the next report counts: in this one they would stand for
     * packets that were sent before it, and are lost. */
    report.arrived_packets += report.arrived_ns == qp->report_newest_ns ? late : late_then;
    report.arrived_packets = lh_max(report.arrived_packets, qp->report.packets);
    report.held_ns = now > report.arrived_ns ? now - report.arrived_ns : 0;
    report.credit_bytes =
        credit_grant_renew(&qp->grant, report.arrived_packets, report.marked_packets, now);
    return report;
}

void qp_rate_on_reported(struct sdr_qp *qp, const struct control_feedback *report, lh_time now)
{
    arrival_report_on_sent(&qp->report, report->arrived_packets, now);
    qp->report_newest_ns = report->arrived_ns;
    fabric_count(&qp->stats, feedback_sent, 1);
}

/* ---- the path's MTU ---- */

/* Sent is all that a smaller packet would not have carried. */
static struct path_mtu_view path_mtu_view(const struct sdr_qp *qp, lh_time now)
{
    return (struct path_mtu_view){
        .sent_bytes = __atomic_load_n(&qp->stats.tx_bytes, __ATOMIC_RELAXED) + qp->long_bytes,
        .overdue_ns = lh_rtt_overdue_ns(&qp->path.rtt),
        .now = now,
    };
}

/* As long on the wire as a data packet of that length. */
static uint32_t probe_bytes(const struct sdr_qp *qp, uint32_t shift)
{
    return (qp->shape.mtu_bytes >> shift) + ROCE_WRITE_IMM_HEADER_BYTES - ROCE_SEND_HEADER_BYTES;
}

lh_time qp_path_mtu_round(struct sdr_qp *qp, lh_time now)
{
    if (qp->path_mtu.lengths == 1)
        return LH_TIME_NEVER;
    const struct path_mtu_view view = path_mtu_view(qp, now);
    path_mtu_on_time(&qp->path_mtu, &view);
    return path_mtu_next(&qp->path_mtu);
}

bool qp_path_mtu_take_probe(struct sdr_qp *qp, struct control_probe *probe)
{
    uint32_t shift;
    if (!path_mtu_take_probe(&qp->path_mtu, &probe->id, &shift))
        return false;
    probe->bytes = probe_bytes(qp, shift);
    return true;
}

void qp_path_mtu_on_answer(struct sdr_qp *qp, const struct control_probe *probed, lh_time now)
{
    const struct path_mtu_view view = path_mtu_view(qp, now);
    const uint32_t before = qp->path_mtu.shift;
    if (!path_mtu_on_answer(&qp->path_mtu, probed->id, probed->full, &view))
        return;
    if (qp->path_mtu.shift > before)
        fabric_count(&qp->stats, path_mtu_lowered, 1);
    else
        fabric_count(&qp->stats, path_mtu_raised, 1);
    atomic_store_explicit(&qp->pieces, 1u << qp->path_mtu.shift, memory_order_relaxed);
}

uint32_t qp_path_mtu_probed(struct sdr_qp *qp, const struct control_probe *probe, lh_time now)
{
    uint32_t shift = 0, lengths = qp->path_mtu.lengths;
    if (lengths == 1) /* it is of no use to this side */
        return lengths;
    while (shift < lengths && probe->bytes != probe_bytes(qp, shift))
        shift++;
    if (shift < lengths)
        qp->probed_ns[shift] = now;
    return shift;
}
