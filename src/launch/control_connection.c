/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/control_connection.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/min_max.h"
#include "launch/handshake.h"
#include "launch/tcp.h"
#include "launch/tls_channel.h"
#include "message/connection_state.h"
#include "message/engine.h"
#include "sdr/worker_sleep.h"

/* ---- control stream -------------------------------------------------------------------------------- */

/* NULL: no memory. */
static struct control_stream *control_stream_create(struct control_connection *control, int wake_fd)
{
    struct control_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->control = control;
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

static void control_stream_free(struct control_stream *stream)
{
    struct control_frame *frame;
    while ((frame = take_first(stream)) != NULL) /* at most CONTROL_FRAMES_MAX */
        free(frame);
    free(stream->words);
    free(stream);
}

static void wake_owner(struct control_stream *stream)
{
    uint64_t one = 1;
    if (stream->connection) {
        connection_control_changed(stream->connection);
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
        wake_owner(stream);
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
    wake_owner(stream);
}

/* A frame of the peer, with its body. Tells whoever waits for it. */
static void control_stream_deliver(struct control_stream *stream, const struct handshake_header *header,
                                   const uint8_t *body)
{
    stream->received_last |= header->type == HANDSHAKE_FIN || header->type == HANDSHAKE_REFUSE;
    if (stream->connection)
        on_last(stream, header, body);
    else
        append(stream, header, body);
}

/* 1: the next frame of the handshake; body holds HANDSHAKE_BODY_MAX. 0: none yet; -LH_EPEER: none any
 * more. */
static int control_stream_take(struct control_stream *stream, struct handshake_header *header,
                               uint8_t *body)
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

/* The handshake is over: what comes now, and what waits, is for the connection. */
static void control_stream_bind(struct control_stream *stream, struct lh_connection *connection)
{
    struct control_frame *frame;
    stream->connection = connection;
    while ((frame = take_first(stream)) != NULL) { /* at most CONTROL_FRAMES_MAX */
        on_last(stream, &frame->header, frame->body);
        free(frame);
    }
    if (atomic_load(&stream->end) != 0)
        wake_owner(stream);
}

/* ---- control acceptor ------------------------------------------------------------------------------ */

enum control_acceptance {
    CONTROL_ACCEPTED,
    CONTROL_FULL,
    CONTROL_CLOSED, /* there is no listener any more */
};

struct control_acceptor {
    pthread_mutex_t lock; /* of all; no other is taken under it */
    uint32_t users;       /* the listener among them */
    bool closed;
    int wake_fd;
    uint32_t count;
    struct control_stream *streams[CONTROL_ACCEPTOR_MAX];
};

struct control_acceptor *control_acceptor_create(int wake_fd)
{
    struct control_acceptor *acceptor = calloc(1, sizeof *acceptor);
    if (!acceptor)
        return NULL;
    pthread_mutex_init(&acceptor->lock, NULL);
    acceptor->users = 1;
    acceptor->wake_fd = wake_fd;
    return acceptor;
}

struct control_acceptor *control_acceptor_share(struct control_acceptor *acceptor)
{
    pthread_mutex_lock(&acceptor->lock);
    acceptor->users++;
    pthread_mutex_unlock(&acceptor->lock);
    return acceptor;
}

void control_acceptor_release(struct control_acceptor *acceptor)
{
    if (!acceptor)
        return;
    pthread_mutex_lock(&acceptor->lock);
    bool last = --acceptor->users == 0;
    pthread_mutex_unlock(&acceptor->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&acceptor->lock);
    free(acceptor);
}

uint32_t control_acceptor_users(struct control_acceptor *acceptor)
{
    pthread_mutex_lock(&acceptor->lock);
    uint32_t users = acceptor->users - !acceptor->closed;
    pthread_mutex_unlock(&acceptor->lock);
    return users;
}

static int control_acceptor_wake_fd(const struct control_acceptor *acceptor)
{
    return acceptor->wake_fd;
}

static enum control_acceptance control_acceptor_put(struct control_acceptor *acceptor,
                                                    struct control_stream *stream)
{
    enum control_acceptance result = CONTROL_ACCEPTED;
    uint64_t one = 1;
    pthread_mutex_lock(&acceptor->lock);
    if (acceptor->closed)
        result = CONTROL_CLOSED;
    else if (acceptor->count == CONTROL_ACCEPTOR_MAX)
        result = CONTROL_FULL;
    else
        acceptor->streams[acceptor->count++] = stream;
    while (result == CONTROL_ACCEPTED && write(acceptor->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
    pthread_mutex_unlock(&acceptor->lock);
    return result;
}

struct control_stream *control_acceptor_take(struct control_acceptor *acceptor)
{
    pthread_mutex_lock(&acceptor->lock);
    struct control_stream *oldest = acceptor->count > 0 ? acceptor->streams[0] : NULL;
    if (oldest)
        memmove(&acceptor->streams[0], &acceptor->streams[1],
                --acceptor->count * sizeof acceptor->streams[0]);
    pthread_mutex_unlock(&acceptor->lock);
    return oldest;
}

void control_acceptor_close(struct control_acceptor *acceptor)
{
    pthread_mutex_lock(&acceptor->lock);
    acceptor->closed = true;
    pthread_mutex_unlock(&acceptor->lock);
}

/* ---- control connection ---------------------------------------------------------------------------- */

#define READS_A_TURN 64u               /* so that a flood cannot hold the worker */
#define OUT_MAX      ((size_t)4 << 20) /* of what does not leave: a peer that reads has far less waiting */
#define FLUSH_NS     (LH_NS_PER_S / 2) /* the last frames wait that long for a peer to read */
#define WHERE_MAX    256u

struct control_connection {
    struct watch_other watch;
    struct lh_engine *engine;
    uint8_t version;
    struct control_acceptor *acceptor; /* or NULL */
    char where[WHERE_MAX];             /* "": nobody else uses it */
    const char *identity;              /* of its key; "": clear text */
    struct control_connection *next;   /* of the engine's, where it has that; under its lock */
    _Atomic uint32_t users;            /* who closes it, and who looks whether it can open a stream */
    pthread_mutex_t lock;              /* of all that follows */
    struct channel channel;
    bool ended;                      /* nothing comes any more */
    bool broken;                     /* the TCP connection failed: the peer may well live */
    bool closing;                    /* no stream is left */
    struct control_stream **streams; /* by number; NULL: it is free; HALF_ENDED */
    uint32_t room;
    uint32_t count; /* numbers that were used so far: the lowest ones */
    uint32_t free;  /* none below it is free */
    uint32_t live;
    uint32_t opening; /* of those, in their handshake */
    uint32_t have;    /* bytes of the frame that is being read */
    uint8_t frame[HANDSHAKE_HEADER_BYTES + HANDSHAKE_BODY_MAX];
    uint8_t *out; /* what did not leave */
    size_t out_bytes;
    size_t out_room;
};

/* This side has ended it, and the peer has not yet. */
static struct control_stream half_ended;
#define HALF_ENDED (&half_ended)

/* ---- numbers ----------------------------------------------------------------------------------------- */

static bool make_room(struct control_connection *control)
{
    if (control->count < control->room)
        return true;
    uint32_t room = control->room ? 2 * control->room : 4;
    if (room > CONTROL_STREAMS_MAX)
        return false;
    struct control_stream **streams = realloc(control->streams, room * sizeof *streams);
    if (!streams)
        return false;
    control->streams = streams;
    control->room = room;
    return true;
}

/* NULL: no memory. It has no number yet. */
static struct control_stream *add_stream(struct control_connection *control, int wake_fd)
{
    struct control_stream *stream = control_stream_create(control, wake_fd);
    if (!stream)
        return NULL;
    control->live++;
    control->opening++;
    return stream;
}

/* id: one that is free, or the next. False: no memory, or none left. */
static bool give_number(struct control_stream *stream, uint32_t id)
{
    struct control_connection *control = stream->control;
    assert(id <= control->count && !stream->numbered);
    if (id == control->count && !make_room(control))
        return false;
    stream->id = (uint16_t)id;
    stream->numbered = true;
    control->streams[id] = stream;
    control->count += id == control->count;
    return true;
}

static uint32_t first_free(struct control_connection *control)
{
    while (control->free < control->count && control->streams[control->free])
        control->free++;
    return control->free;
}

static void free_number(struct control_connection *control, uint32_t id)
{
    control->streams[id] = NULL;
    control->free = (uint32_t)lh_min(control->free, id);
}

/* Both sides have said their last: what comes under its number is of another. */
static bool has_no_number(const struct control_stream *stream)
{
    return stream->sent_last && stream->received_last;
}

/* After a last frame of either side. */
static void keep_number_or_free(struct control_stream *stream)
{
    if (has_no_number(stream))
        free_number(stream->control, stream->id);
}

/* Who had it has it no longer. This side has said its last. */
static void drop_stream(struct control_connection *control, struct control_stream *stream)
{
    if (stream->numbered && !has_no_number(stream))
        control->streams[stream->id] = HALF_ENDED;
    control->opening -= stream->connection == NULL;
    control_stream_free(stream);
    control->live--;
}

/* ---- sending ----------------------------------------------------------------------------------------- */

static void end_all(struct control_connection *control)
{
    control->ended = true;
    for (uint32_t i = 0; i < control->count; i++)
        if (control->streams[i] && control->streams[i] != HALF_ENDED)
            control_stream_end(control->streams[i], control->broken ? CONTROL_CONNECTION_LOST : -LH_EPEER);
}

static bool keep(struct control_connection *control, const uint8_t *bytes, size_t count)
{
    size_t need = control->out_bytes + count;
    if (need > OUT_MAX)
        return false;
    if (need > control->out_room) {
        size_t room = lh_max(2 * control->out_room, need);
        uint8_t *out = realloc(control->out, room);
        if (!out)
            return false;
        control->out = out;
        control->out_room = room;
    }
    memcpy(control->out + control->out_bytes, bytes, count);
    control->out_bytes = need;
    return true;
}

static bool is_for_later(int error)
{
    return error == EAGAIN || error == EINTR;
}

/* Of a call on the socket, which reports it once; EPIPE comes after that, or after the end. A reset, too,
 * says nothing of the peer: NAT or a firewall that has forgotten the TCP connection answers with one. */
static void on_error(struct control_connection *control, int error)
{
    control->broken |= !is_for_later(error) && error != EPIPE;
}

/* What the socket takes of them now. -1: none any more. */
static ssize_t send_some(struct control_connection *control, const uint8_t *bytes, size_t count)
{
    ssize_t sent = channel_send(&control->channel, bytes, count);
    if (sent < 0)
        on_error(control, errno);
    return sent;
}

static bool has_unsent(const struct control_connection *control)
{
    return control->out_bytes > 0 || channel_has_unsent(&control->channel);
}

static void flush(struct control_connection *control)
{
    if (!has_unsent(control))
        return;
    ssize_t sent = send_some(control, control->out, control->out_bytes);
    if (sent < 0) { /* reading finds an end */
        engine_watch_writable(control->engine, &control->watch, false);
        return;
    }
    control->out_bytes -= (size_t)sent;
    if (control->out_bytes > 0)
        memmove(control->out, control->out + sent, control->out_bytes);
    if (has_unsent(control))
        return;
    free(control->out);
    control->out = NULL;
    control->out_room = 0;
    engine_watch_writable(control->engine, &control->watch, false);
}

static int peer_is_gone(void)
{
    return lh_fail(LH_EPEER, "connection to the remote side failed: it has ended");
}

/* Whole or not at all. */
static int write_frame(struct control_connection *control, uint16_t id, enum handshake_type type,
                       const void *body, size_t bytes)
{
    uint8_t frame[HANDSHAKE_HEADER_BYTES + HANDSHAKE_BODY_MAX];
    const struct handshake_header header = {control->version, type, id, (uint32_t)bytes};
    size_t whole = HANDSHAKE_HEADER_BYTES + bytes;
    if (control->ended)
        return peer_is_gone();
    handshake_header_encode(&header, frame);
    if (bytes)
        memcpy(frame + HANDSHAKE_HEADER_BYTES, body, bytes);
    bool waits = has_unsent(control);
    ssize_t sent = waits ? 0 : send_some(control, frame, whole);
    if (sent < 0 || ((size_t)sent < whole && !keep(control, frame + sent, whole - (size_t)sent))) {
        /* The rest of a frame is lost, and all behind it. Who reads finds the end. */
        shutdown(control->watch.fd, SHUT_RDWR);
        return peer_is_gone();
    }
    if (!waits && has_unsent(control))
        engine_watch_writable(control->engine, &control->watch, true);
    return 0;
}

static void write_last(struct control_stream *stream, enum handshake_type type, const void *body,
                       size_t bytes)
{
    if (stream->sent_last)
        return;
    stream->sent_last = true;
    if (!stream->numbered) /* the peer knows nothing of it */
        return;
    write_frame(stream->control, stream->id, type, body, bytes);
    keep_number_or_free(stream);
}

static size_t reason_bytes(const char *reason)
{
    return lh_min(strlen(reason), HANDSHAKE_REASON_MAX);
}

/* ---- reading ----------------------------------------------------------------------------------------- */

/* The peer opens a stream. False: no memory. */
static bool open_for_peer(struct control_connection *control, const struct handshake_header *header,
                          const uint8_t *body)
{
    struct control_stream *stream = add_stream(control, -1);
    if (!stream)
        return false;
    if (!give_number(stream, header->stream)) {
        drop_stream(control, stream);
        return false;
    }
    control_stream_deliver(stream, header, body);
    stream->wake_fd = control_acceptor_wake_fd(control->acceptor);
    bool is_one_too_many = control->opening > CONTROL_OPENING_MAX;
    enum control_acceptance got =
        is_one_too_many ? CONTROL_FULL : control_acceptor_put(control->acceptor, stream);
    if (got == CONTROL_ACCEPTED)
        return true;
    const char *reason = got == CONTROL_FULL ? HANDSHAKE_FULL : HANDSHAKE_CLOSED;
    write_last(stream, HANDSHAKE_REFUSE, reason, strlen(reason));
    drop_stream(control, stream);
    return true;
}

/* False: the peer talks nonsense. */
static bool on_frame(struct control_connection *control, const struct handshake_header *header,
                     const uint8_t *body)
{
    uint32_t id = header->stream;
    struct control_stream *stream = id < control->count ? control->streams[id] : NULL;
    bool last = header->type == HANDSHAKE_FIN || header->type == HANDSHAKE_REFUSE;
    if (stream == HALF_ENDED) {
        if (last)
            free_number(control, id);
        return true;
    }
    if (stream && !stream->received_last) { /* versions before 3 may send a FIN behind a REFUSE */
        control_stream_deliver(stream, header, body);
        keep_number_or_free(stream);
    }
    if (stream)
        return true;
    if (control->closing)
        return true;
    return control->acceptor && header->type == HANDSHAKE_PROPOSAL && id <= control->count &&
           open_for_peer(control, header, body);
}

/* Whether one is whole, or its header is wrong: read_some() takes it without a read. */
static bool has_frame(const struct control_connection *control)
{
    struct handshake_header header;
    return control->have >= HANDSHAKE_HEADER_BYTES &&
           (handshake_header_decode(control->frame, &header) ||
            control->have == HANDSHAKE_HEADER_BYTES + header.body_bytes);
}

/* False: the peer is gone, or talks nonsense, or the TCP connection failed. */
static bool read_some(struct control_connection *control)
{
    struct handshake_header header;
    /* Nothing would wake the worker for a frame that is here, or for bytes that TLS has read. */
    for (uint32_t i = 0; i < READS_A_TURN || has_frame(control) || channel_has_unread(&control->channel);
         i++) {
        uint32_t want = HANDSHAKE_HEADER_BYTES;
        if (control->have >= HANDSHAKE_HEADER_BYTES) {
            if (handshake_header_decode(control->frame, &header))
                return false;
            want += header.body_bytes;
            if (control->have == want) {
                control->have = 0;
                if (!on_frame(control, &header, control->frame + HANDSHAKE_HEADER_BYTES))
                    return false;
                continue;
            }
        }
        ssize_t got =
            channel_receive(&control->channel, control->frame + control->have, want - control->have);
        if (got < 0 && is_for_later(errno))
            return true;
        if (got < 0)
            on_error(control, errno);
        if (got <= 0)
            return false;
        control->have += (uint32_t)got;
    }
    return true;
}

static bool on_ready(void *context)
{
    struct control_connection *control = context;
    pthread_mutex_lock(&control->lock);
    flush(control);
    bool sent_all = !has_unsent(control), lives = read_some(control);
    if (!lives)
        end_all(control);
    else if (sent_all && has_unsent(control)) /* an answer of TLS itself */
        engine_watch_writable(control->engine, &control->watch, true);
    pthread_mutex_unlock(&control->lock);
    return lives;
}

/* ---- its end ----------------------------------------------------------------------------------------- */

static void release(struct control_connection *control)
{
    if (atomic_fetch_sub(&control->users, 1) > 1)
        return;
    pthread_mutex_destroy(&control->lock);
    control_acceptor_release(control->acceptor);
    free(control->streams);
    free(control->out);
    free(control);
}

/* Sends the rest, for a while. */
static void close_socket(struct control_connection *control)
{
    if (has_unsent(control))
        channel_send_all(&control->channel, control->out, control->out_bytes, tcp_deadline(FLUSH_NS));
    channel_close(&control->channel);
}

static void remove_from_engine(struct control_connection *control)
{
    struct lh_engine *engine = control->engine;
    if (!*control->where)
        return;
    pthread_mutex_lock(&engine->lock);
    struct control_connection **at = &engine->controls;
    while (*at && *at != control) /* bounded by the control connections of the engine */
        at = &(*at)->next;
    if (*at)
        *at = control->next;
    pthread_mutex_unlock(&engine->lock);
}

static void finish(struct control_connection *control)
{
    remove_from_engine(control);
    engine_unwatch(control->engine, &control->watch);
    close_socket(control);
    release(control);
}

static void close_stream(struct control_stream *stream, enum handshake_type type, const void *last,
                         size_t bytes)
{
    struct control_connection *control = stream->control;
    pthread_mutex_lock(&control->lock);
    write_last(stream, type, last, bytes);
    drop_stream(control, stream);
    control->closing = control->live == 0;
    bool over = control->closing;
    pthread_mutex_unlock(&control->lock);
    if (over)
        finish(control);
}

/* ---- control connections ----------------------------------------------------------------------------- */

static int look(void *control_connection, uint8_t *last, size_t *bytes)
{
    const struct control_stream *stream = control_connection;
    int end = atomic_load(&stream->end);
    *bytes = end != 0 ? stream->words_bytes : 0;
    if (*bytes > 0)
        memcpy(last, stream->words, *bytes);
    return end;
}

static void refuse(void *control_connection, const char *reason)
{
    struct control_stream *stream = control_connection;
    pthread_mutex_lock(&stream->control->lock);
    write_last(stream, HANDSHAKE_REFUSE, reason, reason_bytes(reason));
    pthread_mutex_unlock(&stream->control->lock);
}

static void close_control_connection(void *control_connection, const uint8_t *last, size_t bytes)
{
    close_stream(control_connection, HANDSHAKE_FIN, last, bytes);
}

static const struct control_connection_ops ops = {look, refuse, close_control_connection};

void control_stream_hand_over(struct control_stream *stream, struct lh_connection *connection,
                              const char *peer_name)
{
    connection_set_control_connection(connection, &ops, stream, peer_name);
    pthread_mutex_lock(&stream->control->lock);
    control_stream_bind(stream, connection);
    stream->control->opening--;
    pthread_mutex_unlock(&stream->control->lock);
}

/* ---- its beginning ----------------------------------------------------------------------------------- */

static struct control_connection *create(struct lh_engine *engine, const struct control_origin *origin)
{
    struct control_connection *control = calloc(1, sizeof *control);
    if (!control)
        return NULL;
    control->watch =
        (struct watch_other){.fd = origin->channel.fd, .on_ready = on_ready, .context = control};
    control->channel = origin->channel;
    control->identity = channel_identity(&control->channel);
    control->engine = engine;
    control->version = origin->version;
    control->acceptor = origin->acceptor ? control_acceptor_share(origin->acceptor) : NULL;
    if (origin->where && strlen(origin->where) < sizeof control->where)
        strcpy(control->where, origin->where);
    control->users = 1;
    tcp_keep_alive(origin->channel.fd);
    pthread_mutex_init(&control->lock, NULL);
    return control;
}

static void add_to_engine(struct control_connection *control)
{
    struct lh_engine *engine = control->engine;
    if (!*control->where)
        return;
    pthread_mutex_lock(&engine->lock);
    control->next = engine->controls;
    engine->controls = control;
    pthread_mutex_unlock(&engine->lock);
}

int control_connection_begin(struct lh_connection *connection, const struct control_origin *origin)
{
    struct control_connection *control = create(connection->engine, origin);
    struct control_stream *stream = control ? add_stream(control, -1) : NULL;
    int error = stream && give_number(stream, 0) ? engine_watch(control->engine, &control->watch)
                                                 : lh_fail(LH_ENOMEM, "no memory for a control connection");
    if (error) {
        if (stream)
            drop_stream(control, stream);
        if (control)
            release(control);
        return error;
    }
    add_to_engine(control);
    control_stream_hand_over(stream, connection, origin->peer_name);
    return 0;
}

/* ---- streams of the connecting side ------------------------------------------------------------------ */

/* One to there, with that key, after so many that were of no use. It is the caller's to release. */
static struct control_connection *next_to(struct lh_engine *engine, const char *where, const char *identity,
                                          uint32_t skip)
{
    pthread_mutex_lock(&engine->lock);
    struct control_connection *control = engine->controls;
    for (; control; control = control->next)
        if (!strcmp(control->where, where) && !strcmp(control->identity, identity) && skip-- == 0)
            break;
    if (control)
        atomic_fetch_add(&control->users, 1);
    pthread_mutex_unlock(&engine->lock);
    return control;
}

struct control_stream *control_stream_open(struct lh_engine *engine, const char *where,
                                           const char *identity, int wake_fd)
{
    struct control_stream *stream = NULL;
    struct control_connection *control;
    for (uint32_t i = 0; !stream && (control = next_to(engine, where, identity, i)) != NULL; i++) {
        pthread_mutex_lock(&control->lock);
        if (!control->ended && !control->closing)
            stream = add_stream(control, wake_fd);
        pthread_mutex_unlock(&control->lock);
        release(control);
    }
    return stream;
}

int control_stream_fd(const struct control_stream *stream)
{
    return stream->control->watch.fd;
}

uint8_t control_stream_version(const struct control_stream *stream)
{
    return stream->control->version;
}

int control_stream_packet_secret(struct control_stream *stream, const struct channel_blobs *blobs,
                                 uint8_t out[CHANNEL_SECRET_BYTES])
{
    pthread_mutex_lock(&stream->control->lock);
    int error = channel_packet_secret(&stream->control->channel, stream->id, blobs, out);
    pthread_mutex_unlock(&stream->control->lock);
    return error;
}

int control_stream_send(struct control_stream *stream, enum handshake_type type, const void *body,
                        uint32_t bytes)
{
    struct control_connection *control = stream->control;
    pthread_mutex_lock(&control->lock);
    /* Number and first frame under one lock: the peer takes no number that leaves a gap. */
    bool numbered = stream->numbered || (!control->ended && give_number(stream, first_free(control)));
    int error = numbered ? write_frame(control, stream->id, type, body, bytes) : peer_is_gone();
    pthread_mutex_unlock(&control->lock);
    return error;
}

int control_stream_receive(struct control_stream *stream, struct handshake_header *header, uint8_t *body)
{
    pthread_mutex_lock(&stream->control->lock);
    int got = control_stream_take(stream, header, body);
    pthread_mutex_unlock(&stream->control->lock);
    return got;
}

void control_stream_open_no_more(const struct control_stream *stream)
{
    remove_from_engine(stream->control);
}

void control_stream_refuse(struct control_stream *stream, const char *reason)
{
    close_stream(stream, HANDSHAKE_REFUSE, reason, reason_bytes(reason));
}
