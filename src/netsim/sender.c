/*
 * sender.c - the sending end of a flow: a window, and one of three ways to repeat what was lost.
 *
 * Selective repeat (sr), as IRN does it (Mittal et al. 2018, section 3): a packet counts as lost when one
 * that is `reorder` later has arrived. The sender then recovers: it repeats each hole once, and sends new
 * packets when there is none. Recovery ends when everything that had been sent at its beginning has arrived.
 * What is lost twice is found by the timer.
 *
 * irn is the same with IRN's own settings: any later packet tells of a loss, and there are two fixed
 * timeouts, the low one for few packets in flight, when no later packet may come to tell.
 *
 * Go-back-N (gbn): the receiver takes packets in order only. When it reports a gap, or the timer fires, all
 * from the gap on is sent again.
 *
 * Timer: one a flow, which runs while an acknowledgement is missing. It counts from when the oldest
 * packet left, or from the last acknowledgement; it is not moved on each of these, but when it fires early,
 * set again for the rest. While nothing is on the way there is no timer: a flow whose host is stopped for
 * ever lets the simulation end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/network.h"

/* Timeouts in a row double the wait, up to this: the least maximum that RFC 6298 (2.5) allows. Without one,
 * flows whose timers began together and that overrun the same few packets of buffer wait for days, and so
 * does one whose link loses in bursts. */
#define DOUBLED_MAX_PS (60 * NETSIM_PS_PER_S)
#define BACKOFF_MAX    63u /* and so often at most, as numbers have an end */

/* Of a timeout: a path may take an hour each way. And nobody's timer is finer than a microsecond, whatever
 * transport.rto_min says. Its default of 320 us is RTO_high of IRN (section 4.1): longer than the queues of a
 * datacenter, so that packets which only wait there are not sent again. */
#define SPAN_MAX_PS (NETSIM_PS_PER_S * 3600 * 24 * 30)
#define SPAN_MIN_PS NETSIM_PS_PER_US

static uint32_t reorder_packets(const struct netsim *net)
{
    return net->transport.kind == NETSIM_IRN ? 0 : net->transport.reorder_packets;
}

static bool is_taken(const struct netsim_sender *sender, uint32_t number)
{
    return (sender->taken[number / 64] >> (number % 64) & 1) != 0;
}

/* Whether recovery_scan stands at a packet to be repeated. Each packet is passed once a recovery. */
static bool find_hole(const struct netsim *net, struct netsim_sender *sender)
{
    uint32_t end = sender->recovery_end;
    if (!sender->all_lost) {
        uint32_t reorder = reorder_packets(net);
        uint32_t lost_before = sender->highest > reorder ? sender->highest - reorder : 0;
        if (lost_before < end)
            end = lost_before;
    }
    if (sender->recovery_scan < sender->acknowledged)
        sender->recovery_scan = sender->acknowledged;
    while (sender->recovery_scan < end && is_taken(sender, sender->recovery_scan))
        sender->recovery_scan++;
    return sender->recovery_scan < end;
}

bool netsim_sender_may_send(struct netsim *net, struct netsim_sender *sender)
{
    if (sender->failed)
        return false;
    if (sender->recovering && find_hole(net, sender))
        return true;
    return sender->next < sender->packets && sender->next - sender->acknowledged < sender->window_packets;
}

static bool is_few(const struct netsim *net, const struct netsim_sender *sender)
{
    return sender->next - sender->acknowledged <= net->transport.rto_low_packets;
}

static netsim_time irn_timeout_ps(const struct netsim *net, const struct netsim_sender *sender)
{
    netsim_time span_ps = is_few(net, sender) ? net->transport.rto_low_ps : net->transport.rto_high_ps;
    return span_ps > SPAN_MIN_PS ? span_ps : SPAN_MIN_PS;
}

static netsim_time timeout_ps(const struct netsim *net, const struct netsim_sender *sender)
{
    if (net->transport.kind == NETSIM_IRN)
        return irn_timeout_ps(net, sender);
    netsim_time rtt_ps =
        sender->smoothed_rtt_ps > sender->base_rtt_ps ? sender->smoothed_rtt_ps : sender->base_rtt_ps;
    netsim_time least_ps = net->transport.rto_min_ps;
    unsigned doubled = sender->backoff < BACKOFF_MAX ? sender->backoff : BACKOFF_MAX;
    double span_ps = net->transport.rto * (double)rtt_ps;
    if (least_ps < SPAN_MIN_PS)
        least_ps = SPAN_MIN_PS;
    if (span_ps < (double)least_ps)
        span_ps = (double)least_ps;
    double most_ps = span_ps > (double)DOUBLED_MAX_PS ? span_ps : (double)DOUBLED_MAX_PS;
    span_ps *= (double)((uint64_t)1 << doubled);
    if (span_ps > most_ps)
        span_ps = most_ps;
    return span_ps < (double)SPAN_MAX_PS ? (netsim_time)span_ps : SPAN_MAX_PS;
}

