/*
 * Timers: path, PATH_TIMEOUT_NS and some round trips from the opening to the first ping that came back
 * (accepting side, which decides for both); answer, as long, from a stream's beginning to the peer's proposal
 * (connecting side); poll, from PATH_POLL_NS up to a fraction of the time since then.
 * How long a peer may take for the rest is up to the caller.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "launch/rendezvous.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/min_max.h"
#include "device/device_registry.h"
#include "launch/control_connection.h"
#include "launch/tcp.h"
#include "launch/tls_channel.h"
#include "message/attributes.h"

/* Interval of polls for the first round trip over the fabric, at first; and as a part of the time since the
 * opening. A stuck client then costs next to nothing. */
#define PATH_POLL_NS       (200 * LH_NS_PER_US)
#define PATH_POLL_FRACTION 32u
#define PATH_POLL_MAX_NS   (10 * LH_NS_PER_MS)
/* How long nothing may pass over UDP, besides PATH_ROUND_TRIPS: a dozen pings, of which one has to come back.
 * The same over a TCP connection that there was before. */
#define PATH_TIMEOUT_NS  (2 * LH_NS_PER_S)
#define PATH_ROUND_TRIPS 4u

/* ---- frames ------------------------------------------------------------------------------------------ */

/* Whole or not at all: the stream holds far more than a handshake, unless the peer does not read. */
static int send_frame(struct rendezvous *r, enum handshake_type type, const void *body, uint32_t bytes)
{
    uint8_t frame[HANDSHAKE_HEADER_BYTES + HANDSHAKE_BODY_MAX];
    if (r->stream)
        return control_stream_send(r->stream, type, body, bytes);
    handshake_header_encode(&(struct handshake_header){r->version, type, 0, bytes}, frame);
    if (bytes)
        memcpy(frame + HANDSHAKE_HEADER_BYTES, body, bytes);
    ssize_t whole = HANDSHAKE_HEADER_BYTES + bytes;
    ssize_t sent = channel_send(&r->channel, frame, (size_t)whole);
    if (sent == whole && !channel_has_unsent(&r->channel))
        return 0;
    return lh_fail(LH_EPEER, "connection to the remote side failed: %s",
                   sent < 0 ? strerror(errno) : "send buffer full");
}

/* The host of "[::1%eth0]:4000" or "127.0.0.1:4000", without brackets, scope and port. */
static void host_of(const char *name, char out[TCP_NAME_MAX])
{
    const char *begin = *name == '[' ? name + 1 : name;
    size_t length = *name == '[' ? strcspn(begin, "%]") : strcspn(begin, ":");
    snprintf(out, TCP_NAME_MAX, "%.*s", (int)length, begin);
}

/* Hosts of the peer: that of the TCP connection, and that of its blob. Whether they differ: NAT, if neither
 * side named a device of its own. */
static bool peer_hosts(const struct rendezvous *r, char seen[TCP_NAME_MAX], char own[TCP_NAME_MAX])
{
    char name[TCP_NAME_MAX] = "?";
    tcp_peer_name(r->fd, name, sizeof name);
    host_of(name, seen);
    host_of(lh_peer_name(r->connection), own);
    return strcmp(seen, own) != 0;
}

/* The accepting side does not know what this side connected to. */
static int no_path_to(const struct rendezvous *r, const char *reason)
{
    char seen[TCP_NAME_MAX], own[TCP_NAME_MAX];
    bool is_it = !strncmp(reason, RENDEZVOUS_UDP_TEXT, strlen(RENDEZVOUS_UDP_TEXT));
    if (!is_it || r->accepting || r->state != RENDEZVOUS_PATH || r->path || !peer_hosts(r, seen, own))
        return lh_fail(LH_EHANDSHAKE, "the remote side refused: %s", reason);
    return lh_fail(LH_EHANDSHAKE,
                   "UDP packets do not pass, TCP does: the remote side is behind NAT or a port forwarding "
                   "(%s appears as %s), or a firewall is on the path (connect to one of its own addresses, "
                   "or let that side connect)",
                   own, seen);
}

/* Keeps the reason for people, without characters that a terminal could act on. Four reasons are recognised
 * by their text, which is part of the protocol: a REFUSE carries no code. */
