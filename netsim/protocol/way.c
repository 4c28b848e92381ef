/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/protocol/way.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define SLOTS          16u
#define SLOTS_AHEAD    256u /* as a link of a group */
#define SLOT_BYTES_MIN 65536u
#define SLOT_BYTES_MAX (1u << 20)
/* Of a window of "bdp": room for acknowledgements that come in groups, and for repairs. */
#define WINDOW_BDPS        2u
#define WINDOW_PACKETS_MIN 32u
#define MISSING_RANGES     16 /* of a message, at a time */

static uint64_t slot_bytes(const struct way *way)
{
    uint64_t bytes = SLOT_BYTES_MIN;
    while (bytes < way->longest_bytes && bytes < SLOT_BYTES_MAX)
        bytes *= 2;
    return bytes;
}

/* Payload of one flow, as its host's cable carries it. */
static uint64_t rate_bps(const struct way *way, const struct netsim *net)
{
    const struct netsim_transport_config *transport = &net->transport.config;
    if (transport->rate_bps != 0)
        return transport->rate_bps;
    uint64_t line_bps = net->network.more[netsim_host_port(way->source)].rate_bps;
    return line_bps / (transport->payload_bytes + transport->header_bytes) * transport->payload_bytes;
}

static uint64_t window_bytes(const struct way *way, const struct netsim *net, netsim_time rtt_ps)
{
    const struct netsim_transport_config *transport = &net->transport.config;
    if (transport->window_bytes != NETSIM_WINDOW_BDP)
        return transport->window_bytes; /* 0: the default of connections */
    double bdp_bytes = (double)rtt_ps / (double)NETSIM_PS_PER_S * (double)rate_bps(way, net) / 8;
    uint64_t bytes = (uint64_t)(WINDOW_BDPS * bdp_bytes);
    uint64_t least = (uint64_t)WINDOW_PACKETS_MIN * transport->payload_bytes;
    return bytes > least ? bytes : least;
}

const char *way_congestion(const struct netsim_transport_config *transport)
{
    switch (transport->congestion.kind) {
    case NETSIM_CONGESTION_DCQCN:
        return "dcqcn";
    case NETSIM_CONGESTION_CONTROLLER:
        return transport->congestion.controller;
    default:
        return NULL;
    }
}

static int open_end(struct way *way, int end, const struct lh_attr *attr, const char *world)
{
    char device[64];
    struct lh_attr own = *attr;
    snprintf(device, sizeof device, "sim:%s/%u", world, end == 0 ? way->source : way->destination);
    own.device = device;
    return lh_open(&own, &way->ends[end]);
}

/* What a call on a connection returned says that it has ended, and not that the call is wrong. */
static bool has_ended(int result)
{
    switch (result) {
    case 0:
    case -LH_EINVAL:
    case -LH_ENOMEM:
    case -LH_EAGAIN:
    case -LH_ERANGE:
    case -LH_ESTATE:
        return false;
    default:
        return true;
    }
}

/* Posts receives for the next messages. */
static int post_ahead(struct way *way)
{
    while (way->is_ahead && way->posted < way->flows && way->posted - way->taken < WAY_AHEAD_MAX) {
        struct way_receive *next = &way->ahead[way->posted % WAY_AHEAD_MAX];
        next->buffer = malloc(way->longest_bytes);
        if (next->buffer == NULL)
            return lh_fail(LH_ENOMEM, "host %u: no memory for %llu bytes", way->destination,
                           (unsigned long long)way->longest_bytes);
        way->posted++;
        int result = lh_recv(way->ends[1], next->buffer, way->longest_bytes, NULL, &next->request);
        if (result != 0)
            return has_ended(result) ? 0 : result;
    }
    return 0;
}

static int attach(struct way *way)
{
    uint8_t blobs[2][LH_BLOB_MAX];
    size_t bytes[2] = {LH_BLOB_MAX, LH_BLOB_MAX};
    int result = 0;
    for (int end = 0; end < 2 && result == 0; end++)
        result = lh_blob(way->ends[end], blobs[end], &bytes[end]);
    for (int end = 0; end < 2 && result == 0; end++)
        result = lh_attach(way->ends[end], blobs[1 - end], bytes[1 - end]);
    return result;
}

int way_open(struct way *way, const struct netsim *net, netsim_time rtt_ps, const char *world,
             const char *scheme)
{
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.reliability = scheme;
    attr.workers = LH_NO_WORKERS;
    attr.mtu_bytes = net->transport.config.payload_bytes;
    attr.slots = way->is_ahead ? SLOTS_AHEAD : SLOTS;
    attr.slot_bytes = slot_bytes(way);
    attr.congestion = way_congestion(&net->transport.config);
    attr.rate_bps = rate_bps(way, net);
    if (attr.congestion != NULL) { /* which has to find out what the user does not tell */
        attr.rate_max_bps = attr.rate_bps;
        attr.rate_bps = net->transport.config.rate_bps;
    }
    attr.window_bytes = window_bytes(way, net, rtt_ps);
    int result = open_end(way, 0, &attr, world);
    if (result == 0)
        result = open_end(way, 1, &attr, world);
    if (result == 0)
        result = attach(way);
    return result == 0 ? post_ahead(way) : result;
}

static void message_free(struct message *message)
{
    lh_request_free(message->send);
    lh_request_free(message->receive);
    free(message->buffer);
    message->send = message->receive = NULL;
    message->buffer = NULL;
}

void way_close(struct way *way)
{
    for (struct message *message = way->first; message != NULL; message = message->next)
        message_free(message);
    for (; way->taken < way->posted; way->taken++) {
        lh_request_free(way->ahead[way->taken % WAY_AHEAD_MAX].request);
        free(way->ahead[way->taken % WAY_AHEAD_MAX].buffer);
    }
    for (int end = 0; end < 2; end++)
        if (way->ends[end] != NULL)
            lh_close(way->ends[end]);
}

