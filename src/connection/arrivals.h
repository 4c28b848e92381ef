/*
 * arrivals.h - segments that fill up: their bitmaps are looked at, and their scheme's machine decides.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONNECTION_ARRIVALS_H
#define LH_CONNECTION_ARRIVALS_H

#include "connection/connection.h"

/* A segment was posted; params are those of its scheme. */
void arrivals_start(struct lh_connection *c, struct recv_segment *segment,
                    const uint8_t params[LH_SCHEME_PARAMS], lh_time now);
/* Looks for chunks that have arrived; whether there are any. */
bool arrivals_look(struct lh_connection *c, lh_time now);
/* Something of this segment was seen: those before it were overtaken. */
void arrivals_note_seen(struct lh_connection *c, uint32_t sequence, lh_time now);
/* What the sender's machine says. */
void arrivals_on_scheme(struct lh_connection *c, struct recv_segment *segment, const uint8_t *data,
                        uint32_t bytes, lh_time now);
/* Lets the machines act to which something happened, or whose time has come. */
void arrivals_step(struct lh_connection *c, lh_time now, lh_time *next);

#endif