static int refused(struct rendezvous *r, const struct handshake_header *header)
{
    char reason[HANDSHAKE_REASON_MAX + 1];
    const uint8_t *body = r->frame + HANDSHAKE_HEADER_BYTES;
    uint32_t length = header->body_bytes < HANDSHAKE_REASON_MAX ? header->body_bytes : HANDSHAKE_REASON_MAX;
    for (uint32_t i = 0; i < length; i++)
        reason[i] = body[i] >= ' ' && body[i] < 127 ? (char)body[i] : '?';
    reason[length] = '\0';
    r->older = r->state == RENDEZVOUS_PROPOSAL && header->version < r->version &&
               strstr(reason, HANDSHAKE_VERSION_TEXT);
    r->full = !r->accepting && !r->ready && !strcmp(reason, HANDSHAKE_FULL);
    r->closed = r->stream && r->state == RENDEZVOUS_PROPOSAL && !strcmp(reason, HANDSHAKE_CLOSED);
    return no_path_to(r, reason);
}

/* Streams are opened when this handshake is over. */
static int check_stream(const struct handshake_header *header)
{
    return header->stream == 0
               ? 1
               : lh_fail(LH_EHANDSHAKE, "handshake frame of stream %u, which is not open", header->stream);
}

/* 1: a whole frame is there; 0: more is to come; or why it never will be. */
static int read_frame(struct rendezvous *r, struct handshake_header *header)
{
    if (r->stream)
        return control_stream_receive(r->stream, header, r->frame + HANDSHAKE_HEADER_BYTES);
    for (;;) { /* at most a header and a body */
        uint32_t want = HANDSHAKE_HEADER_BYTES;
        if (r->have >= want) {
            int error = handshake_header_decode(r->frame, header);
            if (error) {
                r->keys_differ |= handshake_is_tls(r->frame);
                return error;
            }
            want += header->body_bytes;
            if (r->have == want)
                return check_stream(header);
        }
        ssize_t got = channel_receive(&r->channel, r->frame + r->have, want - r->have);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (got < 0)
            return lh_fail(LH_EPEER, "connection to the remote side failed: %s", strerror(errno));
        if (got == 0)
            return lh_fail(LH_EPEER, "the remote side closed the connection during the handshake");
        r->have += (uint32_t)got;
    }
}

/* ---- proposals --------------------------------------------------------------------------------------- */

/* The largest MTU that fits. TCP may go another way than the packets of a device that knows its own, which is
 * a power of two; *any: it may be any other. */
static int path_mtu(int fd, const char *device, bool encrypts, uint32_t *fits, bool *any)
{
    *fits = 0;
    int error = device ? fabric_device_mtu(device, fits) : 0;
    *any = *fits == 0;
    if (!error && *any)
        *fits = tcp_path_mtu(fd, encrypts ? ROCE_SEALED_EXTRA : 0);
    return error;
}

/* The first frame of this side. */
static int make_proposal(int fd, const struct lh_attr *attr, uint8_t version, enum lh_encryption encryption,
                         struct handshake_proposal *mine)
{
    struct lh_attr complete = *attr;
    uint32_t fits;
    bool any;
    int error = handshake_link_check(&attr->link);
    if (!error)
        error = path_mtu(fd, attr->device, encryption == LH_ENCRYPTION_FULL, &fits, &any);
    if (error)
        return error;
    if (fits == 0)
        return lh_fail(LH_EMTU,
                       "the path does not take the smallest packets (RoCE MTU 256): raise its MTU to 400");
    if (attr->mtu_bytes > fits)
        return lh_fail(LH_EMTU, "MTU %u: exceeds the path MTU (use at most %u)", attr->mtu_bytes, fits);
    error = attr_complete_for(&complete, fits);
    if (error)
        return error;
    /* Whole chunks are made of it when the MTU is agreed. */
    uint64_t slot_bytes = attr->slot_bytes ? attr->slot_bytes : ATTR_SLOT_BYTES_DEFAULT;
    *mine = (struct handshake_proposal){
        .encryption = handshake_encryption_of(encryption),
        .mtu_bytes = complete.mtu_bytes,
        .any_mtu = any,
        .chunk_bytes = attr->chunk_bytes,
        .slots = complete.slots,
        .channels = complete.channels,
        .generations = complete.generations,
        .slot_bytes = lh_max(slot_bytes, complete.slot_bytes),
        .link = attr->link,
    };
    if (!any || version < HANDSHAKE_VERSION_STEPS)
        handshake_use_powers(mine);
    return 0;
}

/* Body holds HANDSHAKE_BODY_MAX. */
static int write_proposal(struct rendezvous *r, uint8_t *body, uint32_t *bytes)
{
    int error = make_proposal(r->fd, r->attr, r->version, r->encryption, &r->mine);
    if (error)
        return error;
    struct handshake_proposal sent = r->mine;
    if (r->version < HANDSHAKE_VERSION_ENCRYPT)
        sent.encryption = HANDSHAKE_ENCRYPTION_NONE;
    *bytes = handshake_proposal_encode(&sent, body);
    return 0;
}

