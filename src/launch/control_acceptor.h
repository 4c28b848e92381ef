/*
 * control_acceptor.h - where the control connections of a listener put the streams that their peers open: a
 * bounded queue. It outlives the listener as long as any of them needs it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_CONTROL_ACCEPTOR_H
#define LH_LAUNCH_CONTROL_ACCEPTOR_H

#include <stdbool.h>
#include <stdint.h>

/* Streams that the listener has not taken yet; further ones are refused, and may be tried again. */
#define CONTROL_ACCEPTOR_MAX 32u

struct control_acceptor;
struct control_stream;

enum control_acceptance {
    CONTROL_ACCEPTED,
    CONTROL_FULL,
    CONTROL_CLOSED, /* there is no listener any more */
};

/* wake_fd: an eventfd of the listener, which is written for each stream. NULL: no memory. */
struct control_acceptor *control_acceptor_create(int wake_fd);
/* A control connection that uses it. */
struct control_acceptor *control_acceptor_share(struct control_acceptor *acceptor);
/* NULL is fine. Frees it with the last. */
void control_acceptor_release(struct control_acceptor *acceptor);
/* How many control connections use it. */
uint32_t control_acceptor_users(struct control_acceptor *acceptor);
int control_acceptor_wake_fd(const struct control_acceptor *acceptor);
enum control_acceptance control_acceptor_put(struct control_acceptor *acceptor,
                                             struct control_stream *stream);
/* The oldest; NULL: none. */
struct control_stream *control_acceptor_take(struct control_acceptor *acceptor);
/* The listener goes: it takes what is left, and releases it; the descriptor is not used any more. */
void control_acceptor_close(struct control_acceptor *acceptor);

#endif
