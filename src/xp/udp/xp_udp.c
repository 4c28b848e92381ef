/* SPDX-License-Identifier: BSD-3-Clause */
#include "xp/udp/xp_udp.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include <longhaul/xp.h>

#include "base/error.h"
#include "fabric/fabric.h"
#include "fabric/udp/udp_address.h"
#include "fabric/udp/udp_socket.h"
#include "wire/roce_packet.h"
#include "xp/xp_nic.h"

/* ---- peers ----------------------------------------------------------------------------------------- */

/*
 * Open addressing. Only those whom this host has connected to are in it, so its length is the
 * caller's.
 */

#define XP_PEER_NONE UINT32_MAX

static void xp_udp_peers_free(struct xp_udp_peers *peers);

/* -LH_ENOMEM. */
static int xp_udp_peers_init(struct xp_udp_peers *peers, uint32_t room)
{
    uint32_t buckets = 4;
    while (buckets < 2 * (uint64_t)room)
        buckets *= 2;
    *peers = (struct xp_udp_peers){.addresses = calloc(room, sizeof *peers->addresses),
                                   .buckets = malloc(buckets * sizeof *peers->buckets),
                                   .users = calloc(room, sizeof *peers->users),
                                   .mask = buckets - 1,
                                   .room = room};
    if (!peers->addresses || !peers->buckets || !peers->users) {
        xp_udp_peers_free(peers);
        return lh_fail(LH_ENOMEM, "no memory for the addresses of %u peers", room);
    }
    memset(peers->buckets, 0xFF, buckets * sizeof *peers->buckets);
    return 0;
}

static void xp_udp_peers_free(struct xp_udp_peers *peers)
{
    free(peers->addresses);
    free(peers->buckets);
    free(peers->users);
    *peers = (struct xp_udp_peers){.room = 0};
}

/* Fowler, Noll, Vo. */
static uint32_t hash(const union udp_address *address)
{
    uint8_t bytes[16];
    uint32_t value = 2166136261u ^ udp_address_port(address);
    udp_address_bytes(address, bytes);
    for (unsigned i = 0; i < sizeof bytes; i++)
        value = (value ^ bytes[i]) * 16777619u;
    return value;
}

static bool same(const union udp_address *a, const union udp_address *b)
{
    return udp_address_port(a) == udp_address_port(b) && udp_address_same_host(a, b);
}

/* Where it is, or would be: at least half are empty. */
static uint32_t bucket_of(const struct xp_udp_peers *peers, const union udp_address *address)
{
    uint32_t at = hash(address) & peers->mask;
    while (peers->buckets[at] != XP_PEER_NONE && !same(&peers->addresses[peers->buckets[at]], address))
        at = (at + 1) & peers->mask;
    return at;
}

/* XP_PEER_NONE: not there. */
static uint32_t xp_udp_peers_find(const struct xp_udp_peers *peers, const union udp_address *address)
{
    return peers->buckets[bucket_of(peers, address)];
}

/* All of them anew, but for one. Rare: only when a place changes its peer. */
static void leave_out(struct xp_udp_peers *peers, uint32_t number)
{
    memset(peers->buckets, 0xFF, ((size_t)peers->mask + 1) * sizeof *peers->buckets);
    for (uint32_t i = 0; i < peers->count; i++)
        if (i != number)
            peers->buckets[bucket_of(peers, &peers->addresses[i])] = i;
}

/* A place; XP_PEER_NONE. */
static uint32_t take_place(struct xp_udp_peers *peers, bool (*busy)(const void *of, uint32_t number),
                           const void *of)
{
    if (peers->count < peers->room)
        return peers->count++;
    for (uint32_t i = 0; i < peers->count; i++) {
        if (peers->users[i] == 0 && !busy(of, i)) {
            leave_out(peers, i);
            return i;
        }
    }
    return XP_PEER_NONE;
}

/* Its number, new or not. One without users gives up its place when there is no other, unless busy(of,
 * number): its number is still needed. XP_PEER_NONE: there is no room. */