/* The oldest packet that is not acknowledged leaves, for the first time or again. */
static void start_timer(struct netsim *net, uint32_t number)
{
    struct netsim_sender *sender = &net->flows[number].sender;
    uint32_t event = net->first_timer_event + number;
    sender->progress_ps = net->now_ps;
    if (net->transport.ack_bytes != 0 && !netsim_event_pending(&net->events, event))
        netsim_event_schedule(&net->events, event, net->now_ps + timeout_ps(net, sender));
}

void netsim_sender_fill(struct netsim *net, uint32_t number, struct netsim_packet *packet)
{
    struct netsim_sender *sender = &net->flows[number].sender;
    bool repeated = sender->recovering && find_hole(net, sender);
    uint32_t sequence = repeated ? sender->recovery_scan++ : sender->next++;
    uint32_t payload = sequence == sender->packets - 1 ? sender->last_bytes : net->transport.payload_bytes;
    if (sequence == sender->acknowledged)
        start_timer(net, number);
    if (sequence < sender->sent_end)
        repeated = true;
    else
        sender->sent_end = sequence + 1;
    sender->sent_packets++;
    sender->repeated_packets += repeated;
    net->totals.data_packets++;
    net->totals.repeated_packets += repeated;
    *packet = (struct netsim_packet){
        .flow = number,
        .sent_ps = net->now_ps,
        .source = sender->source,
        .destination = sender->destination,
        .sequence = sequence,
        .entropy = sender->entropy,
        .wire_bytes = (uint16_t)(payload + net->transport.header_bytes),
        .kind = LH_NETSIM_DATA,
        .priority = net->transport.data_priority,
        .flags = repeated ? NETSIM_REPEATED : 0,
    };
    if (net->paced)
        netsim_pace_on_sent(net, number, packet->wire_bytes);
}

/* ---- acknowledgements -------------------------------------------------------------------------------- */

static void wake(struct netsim *net, uint32_t flow)
{
    struct netsim_sender *sender = &net->flows[flow].sender;
    if (sender->in_ring || !netsim_sender_may_send(net, sender))
        return;
    if (net->paced && netsim_event_pending(&net->events, net->first_pace_event + flow))
        return; /* then */
    netsim_host_add_flow(net, sender->source, flow);
    netsim_kick(net, net->hosts[sender->source].port);
}

static void take_sample(struct netsim_sender *sender, netsim_time sample_ps)
{
    if (sender->smoothed_rtt_ps == 0)
        sender->smoothed_rtt_ps = sample_ps;
    else
        sender->smoothed_rtt_ps += (netsim_time)((int64_t)(sample_ps - sender->smoothed_rtt_ps) / 8);
}

static void recover(struct netsim *net, struct netsim_sender *sender, bool all_lost)
{
    if (net->transport.kind == NETSIM_GBN) {
        sender->next = sender->acknowledged;
        return;
    }
    sender->recovering = 1;
    sender->all_lost = all_lost;
    sender->recovery_end = sender->next;
    sender->recovery_scan = sender->acknowledged;
}

/* Few packets are left in flight: the timer was set for many, and is due sooner now. */
static void hasten_timer(struct netsim *net, uint32_t number)
{
    uint32_t event = net->first_timer_event + number;
    if (!netsim_event_pending(&net->events, event))
        return;
    netsim_event_cancel(&net->events, event);
    netsim_event_schedule(&net->events, event, net->now_ps + timeout_ps(net, &net->flows[number].sender));
}

static void on_selective_ack(struct netsim *net, struct netsim_sender *sender,
                             const struct netsim_packet *ack)
{
    if (ack->echo >= sender->acknowledged)
        sender->taken[ack->echo / 64] |= (uint64_t)1 << (ack->echo % 64);
    if (ack->echo >= sender->highest)
        sender->highest = ack->echo + 1;
    if (sender->recovering && sender->acknowledged >= sender->recovery_end)
        sender->recovering = 0;
    if (!sender->recovering && sender->highest > sender->acknowledged + reorder_packets(net))
        recover(net, sender, false);
}