static int propose(struct rendezvous *r)
{
    uint8_t body[HANDSHAKE_BODY_MAX];
    uint32_t bytes;
    int error = write_proposal(r, body, &bytes);
    return error ? error : send_frame(r, HANDSHAKE_PROPOSAL, body, bytes);
}

/* ---- TLS --------------------------------------------------------------------------------------------- */

/* Connecting side: its proposal is in the first message of TLS. */
static int secure_greeting(struct rendezvous *r, struct tls_context *tls)
{
    uint8_t greeting[1 + HANDSHAKE_BODY_MAX] = {r->version};
    uint32_t bytes;
    static_assert(1 + HANDSHAKE_PROPOSAL_MIN + HANDSHAKE_LINK_TEXT_MAX <= CHANNEL_GREETING_MAX,
                  "any proposal");
    int error = write_proposal(r, greeting + 1, &bytes);
    return error ? error : channel_secure_greeting(&r->channel, tls, greeting, 1 + bytes);
}

/* Connecting side: its first frames. */
static int greet(struct rendezvous *r)
{
    int error = 0;
    r->greeted = true;
    if (channel_greeting_taken(&r->channel))
        return 0;
    if (r->earlier_cookie && r->version >= HANDSHAKE_VERSION_COOKIE)
        error = send_frame(r, HANDSHAKE_COOKIE, r->earlier_cookie, ADMISSION_COOKIE_BYTES);
    if (!error)
        error = propose(r);
    return error == -LH_EPEER ? 0 : error; /* the peer has closed, and its reason may be here */
}

/* With a key this side believes one thing in clear text: that a listener is full. It leads to another try,
 * and a host that can change what passes can prevent a connection by other means, too. */
static int read_clear_text(struct rendezvous *r)
{
    struct handshake_header header;
    int got = read_frame(r, &header);
    if (got == 0)
        return 0;
    if (got > 0 && header.type == HANDSHAKE_REFUSE)
        (void)refused(r, &header);
    r->older = false;
    return r->full ? -LH_EHANDSHAKE : lh_fail(LH_EHANDSHAKE, "%s (%s)", CHANNEL_CLEAR_TEXT, CHANNEL_REMEDY);
}

/* 1: frames may pass, and the connecting side's first have left; 0: the handshake of TLS goes on. */
static int secure(struct rendezvous *r)
{
    if (r->stream)
        return 1;
    int done = channel_is_clear_text(&r->channel) ? -LH_EHANDSHAKE : channel_handshake(&r->channel);
    if (done < 0 && channel_is_clear_text(&r->channel))
        return read_clear_text(r);
    r->keys_differ |= r->accepting && done == -LH_EHANDSHAKE;
    r->returned |= done == 1 && channel_is_proven(&r->channel); /* at its address it has got an answer */
    if (done != 1 || r->accepting || r->greeted)
        return done;
    int error = greet(r);
    return error ? error : 1;
}

/* ---- the connection ---------------------------------------------------------------------------------- */

/* This side's own, if it has one; else what was agreed. */
static const struct lh_link_spec *link_to_emulate(const struct rendezvous *r)
{
    return lh_link_is_none(&r->attr->link) ? &r->agreed.link : &r->attr->link;
}

/* An endpoint with what was agreed. */
static int open_agreed(struct rendezvous *r)
{
    struct lh_attr own = *r->attr;
    char device[TCP_NAME_MAX];
    const struct handshake_proposal *agreed = &r->agreed;
    if (!own.device) {
        int error = tcp_udp_device(r->fd, device, sizeof device);
        if (error)
            return error;
        own.device = device;
    }
    own.mtu_bytes = agreed->mtu_bytes;
    own.chunk_bytes = agreed->chunk_bytes;
    own.slots = agreed->slots;
    own.slot_bytes = agreed->slot_bytes;
    own.channels = agreed->channels;
    own.generations = agreed->generations;
    own.on_notice = NULL;
    own.notice_context = NULL;
    own.security = NULL; /* it is in use */
    if (!own.engine && own.workers != LH_NO_WORKERS && own.workers > own.channels)
        own.workers = own.channels;
    own.link = *link_to_emulate(r);
    return lh_open(&own, &r->connection);
}

/* The blob stays, for encrypt(). Made again it may be another. */
static int send_own_blob(struct rendezvous *r)
{
    size_t bytes = sizeof r->blob;
    int error = lh_blob(r->connection, r->blob, &bytes);
    r->blob_bytes = (uint32_t)bytes;
    return error ? error : send_frame(r, HANDSHAKE_BLOB, r->blob, r->blob_bytes);
}

