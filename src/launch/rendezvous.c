/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/rendezvous.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "connection/attr.h"
#include "fabric/fabric.h"
#include "launch/lifeline.h"
#include "launch/tcp.h"

/* How often the first round trip over the fabric is looked for. */
#define PATH_POLL_NS (200 * LH_NS_PER_US)

/* ---- frames ------------------------------------------------------------------------------------------ */

static int send_frame(int fd, enum handshake_type type, const void *body, uint32_t bytes, lh_time deadline)
{
    uint8_t frame[HANDSHAKE_HEADER_BYTES + HANDSHAKE_BODY_MAX];
    handshake_header_encode(type, bytes, frame);
    if (bytes)
        memcpy(frame + HANDSHAKE_HEADER_BYTES, body, bytes);
    return tcp_write(fd, frame, HANDSHAKE_HEADER_BYTES + bytes, deadline);
}

/* Keeps what the other side says for people, without what a terminal could act on. */
static int refused(const uint8_t *body, uint32_t bytes)
{
    char reason[HANDSHAKE_REASON_MAX + 1];
    uint32_t length = bytes < HANDSHAKE_REASON_MAX ? bytes : HANDSHAKE_REASON_MAX;
    for (uint32_t i = 0; i < length; i++)
        reason[i] = body[i] >= ' ' && body[i] < 127 ? (char)body[i] : '?';
    reason[length] = '\0';
    return lh_fail(LH_EHANDSHAKE, "the other side refused: %s", reason);
}

/* The body of the next frame, which must be of that type. body holds HANDSHAKE_BODY_MAX. */
static int read_frame(int fd, enum handshake_type expected, uint8_t *body, uint32_t *bytes,
                      lh_time deadline)
{
    uint8_t header[HANDSHAKE_HEADER_BYTES];
    enum handshake_type type;
    int error = tcp_read(fd, header, sizeof header, deadline);
    if (!error)
        error = handshake_header_decode(header, &type, bytes);
    if (!error)
        error = tcp_read(fd, body, *bytes, deadline);
    if (error)
        return error;
    if (type == HANDSHAKE_REFUSE)
        return refused(body, *bytes);
    if (type != expected)
        return lh_fail(LH_EHANDSHAKE, "the other side sent frame %d where %d belongs", (int)type,
                       (int)expected);
    return 0;
}

void rendezvous_refuse(int fd)
{
    const char *reason = lh_last_error();
    size_t length = strlen(reason);
    uint8_t frame[HANDSHAKE_HEADER_BYTES + HANDSHAKE_REASON_MAX];
    uint32_t bytes = length < HANDSHAKE_REASON_MAX ? (uint32_t)length : HANDSHAKE_REASON_MAX;
    handshake_header_encode(HANDSHAKE_REFUSE, bytes, frame);
    memcpy(frame + HANDSHAKE_HEADER_BYTES, reason, bytes);
    ssize_t sent = send(fd, frame, HANDSHAKE_HEADER_BYTES + bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent;
    /* Unread bytes would turn the close into a reset, which may overtake the reason. Bounded, whoever
     * writes. */
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 64 && recv(fd, frame, sizeof frame, MSG_DONTWAIT) > 0; i++)
        continue;
    close(fd);
}

/* ---- steps ------------------------------------------------------------------------------------------- */

/* The largest MTU that fits. TCP may go another way than the packets of a device that knows its own. */
static int path_mtu(int fd, const char *device, uint32_t *fits)
{
    *fits = 0;
    int error = device ? fabric_device_mtu(device, fits) : 0;
    if (!error && *fits == 0)
        *fits = tcp_path_mtu(fd);
    return error;
}

