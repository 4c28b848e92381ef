/*
 * rtt.c - round trips of small packets, one after the other at an even pace.
 *
 * Timers: the next ping; the timeout, before the first answer from the first ping on, then from the last one
 * on. Until there is an answer, pings go on: one burst of losses may be longer than those that were wanted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "probe/rtt.h"

#include <string.h>

#include "base/earlier.h"
#include "base/error.h"
#include "launch/tcp.h"
#include "model/delay_summary.h"

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

static void send_due(struct probe_session *session, struct pings *pings, lh_time now)
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
                   "UDP port %u of the server: no answer, although TCP reaches it (let UDP through both "
                   "ways in the firewalls on the path)",
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
        send_due(session, &pings, now);
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
