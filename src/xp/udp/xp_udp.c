/*
 * xp.c - <longhaul/xp.h>: the machine of nic.h on a UDP socket.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/xp.h>

#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/error.h"
#include "fabric/random.h"
#include "xp/udp/exchange.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define QPS_DEFAULT   1024u
#define WORKS_DEFAULT 4096u
#define OTHER_DEFAULT 64u
#define RATE_DEFAULT  UINT64_C(100000000000)
#define RATE_MIN      UINT64_C(1000000)
#define RATE_MAX      UINT64_C(4000000000000)
#define TICK_MIN_NS   LH_NS_PER_US
#define TICK_MAX_NS   (100 * LH_NS_PER_MS)
#define WORKS_MAX     (1u << 30)
#define PEERS_MAX     (1u << 20)
#define RECEIVE_BYTES ((uint64_t)32 << 20)
/* Batches of packets that a call of lh_xp_progress() takes in or out, so that it ends. */
#define TURNS 16

static lh_time now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (lh_time)now.tv_sec * LH_NS_PER_S + (lh_time)now.tv_nsec;
}

/* ---- create ------------------------------------------------------------------------------------------- */

void lh_xp_attr_init(struct lh_xp_attr *attr)
{
    *attr = (struct lh_xp_attr){.struct_bytes = sizeof *attr,
                                .qps = QPS_DEFAULT,
                                .works = WORKS_DEFAULT,
                                .responses = OTHER_DEFAULT,
                                .regions = OTHER_DEFAULT,
                                .peers = OTHER_DEFAULT,
                                .mtu_bytes = ROCE_MTU_MAX,
                                .rate_bps = RATE_DEFAULT,
                                .tick_ns = 10 * LH_NS_PER_US};
}

static int check_number(const char *name, uint64_t value, uint64_t least, uint64_t most)
{
    if (value >= least && value <= most)
        return 0;
    return lh_fail(LH_EINVAL, "lh_xp_attr.%s is %llu: out of range (%llu to %llu)", name,
                   (unsigned long long)value, (unsigned long long)least, (unsigned long long)most);
}

static int check(const struct lh_xp_attr *attr)
{
    if (attr->struct_bytes != sizeof *attr)
        return lh_fail(LH_EINVAL, "struct_bytes %zu: call lh_xp_attr_init() first (%zu in this library)",
                       attr->struct_bytes, sizeof *attr);
    if (!attr->address)
        return lh_fail(LH_EINVAL,
                       "lh_xp_attr.address is NULL (use one of this host, such as \"127.0.0.1\")");
    int failed = check_number("qps", attr->qps, 1, ROCE_QPN_MASK);
    if (!failed)
        failed = check_number("works", attr->works, 1, WORKS_MAX);
    if (!failed)
        failed = check_number("responses", attr->responses, 0, WORKS_MAX);
    if (!failed)
        failed = check_number("regions", attr->regions, 0, UINT16_MAX);
    if (!failed)
        failed = check_number("peers", attr->peers, 1, PEERS_MAX);
    if (!failed)
        failed = check_number("mtu_bytes", attr->mtu_bytes, ROCE_PAYLOAD_MIN, ROCE_MTU_MAX);
    if (!failed)
        failed = check_number("rate_bps", attr->rate_bps, RATE_MIN, RATE_MAX);
    return failed ? failed : check_number("tick_ns", attr->tick_ns, TICK_MIN_NS, TICK_MAX_NS);
}

static void free_memory(struct xp_memory *memory)
{
    free(memory->qps);
    free(memory->host);
    free(memory->timers);
    free(memory->due);
    free(memory->works);
    free(memory->completions);
    free(memory->regions);
}

static int allocate(const struct lh_xp_attr *attr, struct xp_memory *memory)
{
    size_t qps = attr->qps;
    *memory = (struct xp_memory){
        .qps = calloc(qps, sizeof *memory->qps),
        .host = calloc(qps, sizeof *memory->host),
        .timers = calloc(qps * XP_TIMERS, sizeof *memory->timers),
        .due = calloc(qps * XP_TIMERS, sizeof *memory->due),
        .works = calloc((size_t)attr->works + attr->responses, sizeof *memory->works),
        .completions = calloc(attr->works, sizeof *memory->completions),
        .regions = calloc((size_t)attr->regions + 1, sizeof *memory->regions),
    };
    if (memory->qps && memory->host && memory->timers && memory->due && memory->works &&
        memory->completions && memory->regions)
        return 0;
    free_memory(memory);
    return lh_fail(LH_ENOMEM, "no memory for %u queue pairs and %u works", attr->qps, attr->works);
}

