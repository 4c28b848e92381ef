/*
 * lifeline.h - the TCP stream of the rendezvous, kept open: its end shows that the peer's process is gone,
 * and a last message travels over it that packets could lose.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_LIFELINE_H
#define LH_LAUNCH_LIFELINE_H

#include "connection/connection.h"

/* Hands the stream over to the connection, which closes it; version: of the handshake, as agreed. False: no
 * memory; fd is still the caller's. */
bool lifeline_attach(struct lh_connection *connection, int fd, uint8_t version, const char *peer_name);

#endif
