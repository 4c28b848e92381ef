/*
 * control_stream.h - one connection's part of a control connection: the frames of its handshake, then how it
 * ended. A leaf: who reads and writes the TCP connection is control_connection.c, under whose lock all
 * calls are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_CONTROL_STREAM_H
#define LH_LAUNCH_CONTROL_STREAM_H

#include <stdatomic.h>

#include "launch/handshake.h"
#include "message/connection.h"

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
    uint16_t id;
    bool said_last;                   /* this side's FIN or REFUSE is sent */
    bool heard_last;                  /* the peer's came */
    int wake_fd;                      /* an eventfd of who runs its handshake */
    struct lh_connection *connection; /* whose lifeline it is; NULL: in its handshake */
    struct control_frame *first;      /* of the handshake, not taken yet */
    struct control_frame *last;
    uint32_t waiting;
    /* As lifeline_ops.look() has it; written last, and read without the lock. */
    _Atomic int end;
    size_t words_bytes;
    uint8_t *words; /* the peer's last message, or its reason, printable; NULL: none */
};

/* NULL: no memory. */
struct control_stream *control_stream_create(struct control_connection *control, uint16_t id, int wake_fd);
void control_stream_free(struct control_stream *stream);
/* A frame of the peer, with its body. Tells whoever waits for it. */
void control_stream_deliver(struct control_stream *stream, const struct handshake_header *header,
                            const uint8_t *body);
/* 1: the next frame of the handshake; body holds HANDSHAKE_BODY_MAX. 0: none yet; -LH_EPEER: none any
 * more. */
int control_stream_take(struct control_stream *stream, struct handshake_header *header, uint8_t *body);
/* The handshake is over: what comes now, and what waits, is for the connection. */
void control_stream_bind(struct control_stream *stream, struct lh_connection *connection);
/* There is nothing to come any more; `end` as lifeline_ops.look() has it. The first one counts. */
void control_stream_end(struct control_stream *stream, int end);

#endif
