/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/control_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

struct control_stream *control_stream_create(struct control_connection *control, uint16_t id, int wake_fd)
{
    struct control_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->control = control;
    stream->id = id;
    stream->wake_fd = wake_fd;
    return stream;
}

static struct control_frame *take_first(struct control_stream *stream)
{
    struct control_frame *frame = stream->first;
    if (!frame)
        return NULL;
    stream->first = frame->next;
    stream->last = frame->next ? stream->last : NULL;
    stream->waiting--;
    return frame;
}

void control_stream_free(struct control_stream *stream)
{
    struct control_frame *frame;
    while ((frame = take_first(stream)) != NULL) /* at most CONTROL_FRAMES_MAX */
        free(frame);
    free(stream->words);
    free(stream);
}

static void tell(struct control_stream *stream)
{
    uint64_t one = 1;
    if (stream->connection) {
        connection_lifeline_changed(stream->connection);
        return;
    }
    /* A full counter means that it is being woken already. */
    while (write(stream->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

void control_stream_end(struct control_stream *stream, int end)
{
    int none = 0;
    if (atomic_compare_exchange_strong(&stream->end, &none, end))
        tell(stream);
}

/* A reason for people: without what a terminal could act on. */
static void make_printable(uint8_t *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (text[i] < ' ' || text[i] > '~')
            text[i] = '?';
}

/* Behind the handshake only its last frame may come. */
static void on_last(struct control_stream *stream, const struct handshake_header *header,
                    const uint8_t *body)
{
    bool refused = header->type == HANDSHAKE_REFUSE;
    if ((!refused && header->type != HANDSHAKE_FIN) || header->body_bytes > TRANSFER_BYTES_MAX) {
        control_stream_end(stream, -LH_EPEER);
        return;
    }
    if (atomic_load(&stream->end) != 0)
        return;
    stream->words = header->body_bytes > 0 ? malloc(header->body_bytes) : NULL;
    if (stream->words) {
        memcpy(stream->words, body, header->body_bytes);
        stream->words_bytes = header->body_bytes;
    }
    if (refused)
        make_printable(stream->words, stream->words_bytes);
    control_stream_end(stream, refused ? -LH_EPATH : -LH_ECLOSED);
}

static void append(struct control_stream *stream, const struct handshake_header *header,
                   const uint8_t *body)
{
    struct control_frame *frame =
        stream->waiting < CONTROL_FRAMES_MAX ? malloc(sizeof *frame + header->body_bytes) : NULL;
    if (!frame) {
        control_stream_end(stream, -LH_EPEER);
        return;
    }
    frame->next = NULL;
    frame->header = *header;
    memcpy(frame->body, body, header->body_bytes);
    if (stream->last)
        stream->last->next = frame;
    else
        stream->first = frame;
    stream->last = frame;
    stream->waiting++;
    tell(stream);
}

void control_stream_deliver(struct control_stream *stream, const struct handshake_header *header,
                            const uint8_t *body)
{
    stream->heard_last |= header->type == HANDSHAKE_FIN || header->type == HANDSHAKE_REFUSE;
    if (stream->connection)
        on_last(stream, header, body);
    else
        append(stream, header, body);
}

int control_stream_take(struct control_stream *stream, struct handshake_header *header, uint8_t *body)
{
    struct control_frame *frame = take_first(stream);
    if (frame) {
        *header = frame->header;
        memcpy(body, frame->body, frame->header.body_bytes);
        free(frame);
        return 1;
    }
    if (atomic_load(&stream->end) == 0)
        return 0;
    return lh_fail(LH_EPEER, "the remote side closed the connection during the handshake");
}

void control_stream_bind(struct control_stream *stream, struct lh_connection *connection)
{
    struct control_frame *frame;
    stream->connection = connection;
    while ((frame = take_first(stream)) != NULL) { /* at most CONTROL_FRAMES_MAX */
        on_last(stream, &frame->header, frame->body);
        free(frame);
    }
    if (atomic_load(&stream->end) != 0)
        tell(stream);
}
