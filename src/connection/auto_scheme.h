/*
 * auto_scheme.h - `reliability = "auto"`: what this side receives tells it of the path, and by that each
 * message gets its scheme when its first segment is posted.
 *
 * Everything here is nothing when the scheme was named: connection.automatic is NULL then.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONNECTION_AUTO_SCHEME_H
#define LH_CONNECTION_AUTO_SCHEME_H

#include "connection/connection.h"

int auto_scheme_init(struct lh_connection *c); /* -LH_ENOMEM */
void auto_scheme_free(struct lh_connection *c);

/* The scheme of a message whose first segment is about to be posted. */
void auto_scheme_choose(struct lh_connection *c, uint64_t room, struct scheme_choice *choice);
/* Whether it is time to decide for the next message. One that is decided later is decided better; but it must
 * be in time for its clear-to-send to reach the sender before the sender has nothing left to send. */
bool auto_scheme_may_start(struct lh_connection *c);
/* Bytes of a message that a segment takes at least, whatever is chosen. */
uint64_t auto_scheme_segment_bytes_min(const struct lh_connection *c);

/* A segment was looked at; changed: it has more chunks than before. */
void auto_scheme_look(struct lh_connection *c, struct recv_segment *segment, bool changed, lh_time now);
/* All were. So many chunks have come. */
void auto_scheme_looked(struct lh_connection *c, uint32_t chunks, lh_time now);
/* A segment has arrived, or can be decoded; its bitmap is still there. */
void auto_scheme_segment_over(struct lh_connection *c, struct recv_segment *segment, lh_time now);
/* Goes on weighing; lowers *next when there is more to do. */
void auto_scheme_step(struct lh_connection *c, lh_time now, lh_time *next);

#endif
