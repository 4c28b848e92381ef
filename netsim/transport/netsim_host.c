/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/transport/netsim_host.h"

#include "netsim/engine/switch.h"
#include "netsim/transport/flow_controller.h"
#include "netsim/transport/netsim_flows.h"
#include "netsim/transport/netsim_transport.h"

/* ---- ideal fct ------------------------------------------------------------------------------------- */

/* The links from one host to another that a flow's packets take; one path of them, when packets are sprayed,
 * so a flow may then be faster than alone on it. */
struct path {
    uint32_t source;
    uint32_t destination;
    uint32_t entropy;
    uint32_t links; /* 0: there is no path */
};

/* From one link to the next; NETSIM_NO_PORT: there is none. */
static uint32_t next_link(const struct netsim_transport *transport, const struct path *path, uint32_t link)
{
    uint32_t far = transport->network->ports[link].far;
    if (far < transport->network->hosts_count)
        return NETSIM_NO_PORT;
    return netsim_switch_flow_port(&transport->network->switches[far - transport->network->hosts_count],
                                   path->destination, path->entropy);
}

static struct path path_of(const struct netsim_transport *transport, uint32_t source, uint32_t destination,
                           uint32_t entropy)
{
    struct path path = {source, destination, entropy, 0};
    uint32_t last = netsim_host_port(source);
    /* A path visits no switch twice. */
    for (uint32_t link = last;
         link != NETSIM_NO_PORT && path.links <= transport->network->graph->nodes_count;
         link = next_link(transport, &path, link)) {
        last = link;
        path.links++;
    }
    if (transport->network->ports[last].far != destination)
        path.links = 0;
    return path;
}

/* The time of wire_bytes over all links, and on the slowest of them. */
static netsim_time one_way_ps(const struct netsim_transport *transport, const struct path *path,
                              uint32_t wire_bytes, netsim_time *slowest_ps)
{
    netsim_time sum_ps = 0;
    uint32_t link = netsim_host_port(path->source);
    *slowest_ps = 1;
    for (uint32_t i = 0; i < path->links; i++, link = next_link(transport, path, link)) {
        const struct netsim_port *port = &transport->network->ports[link];
        netsim_time span_ps = netsim_serialization_ps(port->ps_per_byte_q16, wire_bytes);
        sum_ps += span_ps + port->delay_ps;
        *slowest_ps = span_ps > *slowest_ps ? span_ps : *slowest_ps;
    }
    return sum_ps;
}

/* When a flow's packets arrive. */
struct arrivals {
    netsim_time first_ps;
    netsim_time before_ps; /* the last but one; with a single packet, 0 */
    netsim_time last_ps;
};

/* Times on link i count from when the first packet could have left link i - 1, so delays are added once at
 * the end. */
static struct arrivals data_arrivals(const struct netsim_transport *transport, const struct path *path,
                                     const struct netsim_sender *sender)
{
    uint32_t header_bytes = transport->config.header_bytes;
    uint32_t full_bytes = transport->config.payload_bytes + header_bytes;
    netsim_time delays_ps = 0;
    netsim_time first_ps = 0;   /* the first packet has left this link */
    netsim_time slowest_ps = 0; /* of the links so far */
    netsim_time before_ps = 0;  /* the last but one has left this link */
    netsim_time last_ps = 0;    /* the last packet has left this link */
    uint32_t link = netsim_host_port(path->source);
    for (uint32_t i = 0; i < path->links; i++, link = next_link(transport, path, link)) {
        const struct netsim_port *port = &transport->network->ports[link];
        netsim_time full_ps = netsim_serialization_ps(port->ps_per_byte_q16, full_bytes);
        delays_ps += port->delay_ps;
        first_ps += full_ps;
        slowest_ps = full_ps > slowest_ps ? full_ps : slowest_ps;
        if (sender->packets > 1) {
            before_ps = first_ps + (sender->packets - 2) * slowest_ps;
            last_ps = before_ps > last_ps ? before_ps : last_ps;
        }
        last_ps += netsim_serialization_ps(port->ps_per_byte_q16, sender->last_bytes + header_bytes);
    }
    if (sender->packets == 1)
        return (struct arrivals){last_ps + delays_ps, 0, last_ps + delays_ps};
    return (struct arrivals){first_ps + delays_ps, before_ps + delays_ps, last_ps + delays_ps};
}