static uint32_t xp_udp_peers_add(struct xp_udp_peers *peers, const union udp_address *address,
                                 bool (*busy)(const void *of, uint32_t number), const void *of)
{
    uint32_t number = xp_udp_peers_find(peers, address);
    if (number != XP_PEER_NONE)
        return number;
    number = take_place(peers, busy, of);
    if (number == XP_PEER_NONE)
        return number;
    peers->addresses[number] = *address;
    peers->buckets[bucket_of(peers, address)] = number;
    return number;
}

/* ---- exchange -------------------------------------------------------------------------------------- */

/* ---- in ----------------------------------------------------------------------------------------------- */

static struct icrc_flow flow_of(const union udp_address *from, const union udp_address *to)
{
    struct icrc_flow flow = {.ipv4 = udp_address_is_ipv4(from),
                             .source_port = udp_address_port(from),
                             .destination_port = udp_address_port(to)};
    udp_address_bytes(from, flow.source);
    udp_address_bytes(to, flow.destination);
    return flow;
}

static bool is_marked(struct msghdr *message)
{
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg))
        if (udp_cmsg_is_marked(cmsg))
            return true;
    return false;
}

/* Who is no peer is not looked at any further. */
static void take(struct lh_xp *xp, const uint8_t *data, uint32_t bytes, struct msghdr *message, lh_time now)
{
    const union udp_address *from = message->msg_name;
    uint32_t peer = xp_udp_peers_find(&xp->peers, from);
    struct icrc_flow flow = flow_of(from, &xp->local);
    struct xp_packet packet;
    if (peer == XP_PEER_NONE || message->msg_flags & MSG_TRUNC ||
        xp_decode(data, bytes, &packet) != ROCE_OK || !icrc_check(&flow, data, bytes, 0)) {
        xp->bad_packets++;
        return;
    }
    xp_nic_arrive(&xp->nic, peer, &packet, is_marked(message), now);
}

/* Whether anything came; -LH_ESYSTEM. */
static int xp_udp_receive(struct lh_xp *xp, lh_time now)
{
    struct mmsghdr messages[XP_BATCH];
    struct iovec parts[XP_BATCH];
    union udp_address from[XP_BATCH];
    _Alignas(struct cmsghdr) uint8_t control[XP_BATCH][UDP_ECN_CONTROL_BYTES];
    for (unsigned i = 0; i < XP_BATCH; i++) {
        parts[i] = (struct iovec){xp->received[i], sizeof xp->received[i]};
        messages[i].msg_hdr = (struct msghdr){.msg_name = &from[i],
                                              .msg_namelen = sizeof from[i],
                                              .msg_iov = &parts[i],
                                              .msg_iovlen = 1,
                                              .msg_control = control[i],
                                              .msg_controllen = sizeof control[i]};
    }
    int got = recvmmsg(xp->socket.fd, messages, XP_BATCH, MSG_DONTWAIT, NULL);
    if (got < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNREFUSED))
        return 0;
    if (got < 0)
        return lh_fail(LH_ESYSTEM, "cannot receive packets: %s", strerror(errno));
    for (int i = 0; i < got; i++)
        take(xp, xp->received[i], messages[i].msg_len, &messages[i].msg_hdr, now);
    return got > 0;
}

/* ---- out ---------------------------------------------------------------------------------------------- */

static void finish(struct lh_xp *xp, struct xp_udp_outgoing *out, const struct xp_departure *departure)
{
    const struct xp_packet *packet = &departure->packet;
    uint32_t pad = roce_pad_bytes(packet->payload_bytes);
    uint32_t bytes = XP_OVERHEAD + packet->payload_bytes + pad;
    struct icrc_flow flow = flow_of(&xp->local, &xp->peers.addresses[departure->peer]);
    xp_encode_header(packet, out->header);
    memset(out->trailer, 0, sizeof out->trailer);
    uint32_t state = icrc_begin(&flow, bytes, 0, true);
    state = icrc_add_header(state, out->header, sizeof out->header);
    state = icrc_add(state, packet->payload, packet->payload_bytes);
    state = icrc_add(state, out->trailer, pad);
    icrc_store(state, out->trailer + pad);
    out->parts[0] = (struct iovec){out->header, sizeof out->header};
    out->parts[1] = (struct iovec){(void *)(uintptr_t)packet->payload, packet->payload_bytes};
    out->parts[2] = (struct iovec){out->trailer, pad + ROCE_ICRC_BYTES};
    out->peer = departure->peer;
}

