/*
 * effects.h - carries out what the parts want of the engine: requests that are done, the end of the
 * connection. Called after each call of a part that may leave effects. Under the lock.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_EFFECTS_H
#define LH_MESSAGE_EFFECTS_H

#include "message/connection.h"

void effects_carry_out(struct lh_connection *c);
/* Writes what the peer is to learn when the connection ends: what has arrived. Returns the bytes. */
size_t effects_make_last(struct lh_connection *c, uint8_t last[CONNECTION_LAST_MAX]);
/* Ends the connection and everything that is pending. The first error stays. */
void connection_fail(struct lh_connection *c, enum lh_error error, const char *reason);
/* Ends everything that is pending. error: negative. */
void connection_end_all(struct lh_connection *c, int error);

#endif
