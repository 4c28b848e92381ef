/*
 * clearing.h - what a sender does with clear-to-sends: each starts a segment, or opens the way for the parity
 * of one, or is passed by.
 *
 * They are taken in order. One of an earlier message is passed by: its receiver posted more segments than
 * the message needed. One of a later message waits: the receiver has ended the current one, and says so.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONNECTION_CLEARING_H
#define LH_CONNECTION_CLEARING_H

#include "connection/connection.h"

/* Clear-to-sends of parity belong to the segment right before them, unless that is over. Whether there were
 * any. */
bool clearing_use_parity(struct lh_connection *c);
/* Starts segments as they are cleared to be sent and there is room. Lowers *next. */
void clearing_start_segments(struct lh_connection *c, lh_time now, lh_time *next);

#endif
