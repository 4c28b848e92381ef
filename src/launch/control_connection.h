/*
 * control_connection.h - the TCP connection of a rendezvous, kept open: its end shows that the peer's
 * process is gone, and the last message of a connection travels over it, which packets could lose.
 *
 * Between two engines one serves all connections of a listener's address: each has a stream of it. The first
 * handshake runs over the socket itself, and is stream 0; the connecting side opens further ones, each
 * with the lowest number that is free, and runs its handshake there. Each side ends a stream with a FIN
 * or a REFUSE; its number is free when both have. Without streams the TCP connection ends.
 *
 * The control worker of the engine (or who makes its progress) reads, when there is something to read.
 * What does not leave at once is kept, up to a bound, and leaves when it can.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_CONTROL_CONNECTION_H
#define LH_LAUNCH_CONTROL_CONNECTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "launch/handshake.h"
#include "launch/tls_channel.h"
#include "message/connection_state.h"

/* ---- control acceptor ------------------------------------------------------------------------------ */

/*
 * Where the control connections of a listener put the streams that their peers open: a
 * bounded queue. It outlives the listener as long as any of them needs it.
 */

/* Streams that the listener has not taken yet; further ones are refused, and may be tried again. */
#define CONTROL_ACCEPTOR_MAX 32u

struct control_acceptor;
struct control_stream;

/* wake_fd: an eventfd of the listener, which is written for each stream. NULL: no memory. */
struct control_acceptor *control_acceptor_create(int wake_fd);
/* A control connection that uses it. */
struct control_acceptor *control_acceptor_share(struct control_acceptor *acceptor);
/* NULL is fine. Frees it with the last. */
void control_acceptor_release(struct control_acceptor *acceptor);
/* How many control connections use it. */
uint32_t control_acceptor_users(struct control_acceptor *acceptor);
/* The oldest; NULL: none. */
struct control_stream *control_acceptor_take(struct control_acceptor *acceptor);
/* The listener goes: it takes what is left, and releases it; the descriptor is not used any more. */
void control_acceptor_close(struct control_acceptor *acceptor);

/* ---- control connection ---------------------------------------------------------------------------- */

/* Streams of one TCP connection, their number has 16 bits. */
#define CONTROL_STREAMS_MAX 65536u
/* Of those that the peer opened, in their handshake: so that one peer cannot take all places of a listener.
 * Further ones are refused, and may be tried again. */
#define CONTROL_OPENING_MAX 8u

struct control_stream;

/* What follows the handshake over a socket. */
struct control_origin {
    struct channel channel;
    uint8_t version; /* of the handshake, as agreed */
    struct control_acceptor
        *acceptor;     /* accepting side: takes what the peer opens; NULL: it may open nothing */
    const char *where; /* connecting side: further connections to there may use it; NULL: none */
    const char *peer_name;
};

/* The channel is the control connection of the connection, which closes it. 0; -LH_ENOMEM or -LH_ESYSTEM: it
 * is still the caller's. */
int control_connection_begin(struct lh_connection *connection, const struct control_origin *origin);

/* A stream of a connection of the engine to there, with the key of that identity (channel_identity()); NULL:
 * there is none, connect. Its first frame, a PROPOSAL, gives it its number: without it the peer knows nothing
 * of it. wake_fd: an eventfd, written for each frame until the handshake is over. */
struct control_stream *control_stream_open(struct lh_engine *engine, const char *where,
                                           const char *identity, int wake_fd);
/* Of the TCP connection, for questions about its ends. */
int control_stream_fd(const struct control_stream *stream);
uint8_t control_stream_version(const struct control_stream *stream);
/* As channel_packet_secret(). */
int control_stream_packet_secret(struct control_stream *stream, const struct channel_blobs *blobs,
                                 uint8_t out[CHANNEL_SECRET_BYTES]);
/* 0, or -LH_EPEER. */
int control_stream_send(struct control_stream *stream, enum handshake_type type, const void *body,
                        uint32_t bytes);
/* 1: a frame of the handshake; body holds HANDSHAKE_BODY_MAX. 0: none yet; -LH_EPEER. */
int control_stream_receive(struct control_stream *stream, struct handshake_header *header, uint8_t *body);
/* The handshake is over: the stream is the connection's control connection, which closes it. */
void control_stream_hand_over(struct control_stream *stream, struct lh_connection *connection,
                              const char *peer_name);
/* Its TCP connection is of no use for others: none is opened over it any more. */
void control_stream_open_no_more(const struct control_stream *stream);
/* Ends it with a reason. */
void control_stream_refuse(struct control_stream *stream, const char *reason);

/* ---- control stream -------------------------------------------------------------------------------- */

/*
 * One connection's part of a control connection: the frames of its handshake, then how it
 * ended. A leaf: who reads and writes the TCP connection is control_connection.c, under whose lock all
 * calls are.
 */

/* Frames of a handshake that wait to be taken: a peer that sends more does not play along. */
#define CONTROL_FRAMES_MAX 8u

struct control_connection;

struct control_frame {
    struct control_frame *next;
    struct handshake_header header;
    uint8_t body[];
};

struct control_stream {
    struct control_connection *control;
    uint16_t id; /* where it is numbered */
    bool numbered;
    bool sent_last;                   /* this side's FIN or REFUSE is sent */
    bool received_last;               /* the peer's came */
    int wake_fd;                      /* an eventfd of who runs its handshake */
    struct lh_connection *connection; /* whose control connection it is; NULL: in its handshake */
    struct control_frame *first;      /* of the handshake, not taken yet */
    struct control_frame *last;
    uint32_t waiting;
    /* As control_connection_ops.look() has it; written last, and read without the lock. */
    _Atomic int end;
    size_t words_bytes;
    uint8_t *words; /* the peer's last message, or its reason, printable; NULL: none */
};
/* There is nothing to come any more; `end` as control_connection_ops.look() has it. The first one counts. */
void control_stream_end(struct control_stream *stream, int end);

#endif
