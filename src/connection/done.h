/*
 * done.h - telling the sender what has arrived.
 *
 * DONE names the segment that arrived last, all before the oldest one that has not, and 64 from there on.
 * It is sent at once, again rtt / 8 and rtt / 4 after the last arrival, and whenever the sender asks for a
 * segment that has arrived. So a lost one is covered by a later one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONNECTION_DONE_H
#define LH_CONNECTION_DONE_H

#include "connection/connection.h"

/* A segment has arrived; told at the end of the step. */
void done_note(struct lh_connection *c, uint32_t sequence);
/* The sender asked for one that has arrived. */
void done_answer(struct lh_connection *c, uint32_t sequence);
void done_step(struct lh_connection *c, lh_time now, lh_time *next);
/* The last word of a connection that closes. */
struct transfer_message done_last(struct lh_connection *c);

#endif