/* Before the connection is attached: with both blobs as they were exchanged. */
static int encrypt(struct rendezvous *r, const uint8_t *accepting, size_t accepting_bytes,
                   const uint8_t *connecting, size_t connecting_bytes)
{
    uint8_t secret[CHANNEL_SECRET_BYTES];
    const struct channel_blobs blobs = {connecting, accepting, connecting_bytes, accepting_bytes};
    if (r->encryption != LH_ENCRYPTION_FULL)
        return 0;
    int error = r->stream ? control_stream_packet_secret(r->stream, &blobs, secret)
                          : channel_packet_secret(&r->channel, 0, &blobs, secret);
    if (!error)
        error = connection_encrypt(r->connection, secret, !r->accepting);
    explicit_bzero(secret, sizeof secret);
    return error;
}

/* Of the TCP connection, as the kernel has measured it; 0: not known. */
static lh_time tcp_round_trip(int fd)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size))
        return 0;
    return info.tcpi_rtt * LH_NS_PER_US;
}

/* How long nothing may pass. The link's delay is an hour at most, so nothing wraps. */
static lh_time patience(const struct rendezvous *r, const struct lh_link_spec *link)
{
    lh_time round_trip = tcp_round_trip(r->fd) + 2 * (link->delay_ns + link->jitter_ns);
    lh_time timeout = PATH_TIMEOUT_NS + PATH_ROUND_TRIPS * round_trip;
    return timeout < RENDEZVOUS_TIMEOUT_NS ? timeout : RENDEZVOUS_TIMEOUT_NS;
}

static void enter_path(struct rendezvous *r, lh_time now)
{
    r->opened_ns = now;
    r->path_until_ns = now + patience(r, &r->agreed.link);
    r->state = RENDEZVOUS_PATH;
}

/* Accepting side: the endpoint is open, and its blob has left. */
static int attach_client(struct rendezvous *r, const uint8_t *blob, uint32_t bytes, lh_time now)
{
    uint8_t address[16];
    int error = encrypt(r, r->blob, r->blob_bytes, blob, bytes);
    if (!error) {
        connection_peer_seen_at(r->connection, tcp_peer_address(r->fd, address), address);
        error = lh_attach(r->connection, blob, bytes);
    }
    if (!error)
        enter_path(r, now);
    return error;
}

/* Accepting side: opens an endpoint for a client. */
static int open_for_client(struct rendezvous *r, lh_time now)
{
    uint8_t blob[LH_BLOB_MAX];
    uint32_t bytes = r->blob_bytes;
    memcpy(blob, r->blob, bytes); /* this side's own takes its place */
    int error = open_agreed(r);
    if (!error)
        error = send_own_blob(r);
    return error || r->state == RENDEZVOUS_BLOB ? error : attach_client(r, blob, bytes, now);
}

static bool may_open(const struct rendezvous *r, struct rendezvous_permit permit)
{
    bool is_early = r->state == RENDEZVOUS_BLOB && r->version >= HANDSHAKE_VERSION_EARLY;
    bool is_permitted = r->state == RENDEZVOUS_QUEUED ? permit.open : is_early && permit.open_early;
    return r->accepting && !r->connection && is_permitted && rendezvous_link_bytes(r) <= permit.link_room;
}

/* ---- frames of the peer ------------------------------------------------------------------------------ */

/* No side does less than it wants, nor more. The accepting side says it first; the other sees the same in its
 * proposal. */
static int check_encryption(struct rendezvous *r, const struct handshake_proposal *connecting,
                            const struct handshake_proposal *accepting)
{
    int error = handshake_check_encryption(connecting, accepting, r->version >= HANDSHAKE_VERSION_ENCRYPT);
    r->keys_differ |= r->accepting && error;
    return error;
}

static int on_proposal(struct rendezvous *r, uint8_t version, const uint8_t *body, uint32_t bytes)
{
    struct handshake_proposal theirs;
    int error = handshake_proposal_decode(body, bytes, &theirs);
    if (error)
        return error;
    if (!r->stream)
        r->version = version < r->version ? version : r->version;
    r->state = RENDEZVOUS_BLOB;
    if (r->accepting) {
        error = propose(r);
        if (!error)
            error = check_encryption(r, &theirs, &r->mine);
        if (!error)
            r->agreed = handshake_agree(&theirs, &r->mine);
        return error;
    }
    error = check_encryption(r, &r->mine, &theirs);
    if (error)
        return error;
    r->agreed = handshake_agree(&r->mine, &theirs);
    error = open_agreed(r);
    if (error)
        return error;
    error = send_own_blob(r);
    return error == -LH_EPEER ? 0 : error; /* the peer has closed, and its reason may be here */
}