static const uint8_t *data_of(const struct message *message, const uint8_t *pattern)
{
    return pattern + message->flow * 977u % WAY_PATTERN_SHIFTS;
}

/* The receive of a message that is sent now. */
static int receive(struct way *way, struct message *message, uint64_t bytes)
{
    if (way->is_ahead) {
        struct way_receive *next = &way->ahead[way->taken++ % WAY_AHEAD_MAX];
        assert(way->taken <= way->posted);
        message->buffer = next->buffer;
        message->receive = next->request;
        *next = (struct way_receive){0};
        return message->receive != NULL ? post_ahead(way) : -LH_ECLOSED;
    }
    message->buffer = malloc(bytes);
    if (message->buffer == NULL)
        return lh_fail(LH_ENOMEM, "flow %u: no memory for %llu bytes", message->flow,
                       (unsigned long long)bytes);
    return lh_recv(way->ends[1], message->buffer, bytes, NULL, &message->receive);
}

int way_start(struct way *way, struct netsim *net, struct message *message, const uint8_t *pattern)
{
    uint64_t bytes = net->transport.flows[message->flow].bytes;
    int result = receive(way, message, bytes);
    if (result == 0)
        result = lh_send(way->ends[0], data_of(message, pattern), bytes, NULL, &message->send);
    if (has_ended(result)) {
        netsim_flow_failed(&net->transport, message->flow);
        message_free(message);
        return 0;
    }
    message->next = NULL;
    if (way->last == NULL)
        way->first = message;
    else
        way->last->next = message;
    way->last = message;
    return result;
}

/* Gives the flow what the connections have counted since the last one was over. */
static void count(struct way *way, struct netsim *net, struct netsim_flow *flow)
{
    struct lh_stats sent;
    struct lh_stats received;
    if (lh_connection_stats(way->ends[0], &sent) != 0 || lh_connection_stats(way->ends[1], &received) != 0)
        return;
    struct way_counted now = {
        .packets = sent.tx_packets,
        .repeated = sent.tx_retransmitted_packets,
        .timeouts = sent.timeouts,
        .control = sent.tx_control + received.tx_control,
    };
    flow->sender.sent_packets += now.packets - way->counted.packets;
    flow->sender.repeated_packets += (uint32_t)(now.repeated - way->counted.repeated);
    flow->sender.timeouts += (uint32_t)(now.timeouts - way->counted.timeouts);
    net->network.totals.data_packets += now.packets - way->counted.packets;
    net->network.totals.repeated_packets += now.repeated - way->counted.repeated;
    net->network.totals.timeouts += now.timeouts - way->counted.timeouts;
    net->network.totals.ack_packets += now.control - way->counted.control;
    way->counted = now;
}

/* Whether what came is what was sent, and the rest is listed as missing. */
static bool is_as_sent(const struct message *message, const struct lh_result *received, const uint8_t *sent)
{
    struct lh_range missing[MISSING_RANGES];
    uint64_t at = 0;
    uint64_t lost_bytes = 0;
    uint64_t known = 0;
    int64_t count = received->missing_bytes > 0 ? MISSING_RANGES : 0;
    for (; count == MISSING_RANGES; known += MISSING_RANGES) {
        count = lh_missing(message->receive, known, missing, MISSING_RANGES);
        for (int64_t i = 0; i < count; i++) {
            if (missing[i].offset < at || missing[i].bytes > received->bytes - missing[i].offset ||
                memcmp(message->buffer + at, sent + at, missing[i].offset - at) != 0)
                return false;
            at = missing[i].offset + missing[i].bytes;
            lost_bytes += missing[i].bytes;
        }
    }
    return lost_bytes == received->missing_bytes &&
           memcmp(message->buffer + at, sent + at, received->bytes - at) == 0;
}

/* 1: the message is over; 0: not yet; negative: it was received wrong. */
static int settle(struct way *way, struct netsim *net, struct message *message, const uint8_t *pattern)
{
    struct netsim_flow *flow = &net->transport.flows[message->flow];
    struct lh_result sent = {0};
    struct lh_result received = {0};
    bool is_received = lh_test(message->receive, &received) == 1;
    if (is_received && received.error == 0 && flow->received_ps == NETSIM_NEVER) {
        if (received.bytes != flow->bytes || !is_as_sent(message, &received, data_of(message, pattern)))
            return lh_fail(LH_EPROTOCOL, "flow %u: received other bytes than were sent", message->flow);
        flow->missing_bytes = received.missing_bytes;
        netsim_flow_received(&net->transport, message->flow, received.ended_ns * NETSIM_PS_PER_NS);
        net->network.totals.delivered_bytes += flow->bytes - flow->missing_bytes;
    }
    if (!is_received || lh_test(message->send, &sent) != 1)
        return 0;
    if (sent.error == 0 && received.error == 0) {
        netsim_flow_done(&net->transport, message->flow, sent.ended_ns * NETSIM_PS_PER_NS);
    } else {
        netsim_flow_failed(&net->transport, message->flow);
    }
    count(way, net, flow);
    message_free(message);
    return 1;
}

int way_settle(struct way *way, struct netsim *net, const uint8_t *pattern)
{
    struct message **link = &way->first;
    way->last = NULL;
    while (*link != NULL) {
        int result = settle(way, net, *link, pattern);
        if (result < 0)
            return result;
        if (result == 1) {
            *link = (*link)->next;
            continue;
        }
        way->last = *link;
        link = &(*link)->next;
    }
    return 0;
}
