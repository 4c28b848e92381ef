/*
 * control_connection.h - the TCP stream of the rendezvous, kept open as a keepalive: its end shows that the
 * peer's process is gone, and the last message travels over it, which packets could lose.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_CONTROL_CONNECTION_H
#define LH_LAUNCH_CONTROL_CONNECTION_H

#include "message/connection.h"

/* Hands the stream over to the connection, which closes it; version: of the handshake, as agreed. False: no
 * memory; fd is still the caller's. */
bool control_connection_attach(struct lh_connection *connection, int fd, uint8_t version,
                               const char *peer_name);

#endif