/* What this side says first. */
static int propose(int fd, const struct lh_attr *attr, struct handshake_proposal *mine)
{
    struct lh_attr complete = *attr;
    uint32_t fits;
    int error = path_mtu(fd, attr->device, &fits);
    if (error)
        return error;
    if (fits == 0)
        return lh_fail(LH_EMTU,
                       "the path does not take the smallest packets (RoCE MTU 256): raise its MTU to 400");
    if (attr->mtu_bytes > fits)
        return lh_fail(LH_EMTU, "MTU %u does not fit the path: use at most %u", attr->mtu_bytes, fits);
    complete.mtu_bytes = attr->mtu_bytes ? attr->mtu_bytes : fits;
    error = attr_complete(&complete);
    if (error)
        return error;
    *mine = (struct handshake_proposal){
        .mtu_bytes = complete.mtu_bytes,
        .chunk_bytes = attr->chunk_bytes,
        .slots = complete.slots,
        .channels = complete.channels,
        .generations = complete.generations,
        .slot_bytes = complete.slot_bytes,
        .link = attr->link,
    };
    return 0;
}

/* An endpoint with what was agreed. */
static int open_agreed(int fd, const struct lh_attr *attr, const struct handshake_proposal *agreed,
                       struct lh_connection **connection)
{
    struct lh_attr own = *attr;
    char device[TCP_NAME_MAX];
    if (!own.device) {
        int error = tcp_udp_device(fd, device, sizeof device);
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
    if (own.workers != LH_NO_WORKERS && own.workers > own.channels)
        own.workers = own.channels;
    if (lh_link_is_none(&own.link))
        own.link = agreed->link;
    return lh_open(&own, connection);
}

static int exchange_blobs(int fd, struct lh_connection *connection, lh_time deadline)
{
    uint8_t blob[HANDSHAKE_BODY_MAX];
    size_t mine = sizeof blob;
    uint32_t theirs;
    int error = lh_blob(connection, blob, &mine);
    if (!error)
        error = send_frame(fd, HANDSHAKE_BLOB, blob, (uint32_t)mine, deadline);
    if (!error)
        error = read_frame(fd, HANDSHAKE_BLOB, blob, &theirs, deadline);
    return error ? error : lh_attach(connection, blob, theirs);
}

/* Whether the other side has hung up, or refused, while this one waits for packets. 0: neither. */
static int still_there(int fd, lh_time deadline)
{
    uint8_t header[HANDSHAKE_HEADER_BYTES];
    uint8_t body[HANDSHAKE_BODY_MAX];
    enum handshake_type type;
    uint32_t bytes;
    ssize_t seen = recv(fd, header, sizeof header, MSG_PEEK | MSG_DONTWAIT);
    if (seen == 0 || (seen < 0 && errno != EAGAIN && errno != EINTR))
        return lh_fail(LH_EPEER, "the other side hung up during the handshake");
    if (seen < (ssize_t)sizeof header || handshake_header_decode(header, &type, &bytes))
        return 0; /* whatever it is, it is judged when it is read */
    return type == HANDSHAKE_REFUSE ? read_frame(fd, HANDSHAKE_READY, body, &bytes, deadline) : 0;
}

/* Until a ping has come back: only then do packets pass in both directions. */
static int wait_for_path(int fd, struct lh_connection *connection, bool progress, lh_time deadline)
{
    char peer[TCP_NAME_MAX] = "?";
    for (;;) { /* until the deadline */
        struct lh_path_view path;
        lh_time next;
        if (progress)
            lh_progress(connection, &next);
        int error = lh_connection_path(connection, &path);
        if (!error)
            error = lh_connection_error(connection);
        if (error)
            return error;
        if (path.rtt_ns > 0)
            return 0;
        error = still_there(fd, deadline);
        if (error)
            return error;
        if (tcp_now() > deadline) {
            tcp_peer_name(fd, peer, sizeof peer);
            return lh_fail(
                LH_ETIMEDOUT,
                "TCP reaches %s, but UDP packets do not pass: let UDP through the firewalls in both "
                "directions, and no address translation in between",
                peer);
        }
        struct timespec pause = {0, PATH_POLL_NS};
        nanosleep(&pause, NULL);
    }
}

/* Without workers, this side's answers to the other's pings need somebody to make progress while it waits.
 */
static int progress_until_readable(int fd, struct lh_connection *connection, lh_time deadline)
{
    for (;;) { /* until the deadline */
        lh_time next;
        int error = lh_progress(connection, &next);
        if (error)
            return error;
        error = tcp_wait(fd, false, tcp_deadline(PATH_POLL_NS));
        if (error != -LH_ETIMEDOUT || tcp_now() > deadline)
            return error;
    }
}

static int agree_ready(int fd, struct lh_connection *connection, const struct lh_attr *attr,
                       lh_time deadline)
{
    uint8_t body[HANDSHAKE_BODY_MAX];
    uint32_t bytes;
    int error = wait_for_path(fd, connection, attr->workers == LH_NO_WORKERS, deadline);
    if (!error)
        error = send_frame(fd, HANDSHAKE_READY, NULL, 0, deadline);
    if (!error && attr->workers == LH_NO_WORKERS)
        error = progress_until_readable(fd, connection, deadline);
    return error ? error : read_frame(fd, HANDSHAKE_READY, body, &bytes, deadline);
}

/* From agreement to a connection; the socket becomes its lifeline. On failure the socket is still the
 * caller's. */
static int finish(int fd, const struct lh_attr *attr, const struct handshake_proposal *agreed,
                  lh_time deadline, struct lh_connection **out)
{
    char peer[TCP_NAME_MAX];
    struct lh_connection *connection;
    int error = tcp_peer_name(fd, peer, sizeof peer);
    if (!error)
        error = open_agreed(fd, attr, agreed, &connection);
    if (error)
        return error;
    error = exchange_blobs(fd, connection, deadline);
    if (!error)
        error = agree_ready(fd, connection, attr, deadline);
    if (!error && !lifeline_attach(connection, fd, peer))
        error = lh_fail(LH_ENOMEM, "no memory for a connection");
    if (error) {
        char reason[HANDSHAKE_REASON_MAX + 1];
        snprintf(reason, sizeof reason, "%s", lh_last_error());
        lh_close(connection);
        return lh_fail((enum lh_error) - error, "%s", reason);
    }
    *out = connection;
    return 0;
}

static int hang_up(int fd, int error)
{
    rendezvous_refuse(fd);
    return error;
}

int rendezvous_connect(int fd, const struct lh_attr *attr, lh_time deadline,
                       struct lh_connection **connection)
{
    uint8_t body[HANDSHAKE_BODY_MAX];
    uint32_t bytes;
    struct handshake_proposal mine;
    struct handshake_proposal theirs;
    int error = propose(fd, attr, &mine);
    if (!error)
        error = send_frame(fd, HANDSHAKE_PROPOSAL, body, handshake_proposal_encode(&mine, body), deadline);
    if (!error)
        error = read_frame(fd, HANDSHAKE_PROPOSAL, body, &bytes, deadline);
    if (!error)
        error = handshake_proposal_decode(body, bytes, &theirs);
    if (error)
        return hang_up(fd, error);
    struct handshake_proposal agreed = handshake_agree(&mine, &theirs);
    error = finish(fd, attr, &agreed, deadline, connection);
    return error ? hang_up(fd, error) : 0;
}

int rendezvous_accept(int fd, const struct lh_attr *attr, const struct handshake_proposal *theirs,
                      lh_time deadline, struct lh_connection **connection)
{
    uint8_t body[HANDSHAKE_BODY_MAX];
    struct handshake_proposal mine;
    int error = propose(fd, attr, &mine);
    if (!error)
        error = send_frame(fd, HANDSHAKE_PROPOSAL, body, handshake_proposal_encode(&mine, body), deadline);
    if (error)
        return hang_up(fd, error);
    struct handshake_proposal agreed = handshake_agree(theirs, &mine);
    error = finish(fd, attr, &agreed, deadline, connection);
    return error ? hang_up(fd, error) : 0;
}
