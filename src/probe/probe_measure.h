/*
 * session.h - what the measurements of a probe share, on the side that measures.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_SESSION_H
#define LH_PROBE_SESSION_H

#include "probe/message.h"
#include "probe/port.h"

/* How long the server may take for a message, besides the round trip. */
#define PROBE_TIMEOUT_NS (10 * LH_NS_PER_S)

struct probe_session {
    struct lh_probe_attr attr;
    lh_time started_ns;
    int tcp;
    uint64_t token;
    struct probe_port port;
    uint32_t round; /* the last that was begun; the first is 1 */
    struct lh_probe_result *result;
};

/* How long after the last packet was sent the last of them may come, once round trips are known. */
lh_time probe_session_drain_ns(const struct probe_session *session);
/* A packet of the current round. */
struct port_packet probe_session_packet(const struct probe_session *session, enum probe_packet_kind kind,
                                        uint32_t number, uint32_t flow, uint32_t bytes, lh_time now);
/* 0 while the server is there; -LH_EPEER once its TCP connection has closed. */
int probe_session_check_server(const struct probe_session *session);

#endif
