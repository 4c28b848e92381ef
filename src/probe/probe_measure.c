/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probe_measure.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/min_max.h"
#include "launch/tcp.h"
#include "model/monte_carlo.h"
#include "probe/probe_messages.h"
#include "probe/probe_port.h"
#include "probe/probe_search.h"
#include "wire/roce_packet.h"

/* ---- session --------------------------------------------------------------------------------------- */

/* How long the server may take for a message, besides the round trip. */
#define PROBE_TIMEOUT_NS (10 * LH_NS_PER_S)

#define DRAIN_MIN_NS (30 * LH_NS_PER_MS)

/* How long after the last packet was sent the last of them may come, once round trips are known. */
static lh_time probe_session_drain_ns(const struct probe_session *session)
{
    const struct lh_probe_result *result = session->result;
    lh_time spread = result->rtt_max_ns - result->rtt_min_ns;
    return lh_earlier(DRAIN_MIN_NS + result->rtt_ns / 2 + 2 * spread, PROBE_DRAIN_MAX_NS);
}

/* A packet of the current round. */
static struct port_packet probe_session_packet(const struct probe_session *session,
                                               enum probe_packet_kind kind, uint32_t number, uint32_t flow,
                                               uint32_t bytes, lh_time now)
{
    struct port_packet made = {.bytes = bytes, .flow = flow};
    const struct probe_packet packet = {.kind = kind,
                                        .flow = (uint16_t)flow,
                                        .token = session->token,
                                        .round = session->round,
                                        .number = number,
                                        .sent_ns = now,
                                        .bytes = bytes};
    probe_packet_encode(&packet, made.header);
    return made;
}

/* 0 while the server is there; -LH_EPEER once its TCP connection has closed. */
static int probe_session_check_server(const struct probe_session *session)
{
    char byte;
    ssize_t got = recv(session->tcp, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0)
        return lh_fail(LH_EPROTOCOL, "unexpected data from the server");
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return lh_fail(LH_EPEER, "the server disconnected");
}

/* ---- flow ------------------------------------------------------------------------------------------ */

/*
 * One round of a probe: packets of one size at an even pace, and the outcome.
 *
 *
 * Timers: the next packet; the end of the flow, at four times its length and a second, whatever was sent by
 * then; PROBE_TIMEOUT_NS for each message of the server.
 */

struct flow_order {
    uint32_t payload_bytes;
    uint32_t packets;
    uint32_t flows; /* packets go to them by turns */
    lh_time gap_ns; /* from one packet to the next */
};

struct flow_outcome {
    uint32_t sent;   /* less than ordered when it took too long */
    lh_time span_ns; /* from the first send to the last */
    bool pushed_back;
    struct probe_message report;
};

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

static int flow_run(struct probe_session *session, const struct flow_order *order,
                    struct flow_outcome *outcome)
{
    *outcome = (struct flow_outcome){0};
    int error = begin(session, order, tcp_deadline(PROBE_TIMEOUT_NS));
    if (error != 0)
        return error;
    probe_port_start_round(&session->port, session->round);
    error = send_all(session, order, outcome);
    return error != 0 ? error : read_report(session, outcome);
}

/* Bits per second on the wire, from the IP header up, of packets that follow each other in that span. */
static double flow_rate_bps(const struct probe_session *session, const struct flow_order *order,
                            uint64_t packets, lh_time span_ns)
{
    double bits = 8.0 * (session->port.header_bytes + order->payload_bytes);
    if (packets < 2 || span_ns == 0)
        return 0;
    return bits * (double)(packets - 1) / (double)span_ns * (double)LH_NS_PER_S;
}

/* ---- rtt ------------------------------------------------------------------------------------------- */

/*
 * Round trips of small packets, one after the other at an even pace.
 *
 * Timers: the next ping; the timeout, before the first answer from the first ping on, then from the last one
 * on. Until there is an answer, pings go on: one burst of losses may be longer than those that were wanted.
 */

#define PINGS_MAX 400u
#define PINGS_MIN 20u
/* The first ones find addresses, and wake what sleeps: they are no samples. */
#define WARM_UP 3u
/* A tenth of the time, a ping a hundredth of a second. */
#define PING_GAP_NS (10 * LH_NS_PER_MS)
#define TIME_SHARE  10u
/* How long to wait for the first answer at all, besides the emulated delays, and for the last once one has
 * come. */
#define FIRST_TIMEOUT_NS (5 * LH_NS_PER_S / 2)
#define LAST_TIMEOUT_MIN (50 * LH_NS_PER_MS)