/* Accepting side: the client's proposal in its first message of TLS. Until TLS is done it may be a repetition
 * of another client's. */
static int take_greeting(struct rendezvous *r)
{
    size_t bytes;
    const uint8_t *greeting =
        r->accepting && r->state == RENDEZVOUS_PROPOSAL ? channel_greeting(&r->channel, &bytes) : NULL;
    if (!greeting)
        return 0;
    if (greeting[0] < HANDSHAKE_VERSION_EARLY)
        return lh_fail(LH_EHANDSHAKE, "invalid handshake version %u in TLS of the remote side",
                       greeting[0]);
    return on_proposal(r, greeting[0], greeting + 1, (uint32_t)bytes - 1);
}

static int on_blob(struct rendezvous *r, const struct handshake_header *header, lh_time now)
{
    const uint8_t *body = r->frame + HANDSHAKE_HEADER_BYTES;
    if (!r->accepting) {
        int error = encrypt(r, body, header->body_bytes, r->blob, r->blob_bytes);
        if (!error)
            error = lh_attach(r->connection, body, header->body_bytes);
        if (!error)
            enter_path(r, now);
        return error;
    }
    if (header->body_bytes > sizeof r->blob)
        return lh_fail(LH_EHANDSHAKE, "malformed connection blob (%u bytes)", header->body_bytes);
    if (r->connection)
        return attach_client(r, body, header->body_bytes, now);
    memcpy(r->blob, body, header->body_bytes);
    r->blob_bytes = header->body_bytes;
    r->state = RENDEZVOUS_QUEUED;
    return 0;
}

/* The accepting side adds which host it sees this side at: another than this side's own is that of NAT. */
static int on_ready(struct rendezvous *r, const struct handshake_header *header)
{
    char name[TCP_NAME_MAX] = "", own[TCP_NAME_MAX], seen[TCP_NAME_MAX];
    const char *body = (const char *)r->frame + HANDSHAKE_HEADER_BYTES;
    r->ready = true;
    tcp_local_name(r->fd, name, sizeof name);
    host_of(name, own);
    snprintf(seen, sizeof seen, "%.*s", (int)header->body_bytes, body);
    if (!r->accepting && *own && *seen && strcmp(own, seen))
        connection_punch(r->connection);
    return 0;
}

static int send_ready(struct rendezvous *r)
{
    char name[TCP_NAME_MAX] = "", seen[TCP_NAME_MAX] = "";
    if (r->accepting && !tcp_peer_name(r->fd, name, sizeof name))
        host_of(name, seen);
    return send_frame(r, HANDSHAKE_READY, seen, (uint32_t)strlen(seen));
}

/* One that is not of this listener counts for nothing: another may have listened here. */
static int on_cookie(struct rendezvous *r, const struct handshake_header *header)
{
    const uint8_t *body = r->frame + HANDSHAKE_HEADER_BYTES;
    r->cookie_came = true;
    if (header->body_bytes != ADMISSION_COOKIE_BYTES)
        return lh_fail(LH_EHANDSHAKE, "malformed cookie of the remote side (%u bytes)", header->body_bytes);
    if (r->accepting) {
        const struct admission_address address = admission_address_of(r->fd);
        r->returned = r->key && admission_cookie_check(r->key, &address, NULL, 0, body);
        return 0;
    }
    memcpy(r->cookie, body, sizeof r->cookie);
    r->has_cookie = true;
    return 0;
}

/* Once each way, right or wrong, or a flood of them would hold up the listener's thread: the client's comes
 * ahead of its proposal, the listener's behind its own, and perhaps behind its blob. */
static bool expects_cookie(const struct rendezvous *r)
{
    return !r->stream && !r->cookie_came &&
           (r->accepting ? r->state == RENDEZVOUS_PROPOSAL : r->state <= RENDEZVOUS_PATH);
}

static int on_frame(struct rendezvous *r, const struct handshake_header *header, lh_time now)
{
    if (header->type == HANDSHAKE_REFUSE)
        return refused(r, header);
    if (header->type == HANDSHAKE_PROPOSAL && r->state == RENDEZVOUS_PROPOSAL)
        return on_proposal(r, header->version, r->frame + HANDSHAKE_HEADER_BYTES, header->body_bytes);
    if (header->type == HANDSHAKE_BLOB && r->state == RENDEZVOUS_BLOB)
        return on_blob(r, header, now);
    bool has_ready = !r->accepting || r->version < HANDSHAKE_VERSION_EARLY;
    if (header->type == HANDSHAKE_READY && r->state == RENDEZVOUS_PATH && has_ready && !r->ready)
        return on_ready(r, header);
    if (header->type == HANDSHAKE_BUSY && !r->accepting && r->state > RENDEZVOUS_PROPOSAL) {
        r->busy++;
        return 0;
    }
    if (header->type == HANDSHAKE_COOKIE && expects_cookie(r))
        return on_cookie(r, header);
    if (header->type == HANDSHAKE_MORE && !r->accepting && !r->stream && !r->more &&
        r->state == RENDEZVOUS_PATH) {
        r->more = true;
        return 0;
    }
    return lh_fail(LH_EHANDSHAKE, "unexpected handshake frame %d of the remote side", (int)header->type);
}

