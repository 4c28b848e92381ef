/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/session.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/earlier.h"
#include "base/error.h"

#define DRAIN_MIN_NS (30 * LH_NS_PER_MS)

lh_time probe_session_drain_ns(const struct probe_session *session)
{
    const struct lh_probe_result *result = session->result;
    lh_time spread = result->rtt_max_ns - result->rtt_min_ns;
    return lh_earlier(DRAIN_MIN_NS + result->rtt_ns / 2 + 2 * spread, PROBE_DRAIN_MAX_NS);
}

struct port_packet probe_session_packet(const struct probe_session *session, enum probe_packet_kind kind,
                                        uint32_t number, uint32_t flow, uint32_t bytes, lh_time now)
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

int probe_session_check_server(const struct probe_session *session)
{
    char byte;
    ssize_t got = recv(session->tcp, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0)
        return lh_fail(LH_EPROTOCOL, "unexpected data from the server");
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return lh_fail(LH_EPEER, "the server disconnected");
}