/* When the last acknowledgement sets out, if all waiting for the one before it is put at the beginning: those
 * that follow each other too closely end up spaced by their slowest link. Of all packets only the first and
 * the last two can be what they wait for. */
static netsim_time last_ack_ps(const struct arrivals *arrivals, uint32_t packets,
                               netsim_time slowest_ack_ps)
{
    netsim_time from_ps = arrivals->last_ps;
    netsim_time behind_first_ps = arrivals->first_ps + (packets - 1) * slowest_ack_ps;
    netsim_time behind_before_ps = arrivals->before_ps + slowest_ack_ps;
    if (behind_first_ps > from_ps)
        from_ps = behind_first_ps;
    if (packets > 1 && behind_before_ps > from_ps)
        from_ps = behind_before_ps;
    return from_ps;
}

void netsim_ideal_fct(const struct netsim_transport *transport, uint32_t number, netsim_time *ideal_ps,
                      netsim_time *base_rtt_ps, netsim_time *slowest_ps)
{
    const struct netsim_sender *sender = &transport->flows[number].sender;
    const struct netsim_transport_config *config = &transport->config;
    uint32_t full_bytes = config->payload_bytes + config->header_bytes;
    struct path path = path_of(transport, sender->source, sender->destination, sender->entropy);
    struct arrivals arrivals = data_arrivals(transport, &path, sender);
    *base_rtt_ps = one_way_ps(transport, &path, full_bytes, slowest_ps);
    *ideal_ps = arrivals.last_ps;
    if (config->ack_bytes != 0) {
        netsim_time slowest_ack_ps = 0;
        path = path_of(transport, sender->destination, sender->source, ~sender->entropy);
        netsim_time ack_ps = one_way_ps(transport, &path, config->ack_bytes, &slowest_ack_ps);
        *ideal_ps = last_ack_ps(&arrivals, sender->packets, slowest_ack_ps) + ack_ps;
        *base_rtt_ps += ack_ps;
    }
}

/* ---- sender ---------------------------------------------------------------------------------------- */

/* Consecutive timeouts double the wait, up to this: the least maximum that RFC 6298 (2.5) allows. Without
 * it, flows whose timers began together and that overrun the same few packets of buffer wait for days, and so
 * does one whose link loses in bursts. */
#define DOUBLED_MAX_PS (60 * NETSIM_PS_PER_S)
#define BACKOFF_MAX    63u /* doublings at most: numbers have an end */

/* Of a timeout: a path may take an hour each way. And no timer is finer than a microsecond, whatever
 * transport.rto_min is. Its default of 320 us is RTO_high of IRN (section 4.1): longer than the queues of a
 * datacenter, so that packets which only wait there are not retransmitted. */
#define TIMEOUT_MAX_PS (NETSIM_PS_PER_S * 3600 * 24 * 30)
#define TIMEOUT_MIN_PS NETSIM_PS_PER_US

static uint32_t reorder_packets(const struct netsim_transport *transport)
{
    return transport->config.kind == NETSIM_IRN ? 0 : transport->config.reorder_packets;
}

static bool is_taken(const struct netsim_sender *sender, uint32_t number)
{
    return (sender->taken[number / 64] >> (number % 64) & 1) != 0;
}

