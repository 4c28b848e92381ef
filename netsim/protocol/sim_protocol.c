/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/protocol/sim_protocol.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/connection.h>

#include "base/error.h"
#include "base/prng.h"
#include "netsim/base/netsim_config.h"
#include "netsim/fabric/sim_packets.h"
#include "netsim/run/simulation_run.h"
#include "netsim/transport/netsim_host.h"

/* ---- schemes --------------------------------------------------------------------------------------- */

struct scheme_list {
    char text[NETSIM_SCHEMES_BYTES]; /* each ended by a zero */
    uint32_t starts[SCHEMES_MAX];
    uint32_t count;
};

static inline const char *scheme_list_of(const struct scheme_list *list, uint32_t host)
{
    return list->text + list->starts[host % list->count];
}

/* -LH_EINVAL: none, more than SCHEMES_MAX, or one that lh_attr.reliability cannot be. */
static int scheme_list_parse(const char *text, struct scheme_list *list)
{
    size_t bytes = strlen(text);
    *list = (struct scheme_list){0};
    if (bytes >= sizeof list->text)
        return lh_fail(LH_EINVAL, "transport.schemes: %zu characters (at most %zu)", bytes,
                       sizeof list->text - 1);
    memcpy(list->text, text, bytes);
    for (char *at = list->text; *at != '\0';) {
        size_t length = strcspn(at, " ");
        bool last = at[length] == '\0';
        at[length] = '\0';
        if (length > 0) {
            if (list->count == SCHEMES_MAX)
                return lh_fail(LH_EINVAL, "transport.schemes: more than %u schemes", SCHEMES_MAX);
            if (lh_reliability_check(at) != 0)
                return lh_fail(LH_EINVAL, "transport.schemes: %s", lh_last_error());
            list->starts[list->count++] = (uint32_t)(at - list->text);
        }
        at += last ? length : length + 1;
    }
    if (list->count == 0)
        return lh_fail(LH_EINVAL, "transport.schemes: no scheme (example: sr-nack ec:mds,k=32,m=8)");
    return 0;
}

/* ---- way ------------------------------------------------------------------------------------------- */

#define PATH_AHEAD_MAX     64u    /* as a link of a group (LINK_BULK_PLACES) */
#define WAY_PATTERN_SHIFTS 65536u /* the pattern is that much longer than the longest message */

/* A receive of no message yet. */
struct path_receive {
    struct lh_request *request;
    uint8_t *buffer; /* of longest_bytes */
};

/* What both connections have counted and no flow was given yet is in their lh_stats less this. */
struct way_counted {
    uint64_t packets;
    uint64_t repeated;
    uint64_t timeouts;
    uint64_t control;
};

struct path {
    struct lh_connection *ends[2]; /* at the source, at the destination; NULL: not opened yet */
    struct message *first;         /* of those that are not over */
    struct message *last;
    uint32_t source;
    uint32_t destination;
    uint32_t flows;
    uint64_t longest_bytes; /* of its flows */
    bool is_ahead;          /* receives are posted before their messages are sent */
    struct path_receive ahead[PATH_AHEAD_MAX];
    uint32_t posted; /* receives so far, of `flows`; the next message takes number `taken` of these */
    uint32_t taken;
    struct way_counted counted;
};

#define SLOTS          16u
#define SLOTS_AHEAD    256u /* as a link of a group */
#define SLOT_BYTES_MIN 65536u
#define SLOT_BYTES_MAX (1u << 20)
/* Of a window of "bdp": room for acknowledgements that come in groups, and for repairs. */
#define WINDOW_BDPS        2u
#define WINDOW_PACKETS_MIN 32u
#define MISSING_RANGES     16 /* of a message, at a time */

static uint64_t slot_bytes(const struct path *path)
{
    uint64_t bytes = SLOT_BYTES_MIN;
    while (bytes < path->longest_bytes && bytes < SLOT_BYTES_MAX)
        bytes *= 2;
    return bytes;
}

/* Payload of one flow, as its host's cable carries it. */
static uint64_t rate_bps(const struct path *path, const struct netsim *net)
{
    const struct netsim_transport_config *transport = &net->transport.config;
    if (transport->rate_bps != 0)
        return transport->rate_bps;
    uint64_t line_bps = net->network.more[netsim_host_port(path->source)].rate_bps;
    return line_bps / (transport->payload_bytes + transport->header_bytes) * transport->payload_bytes;
}

