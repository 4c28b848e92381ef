/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/lifeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/handshake.h"

struct lifeline {
    int fd;
    uint8_t version;
    bool ended; /* what ended it was told; the stream says nothing more */
    int verdict;
    uint32_t have; /* bytes of the frame that is being read */
    uint8_t frame[HANDSHAKE_HEADER_BYTES + TRANSFER_BYTES_MAX];
};

static int end(struct lifeline *line, int verdict)
{
    line->ended = true;
    line->verdict = verdict;
    return verdict;
}

/* How many bytes of the frame are wanted; 0 when it can be neither a goodbye nor a refusal. */
static uint32_t wanted(const struct lifeline *line)
{
    struct handshake_header header;
    if (line->have < HANDSHAKE_HEADER_BYTES)
        return HANDSHAKE_HEADER_BYTES;
    if (handshake_header_decode(line->frame, &header) ||
        (header.type != HANDSHAKE_GOODBYE && header.type != HANDSHAKE_REFUSE) ||
        header.body_bytes > TRANSFER_BYTES_MAX)
        return 0;
    return HANDSHAKE_HEADER_BYTES + header.body_bytes;
}

static int look(void *context, uint8_t *last, size_t *bytes)
{
    struct lifeline *line = context;
    *bytes = 0;
    while (!line->ended) { /* at most a header and a body */
        uint32_t want = wanted(line);
        if (want == 0)
            return end(line, -LH_EPEER);
        if (line->have >= HANDSHAKE_HEADER_BYTES && line->have == want) {
            if (line->frame[HANDSHAKE_TYPE_AT] == HANDSHAKE_REFUSE)
                return end(line, -LH_EPATH);
            *bytes = want - HANDSHAKE_HEADER_BYTES;
            memcpy(last, line->frame + HANDSHAKE_HEADER_BYTES, *bytes);
            return end(line, -LH_ECLOSED);
        }
        ssize_t got = recv(line->fd, line->frame + line->have, want - line->have, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (got <= 0)
            return end(line, -LH_EPEER);
        line->have += (uint32_t)got;
    }
    return line->verdict;
}

/* Whole frames of a few hundred bytes: the stream carries nothing else after the handshake, so they fit its
 * buffer; if the peer is gone, so be it. */
static void write_frame(struct lifeline *line, enum handshake_type type, const void *body, size_t bytes)
{
    uint8_t frame[HANDSHAKE_HEADER_BYTES + TRANSFER_BYTES_MAX];
    struct handshake_header header = {line->version, type, (uint32_t)bytes};
    handshake_header_encode(&header, frame);
    if (bytes)
        memcpy(frame + HANDSHAKE_HEADER_BYTES, body, bytes);
    ssize_t sent = send(line->fd, frame, HANDSHAKE_HEADER_BYTES + bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent;
}

static void refuse(void *context, const char *reason)
{
    size_t bytes = strlen(reason);
    write_frame(context, HANDSHAKE_REFUSE, reason,
                bytes < HANDSHAKE_REASON_MAX ? bytes : HANDSHAKE_REASON_MAX);
}

static void close_line(void *context, const uint8_t *last, size_t bytes)
{
    struct lifeline *line = context;
    uint8_t drain[256];
    write_frame(line, HANDSHAKE_GOODBYE, last, bytes);
    /* Unread bytes would turn the close into a reset, which may overtake the goodbye. */
    while (recv(line->fd, drain, sizeof drain, MSG_DONTWAIT) > 0)
        continue;
    close(line->fd);
    free(line);
}

static const struct lifeline_ops ops = {look, refuse, close_line};

bool lifeline_attach(struct lh_connection *connection, int fd, uint8_t version, const char *peer_name)
{
    struct lifeline *line = calloc(1, sizeof *line);
    if (!line)
        return false;
    line->fd = fd;
    line->version = version;
    connection_set_lifeline(connection, &ops, line, peer_name);
    return true;
}