static void fill_batch(struct lh_xp *xp, lh_time now)
{
    struct xp_departure departure;
    xp->outgoing_first = 0;
    while (xp->outgoing < XP_BATCH && xp_nic_transmit(&xp->nic, now, &departure))
        finish(xp, &xp->batch[xp->outgoing++], &departure);
}

/* What has waited stays: its payload is read only now. */
static int send_batch(struct lh_xp *xp)
{
    struct mmsghdr messages[XP_BATCH];
    for (uint32_t i = 0; i < xp->outgoing; i++) {
        struct xp_udp_outgoing *out = &xp->batch[xp->outgoing_first + i];
        union udp_address *to = &xp->peers.addresses[out->peer];
        messages[i].msg_hdr = (struct msghdr){
            .msg_name = to, .msg_namelen = udp_address_size(to), .msg_iov = out->parts, .msg_iovlen = 3};
    }
    return sendmmsg(xp->socket.fd, messages, xp->outgoing, MSG_DONTWAIT);
}

/* Whether a packet for that peer waits for the socket. */
static bool xp_udp_awaits(const void *of, uint32_t peer)
{
    const struct lh_xp *xp = of;
    for (uint32_t i = 0; i < xp->outgoing; i++)
        if (xp->batch[xp->outgoing_first + i].peer == peer)
            return true;
    return false;
}

/* What stays moves: it points into itself. */
static void move(struct xp_udp_outgoing *to, const struct xp_udp_outgoing *from)
{
    *to = *from;
    to->parts[0].iov_base = to->header;
    to->parts[2].iov_base = to->trailer;
}

/* Packets whose payload lies there do not leave any more: lost, as on the way. */
static void xp_udp_forget(struct lh_xp *xp, const uint8_t *from, uint64_t bytes)
{
    struct xp_udp_outgoing *batch = &xp->batch[xp->outgoing_first];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < xp->outgoing; i++) {
        uintptr_t payload = (uintptr_t)batch[i].parts[1].iov_base;
        if (payload - (uintptr_t)from >= bytes && kept++ != i)
            move(&batch[kept - 1], &batch[i]);
    }
    xp->outgoing = kept;
}

/* Whether anything left; -LH_ESYSTEM. */
static int xp_udp_transmit(struct lh_xp *xp, lh_time now)
{
    if (xp->outgoing == 0)
        fill_batch(xp, now);
    if (xp->outgoing == 0)
        return 0;
    int sent = send_batch(xp);
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == EINTR))
        return 0;
    if (sent < 0 && (errno == EBADF || errno == ENOTSOCK || errno == EINVAL))
        return lh_fail(LH_ESYSTEM, "cannot send packets: %s", strerror(errno));
    if (sent <= 0)
        sent = 1; /* no way for this one (unreachable, filtered, too large): lost, as on the way */
    xp->outgoing_first += (uint32_t)sent;
    xp->outgoing -= (uint32_t)sent;
    return 1;
}

/* ---- xp -------------------------------------------------------------------------------------------- */

/* <longhaul/xp.h>: the machine of xp_nic.h on a UDP socket. */

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

static int check_number(const char *name, uint64_t value, uint64_t minimum, uint64_t maximum)
{
    if (value >= minimum && value <= maximum)
        return 0;
    return lh_fail(LH_EINVAL, "lh_xp_attr.%s is %llu: out of range (%llu to %llu)", name,
                   (unsigned long long)value, (unsigned long long)minimum, (unsigned long long)maximum);
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
    bool is_number = colon && colon[1] >= '0' && colon[1] <= '9'; /* strtoul() takes signs and spaces */
    unsigned long port = is_number ? strtoul(colon + 1, &end, 10) : 0;
    if (port == 0 || port > UINT16_MAX || *end || (size_t)(colon - text) >= sizeof host)
        return lh_fail(LH_EADDR, "\"%s\": no address and port (example: 192.0.2.1:50000)", text);
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    int failed = udp_address_parse(host, address);
    if (failed)
        return failed;
    if (udp_address_is_ipv4(address) != udp_address_is_ipv4(&xp->local))
        return lh_fail(LH_EADDR, "\"%s\": its IP version differs from this host's address", text);
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