/* Whether recovery_scan is at a packet to be retransmitted. Each packet is passed once a recovery. */
static bool find_gap(const struct netsim_transport *transport, struct netsim_sender *sender)
{
    uint32_t end = sender->recovery_end;
    if (!sender->all_lost) {
        uint32_t reorder = reorder_packets(transport);
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

static bool netsim_sender_may_send(const struct netsim_transport *transport, uint32_t number)
{
    struct netsim_sender *sender = &transport->flows[number].sender;
    if (sender->failed || sender->held)
        return false;
    if (sender->recovering && find_gap(transport, sender))
        return true;
    return sender->next < sender->packets && netsim_queue_pair_has_room(transport, number);
}

static bool has_few_in_flight(const struct netsim_transport *transport, uint32_t number)
{
    return netsim_queue_pair_has_few(transport, number, transport->config.rto_low_packets);
}

/* IRN's own (section 4.1), for datacenters; on a longer path they would end before any acknowledgement can
 * come, and each flow would fail. */
#define IRN_LOW_PS  (100 * NETSIM_PS_PER_US)
#define IRN_HIGH_PS (320 * NETSIM_PS_PER_US)
#define IRN_ROUNDS  3u

static netsim_time later(netsim_time one, netsim_time other)
{
    return one > other ? one : other;
}

static netsim_time irn_timeout_ps(const struct netsim_transport *transport, uint32_t number)
{
    netsim_time rounds_ps = IRN_ROUNDS * transport->flows[number].sender.base_rtt_ps;
    netsim_time low_ps = transport->config.rto_low_ps, high_ps = transport->config.rto_high_ps;
    if (low_ps == NETSIM_NEVER) /* then rto_high is that, too, or what is given, which bounds it */
        low_ps = high_ps < later(IRN_LOW_PS, rounds_ps) ? high_ps : later(IRN_LOW_PS, rounds_ps);
    if (high_ps == NETSIM_NEVER)
        high_ps = later(later(IRN_HIGH_PS, rounds_ps), low_ps);
    netsim_time wait_ps = has_few_in_flight(transport, number) ? low_ps : high_ps;
    return wait_ps > TIMEOUT_MIN_PS ? wait_ps : TIMEOUT_MIN_PS;
}

static netsim_time timeout_ps(const struct netsim_transport *transport, uint32_t number)
{
    const struct netsim_sender *sender = &transport->flows[number].sender;
    if (transport->config.kind == NETSIM_IRN)
        return irn_timeout_ps(transport, number);
    netsim_time rtt_ps =
        sender->smoothed_rtt_ps > sender->base_rtt_ps ? sender->smoothed_rtt_ps : sender->base_rtt_ps;
    netsim_time min_ps = transport->config.rto_min_ps;
    unsigned doubled = sender->backoff < BACKOFF_MAX ? sender->backoff : BACKOFF_MAX;
    double wait_ps = transport->config.rto * (double)rtt_ps;
    if (min_ps < TIMEOUT_MIN_PS)
        min_ps = TIMEOUT_MIN_PS;
    if (wait_ps < (double)min_ps)
        wait_ps = (double)min_ps;
    double max_ps = wait_ps > (double)DOUBLED_MAX_PS ? wait_ps : (double)DOUBLED_MAX_PS;
    wait_ps *= (double)((uint64_t)1 << doubled);
    if (wait_ps > max_ps)
        wait_ps = max_ps;
    return wait_ps < (double)TIMEOUT_MAX_PS ? (netsim_time)wait_ps : TIMEOUT_MAX_PS;
}

/* The oldest packet that is not acknowledged leaves, for the first time or again. */
static void start_timer(struct netsim_transport *transport, uint32_t number)
{
    struct netsim_sender *sender = &transport->flows[number].sender;
    uint32_t event = transport->first_timer_event + number;
    sender->progress_ps = transport->network->now_ps;
    if (transport->config.ack_bytes != 0 && !netsim_event_pending(&transport->network->events, event))
        netsim_event_schedule(&transport->network->events, event,
                              transport->network->now_ps + timeout_ps(transport, number));
}

/* Fills in the packet that goes next. */
static void netsim_sender_fill(struct netsim_transport *transport, uint32_t number,
                               struct netsim_packet *packet)
{
    struct netsim_sender *sender = &transport->flows[number].sender;
    bool repeated = sender->recovering && find_gap(transport, sender);
    uint32_t sequence = repeated ? sender->recovery_scan++ : sender->next++;
    uint32_t payload =
        sequence == sender->packets - 1 ? sender->last_bytes : transport->config.payload_bytes;
    if (sequence == sender->acknowledged)
        start_timer(transport, number);
    if (sequence < sender->sent_end)
        repeated = true;
    else
        sender->sent_end = sequence + 1;
    sender->sent_packets++;
    sender->repeated_packets += repeated;
    transport->network->totals.data_packets++;
    transport->network->totals.repeated_packets += repeated;
    *packet = (struct netsim_packet){
        .flow = number,
        .sent_ps = transport->network->now_ps,
        .source = sender->source,
        .destination = sender->destination,
        .sequence = sequence,
        .entropy = sender->entropy,
        .wire_bytes = (uint16_t)(payload + transport->config.header_bytes),
        .kind = LH_NETSIM_DATA,
        .priority = transport->config.data_priority,
        .flags = repeated ? NETSIM_REPEATED : 0,
    };
    if (netsim_is_controlled(transport))
        netsim_controller_on_sent(transport, number, packet, payload);
    else if (transport->paced)
        netsim_flow_rate_on_sent(transport, number, packet->wire_bytes);
}

/* ---- acknowledgements -------------------------------------------------------------------------------- */

static bool wake(struct netsim_transport *transport, uint32_t flow)
{
    struct netsim_sender *sender = &transport->flows[flow].sender;
    if (sender->in_ring || !netsim_sender_may_send(transport, flow))
        return false;
    if (transport->paced &&
        netsim_event_pending(&transport->network->events, transport->first_pace_event + flow))
        return false; /* it will then */
    netsim_flow_ring_add(transport, flow);
    return true;
}

/* The flow has sent all that it may: the next message of its queue pair may be next. */
static bool netsim_sender_wake_next(struct netsim_transport *transport, uint32_t number)
{
    if (!transport->config.one_queue_pair)
        return false;
    uint32_t unsent = netsim_queue_pair_unsent(transport, number);
    return unsent != NETSIM_NO_FLOW && wake(transport, unsent);
}

static void take_sample(struct netsim_sender *sender, netsim_time sample_ps)
{
    if (sender->smoothed_rtt_ps == 0)
        sender->smoothed_rtt_ps = sample_ps;
    else
        sender->smoothed_rtt_ps += (netsim_time)((int64_t)(sample_ps - sender->smoothed_rtt_ps) / 8);
}

static void recover(struct netsim_transport *transport, uint32_t number, bool all_lost)
{
    struct netsim_sender *sender = &transport->flows[number].sender;
    if (transport->config.kind == NETSIM_GBN) {
        sender->next = sender->acknowledged;
        netsim_queue_pair_go_back(transport, number);
        return;
    }
    sender->recovering = 1;
    sender->all_lost = all_lost;
    sender->recovery_end = sender->next;
    sender->recovery_scan = sender->acknowledged;
}

/* Few packets are left in flight: the timer was set for many, and is due sooner now. */
static void advance_timer(struct netsim_transport *transport, uint32_t number)
{
    uint32_t event = transport->first_timer_event + number;
    if (!netsim_event_pending(&transport->network->events, event))
        return;
    netsim_event_cancel(&transport->network->events, event);
    netsim_event_schedule(&transport->network->events, event,
                          transport->network->now_ps + timeout_ps(transport, number));
}

static void on_selective_ack(struct netsim_transport *transport, const struct netsim_packet *ack)
{
    struct netsim_sender *sender = &transport->flows[ack->flow].sender;
    if (ack->echo >= sender->acknowledged)
        sender->taken[ack->echo / 64] |= (uint64_t)1 << (ack->echo % 64);
    if (ack->echo >= sender->highest)
        sender->highest = ack->echo + 1;
    if (sender->recovering && sender->acknowledged >= sender->recovery_end)
        sender->recovering = 0;
    if (!sender->recovering && sender->highest > sender->acknowledged + reorder_packets(transport))
        recover(transport, ack->flow, false);
}

/* A packet sent before the gap was reported may be acknowledged after it: then going back was too far. */
static void on_ordered_ack(struct netsim_transport *transport, const struct netsim_packet *ack)
{
    struct netsim_sender *sender = &transport->flows[ack->flow].sender;
    if (sender->next < sender->acknowledged)
        sender->next = sender->acknowledged;
    if ((ack->flags & NETSIM_NACK) != 0 && ack->sequence == sender->acknowledged)
        recover(transport, ack->flow, false);
}

/* ---- messages of a queue pair ------------------------------------------------------------------------ */

/* Packets of messages before it have numbers that end where the flow's begin. */
static bool reveal(struct netsim_transport *transport, uint32_t number, uint64_t highest)
{
    struct netsim_sender *sender = &transport->flows[number].sender;
    if (sender->failed || sender->acknowledged == sender->packets || transport->config.kind == NETSIM_GBN)
        return false;
    if (highest > sender->highest)
        sender->highest = highest < UINT32_MAX ? (uint32_t)highest : UINT32_MAX;
    if (!sender->recovering && sender->highest > sender->acknowledged + reorder_packets(transport))
        recover(transport, number, false);
    return wake(transport, number);
}

/* What an acknowledgement says of messages before its own: they have come, or some packets were lost. */
static bool on_later_ack(struct netsim_transport *transport, const struct netsim_packet *ack)
{
    uint64_t highest = (uint64_t)ack->echo + 1;
    bool woke = false;
    uint32_t number = transport->flows[ack->flow].pair_before;
    for (uint32_t before; number != NETSIM_NO_FLOW; number = before) {
        struct netsim_flow *flow = &transport->flows[number];
        before = flow->pair_before;
        highest += flow->sender.packets;
        if ((ack->flags & NETSIM_BEHIND) == 0)
            woke = reveal(transport, number, highest) || woke;
        else {
            flow->sender.acknowledged = flow->sender.next = flow->sender.packets;
            netsim_queue_pair_on_acknowledged(transport, number);
        }
    }
    return woke;
}

/* True, of these: the flow has joined the ring of its host, which may send. */
static bool netsim_sender_on_ack(struct netsim_transport *transport, const struct netsim_packet *ack)
{
    struct netsim_flow *flow = &transport->flows[ack->flow];
    struct netsim_sender *sender = &flow->sender;
    assert(ack->flow < transport->flows_count && ack->sequence <= sender->sent_end &&
           ack->echo < sender->sent_end);
    if (flow->done_ps != NETSIM_NEVER || sender->failed)
        return false;
    if (netsim_is_controlled(transport)) {
        netsim_controller_on_ack(transport, ack);
        if ((ack->flags & NETSIM_CREDIT) != 0)
            return wake(transport, ack->flow);
    }
    sender->progress_ps = transport->network->now_ps;
    sender->backoff = 0;
    take_sample(sender, transport->network->now_ps - ack->sent_ps);
    if (transport->rates != NULL && (ack->flags & NETSIM_MARKED) != 0)
        netsim_flow_rate_on_cnp(transport, ack->flow);
    bool had_few = has_few_in_flight(transport, ack->flow);
    bool woke = on_later_ack(transport, ack);
    if (ack->sequence > sender->acknowledged)
        sender->acknowledged = ack->sequence;
    if (sender->acknowledged == sender->packets) {
        sender->next = sender->packets;
        netsim_queue_pair_on_acknowledged(transport, ack->flow);
        return netsim_sender_wake_next(transport, ack->flow) || woke;
    }
    if (transport->config.kind == NETSIM_GBN)
        on_ordered_ack(transport, ack);
    else
        on_selective_ack(transport, ack);
    if (transport->config.kind == NETSIM_IRN && !had_few && has_few_in_flight(transport, ack->flow))
        advance_timer(transport, ack->flow);
    woke = wake(transport, ack->flow) || woke;
    return netsim_sender_wake_next(transport, ack->flow) || woke;
}

/* ---- time -------------------------------------------------------------------------------------------- */

/* Whether an acknowledgement may still come: the oldest packet is in flight, or was lost. */
static bool awaits_ack(const struct netsim_sender *sender)
{
    bool to_be_retransmitted =
        sender->recovering && sender->all_lost && sender->recovery_scan <= sender->acknowledged;
    return sender->acknowledged < sender->next && !to_be_retransmitted;
}

bool netsim_sender_on_timer_expired(struct netsim_transport *transport, uint32_t number)
{
    struct netsim_flow *flow = &transport->flows[number];
    struct netsim_sender *sender = &flow->sender;
    if (transport->config.kind == NETSIM_XP)
        return netsim_xp_on_deadline_expired(transport, number);
    if (flow->done_ps != NETSIM_NEVER || !awaits_ack(sender))
        return false;
    netsim_time deadline_ps = sender->progress_ps + timeout_ps(transport, number);
    if (transport->network->now_ps < deadline_ps) {
        netsim_event_schedule(&transport->network->events, transport->first_timer_event + number,
                              deadline_ps);
        return false;
    }
    transport->network->totals.timeouts++;
    sender->timeouts++;
    if (transport->config.retries != 0 && sender->backoff == transport->config.retries) {
        netsim_flow_failed(transport, number);
        netsim_queue_pair_on_acknowledged(transport, number);
        netsim_queue_pair_on_whole(transport, number);
        return netsim_sender_wake_next(transport, number);
    }
    recover(transport, number, true);
    if (sender->backoff < UINT8_MAX)
        sender->backoff++;
    return wake(transport, number);
}

bool netsim_sender_on_pace_expired(struct netsim_transport *transport, uint32_t flow)
{
    const struct netsim_sender *sender = &transport->flows[flow].sender;
    bool sends = wake(transport, flow);
    if (netsim_is_controlled(transport) && !sends && !sender->in_ring && !sender->held)
        netsim_controller_on_limited(transport, flow);
    return sends;
}

bool netsim_sender_on_controller_timer(struct netsim_transport *transport, uint32_t flow)
{
    netsim_controller_on_timer(transport, flow);
    return wake(transport, flow);
}

/* A controller has a window of its own. */
static uint32_t window_packets(const struct netsim_transport *transport, netsim_time base_rtt_ps,
                               netsim_time slowest_ps)
{
    uint64_t packets = UINT32_MAX;
    if (transport->config.window_bytes == NETSIM_WINDOW_BDP && !netsim_is_controlled(transport))
        packets = (base_rtt_ps + slowest_ps - 1) / slowest_ps + 1;
    else if (transport->config.window_bytes != 0 && transport->config.window_bytes != NETSIM_WINDOW_BDP)
        packets = transport->config.window_bytes / transport->config.payload_bytes;
    return packets > UINT32_MAX ? UINT32_MAX : packets == 0 ? 1 : (uint32_t)packets;
}

void netsim_sender_start(struct netsim_transport *transport, uint32_t number)
{
    struct netsim_flow *flow = &transport->flows[number];
    struct netsim_sender *sender = &flow->sender;
    netsim_time slowest_ps = 0;
    netsim_ideal_fct(transport, number, &flow->ideal_ps, &sender->base_rtt_ps, &slowest_ps);
    sender->window_packets = UINT32_MAX;
    flow->start_ps = transport->network->now_ps;
    netsim_queue_pair_add(transport, number);
    transport->network->totals.flows_started++;
    netsim_flow_rate_start(transport, number);
    if (transport->config.ack_bytes != 0)
        sender->window_packets = window_packets(transport, sender->base_rtt_ps, slowest_ps);
    if (transport->config.kind == NETSIM_XP ? netsim_xp_start(transport, number)
                                            : netsim_sender_may_send(transport, number))
        netsim_flow_ring_add(transport, number);
}

/* ---- receiver -------------------------------------------------------------------------------------- */

/*
 * The receiving end of a flow: notes what arrived, acknowledges each packet.
 *
 * An acknowledgement reports up to where everything has arrived, and which packet it answers (so the sender
 * learns of each one that arrived out of order, as IRN does: Mittal et al. 2018, section 3.1).
 *
 * With go-back-N a packet that comes before its turn is not taken. The first one behind a gap is answered
 * with a negative acknowledgement, the others with nothing, as RoCE's responders do it (transport.nack
 * repeats it). One that comes again is acknowledged again.
 */

static bool bit_take(uint64_t *bits, uint32_t number)
{
    uint64_t bit = (uint64_t)1 << (number % 64);
    bool was = (bits[number / 64] & bit) != 0;
    bits[number / 64] |= bit;
    return !was;
}

/* Whether it had not arrived before. */
static bool note(struct netsim_receiver *receiver, uint32_t sequence)
{
    if (sequence < receiver->expected)
        return false;
    if (sequence > receiver->expected) {
        if (!bit_take(receiver->arrived, sequence))
            return false;
        receiver->out_of_order++;
        return true;
    }
    receiver->expected++;
    while (receiver->out_of_order > 0 &&
           (receiver->arrived[receiver->expected / 64] >> (receiver->expected % 64) & 1) != 0) {
        receiver->expected++;
        receiver->out_of_order--;
    }
    return true;
}

static bool note_in_order(struct netsim_receiver *receiver, uint32_t sequence)
{
    if (sequence != receiver->expected)
        return false;
    receiver->expected++;
    return true;
}

/* Whether to report the gap in front of a packet now. Packet numbers are 31 bits: one more is never 0. */
static bool reports_gap(const struct netsim_transport *transport, struct netsim_receiver *receiver)
{
    bool again = receiver->reported == receiver->expected + 1;
    if (again && (transport->config.nack_ps == 0 || transport->network->now_ps < receiver->report_ps))
        return false;
    receiver->reported = receiver->expected + 1;
    receiver->report_ps = transport->network->now_ps + transport->config.nack_ps;
    return true;
}

/* Whether the sender is notified of a mark. */
static bool notifies(const struct netsim_transport *transport, struct netsim_receiver *receiver)
{
    if (transport->network->now_ps < receiver->notify_ps)
        return false;
    receiver->notify_ps = transport->network->now_ps + transport->config.cnp_ps;
    return true;
}

static void become_ack(const struct netsim_transport *transport, struct netsim_receiver *receiver,
                       struct netsim_packet *packet)
{
    uint32_t source = packet->source;
    packet->source = packet->destination;
    packet->destination = source;
    packet->echo = packet->sequence;
    packet->sequence = receiver->expected;
    packet->entropy = ~packet->entropy;
    packet->wire_bytes = (uint16_t)transport->config.ack_bytes;
    packet->kind = LH_NETSIM_ACK;
    packet->priority = transport->config.ack_priority;
    packet->flags &= NETSIM_MARKED; /* echoes congestion */
    if (packet->flags != 0 && !notifies(transport, receiver))
        packet->flags = 0;
    if (transport->config.kind == NETSIM_GBN && packet->echo > packet->sequence)
        packet->flags |= NETSIM_NACK;
    if (transport->config.one_queue_pair &&
        netsim_queue_pair_missing(transport, packet->flow) == packet->flow)
        packet->flags |= NETSIM_BEHIND;
}

/* Go-back-N: a packet came before an earlier message of its queue pair was whole. */
static bool on_early(struct netsim_transport *transport, struct netsim_packet *packet, uint32_t missing)
{
    struct netsim_flow *flow = &transport->flows[missing];
    if (!reports_gap(transport, &flow->receiver))
        return false;
    transport->network->totals.ack_packets++;
    packet->flow = missing;
    packet->sequence = flow->sender.packets - 1; /* it was sent before */
    become_ack(transport, &flow->receiver, packet);
    packet->flags |= NETSIM_NACK;
    return true;
}

/* What a packet carries that had not arrived before. */
static void count_payload(struct netsim_transport *transport, struct netsim_flow *flow, uint32_t sequence)
{
    bool last = sequence == flow->sender.packets - 1;
    uint32_t bytes = last ? flow->sender.last_bytes : transport->config.payload_bytes;
    transport->network->totals.delivered_bytes += bytes;
    if (transport->config.kind == NETSIM_XP)
        flow->missing_bytes -= bytes;
}

static void on_xp_data(struct netsim_transport *transport, const struct netsim_packet *packet)
{
    struct netsim_flow *flow = &transport->flows[packet->flow];
    if (!netsim_xp_on_arrival(transport, packet->flow))
        return;
    if (note(&flow->receiver, packet->sequence))
        count_payload(transport, flow, packet->sequence);
    if (packet->sequence == flow->sender.packets - 1)
        netsim_xp_on_last(transport, packet->flow);
}

/* Takes a data packet; turns it into its acknowledgement, to be sent, or returns false. */
static bool netsim_receiver_on_data(struct netsim_transport *transport, struct netsim_packet *packet)
{
    struct netsim_flow *flow = &transport->flows[packet->flow];
    struct netsim_receiver *receiver = &flow->receiver;
    assert(packet->flow < transport->flows_count && packet->sequence < flow->sender.packets);
    if (transport->config.kind == NETSIM_XP) {
        on_xp_data(transport, packet);
        return false;
    }
    if (netsim_is_controlled(transport))
        netsim_controller_on_data(transport, packet);
    bool in_order_only = transport->config.kind == NETSIM_GBN;
    uint32_t missing = in_order_only ? netsim_queue_pair_missing(transport, packet->flow) : packet->flow;
    if (missing != packet->flow)
        return on_early(transport, packet, missing);
    if (in_order_only ? note_in_order(receiver, packet->sequence) : note(receiver, packet->sequence)) {
        count_payload(transport, flow, packet->sequence);
        if (receiver->expected == flow->sender.packets)
            netsim_queue_pair_on_whole(transport, packet->flow);
    }
    if (transport->config.ack_bytes == 0) {
        if (flow->received_ps == transport->network->now_ps && flow->done_ps == NETSIM_NEVER)
            netsim_flow_done(transport, packet->flow, transport->network->now_ps);
        return false;
    }
    if (in_order_only && packet->sequence > receiver->expected && !reports_gap(transport, receiver))
        return false;
    transport->network->totals.ack_packets++;
    become_ack(transport, receiver, packet);
    if (netsim_is_controlled(transport))
        netsim_controller_report(transport, packet);
    return true;
}

/* ---- host ------------------------------------------------------------------------------------------ */

/* After a packet the flow goes to the end of the ring, or waits for its pace. */
static void flow_sent(struct netsim_transport *transport, uint32_t flow)
{
    struct netsim_sender *sender = &transport->flows[flow].sender;
    struct netsim_network *network = transport->network;
    if (transport->config.kind == NETSIM_XP && sender->next == sender->packets)
        netsim_xp_on_sent(transport, flow);
    else if (transport->config.one_queue_pair && sender->next == sender->packets &&
             !netsim_sender_may_send(transport, flow))
        netsim_sender_wake_next(transport, flow);
    else if (transport->paced && sender->pace_ps > network->now_ps)
        netsim_event_schedule(&network->events, transport->first_pace_event + flow, sender->pace_ps);
    else if (netsim_sender_may_send(transport, flow))
        netsim_flow_ring_add(transport, flow);
    else if (netsim_is_controlled(transport) && !sender->held)
        netsim_controller_on_limited(transport, flow);
}

uint32_t netsim_host_packet(struct netsim_transport *transport, uint32_t host)
{
    /* Each round takes a flow out of the ring. */
    for (uint32_t flow; (flow = netsim_flow_ring_take(transport, host)) != NETSIM_NO_FLOW;) {
        if (!netsim_sender_may_send(transport, flow))
            continue; /* what it was to retransmit has arrived meanwhile */
        uint32_t packet = netsim_packet_new(transport->network);
        if (packet == NETSIM_NO_PACKET)
            return NETSIM_NO_PACKET;
        netsim_sender_fill(transport, flow, &transport->network->pool.packets[packet]);
        flow_sent(transport, flow);
        return packet;
    }
    return NETSIM_NO_PACKET;
}

enum netsim_host_action netsim_host_on_arrival(struct netsim_transport *transport,
                                               struct netsim_packet *packet)
{
    if ((packet->flags & NETSIM_CORRUPTED) != 0 || packet->flow == NETSIM_NO_FLOW)
        return NETSIM_HOST_TAKES;
    if (packet->kind == LH_NETSIM_DATA)
        return netsim_receiver_on_data(transport, packet) ? NETSIM_HOST_ANSWERS : NETSIM_HOST_TAKES;
    assert(packet->kind == LH_NETSIM_ACK);
    return netsim_sender_on_ack(transport, packet) ? NETSIM_HOST_SENDS : NETSIM_HOST_TAKES;
}
