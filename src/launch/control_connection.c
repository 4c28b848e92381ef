/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/control_connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/handshake.h"

struct control_connection {
    int fd;
    uint8_t version;
    bool ended; /* its end was reported; nothing more is read */
    int result;
    uint32_t have; /* bytes of the frame that is being read */
    uint8_t frame[HANDSHAKE_HEADER_BYTES + TRANSFER_BYTES_MAX];
};

static int end(struct control_connection *control, int result)
{
    control->ended = true;
    control->result = result;
    return result;
}

/* Bytes that the whole frame has; 0 when it is neither a FIN nor a REFUSE. */
static uint32_t wanted(const struct control_connection *control)
{
    struct handshake_header header;
    if (control->have < HANDSHAKE_HEADER_BYTES)
        return HANDSHAKE_HEADER_BYTES;
    if (handshake_header_decode(control->frame, &header) ||
        (header.type != HANDSHAKE_FIN && header.type != HANDSHAKE_REFUSE) ||
        header.body_bytes > TRANSFER_BYTES_MAX)
        return 0;
    return HANDSHAKE_HEADER_BYTES + header.body_bytes;
}

/* A reason for people: without what a terminal could act on. */
static void make_printable(uint8_t *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (text[i] < ' ' || text[i] > '~')
            text[i] = '?';
}

static int look(void *context, uint8_t *last, size_t *bytes)
{
    struct control_connection *control = context;
    *bytes = 0;
    while (!control->ended) { /* at most a header and a body */
        uint32_t want = wanted(control);
        if (want == 0)
            return end(control, -LH_EPEER);
        if (control->have >= HANDSHAKE_HEADER_BYTES && control->have == want) {
            bool refused = control->frame[HANDSHAKE_TYPE_AT] == HANDSHAKE_REFUSE;
            *bytes = want - HANDSHAKE_HEADER_BYTES;
            memcpy(last, control->frame + HANDSHAKE_HEADER_BYTES, *bytes);
            if (refused)
                make_printable(last, *bytes);
            return end(control, refused ? -LH_EPATH : -LH_ECLOSED);
        }
        ssize_t got = recv(control->fd, control->frame + control->have, want - control->have, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (got <= 0)
            return end(control, -LH_EPEER);
        control->have += (uint32_t)got;
    }
    return control->result;
}

/* Whole frames of a few hundred bytes: the stream carries nothing else after the handshake, so they fit its
 * buffer; if the peer is gone, so be it. */
static void write_frame(struct control_connection *control, enum handshake_type type, const void *body,
                        size_t bytes)
{
    uint8_t frame[HANDSHAKE_HEADER_BYTES + TRANSFER_BYTES_MAX];
    struct handshake_header header = {control->version, type, (uint32_t)bytes};
    handshake_header_encode(&header, frame);
    if (bytes)
        memcpy(frame + HANDSHAKE_HEADER_BYTES, body, bytes);
    ssize_t sent = send(control->fd, frame, HANDSHAKE_HEADER_BYTES + bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent;
}

static void refuse(void *context, const char *reason)
{
    size_t bytes = strlen(reason);
    write_frame(context, HANDSHAKE_REFUSE, reason,
                bytes < HANDSHAKE_REASON_MAX ? bytes : HANDSHAKE_REASON_MAX);
}

static void close_control(void *context, const uint8_t *last, size_t bytes)
{
    struct control_connection *control = context;
    uint8_t drain[256];
    write_frame(control, HANDSHAKE_FIN, last, bytes);
    /* Unread bytes would turn the close into a reset, which may discard the FIN. */
    while (recv(control->fd, drain, sizeof drain, MSG_DONTWAIT) > 0)
        continue;
    close(control->fd);
    free(control);
}

static const struct lifeline_ops ops = {look, refuse, close_control};

bool control_connection_attach(struct lh_connection *connection, int fd, uint8_t version,
                               const char *peer_name)
{
    struct control_connection *control = calloc(1, sizeof *control);
    if (!control)
        return false;
    control->fd = fd;
    control->version = version;
    connection_set_lifeline(connection, &ops, control, peer_name);
    return true;
}