struct pings {
    uint32_t wanted, sent, answered;
    lh_time next_ns, first_sent_ns, last_sent_ns, longest_ns;
    bool received[PINGS_MAX];
    lh_time samples[PINGS_MAX]; /* in the order of sending */
};

static bool goes_on(const struct pings *pings)
{
    return pings->sent < pings->wanted || (pings->answered == 0 && pings->sent < PINGS_MAX);
}

static void rtt_send_due(struct probe_session *session, struct pings *pings, lh_time now)
{
    if (!goes_on(pings) || now < pings->next_ns)
        return;
    struct port_packet ping =
        probe_session_packet(session, PROBE_PING, pings->sent, 0, LH_PROBE_PAYLOAD_MIN, now);
    if (!probe_port_send(&session->port, &ping, now))
        return;
    if (pings->sent++ == 0)
        pings->first_sent_ns = now;
    pings->last_sent_ns = now;
    pings->next_ns = now + PING_GAP_NS;
}

static void on_pong(struct probe_session *session, struct pings *pings, const struct port_arrival *arrival)
{
    const struct probe_packet *pong = &arrival->packet;
    if (pong->kind != PROBE_PONG || pong->round != session->round || pong->number >= pings->sent)
        return;
    if (pings->received[pong->number] || pong->sent_ns + pong->held_ns > arrival->at_ns)
        return;
    lh_time rtt_ns = arrival->at_ns - pong->sent_ns - pong->held_ns;
    pings->received[pong->number] = true;
    pings->samples[pong->number] = rtt_ns;
    pings->answered++;
    if (rtt_ns > pings->longest_ns)
        pings->longest_ns = rtt_ns;
}

/* LH_TIME_NEVER: pings are still to be sent. */
static lh_time timeout_ends_ns(const struct probe_session *session, const struct pings *pings)
{
    const struct lh_link_spec *link = &session->attr.link;
    if (pings->sent == 0)
        return LH_TIME_NEVER;
    if (pings->answered == 0)
        return pings->first_sent_ns + FIRST_TIMEOUT_NS + 2 * (link->delay_ns + link->jitter_ns);
    if (pings->sent < pings->wanted)
        return LH_TIME_NEVER;
    return pings->last_sent_ns + LAST_TIMEOUT_MIN + 3 * pings->longest_ns;
}

static int nothing_came(const struct probe_session *session)
{
    const union port_address *to = &session->port.peer;
    uint16_t number = ntohs(to->any.sa_family == AF_INET6 ? to->six.sin6_port : to->four.sin_port);
    if (session->port.send_error != 0)
        return lh_fail(LH_EPEER, "UDP port %u of the server: %s (TCP reaches it)", number,
                       strerror(session->port.send_error));
    return lh_fail(LH_ETIMEDOUT,
                   "UDP port %u of the server: no answer, but TCP passes (let UDP through in both "
                   "directions in the firewalls on the path)",
                   number);
}

static void fill_in(struct lh_probe_result *result, struct pings *pings)
{
    uint32_t count = 0;
    /* Where all others were lost, they are better than nothing. */
    for (uint32_t i = pings->answered > WARM_UP ? WARM_UP : 0; i < pings->sent; i++)
        if (pings->received[i])
            pings->samples[count++] = pings->samples[i];
    struct model_delays spread = model_delays_of(pings->samples, count);
    result->rtt_samples = spread.samples;
    result->rtt_ns = spread.p50_ns;
    result->rtt_min_ns = spread.minimum_ns;
    result->rtt_mean_ns = spread.mean_ns;
    result->rtt_p99_ns = spread.p99_ns;
    result->rtt_max_ns = spread.maximum_ns;
    result->rtt_jitter_ns = spread.jitter_ns;
}

int probe_measure_rtt(struct probe_session *session)
{
    struct pings pings = {.wanted = (uint32_t)(session->attr.time_ns / TIME_SHARE / PING_GAP_NS)};
    struct port_arrival arrivals[PORT_BATCH];
    pings.wanted = pings.wanted < PINGS_MIN ? PINGS_MIN : pings.wanted;
    pings.wanted = pings.wanted > PINGS_MAX ? PINGS_MAX : pings.wanted;
    probe_port_start_round(&session->port, ++session->round);
    for (;;) { /* until all came back, or the timeout */
        lh_time now = tcp_now();
        uint32_t seen;
        rtt_send_due(session, &pings, now);
        lh_time next_ns = probe_port_pump(&session->port, now);
        do {
            uint32_t count = probe_port_receive(&session->port, session->token, arrivals, &seen);
            for (uint32_t i = 0; i < count; i++)
                on_pong(session, &pings, &arrivals[i]);
        } while (seen == PORT_BATCH);
        lh_time timeout_ns = timeout_ends_ns(session, &pings);
        if ((pings.sent >= pings.wanted && pings.answered == pings.sent) || tcp_now() >= timeout_ns)
            break;
        if (goes_on(&pings))
            lh_keep_earlier(&next_ns, pings.next_ns);
        lh_keep_earlier(&next_ns, timeout_ns);
        if (probe_port_wait(&session->port, session->tcp, next_ns)) {
            int error = probe_session_check_server(session);
            if (error != 0)
                return error;
        }
    }
    if (pings.answered == 0)
        return nothing_came(session);
    fill_in(session->result, &pings);
    return 0;
}

