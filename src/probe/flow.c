/*
 * flow.c - see flow.h.
 *
 * Timers: the next packet; the end of the flow, at four times its length and a second, whatever was sent by
 * then; PROBE_TIMEOUT_NS for each message of the server.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "probe/flow.h"

#include "base/earlier.h"
#include "base/error.h"
#include "launch/tcp.h"
#include "probe/message_io.h"

/* A host that was kept from sending catches up by that many packets at once, not more: a burst of thousands
 * would measure queues. */
#define CATCH_UP_PACKETS 32u
#define TIME_FACTOR      4u

struct sending {
    const struct flow_order *order;
    struct flow_outcome *outcome;
    lh_time first_ns, next_ns, last_ns;
};

static void send_due(struct probe_session *session, struct sending *sending, lh_time now)
{
    const struct flow_order *order = sending->order;
    lh_time behind_ns = CATCH_UP_PACKETS * order->gap_ns;
    if (sending->next_ns + behind_ns < now)
        sending->next_ns = now - behind_ns;
    /* At most PORT_BATCH at a time: what is due on the link must leave, too. */
    for (uint32_t i = 0; i < PORT_BATCH; i++) {
        uint32_t number = sending->outcome->sent;
        if (number == order->packets || sending->next_ns > now)
            return;
        struct port_packet packet = probe_session_packet(session, PROBE_DATA, number, number % order->flows,
                                                         order->payload_bytes, now);
        if (!probe_port_send(&session->port, &packet, now)) {
            sending->outcome->pushed_back = true;
            sending->next_ns = probe_port_ready_ns(&session->port, now);
            return;
        }
        sending->outcome->sent++;
        sending->last_ns = now;
        sending->next_ns += order->gap_ns;
    }
}

/* Nobody sends us anything now; what comes all the same must not fill the sockets and wake us. */
static void discard_arrivals(struct probe_session *session)
{
    struct port_arrival arrivals[PORT_BATCH];
    uint32_t seen;
    do
        probe_port_receive(&session->port, session->token, arrivals, &seen);
    while (seen == PORT_BATCH);
}

static int send_all(struct probe_session *session, const struct flow_order *order,
                    struct flow_outcome *outcome)
{
    lh_time start = tcp_now();
    lh_time end_ns = start + TIME_FACTOR * order->packets * order->gap_ns + LH_NS_PER_S;
    struct sending sending = {
        .order = order, .outcome = outcome, .first_ns = start, .next_ns = start, .last_ns = start};
    for (;;) { /* until all has left, or it takes too long */
        lh_time now = tcp_now();
        if (now < end_ns)
            send_due(session, &sending, now);
        lh_time next_ns = probe_port_pump(&session->port, now);
        bool all_sent = outcome->sent == order->packets || now >= end_ns;
        if (all_sent && probe_port_is_empty(&session->port))
            break;
        if (!all_sent)
            lh_keep_earlier(&next_ns, sending.next_ns);
        if (next_ns <= tcp_now())
            continue;
        if (probe_port_wait(&session->port, session->tcp, next_ns)) {
            int error = probe_session_check_server(session);
            if (error != 0)
                return error;
        }
        discard_arrivals(session);
    }
    outcome->span_ns = sending.last_ns - sending.first_ns;
    return 0;
}

static int begin(struct probe_session *session, const struct flow_order *order, lh_time deadline)
{
    struct probe_message begin = {.type = PROBE_BEGIN}, ready;
    begin.numbers[PROBE_BEGIN_ROUND] = ++session->round;
    begin.numbers[PROBE_BEGIN_PACKETS] = order->packets;
    begin.numbers[PROBE_BEGIN_FLOWS] = order->flows;
    int error = probe_message_write(session->tcp, &begin, deadline);
    if (error == 0)
        error = probe_message_read_type(session->tcp, PROBE_READY, &ready, deadline);
    if (error == 0 && ready.numbers[PROBE_READY_ROUND] != session->round)
        error = lh_fail(LH_EPROTOCOL, "unexpected round in a READY of the server");
    return error;
}

static int read_report(struct probe_session *session, struct flow_outcome *outcome)
{
    struct probe_message end = {.type = PROBE_END};
    lh_time drain_ns = probe_session_drain_ns(session);
    lh_time deadline = tcp_deadline(drain_ns + PROBE_TIMEOUT_NS);
    end.numbers[PROBE_END_ROUND] = session->round;
    end.numbers[PROBE_END_SENT] = outcome->sent;
    end.numbers[PROBE_END_DRAIN_NS] = drain_ns;
    int error = probe_message_write(session->tcp, &end, deadline);
    if (error == 0)
        error = probe_message_read_type(session->tcp, PROBE_REPORT, &outcome->report, deadline);
    if (error != 0)
        return error;
    struct model_loss_runs runs = probe_message_runs(&outcome->report);
    if (outcome->report.numbers[PROBE_REPORT_ROUND] != session->round || runs.packets != outcome->sent)
        return lh_fail(LH_EPROTOCOL, "unexpected round in a report of the server");
    return 0;
}

int flow_run(struct probe_session *session, const struct flow_order *order, struct flow_outcome *outcome)
{
    *outcome = (struct flow_outcome){0};
    int error = begin(session, order, tcp_deadline(PROBE_TIMEOUT_NS));
    if (error != 0)
        return error;
    probe_port_start_round(&session->port, session->round);
    error = send_all(session, order, outcome);
    return error != 0 ? error : read_report(session, outcome);
}

double flow_rate_bps(const struct probe_session *session, const struct flow_order *order, uint64_t packets,
                     lh_time span_ns)
{
    double bits = 8.0 * (session->port.header_bytes + order->payload_bytes);
    if (packets < 2 || span_ns == 0)
        return 0;
    return bits * (double)(packets - 1) / (double)span_ns * (double)LH_NS_PER_S;
}
