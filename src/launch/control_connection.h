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

#include "launch/control_acceptor.h"
#include "launch/handshake.h"
#include "message/connection.h"

/* Streams of one TCP connection, their number has 16 bits. */
#define CONTROL_STREAMS_MAX 65536u
/* Of those that the peer opened, in their handshake: so that one peer cannot take all places of a listener.
 * Further ones are refused, and may be tried again. */
#define CONTROL_OPENING_MAX 8u

struct control_stream;

/* What follows the handshake over a socket. */
struct control_origin {
    int fd;
    uint8_t version; /* of the handshake, as agreed */
    struct control_acceptor
        *acceptor;     /* accepting side: takes what the peer opens; NULL: it may open nothing */
    const char *where; /* connecting side: further connections to there may use it; NULL: none */
    const char *peer_name;
};

/* The socket is the lifeline of the connection, which closes it. 0; -LH_ENOMEM or -LH_ESYSTEM: the socket
 * is still the caller's. */
int control_connection_begin(struct lh_connection *connection, const struct control_origin *origin);

/* A stream of a connection of the engine to there; NULL: there is none, connect. wake_fd: an eventfd,
 * written for each frame until the handshake is over. */
struct control_stream *control_stream_open(struct lh_engine *engine, const char *where, int wake_fd);
/* Of the TCP connection, for questions about its ends. */
int control_stream_fd(const struct control_stream *stream);
uint8_t control_stream_version(const struct control_stream *stream);
/* 0, or -LH_EPEER. */
int control_stream_send(struct control_stream *stream, enum handshake_type type, const void *body,
                        uint32_t bytes);
/* 1: a frame of the handshake; body holds HANDSHAKE_BODY_MAX. 0: none yet; -LH_EPEER. */
int control_stream_receive(struct control_stream *stream, struct handshake_header *header, uint8_t *body);
/* The handshake is over: the stream is the connection's lifeline, which closes it. */
void control_stream_hand_over(struct control_stream *stream, struct lh_connection *connection,
                              const char *peer_name);
/* Its TCP connection is of no use for others: none is opened over it any more. */
void control_stream_open_no_more(const struct control_stream *stream);
/* Ends it with a reason. */
void control_stream_refuse(struct control_stream *stream, const char *reason);

#endif
