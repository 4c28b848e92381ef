/*
 * client.h - what the phases of a probe share: the side that measures.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_CLIENT_H
#define LH_PROBE_CLIENT_H

#include "probe/message.h"
#include "probe/port.h"

/* How long the server may take for a word, beside the round trip. */
#define PROBE_PATIENCE_NS (10 * LH_NS_PER_S)

struct probe_client {
    struct lh_probe_attr attr;
    lh_time started_ns;
    int tcp;
    uint64_t token;
    struct probe_port port;
    uint32_t round; /* the last that was begun; the first is 1 */
    struct lh_probe_result *result;
};

/* How long after the last packet was sent the last of them may come, once round trips are known. */
lh_time probe_client_drain_ns(const struct probe_client *client);
/* A packet of the current round. */
struct port_packet probe_client_packet(const struct probe_client *client, enum probe_packet_kind kind,
                                       uint32_t number, uint32_t flow, uint32_t bytes, lh_time now);
/* The server is still there: its end of the TCP connection has not closed. */
int probe_client_check_server(const struct probe_client *client);

/* Each fills in its part of the result; 0 or an error. */
int probe_measure_rtt(struct probe_client *client);
int probe_measure_mtu(struct probe_client *client);
int probe_measure_rate(struct probe_client *client);
int probe_measure_loss(struct probe_client *client);

#endif