/* What was sent before a gap was heard of may be acknowledged after it: then the way back was too long. */
static void on_ordered_ack(struct netsim *net, struct netsim_sender *sender,
                           const struct netsim_packet *ack)
{
    if (sender->next < sender->acknowledged)
        sender->next = sender->acknowledged;
    if ((ack->flags & NETSIM_NACK) != 0 && ack->sequence == sender->acknowledged)
        recover(net, sender, false);
}

void netsim_sender_on_ack(struct netsim *net, const struct netsim_packet *ack)
{
    struct netsim_flow *flow = &net->flows[ack->flow];
    struct netsim_sender *sender = &flow->sender;
    assert(ack->flow < net->flows_count && ack->sequence <= sender->sent_end &&
           ack->echo < sender->sent_end);
    if (flow->done_ps != NETSIM_NEVER || sender->failed)
        return;
    sender->progress_ps = net->now_ps;
    sender->backoff = 0;
    take_sample(sender, net->now_ps - ack->sent_ps);
    if (net->rates != NULL && (ack->flags & NETSIM_MARKED) != 0)
        netsim_pace_on_cnp(net, ack->flow);
    bool was_few = is_few(net, sender);
    if (ack->sequence > sender->acknowledged)
        sender->acknowledged = ack->sequence;
    if (sender->acknowledged == sender->packets) {
        flow->done_ps = net->now_ps;
        net->totals.flows_done++;
        return;
    }
    if (net->transport.kind == NETSIM_GBN)
        on_ordered_ack(net, sender, ack);
    else
        on_selective_ack(net, sender, ack);
    if (net->transport.kind == NETSIM_IRN && !was_few && is_few(net, sender))
        hasten_timer(net, ack->flow);
    wake(net, ack->flow);
}

/* ---- time -------------------------------------------------------------------------------------------- */

/* Whether an acknowledgement may still come: the oldest packet is on the way, or was lost there. */
static bool awaits_ack(const struct netsim_sender *sender)
{
    bool to_be_repeated =
        sender->recovering && sender->all_lost && sender->recovery_scan <= sender->acknowledged;
    return sender->acknowledged < sender->next && !to_be_repeated;
}

void netsim_sender_on_timer_expired(struct netsim *net, uint32_t number)
{
    struct netsim_flow *flow = &net->flows[number];
    struct netsim_sender *sender = &flow->sender;
    if (flow->done_ps != NETSIM_NEVER || !awaits_ack(sender))
        return;
    netsim_time deadline_ps = sender->progress_ps + timeout_ps(net, sender);
    if (net->now_ps < deadline_ps) {
        netsim_event_schedule(&net->events, net->first_timer_event + number, deadline_ps);
        return;
    }
    net->totals.timeouts++;
    sender->timeouts++;
    if (net->transport.retries != 0 && sender->backoff == net->transport.retries) {
        sender->failed = 1;
        net->totals.flows_failed++;
        return;
    }
    recover(net, sender, true);
    if (sender->backoff < UINT8_MAX)
        sender->backoff++;
    wake(net, number);
}

static uint32_t window_packets(const struct netsim *net, netsim_time base_rtt_ps, netsim_time slowest_ps)
{
    uint64_t packets = UINT32_MAX;
    if (net->transport.window_bytes == NETSIM_WINDOW_BDP)
        packets = (base_rtt_ps + slowest_ps - 1) / slowest_ps + 1;
    else if (net->transport.window_bytes != 0)
        packets = net->transport.window_bytes / net->transport.payload_bytes;
    return packets > UINT32_MAX ? UINT32_MAX : packets == 0 ? 1 : (uint32_t)packets;
}

void netsim_sender_start(struct netsim *net, uint32_t number)
{
    struct netsim_flow *flow = &net->flows[number];
    struct netsim_sender *sender = &flow->sender;
    netsim_time slowest_ps = 0;
    netsim_flow_ideal(net, number, &flow->ideal_ps, &sender->base_rtt_ps, &slowest_ps);
    sender->window_packets = UINT32_MAX;
    net->totals.flows_started++;
    netsim_pace_start(net, number);
    if (net->transport.ack_bytes != 0)
        sender->window_packets = window_packets(net, sender->base_rtt_ps, slowest_ps);
    netsim_host_add_flow(net, sender->source, number);
    netsim_kick(net, net->hosts[sender->source].port);
}