/* Behind the accepting side's READY the stream is the control connection. */
static bool all_received(const struct rendezvous *r)
{
    if (r->accepting)
        return r->promised;
    /* Where no packet comes at all, the peer's reason is to come. */
    return r->ready && (r->version >= HANDSHAKE_VERSION_EARLY ? r->arrived || !r->late : r->path);
}

static int take_frames(struct rendezvous *r, lh_time now)
{
    struct handshake_header header;
    while (!all_received(r)) { /* each frame comes once, but for BUSY, which returns */
        int got = read_frame(r, &header);
        if (got <= 0)
            return got;
        uint32_t busy = r->busy;
        int error = on_frame(r, &header, now);
        r->have = 0;
        if (error || r->busy != busy)
            return error; /* the caller reports BUSY, and at the time */
    }
    return 0;
}

/* ---- the path ---------------------------------------------------------------------------------------- */

/* Why no ping came back. Where the client's own address is another than the one that its TCP connection
 * comes from, that may well be it. */
static int no_path(const struct rendezvous *r)
{
    char seen[TCP_NAME_MAX], own[TCP_NAME_MAX];
    if (peer_hosts(r, seen, own))
        return lh_fail(LH_ETIMEDOUT,
                       "UDP packets do not pass, TCP does: NAT on the path (%s appears as %s) that drops "
                       "UDP, or a firewall (let UDP ports 4791 and 49152-65535 through)",
                       own, seen);
    return lh_fail(LH_ETIMEDOUT, "%s", RENDEZVOUS_NO_UDP);
}

static int poll_path(struct rendezvous *r, lh_time now)
{
    struct lh_path_view path;
    int error = lh_connection_path(r->connection, &path);
    if (error)
        return error;
    r->path = path.rtt_ns > 0;
    r->arrived |= connection_peer_has_sent(r->connection);
    error = lh_connection_error(r->connection);
    bool is_closed = error == -LH_ECLOSED; /* by packets, which carry no reason; the stream does, or ends */
    if (error && !is_closed)
        return error;
    r->late = now >= r->path_until_ns;
    if (r->accepting && !r->path && r->late)
        return no_path(r);
    /* It stood: packets have passed in both directions, or this side is bound to it. */
    r->path |= all_received(r) && (is_closed || r->late);
    return 0;
}

/* Accepting side: whether the peer may open streams. */
static bool opens_more(const struct rendezvous *r)
{
    return r->acceptor && !r->stream && r->version >= HANDSHAKE_VERSION_STREAMS;
}

/* The stream of this handshake, or the socket, is the control connection of the connection from now on. */
static int hand_over(struct rendezvous *r, const char *peer)
{
    const struct control_origin origin = {
        .channel = r->channel,
        .version = r->version,
        .acceptor = opens_more(r) ? r->acceptor : NULL,
        .where = r->more ? r->where : NULL,
        .peer_name = peer,
    };
    int error = 0;
    if (r->stream)
        control_stream_hand_over(r->stream, r->connection, peer);
    else
        error = control_connection_begin(r->connection, &origin);
    if (error)
        return error;
    r->stream = NULL;
    r->fd = -1;
    r->channel = (struct channel){.fd = -1};
    r->state = RENDEZVOUS_DONE;
    return 1;
}

/* Accepting side. */
static int promise(struct rendezvous *r)
{
    int error = opens_more(r) ? send_frame(r, HANDSHAKE_MORE, NULL, 0) : 0;
    if (!error)
        error = send_ready(r);
    r->promised = !error;
    return error;
}

/* Whether nothing is missing but the accepting side's READY, or a ping that comes back. */
static bool is_ready(const struct rendezvous *r)
{
    bool is_early = r->version >= HANDSHAKE_VERSION_EARLY;
    return (is_early ? r->arrived : r->path) && (r->ready || (is_early && r->accepting));
}