/* Packets leave ECN-capable, one by one. */
static int open_socket(struct lh_xp *xp, const char *address)
{
    int ecn = 2, off = 0;
    int failed = udp_address_parse(address, &xp->local);
    if (!failed)
        failed = udp_socket_open_shared(&xp->local, RECEIVE_BYTES, &xp->socket);
    if (failed)
        return failed;
    udp_address_set_port(&xp->local, xp->socket.port);
    if (udp_address_is_ipv4(&xp->local))
        setsockopt(xp->socket.fd, IPPROTO_IP, IP_TOS, &ecn, sizeof ecn);
    else
        setsockopt(xp->socket.fd, IPPROTO_IPV6, IPV6_TCLASS, &ecn, sizeof ecn);
    setsockopt(xp->socket.fd, IPPROTO_UDP, UDP_GRO, &off, sizeof off);
    return 0;
}

static int set_up(struct lh_xp *xp, const struct lh_xp_attr *attr)
{
    const struct xp_limits limits = {attr->qps, attr->works, attr->responses, attr->regions};
    struct xp_memory memory;
    struct xp_rate_config rate;
    int failed = open_socket(xp, attr->address);
    if (failed)
        return failed;
    failed = xp_udp_peers_init(&xp->peers, attr->peers);
    if (!failed)
        failed = allocate(attr, &memory);
    if (failed) {
        xp_udp_peers_free(&xp->peers);
        udp_socket_close(&xp->socket);
        return failed;
    }
    xp_rate_config_init(&rate, attr->rate_bps);
    xp_nic_init(&xp->nic, &limits, &memory, &rate, attr->mtu_bytes, attr->tick_ns, now_ns());
    return 0;
}

int lh_xp_create(const struct lh_xp_attr *attr, struct lh_xp **xp)
{
    int failed = check(attr);
    if (failed)
        return failed;
    struct lh_xp *created = calloc(1, sizeof *created);
    if (!created)
        return lh_fail(LH_ENOMEM, "no memory for an XP object");
    failed = set_up(created, attr);
    if (failed) {
        free(created);
        return failed;
    }
    *xp = created;
    return 0;
}

void lh_xp_destroy(struct lh_xp *xp)
{
    if (!xp)
        return;
    udp_socket_close(&xp->socket);
    xp_udp_peers_free(&xp->peers);
    free_memory(&xp->nic.memory);
    free(xp);
}

/* ---- queue pairs and regions -------------------------------------------------------------------------- */

_Static_assert(LH_XP_ADDRESS_MAX >= UDP_ADDRESS_TEXT_MAX, "an address fits");

char *lh_xp_address(const struct lh_xp *xp, char out[LH_XP_ADDRESS_MAX])
{
    return udp_address_format(&xp->local, out);
}

int lh_xp_open(struct lh_xp *xp, uint32_t *qpn, uint32_t *seq)
{
    uint32_t opened, random;
    int failed = fabric_random(&random, sizeof random);
    if (!failed)
        failed = xp_nic_open(&xp->nic, &opened);
    if (failed)
        return failed;
    *qpn = opened;
    *seq = random & XP_SEQ_MASK;
    xp->nic.memory.qps[opened - 1].transport.tx_seq = random & XP_SEQ_MASK;
    return 0;
}

/* "127.0.0.1:50000", "[::1]:50000". */
static int parse_peer(const struct lh_xp *xp, const char *text, union udp_address *address)
{
    char host[LH_XP_ADDRESS_MAX], *end = NULL;
    const char *colon = strrchr(text, ':');
    unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
    if (!colon || (size_t)(colon - text) >= sizeof host || end == colon + 1 || *end || port == 0 ||
        port > UINT16_MAX)
        return lh_fail(LH_EADDR, "\"%s\": no address and port (example: 192.0.2.1:50000)", text);
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    int failed = udp_address_parse(host, address);
    if (failed)
        return failed;
    if (udp_address_is_ipv4(address) != udp_address_is_ipv4(&xp->local))
        return lh_fail(LH_EADDR, "\"%s\" is not of the IP version of this host's address", text);
    udp_address_set_port(address, (uint16_t)port);
    return 0;
}

