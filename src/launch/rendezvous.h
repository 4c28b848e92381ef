/*
 * rendezvous.h - the handshake over a connected TCP socket, step by step, for both roles.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_RENDEZVOUS_H
#define LH_LAUNCH_RENDEZVOUS_H

#include <longhaul/connection.h>

#include "launch/handshake.h"

/* How long a side that has begun to speak may take for its whole handshake. People configure nothing here:
 * it is far more than any path needs, and only bounds what a stuck or hostile client costs. */
#define RENDEZVOUS_PATIENCE_NS (5 * LH_NS_PER_S)

/* The connecting side, from the first word on. Takes the socket in any case. */
int rendezvous_connect(int fd, const struct lh_attr *attr, lh_time deadline,
                       struct lh_connection **connection);
/* The accepting side, when the other's proposal has been read. Takes the socket in any case; a reason is
 * sent back when it fails. */
int rendezvous_accept(int fd, const struct lh_attr *attr, const struct handshake_proposal *theirs,
                      lh_time deadline, struct lh_connection **connection);
/* Tells the other side why it is refused (lh_last_error()), as far as that goes without waiting, and hangs
 * up. */
void rendezvous_refuse(int fd);

#endif