/* ---- mtu ------------------------------------------------------------------------------------------- */

/*
 * The largest packet that passes whole, tried with don't-fragment set.
 *
 * Timers: the end of a round, WAIT_MIN_NS and one and a half of the slowest round trips after its last
 * packet.
 */

#define WAIT_MIN_NS (40 * LH_NS_PER_MS)
/* Tries of one size do not meet the same burst of losses, and no queue gets many large packets at once. */
#define TRY_GAP_NS (LH_NS_PER_MS / 2)
/* The largest packet of IPv4, and all that IPv6 is tried with. */
#define PACKET_BYTES_MAX 65535u
#define ROCE_BYTES       (ROCE_WRITE_IMM_HEADER_BYTES + ROCE_ICRC_BYTES)

struct attempt {
    const struct mtu_search_round *round;
    uint32_t wanted, sent, answered;
    uint64_t too_long_before;
    lh_time next_ns, last_sent_ns;
    bool passed[MTU_SEARCH_SIZES_MAX];
};

/* Number n is a try of size n modulo their count: one of each, then the next of each. */
static void mtu_send_due(struct probe_session *session, struct attempt *attempt, lh_time now)
{
    if (attempt->sent == attempt->wanted || now < attempt->next_ns)
        return;
    uint32_t size = attempt->round->sizes[attempt->sent % attempt->round->count];
    struct port_packet packet = probe_session_packet(session, PROBE_WHOLE, attempt->sent, 0,
                                                     size - session->port.header_bytes, now);
    if (!probe_port_send(&session->port, &packet, now))
        return;
    attempt->sent++;
    attempt->last_sent_ns = now;
    attempt->next_ns = now + TRY_GAP_NS;
}

static void on_came(struct probe_session *session, struct attempt *attempt, const struct probe_packet *came)
{
    if (came->kind != PROBE_CAME || came->round != session->round || came->number >= attempt->sent)
        return;
    attempt->passed[came->number % attempt->round->count] = true;
    attempt->answered++;
}

/* All is known: the rest was refused here already. (Doubled answers only end it early where others are
 * still to come, which then count as lost.) */
static bool all_known(const struct probe_session *session, const struct attempt *attempt)
{
    uint64_t too_long = session->port.too_long - attempt->too_long_before;
    return attempt->sent == attempt->wanted && attempt->answered + too_long >= attempt->sent;
}

static int try_sizes(struct probe_session *session, struct attempt *attempt)
{
    lh_time wait_ns = WAIT_MIN_NS + session->result->rtt_max_ns * 3 / 2;
    struct port_arrival arrivals[PORT_BATCH];
    probe_port_start_round(&session->port, ++session->round);
    for (;;) { /* until all is known, or the wait is over */
        lh_time now = tcp_now();
        uint32_t seen;
        mtu_send_due(session, attempt, now);
        lh_time next_ns = probe_port_pump(&session->port, now);
        do {
            uint32_t count = probe_port_receive(&session->port, session->token, arrivals, &seen);
            for (uint32_t i = 0; i < count; i++)
                on_came(session, attempt, &arrivals[i].packet);
        } while (seen == PORT_BATCH);
        bool all_sent = attempt->sent == attempt->wanted;
        if (all_known(session, attempt))
            return 0;
        /* A slow link may take long to let the last one go. */
        if (all_sent && probe_port_is_empty(&session->port) && tcp_now() >= attempt->last_sent_ns + wait_ns)
            return 0;
        lh_keep_earlier(&next_ns, all_sent ? attempt->last_sent_ns + wait_ns : attempt->next_ns);
        if (probe_port_wait(&session->port, session->tcp, next_ns)) {
            int error = probe_session_check_server(session);
            if (error != 0)
                return error;
        }
    }
}