static int finish(struct rendezvous *r, struct rendezvous_permit permit)
{
    char peer[TCP_NAME_MAX];
    bool permitted = r->path ? permit.finish : permit.promise;
    int error = r->accepting && !r->promised && permitted ? promise(r) : 0;
    if (error || !r->path || (r->accepting && !r->promised))
        return error;
    error = tcp_peer_name(r->fd, peer, sizeof peer);
    return error ? error : hand_over(r, peer);
}

/* From the opening on. */
static int step_open(struct rendezvous *r, struct rendezvous_permit permit, lh_time now)
{
    bool had_path = r->path;
    lh_time next;
    if (r->attr->workers == LH_NO_WORKERS)
        lh_progress(r->connection, &next);
    int error = poll_path(r, now);
    if (!error && !r->accepting && r->path && !had_path && r->version < HANDSHAKE_VERSION_EARLY)
        error = send_ready(r);
    if (error || !is_ready(r))
        return error;
    r->state = RENDEZVOUS_PENDING;
    return finish(r, permit);
}

/* From HANDSHAKE_VERSION_EARLY on a side may be done before the other one's ping has got its answer, which
 * comes from a worker: without any, both wait for each other. */
static uint8_t usable_version(const struct lh_attr *attr, uint8_t version)
{
    bool has_workers = attr->workers != LH_NO_WORKERS;
    return has_workers ? version : (uint8_t)lh_min(version, HANDSHAKE_VERSION_EARLY - 1);
}

/* ---- the machine ------------------------------------------------------------------------------------- */

void rendezvous_accept(struct rendezvous *r, int fd, const struct lh_attr *attr,
                       const struct admission_key *key, struct control_acceptor *acceptor)
{
    *r = (struct rendezvous){.fd = fd,
                             .channel = {.fd = fd},
                             .accepting = true,
                             .version = usable_version(attr, HANDSHAKE_VERSION),
                             .encryption = LH_ENCRYPTION_OFF,
                             .attr = attr,
                             .key = key,
                             .acceptor = acceptor};
}

int rendezvous_accept_secure(struct rendezvous *r, struct tls_context *tls)
{
    r->encryption = tls_context_encryption(tls);
    return channel_secure(&r->channel, tls, true);
}

static void use_stream(struct rendezvous *r, struct control_stream *stream, const struct lh_attr *attr,
                       enum lh_encryption encryption, bool accepting, lh_time now)
{
    *r = (struct rendezvous){
        .fd = control_stream_fd(stream),
        .channel = {.fd = -1},
        .stream = stream,
        .accepting = accepting,
        .version = control_stream_version(stream),
        .encryption = encryption,
        .attr = attr,
        .opened_ns = now,
    };
}

void rendezvous_accept_stream(struct rendezvous *r, struct control_stream *stream,
                              const struct lh_attr *attr, enum lh_encryption encryption, lh_time now)
{
    use_stream(r, stream, attr, encryption, true, now);
}

int rendezvous_connect(struct rendezvous *r, int fd, const struct lh_attr *attr, uint8_t version,
                       const uint8_t *cookie, const char *where, struct tls_context *tls)
{
    *r = (struct rendezvous){.fd = fd,
                             .channel = {.fd = fd},
                             .version = usable_version(attr, version),
                             .encryption = tls_context_encryption(tls),
                             .attr = attr,
                             .earlier_cookie = cookie,
                             .where = attr->engine ? where : NULL};
    if (!tls)
        return greet(r);
    return r->version >= HANDSHAKE_VERSION_EARLY ? secure_greeting(r, tls)
                                                 : channel_secure(&r->channel, tls, false);
}

int rendezvous_connect_stream(struct rendezvous *r, struct control_stream *stream,
                              const struct lh_attr *attr, enum lh_encryption encryption, lh_time now)
{
    use_stream(r, stream, attr, encryption, false, now);
    r->answer_until_ns = now + patience(r, &attr->link);
    return propose(r);
}

bool rendezvous_is_open(const struct rendezvous *r)
{
    return r->accepting && r->connection;
}

uint64_t rendezvous_link_bytes(const struct rendezvous *r)
{
    assert(r->state >= RENDEZVOUS_BLOB);
    return handshake_link_bytes(link_to_emulate(r));
}

/* The frames of a stream come with the progress of its engine, which may be this side's to make. */
static bool brings_frames(const struct rendezvous *r)
{
    return r->stream && r->attr->workers == LH_NO_WORKERS;
}

/* A firewall or NAT may have forgotten the TCP connection of a stream. */
static bool waits_for_an_answer(const struct rendezvous *r)
{
    return r->stream && !r->accepting && r->state == RENDEZVOUS_PROPOSAL;
}