int lh_xp_connect(struct lh_xp *xp, uint32_t qpn, const char *peer_address, uint32_t peer_qpn,
                  uint32_t peer_seq)
{
    union udp_address address;
    int failed = parse_peer(xp, peer_address, &address);
    if (failed)
        return failed;
    if (qpn == 0 || qpn > xp->nic.limits.qps)
        return lh_fail(LH_EINVAL, "no queue pair %u is open", qpn);
    if (peer_qpn == 0 || peer_qpn > ROCE_QPN_MASK || peer_seq > XP_SEQ_MASK)
        return lh_fail(LH_EINVAL,
                       "queue pair %u and message %u of a peer (24 bits each, the first above 0)", peer_qpn,
                       peer_seq);
    uint32_t number = xp_udp_peers_add(&xp->peers, &address, xp_udp_awaits, xp);
    if (number == XP_PEER_NONE)
        return lh_fail(LH_EAGAIN, "queue pairs are connected to %u peers, as many as lh_xp_attr.peers",
                       xp->peers.count);
    const struct xp_peer peer = {.peer = number,
                                 .qpn = peer_qpn,
                                 .tx_seq = xp->nic.memory.qps[qpn - 1].transport.tx_seq,
                                 .rx_seq = peer_seq};
    failed = xp_nic_connect(&xp->nic, qpn, &peer, now_ns());
    xp->peers.users[number] += !failed;
    return failed;
}

int lh_xp_close(struct lh_xp *xp, uint32_t qpn)
{
    uint32_t peer = qpn > 0 && qpn <= xp->nic.limits.qps ? xp->nic.memory.host[qpn - 1].peer : XP_PEER_NONE;
    bool connected = peer != XP_PEER_NONE && xp->nic.memory.qps[qpn - 1].transport.connected;
    int failed = xp_nic_close(&xp->nic, qpn);
    if (!failed && connected)
        xp->peers.users[peer]--;
    return failed;
}

int lh_xp_expose(struct lh_xp *xp, void *base, uint64_t bytes, uint32_t access, uint32_t *key)
{
    uint32_t random;
    if (!base || access == 0 || access > (LH_XP_REMOTE_WRITE | LH_XP_REMOTE_READ))
        return lh_fail(LH_EINVAL, "memory at %p with access %u (use LH_XP_REMOTE_WRITE, LH_XP_REMOTE_READ)",
                       base, access);
    int failed = fabric_random(&random, sizeof random);
    return failed ? failed : xp_nic_expose(&xp->nic, base, bytes, access, random, key);
}

int lh_xp_withdraw(struct lh_xp *xp, uint32_t key)
{
    struct xp_region region;
    int failed = xp_nic_withdraw(&xp->nic, key, &region);
    if (!failed)
        xp_udp_forget(xp, region.base, region.bytes);
    return failed;
}

/* ---- work --------------------------------------------------------------------------------------------- */

int lh_xp_post(struct lh_xp *xp, uint32_t qpn, const struct lh_xp_request *request)
{
    if (!request->buffer && request->bytes > 0)
        return lh_fail(LH_EINVAL, "%u bytes without a buffer", request->bytes);
    return xp_nic_post(&xp->nic, qpn, request, now_ns());
}

/* What has completed may still be on its way to the socket, out of the user's buffer. */
uint32_t lh_xp_poll(struct lh_xp *xp, struct lh_xp_completion *completions, uint32_t count)
{
    return xp->outgoing ? 0 : xp_nic_poll(&xp->nic, completions, count);
}

int lh_xp_progress(struct lh_xp *xp)
{
    int any = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        lh_time now = now_ns();
        int received = xp_udp_receive(xp, now);
        if (received < 0)
            return received;
        xp_nic_expire(&xp->nic, now);
        int sent = xp_udp_transmit(xp, now);
        if (sent < 0)
            return sent;
        if (!received && !sent)
            break;
        any = 1;
    }
    return any;
}

int lh_xp_fd(const struct lh_xp *xp)
{
    return xp->socket.fd;
}

lh_time lh_xp_wait_ns(const struct lh_xp *xp)
{
    lh_time next = xp_nic_next(&xp->nic), now = now_ns();
    if (xp->outgoing || xp->nic.ready.first != XP_NONE || next <= now)
        return 0;
    return next == LH_TIME_NEVER ? LH_TIME_NEVER : next - now;
}

void lh_xp_counters(const struct lh_xp *xp, struct lh_xp_counters *counters)
{
    *counters = xp->nic.counters;
    counters->bad_packets = xp->bad_packets;
}

void lh_xp_qp_bytes(uint32_t *nic, uint32_t *host)
{
    *nic = sizeof(struct xp_qp);
    *host = sizeof(struct xp_host_qp) + XP_TIMERS * (sizeof(struct wheel_timer) + sizeof(uint32_t));
}