int probe_measure_mtu(struct probe_session *session)
{
    uint32_t floor = session->port.header_bytes + LH_PROBE_PAYLOAD_MIN;
    struct mtu_search search;
    mtu_search_init(&search, floor, PACKET_BYTES_MAX);
    while (!search.done) { /* at most MTU_SEARCH_ROUNDS_MAX times */
        struct mtu_search_round round = mtu_search_next(&search);
        struct attempt attempt = {.round = &round,
                                  .wanted = round.count * round.tries,
                                  .too_long_before = session->port.too_long};
        int error = try_sizes(session, &attempt);
        if (error != 0)
            return error;
        mtu_search_on_round(&search, &round, attempt.passed);
    }
    if (search.passed_bytes < floor)
        return lh_fail(LH_EMTU,
                       "all packets of %u bytes were lost: no measurement (reduce the loss on the path)",
                       floor);
    session->result->path_mtu_bytes = search.passed_bytes;
    session->result->mtu_bytes =
        roce_payload_for(search.passed_bytes, session->port.header_bytes + ROCE_BYTES);
    return 0;
}

/* ---- loss ------------------------------------------------------------------------------------------ */

/*
 * Trials of each payload size, and their statistics.
 *
 * Sizes take turns, so that what changes on the path in the meantime changes for all of them.
 */

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

/* ---- rate ------------------------------------------------------------------------------------------ */

/* Long enough that the queues on the path fill, and that a busy host's pauses weigh little. */
#define TRAIN_NS          (80 * LH_NS_PER_MS)
#define TRAIN_PACKETS_MIN 64u
/* The search ends when it has used this part of the time, with what it knows. */
#define RATE_TIME_SHARE 3u

/* Fewer of the large ones: a train of them is short already. */
static struct flow_order train_of(const struct probe_session *session, const struct rate_search *search)
{
    const struct lh_probe_result *result = session->result;
    struct flow_order order = {.flows = session->attr.flows};
    for (uint32_t i = 0; i < result->size_count; i++)
        if (result->sizes[i].payload_bytes > order.payload_bytes)
            order.payload_bytes = result->sizes[i].payload_bytes;
    order.gap_ns = schedule_gap_ns(search->offered_bps, session->port.header_bytes + order.payload_bytes);
    lh_time packets = TRAIN_NS / (order.gap_ns > 0 ? order.gap_ns : 1);
    order.packets = packets > TRAIN_PACKETS_MIN ? (uint32_t)packets : TRAIN_PACKETS_MIN;
    /* What the host can send in that time anyway, at a microsecond each. */
    if (order.packets > TRAIN_NS / LH_NS_PER_US)
        order.packets = (uint32_t)(TRAIN_NS / LH_NS_PER_US);
    return order;
}

static struct rate_outcome outcome_of(const struct probe_session *session, const struct flow_order *order,
                                      const struct flow_outcome *flow)
{
    const uint64_t *numbers = flow->report.numbers;
    struct model_loss_runs runs = probe_message_runs(&flow->report);
    return (struct rate_outcome){
        .sent_bps = flow_rate_bps(session, order, flow->sent, flow->span_ns),
        .delivered_bps =
            flow_rate_bps(session, order, numbers[PROBE_REPORT_RECEIVED], numbers[PROBE_REPORT_SPAN_NS]),
        .loss = runs.packets > 0 ? (double)runs.lost / (double)runs.packets : 0,
        .pushed_back = flow->pushed_back,
        .endpoint_drops =
            runs.lost > 0 && numbers[PROBE_REPORT_SOCKET_DROPS] + numbers[PROBE_REPORT_HOST_DROPS] > 0,
    };
}

int probe_measure_rate(struct probe_session *session)
{
    struct rate_search search;
    lh_time ends_ns = tcp_now() + session->attr.time_ns / RATE_TIME_SHARE;
    rate_search_init(&search, session->attr.rate_bps);
    do {
        struct flow_order order = train_of(session, &search);
        struct flow_outcome flow;
        int error = flow_run(session, &order, &flow);
        if (error != 0)
            return error;
        struct rate_outcome outcome = outcome_of(session, &order, &flow);
        rate_search_on_outcome(&search, &outcome);
        if (!search.done && search.rate_bps <= 0)
            session->result->rate_bps = outcome.delivered_bps;
    } while (!search.done && tcp_now() < ends_ns);
    if (search.rate_bps > 0)
        session->result->rate_bps = search.rate_bps;
    session->result->rate_limit = search.limit != 0 ? search.limit : LH_PROBE_LIMIT_TIME;
    return 0;
}