static uint64_t window_bytes(const struct path *path, const struct netsim *net, netsim_time rtt_ps)
{
    const struct netsim_transport_config *transport = &net->transport.config;
    if (transport->window_bytes != NETSIM_WINDOW_BDP)
        return transport->window_bytes; /* 0: the default of connections */
    double bdp_bytes = (double)rtt_ps / (double)NETSIM_PS_PER_S * (double)rate_bps(path, net) / 8;
    uint64_t bytes = (uint64_t)(WINDOW_BDPS * bdp_bytes);
    uint64_t minimum = (uint64_t)WINDOW_PACKETS_MIN * transport->payload_bytes;
    return bytes > minimum ? bytes : minimum;
}

/* lh_attr.congestion of the sending ends; NULL: none is set. */
static const char *way_congestion(const struct netsim_transport_config *transport)
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

static int open_end(struct path *path, int end, const struct lh_attr *attr, const char *world)
{
    char device[64];
    struct lh_attr own = *attr;
    snprintf(device, sizeof device, "sim:%s/%u", world, end == 0 ? path->source : path->destination);
    own.device = device;
    return lh_open(&own, &path->ends[end]);
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
static int post_ahead(struct path *path)
{
    while (path->is_ahead && path->posted < path->flows && path->posted - path->taken < PATH_AHEAD_MAX) {
        struct path_receive *next = &path->ahead[path->posted % PATH_AHEAD_MAX];
        next->buffer = malloc(path->longest_bytes);
        if (next->buffer == NULL)
            return lh_fail(LH_ENOMEM, "host %u: no memory for %llu bytes", path->destination,
                           (unsigned long long)path->longest_bytes);
        path->posted++;
        int result = lh_recv(path->ends[1], next->buffer, path->longest_bytes, NULL, &next->request);
        if (result != 0)
            return has_ended(result) ? 0 : result;
    }
    return 0;
}

static int attach(struct path *path)
{
    uint8_t blobs[2][LH_BLOB_MAX];
    size_t bytes[2] = {LH_BLOB_MAX, LH_BLOB_MAX};
    int result = 0;
    for (int end = 0; end < 2 && result == 0; end++)
        result = lh_blob(path->ends[end], blobs[end], &bytes[end]);
    for (int end = 0; end < 2 && result == 0; end++)
        result = lh_attach(path->ends[end], blobs[1 - end], bytes[1 - end]);
    return result;
}

/* Opens and connects both ends in that world; rtt_ps: of the empty path. `scheme`: as lh_attr.reliability. */
static int path_open(struct path *path, const struct netsim *net, netsim_time rtt_ps, const char *world,
                     const char *scheme)
{
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.reliability = scheme;
    attr.workers = LH_NO_WORKERS;
    attr.mtu_bytes = net->transport.config.payload_bytes;
    attr.slots = path->is_ahead ? SLOTS_AHEAD : SLOTS;
    attr.slot_bytes = slot_bytes(path);
    attr.congestion = way_congestion(&net->transport.config);
    attr.rate_bps = rate_bps(path, net);
    if (attr.congestion != NULL) { /* which has to find out what the user does not tell */
        attr.rate_max_bps = attr.rate_bps;
        attr.rate_bps = net->transport.config.rate_bps;
    }
    attr.window_bytes = window_bytes(path, net, rtt_ps);
    int result = open_end(path, 0, &attr, world);
    if (result == 0)
        result = open_end(path, 1, &attr, world);
    if (result == 0)
        result = attach(path);
    return result == 0 ? post_ahead(path) : result;
}

static void message_free(struct message *message)
{
    lh_request_free(message->send);
    lh_request_free(message->receive);
    free(message->buffer);
    message->send = message->receive = NULL;
    message->buffer = NULL;
}

static void path_close(struct path *path)
{
    for (struct message *message = path->first; message != NULL; message = message->next)
        message_free(message);
    for (; path->taken < path->posted; path->taken++) {
        lh_request_free(path->ahead[path->taken % PATH_AHEAD_MAX].request);
        free(path->ahead[path->taken % PATH_AHEAD_MAX].buffer);
    }
    for (int end = 0; end < 2; end++)
        if (path->ends[end] != NULL)
            lh_close(path->ends[end]);
}

static const uint8_t *data_of(const struct message *message, const uint8_t *pattern)
{
    return pattern + message->flow * 977u % WAY_PATTERN_SHIFTS;
}

/* The receive of a message that is sent now. */
static int receive(struct path *path, struct message *message, uint64_t bytes)
{
    if (path->is_ahead) {
        struct path_receive *next = &path->ahead[path->taken++ % PATH_AHEAD_MAX];
        assert(path->taken <= path->posted);
        message->buffer = next->buffer;
        message->receive = next->request;
        *next = (struct path_receive){0};
        return message->receive != NULL ? post_ahead(path) : -LH_ECLOSED;
    }
    message->buffer = malloc(bytes);
    if (message->buffer == NULL)
        return lh_fail(LH_ENOMEM, "flow %u: no memory for %llu bytes", message->flow,
                       (unsigned long long)bytes);
    return lh_recv(path->ends[1], message->buffer, bytes, NULL, &message->receive);
}

/* Starts the message of a flow. message->flow is set. The flow fails when the connection has ended. */
static int path_start(struct path *path, struct netsim *net, struct message *message,
                      const uint8_t *pattern)
{
    uint64_t bytes = net->transport.flows[message->flow].bytes;
    int result = receive(path, message, bytes);
    if (result == 0)
        result = lh_send(path->ends[0], data_of(message, pattern), bytes, NULL, &message->send);
    if (has_ended(result)) {
        netsim_flow_failed(&net->transport, message->flow);
        message_free(message);
        return 0;
    }
    message->next = NULL;
    if (path->last == NULL)
        path->first = message;
    else
        path->last->next = message;
    path->last = message;
    return result;
}

/* Gives the flow what the connections have counted since the last one was over. */
static void count(struct path *path, struct netsim *net, struct netsim_flow *flow)
{
    struct lh_stats sent;
    struct lh_stats received;
    if (lh_connection_stats(path->ends[0], &sent) != 0 ||
        lh_connection_stats(path->ends[1], &received) != 0)
        return;
    struct way_counted now = {
        .packets = sent.tx_packets,
        .repeated = sent.tx_retransmitted_packets,
        .timeouts = sent.timeouts,
        .control = sent.tx_control + received.tx_control,
    };
    flow->sender.sent_packets += now.packets - path->counted.packets;
    flow->sender.repeated_packets += (uint32_t)(now.repeated - path->counted.repeated);
    flow->sender.timeouts += (uint32_t)(now.timeouts - path->counted.timeouts);
    net->network.totals.data_packets += now.packets - path->counted.packets;
    net->network.totals.repeated_packets += now.repeated - path->counted.repeated;
    net->network.totals.timeouts += now.timeouts - path->counted.timeouts;
    net->network.totals.ack_packets += now.control - path->counted.control;
    path->counted = now;
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
static int settle(struct path *path, struct netsim *net, struct message *message, const uint8_t *pattern)
{
    struct netsim_flow *flow = &net->transport.flows[message->flow];
    struct lh_result sent = {0};
    struct lh_result received = {0};
    bool is_received = lh_test(message->receive, &received) == 1;
    if (is_received && received.error == 0 && flow->received_ps == NETSIM_NEVER) {
        if (received.bytes != flow->bytes || !is_as_sent(message, &received, data_of(message, pattern)))
            return lh_fail(LH_EPROTOCOL, "flow %u: received bytes differ from the bytes sent",
                           message->flow);
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
    count(path, net, flow);
    message_free(message);
    return 1;
}

/* Ends what is over, in the network's flows and totals. 0, or -LH_EPROTOCOL: a byte is wrong. */
static int path_settle(struct path *path, struct netsim *net, const uint8_t *pattern)
{
    struct message **link = &path->first;
    path->last = NULL;
    while (*link != NULL) {
        int result = settle(path, net, *link, pattern);
        if (result < 0)
            return result;
        if (result == 1) {
            *link = (*link)->next;
            continue;
        }
        path->last = *link;
        link = &(*link)->next;
    }
    return 0;
}

/* ---- protocol -------------------------------------------------------------------------------------- */

#define FLOWS_MAX      65536u
#define FLOW_BYTES_MAX ((uint64_t)256 << 20) /* each is kept in memory, and compared */
#define STEPS_MAX      100000u               /* of a connection at one moment: past it, it asks for ever */
#define NO_PATH        UINT32_MAX
/* From when connections are opened to the first flow: a path is known after one, and what is lost of that is
 * retransmitted. */
#define OPENING_RTTS 4u

struct protocol {
    struct netsim *net;
    struct sim_world *world;
    struct message *messages; /* one a flow */
    struct path *paths;
    uint32_t paths_count;
    uint32_t *path_of; /* [source * hosts + destination]; NO_PATH */
    /* End e of way w is number 2 w + e, here and in `timers`. */
    uint32_t *dirty; /* ends that have something to do now */
    bool *is_dirty;
    uint32_t dirty_count;
    lh_time begin_ns; /* no flow starts before */
    struct netsim_event_queue timers;
    void *timers_memory;
    uint8_t *pattern; /* the bytes of messages: see sim_protocol.h */
    struct scheme_list schemes;
    char name[SIM_WORLD_NAME_MAX];
};

/* ---- life -------------------------------------------------------------------------------------------- */

int protocol_check(const struct netsim_config *config)
{
    const struct netsim_transport_config *transport = &config->transport;
    uint32_t mtu = transport->payload_bytes;
    struct scheme_list list;
    if (mtu < 256 || mtu > 4096 || (mtu & (mtu - 1)) != 0)
        return lh_fail(
            LH_EINVAL,
            "transport.payload is %u bytes: with transport.kind = longhaul it is an MTU (256, 512, "
            "1024, 2048 or 4096)",
            mtu);
    if (transport->congestion.kind != NETSIM_CONGESTION_NONE &&
        lh_congestion_check(way_congestion(transport)) != 0)
        return -LH_EINVAL;
    return scheme_list_parse(config->schemes, &list);
}

static int check_size(const struct netsim *net)
{
    if (net->network.hosts_count > SIM_HOSTS_MAX)
        return lh_fail(
            LH_ERANGE,
            "the topology has %u hosts: at most %u with transport.kind = longhaul (a fat tree of "
            "topology.k = 8)",
            net->network.hosts_count, SIM_HOSTS_MAX);
    if (net->transport.flows_count > FLOWS_MAX)
        return lh_fail(LH_ERANGE,
                       "the workload has %u flows: at most %u with transport.kind = longhaul (make it "
                       "shorter)",
                       net->transport.flows_count, FLOWS_MAX);
    for (uint32_t i = 0; i < net->transport.flows_count; i++)
        if (net->transport.flows[i].bytes > FLOW_BYTES_MAX)
            return lh_fail(LH_ERANGE,
                           "flow %u has %llu bytes: at most %llu with transport.kind = longhaul (make it "
                           "shorter)",
                           i, (unsigned long long)net->transport.flows[i].bytes,
                           (unsigned long long)FLOW_BYTES_MAX);
    return 0;
}

/* Numbers the pairs of hosts that have flows; how many there are. */
static uint32_t number_paths(struct protocol *protocol)
{
    const struct netsim *net = protocol->net;
    uint32_t count = 0;
    memset(protocol->path_of, 0xFF,
           (size_t)net->network.hosts_count * net->network.hosts_count * sizeof *protocol->path_of);
    for (uint32_t i = 0; i < net->transport.flows_count; i++) {
        const struct netsim_sender *sender = &net->transport.flows[i].sender;
        uint32_t *path =
            &protocol->path_of[sender->source * net->network.hosts_count + sender->destination];
        if (*path == NO_PATH)
            *path = count++;
    }
    return count;
}

static int fill_ways(struct protocol *protocol)
{
    const struct netsim *net = protocol->net;
    for (uint32_t i = 0; i < net->transport.flows_count; i++) {
        const struct netsim_sender *sender = &net->transport.flows[i].sender;
        uint32_t number =
            protocol->path_of[sender->source * net->network.hosts_count + sender->destination];
        struct path *path = &protocol->paths[number];
        path->source = sender->source;
        path->destination = sender->destination;
        if (net->transport.flows[i].bytes > path->longest_bytes)
            path->longest_bytes = net->transport.flows[i].bytes;
        if (++path->flows > LH_REQUESTS_MAX)
            return lh_fail(
                LH_ERANGE,
                "more than %u flows from host %u to host %u with transport.kind = longhaul (make "
                "the workload shorter)",
                LH_REQUESTS_MAX, path->source, path->destination);
        protocol->messages[i].flow = i;
    }
    return 0;
}

static bool create_timers(struct protocol *protocol)
{
    struct netsim_arena arena = {0};
    uint32_t ends = 2 * protocol->paths_count;
    netsim_event_queue_init(&protocol->timers, &arena, ends, NETSIM_PS_PER_US);
    size_t bytes = (arena.used_bytes + 63) & ~(size_t)63;
    protocol->timers_memory = aligned_alloc(64, bytes);
    if (protocol->timers_memory == NULL)
        return false;
    memset(protocol->timers_memory, 0, bytes);
    arena = (struct netsim_arena){.base = protocol->timers_memory, .capacity_bytes = bytes};
    netsim_event_queue_init(&protocol->timers, &arena, ends, NETSIM_PS_PER_US);
    return true;
}

static bool create_pattern(struct protocol *protocol, uint64_t seed)
{
    struct lh_prng prng;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < protocol->paths_count; i++)
        if (protocol->paths[i].longest_bytes > bytes)
            bytes = protocol->paths[i].longest_bytes;
    bytes = (bytes + WAY_PATTERN_SHIFTS + 7) / 8 * 8;
    protocol->pattern = malloc(bytes);
    if (protocol->pattern == NULL)
        return false;
    lh_prng_seed(&prng, seed);
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t next = lh_prng_next(&prng);
        memcpy(protocol->pattern + i, &next, 8);
    }
    return true;
}

static int build(struct protocol *protocol)
{
    const struct netsim *net = protocol->net;
    size_t hosts = net->network.hosts_count;
    protocol->path_of = malloc(hosts * hosts * sizeof *protocol->path_of);
    if (protocol->path_of == NULL)
        return -LH_ENOMEM;
    protocol->paths_count = number_paths(protocol);
    size_t paths = protocol->paths_count + 1; /* there may be none */
    protocol->paths = calloc(paths, sizeof *protocol->paths);
    protocol->messages = calloc(net->transport.flows_count + 1, sizeof *protocol->messages);
    protocol->dirty = calloc(2 * paths, sizeof *protocol->dirty);
    protocol->is_dirty = calloc(2 * paths, sizeof *protocol->is_dirty);
    if (protocol->paths == NULL || protocol->messages == NULL || protocol->dirty == NULL ||
        protocol->is_dirty == NULL || !create_timers(protocol))
        return -LH_ENOMEM;
    return fill_ways(protocol);
}

static void mark(struct protocol *protocol, uint32_t end)
{
    if (protocol->paths[end / 2].ends[0] == NULL || protocol->is_dirty[end])
        return;
    protocol->is_dirty[end] = true;
    protocol->dirty[protocol->dirty_count++] = end;
}

static void mark_both(struct protocol *protocol, const struct path *path)
{
    uint32_t place = (uint32_t)(path - protocol->paths);
    mark(protocol, 2 * place);
    mark(protocol, 2 * place + 1);
}

/* A packet arrived: at the receiving end of one way, or at the sending end of the other. */
static void on_arrival(void *context, const struct sim_datagram *datagram, enum sim_arrival arrival)
{
    struct protocol *protocol = context;
    uint32_t hosts = protocol->net->network.hosts_count;
    uint32_t there = protocol->path_of[datagram->from * hosts + datagram->to];
    uint32_t back = protocol->path_of[datagram->to * hosts + datagram->from];
    if (arrival != SIM_DELIVERED)
        return;
    if (there != NO_PATH)
        mark(protocol, 2 * there + 1);
    if (back != NO_PATH)
        mark(protocol, 2 * back);
}

/* Names of worlds are unique in a process. */
static int create_world(struct protocol *protocol, uint64_t seed)
{
    static _Atomic unsigned worlds;
    snprintf(protocol->name, sizeof protocol->name, "netsim-%u", atomic_fetch_add(&worlds, 1));
    int result =
        sim_world_open(protocol->name, protocol->net->network.hosts_count, seed, NULL, &protocol->world);
    if (result != 0)
        return result;
    sim_world_set_network(protocol->world, protocol->net);
    sim_world_watch(protocol->world, on_arrival, protocol);
    return 0;
}

int protocol_create(struct netsim *net, const char *schemes, uint64_t seed, struct protocol **out)
{
    int result = check_size(net);
    if (result != 0)
        return result;
    struct protocol *protocol = calloc(1, sizeof *protocol);
    if (protocol != NULL) {
        protocol->net = net;
        result = build(protocol);
    }
    if (protocol == NULL || (result == 0 && !create_pattern(protocol, seed)) || result == -LH_ENOMEM)
        result =
            lh_fail(LH_ENOMEM, "no memory for the connections of %u flows", net->transport.flows_count);
    if (result == 0)
        result = scheme_list_parse(schemes, &protocol->schemes);
    if (result == 0)
        result = create_world(protocol, seed);
    if (result != 0) {
        protocol_destroy(protocol);
        return result;
    }
    *out = protocol;
    return 0;
}

void protocol_destroy(struct protocol *protocol)
{
    if (protocol == NULL)
        return;
    for (uint32_t i = 0; protocol->paths != NULL && i < protocol->paths_count; i++)
        path_close(&protocol->paths[i]);
    if (protocol->world != NULL)
        sim_world_destroy(protocol->world);
    free(protocol->paths);
    free(protocol->messages);
    free(protocol->path_of);
    free(protocol->dirty);
    free(protocol->is_dirty);
    free(protocol->timers_memory);
    free(protocol->pattern);
    free(protocol);
}

/* ---- a run ------------------------------------------------------------------------------------------- */

static int open_path(struct protocol *protocol, struct path *path, netsim_time rtt_ps)
{
    const char *scheme = scheme_list_of(&protocol->schemes, path->destination);
    return path_open(path, protocol->net, rtt_ps, protocol->name, scheme);
}

static struct path *way_of_flow(struct protocol *protocol, uint32_t number)
{
    const struct netsim *net = protocol->net;
    const struct netsim_sender *sender = &net->transport.flows[number].sender;
    return &protocol
                ->paths[protocol->path_of[sender->source * net->network.hosts_count + sender->destination]];
}

/* Ranks of a group are connected before anything is sent: flows start when paths are known, and the receives
 * that are posted ahead, too. */
static int open_ahead(struct protocol *protocol)
{
    struct netsim *net = protocol->net;
    netsim_time longest_ps = 0;
    for (uint32_t i = 0; i < net->transport.flows_count; i++) {
        struct netsim_flow *flow = &net->transport.flows[i];
        struct path *path = way_of_flow(protocol, i);
        netsim_time slowest_ps = 0;
        if (path->ends[0] != NULL)
            continue;
        path->is_ahead = strncmp(scheme_list_of(&protocol->schemes, path->destination), "bounded", 7) != 0;
        netsim_ideal_fct(&net->transport, i, &flow->ideal_ps, &flow->sender.base_rtt_ps, &slowest_ps);
        int result = open_path(protocol, path, flow->sender.base_rtt_ps);
        if (result != 0)
            return result;
        if (flow->sender.base_rtt_ps > longest_ps)
            longest_ps = flow->sender.base_rtt_ps;
        mark_both(protocol, path);
    }
    protocol->begin_ns = OPENING_RTTS * longest_ps / NETSIM_PS_PER_NS;
    return 0;
}

static int start_flow(struct protocol *protocol, uint32_t number)
{
    struct netsim *net = protocol->net;
    struct netsim_flow *flow = &net->transport.flows[number];
    netsim_time slowest_ps = 0;
    struct path *path = way_of_flow(protocol, number);
    net->network.totals.flows_started++;
    if (number < net->transport.starts.list->dependents)
        flow->start_ps = sim_world_now(protocol->world) * NETSIM_PS_PER_NS;
    netsim_ideal_fct(&net->transport, number, &flow->ideal_ps, &flow->sender.base_rtt_ps, &slowest_ps);
    if (path->ends[0] == NULL) {
        int result = open_path(protocol, path, flow->sender.base_rtt_ps);
        if (result != 0)
            return result;
    }
    mark_both(protocol, path);
    return path_start(path, net, &protocol->messages[number], protocol->pattern);
}

/* In nanoseconds, rounded up: worlds know no shorter times. */
static lh_time start_ns(const struct protocol *protocol)
{
    netsim_time next_ps = netsim_starts_next_ps(&protocol->net->transport.starts);
    if (next_ps == NETSIM_NEVER)
        return LH_TIME_NEVER;
    lh_time next = (next_ps + NETSIM_PS_PER_NS - 1) / NETSIM_PS_PER_NS;
    return next > protocol->begin_ns ? next : protocol->begin_ns;
}

/* Lets one end do what is due, and notes when it wants to be called again. */
static int step(struct protocol *protocol, uint32_t end)
{
    struct path *path = &protocol->paths[end / 2];
    lh_time now = sim_world_now(protocol->world);
    lh_time next = now;
    for (uint32_t steps = 0; next <= now; steps++) {
        if (steps == STEPS_MAX)
            return lh_fail(LH_ESTATE, "hosts %u and %u: a connection never finishes its work at %llu ns",
                           path->source, path->destination, (unsigned long long)now);
        next = LH_TIME_NEVER;
        if (lh_progress(path->ends[end % 2], &next) != 0)
            next = LH_TIME_NEVER; /* it has ended, and its requests tell */
    }
    if (netsim_event_pending(&protocol->timers, end))
        netsim_event_cancel(&protocol->timers, end);
    if (next < NETSIM_TIME_MAX / NETSIM_PS_PER_NS)
        netsim_event_schedule(&protocol->timers, end, next * NETSIM_PS_PER_NS);
    return path_settle(path, protocol->net, protocol->pattern);
}

/* All that starts now. */
static int start_due(struct protocol *protocol, lh_time now)
{
    struct netsim *net = protocol->net;
    struct netsim_starts *starts = &net->transport.starts;
    netsim_time now_ps = now * NETSIM_PS_PER_NS;
    int result = 0;
    if (now < protocol->begin_ns)
        return 0;
    for (uint32_t node; result == 0 && (node = netsim_starts_take(starts, now_ps)) != NETSIM_NO_NODE;) {
        if (netsim_starts_is_task(starts, node))
            netsim_starts_release(starts, node, now_ps);
        else
            result = start_flow(protocol, node);
    }
    return result;
}

/* Everything that is due now. */
static int work(struct protocol *protocol)
{
    lh_time now = sim_world_now(protocol->world);
    netsim_time at_ps = 0;
    uint32_t end;
    int result = start_due(protocol, now);
    while ((end = netsim_event_next(&protocol->timers, now * NETSIM_PS_PER_NS, &at_ps)) != NETSIM_NO_EVENT)
        mark(protocol, end);
    for (uint32_t i = 0; result == 0 && i < protocol->dirty_count; i++) {
        protocol->is_dirty[protocol->dirty[i]] = false;
        result = step(protocol, protocol->dirty[i]);
    }
    protocol->dirty_count = 0;
    return result;
}

static lh_time next_ns(struct protocol *protocol)
{
    lh_time next = sim_world_next_event(protocol->world);
    lh_time start = start_ns(protocol);
    netsim_time timer_ps = netsim_event_peek(&protocol->timers);
    lh_time timer = timer_ps >= NETSIM_TIME_MAX ? LH_TIME_NEVER : timer_ps / NETSIM_PS_PER_NS;
    next = start < next ? start : next;
    return timer < next ? timer : next;
}

int protocol_run(struct protocol *protocol, uint64_t until_ps, uint64_t events_max)
{
    struct netsim *net = protocol->net;
    uint64_t first_event = net->network.totals.events;
    /* The world's time is in nanoseconds: it goes on to the end of one. */
    lh_time until_ns = until_ps / NETSIM_PS_PER_NS + (until_ps % NETSIM_PS_PER_NS != 0);
    if (net->network.out_of_packets)
        return netsim_used_up(net);
    if (net->transport.starts.list->in_order && protocol->begin_ns == 0) {
        int result = open_ahead(protocol);
        if (result != 0)
            return result;
    }
    while (net->network.totals.events - first_event < events_max) {
        int result = work(protocol);
        if (result != 0)
            return result;
        if (net->transport.unfinished == 0)
            return 1;
        lh_time next = next_ns(protocol);
        if (next == LH_TIME_NEVER)
            return 1;
        if (next > until_ns) {
            /* The world may be later already: the network's time stays behind when only a timer ended. */
            if (until_ns > sim_world_now(protocol->world))
                (void)sim_world_advance(protocol->world, until_ns); /* nothing is due, so nothing fails */
            netsim_settle(net, until_ns * NETSIM_PS_PER_NS);
            return 0;
        }
        net->network.totals.events++;
        result = sim_world_advance(protocol->world, next);
        if (result != 0)
            return result;
    }
    return 0;
}
