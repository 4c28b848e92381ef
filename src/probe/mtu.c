/*
 * mtu.c - the largest packet that passes whole, tried with don't-fragment set.
 *
 * Timers: the end of a round, WAIT_MIN_NS and one and a half of the slowest round trips after its last
 * packet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "probe/mtu.h"

#include <assert.h>

#include "base/earlier.h"
#include "base/error.h"
#include "launch/tcp.h"
#include "probe/mtu_search.h"

#define WAIT_MIN_NS (40 * LH_NS_PER_MS)
/* Tries of one size do not meet the same burst of losses, and no queue gets many large packets at once. */
#define TRY_GAP_NS (LH_NS_PER_MS / 2)
/* The largest packet of IPv4, and all that IPv6 is tried with. */
#define PACKET_BYTES_MAX 65535u
#define ROCE_MTU_MIN     256u
#define ROCE_MTU_MAX     4096u
/* BTH 12, RETH 16, immediate 4, iCRC 4. */
#define ROCE_BYTES 36u

struct attempt {
    const struct mtu_search_round *round;
    uint32_t wanted, sent, answered;
    uint64_t too_long_before;
    lh_time next_ns, last_sent_ns;
    bool passed[MTU_SEARCH_SIZES_MAX];
};

/* Number n is a try of size n modulo their count: one of each, then the next of each. */
static void send_due(struct probe_session *session, struct attempt *attempt, lh_time now)
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
        send_due(session, attempt, now);
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

static uint32_t roce_mtu(uint32_t path_mtu, uint32_t header_bytes)
{
    uint32_t fits = ROCE_MTU_MAX;
    while (fits >= ROCE_MTU_MIN && fits + ROCE_BYTES + header_bytes > path_mtu)
        fits /= 2;
    return fits >= ROCE_MTU_MIN ? fits : 0;
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
        return lh_fail(
            LH_EMTU,
            "all packets of %u bytes were lost: nothing can be measured (reduce the loss on the path)",
            floor);
    session->result->path_mtu_bytes = search.passed_bytes;
    session->result->mtu_bytes = roce_mtu(search.passed_bytes, session->port.header_bytes);
    return 0;
}