static int check_answer(const struct rendezvous *r, lh_time now)
{
    if (!waits_for_an_answer(r) || now < r->answer_until_ns)
        return 0;
    return lh_fail(LH_EPEER, "the TCP connection shared with earlier connections is stuck");
}

int rendezvous_step(struct rendezvous *r, struct rendezvous_permit permit, lh_time now)
{
    assert(r->state != RENDEZVOUS_DONE);
    int error = brings_frames(r) ? lh_engine_progress(r->attr->engine, NULL) : 0;
    int secured = error ? error : secure(r);
    if (secured < 0)
        return secured;
    error = take_greeting(r);
    if (!error && secured)
        error = take_frames(r, now);
    if (!error && secured)
        error = check_answer(r, now);
    if (!error && may_open(r, permit))
        error = open_for_client(r, now);
    if (error)
        return error;
    return r->state >= RENDEZVOUS_PATH ? step_open(r, permit, now) : 0;
}

bool rendezvous_reads(const struct rendezvous *r)
{
    return !all_received(r);
}

lh_time rendezvous_next_ns(const struct rendezvous *r, lh_time now)
{
    if (rendezvous_reads(r) && channel_has_unread(&r->channel))
        return now;
    if (r->state < RENDEZVOUS_PATH && !brings_frames(r))
        return waits_for_an_answer(r) ? r->answer_until_ns : LH_TIME_NEVER;
    bool ours_to_move = r->attr->workers == LH_NO_WORKERS;
    if (r->path && !ours_to_move)
        return LH_TIME_NEVER;
    lh_time span = (now - r->opened_ns) / PATH_POLL_FRACTION;
    lh_time maximum = ours_to_move ? PATH_POLL_NS : PATH_POLL_MAX_NS;
    span = span < maximum ? span : maximum;
    return now + (span > PATH_POLL_NS ? span : PATH_POLL_NS);
}

int rendezvous_send_busy(struct rendezvous *r)
{
    assert(r->accepting && r->state > RENDEZVOUS_PROPOSAL && !r->promised);
    return r->version < HANDSHAKE_VERSION_BUSY ? 0 : send_frame(r, HANDSHAKE_BUSY, NULL, 0);
}

void rendezvous_send_cookie(struct rendezvous *r)
{
    uint8_t cookie[ADMISSION_COOKIE_BYTES];
    const struct admission_address address = admission_address_of(r->fd);
    assert(r->accepting);
    bool is_known =
        r->state == RENDEZVOUS_BLOB || (r->state == RENDEZVOUS_PROPOSAL && channel_is_proven(&r->channel));
    if (r->stream || !is_known || r->version < HANDSHAKE_VERSION_COOKIE)
        return;
    if (admission_cookie_make(r->key, &address, NULL, 0, cookie) == 0)
        send_frame(r, HANDSHAKE_COOKIE, cookie, sizeof cookie);
}

enum admission_standing rendezvous_standing(const struct rendezvous *r)
{
    if (r->state >= RENDEZVOUS_PATH)
        return ADMISSION_SERVED;
    if (r->state == RENDEZVOUS_QUEUED)
        return ADMISSION_QUEUED;
    if (r->returned)
        return ADMISSION_RETURNED;
    bool is_greeted = r->state > RENDEZVOUS_PROPOSAL || channel_is_proven(&r->channel);
    return is_greeted ? ADMISSION_GREETED : ADMISSION_NEW;
}

struct lh_connection *rendezvous_done(struct rendezvous *r)
{
    assert(r->state == RENDEZVOUS_DONE && r->connection);
    return r->connection;
}

/* Sends the reason to the peer, and closes. */
static void refuse(struct rendezvous *r, const char *reason)
{
    if (r->stream) {
        control_stream_refuse(r->stream, reason);
        r->stream = NULL;
        return;
    }
    size_t length = strlen(reason);
    uint32_t bytes = length < HANDSHAKE_REASON_MAX ? (uint32_t)length : HANDSHAKE_REASON_MAX;
    int error = send_frame(r, HANDSHAKE_REFUSE, reason, bytes);
    (void)error;
    channel_close(&r->channel);
}

void rendezvous_drop(struct rendezvous *r)
{
    char reason[HANDSHAKE_REASON_MAX + 64];
    snprintf(reason, sizeof reason, "%s", lh_last_error());
    if (r->accepting && r->state == RENDEZVOUS_PROPOSAL)
        r->version = HANDSHAKE_VERSION_MIN; /* who knows what it is */
    if (r->fd >= 0)
        refuse(r, reason);
    /* After the reason: a CLOSE by packets carries none. */
    lh_close(r->connection);
    lh_fail(LH_EHANDSHAKE, "%s", reason);
}
